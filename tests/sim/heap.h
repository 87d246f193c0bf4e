/* SPDX-License-Identifier: MIT */
/*
 * Events in order of their time; those of equal times in order of arrival.
 */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct event {
    int64_t at_us;
    int kind;
    int a, b;     /* their meaning depends on the kind */
    uint64_t tag; /* likewise */
    int64_t number;
    void *object; /* likewise */
};

/* What is sorted: small, since it is moved often. */
struct heap_entry {
    int64_t at_us;
    uint64_t order_and_place; /* the upper bits decide */
};

struct heap {
    struct heap_entry *entries;
    struct event *events; /* each at its place */
    size_t count;
    size_t room;
    uint64_t pushed;
};

void heap_push(struct heap *heap, struct event event);

/* When the earliest is due; INT64_MAX: there is none. */
int64_t heap_next_us(const struct heap *heap);

/* The earliest; the heap must not be empty. */
struct event heap_pop(struct heap *heap);

/* Gives back the data of an empty heap. */
void heap_fini(struct heap *heap);

#endif
