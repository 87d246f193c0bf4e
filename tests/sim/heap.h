/*
 * Events in order of their time; those of equal times in order of arrival.
 */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct event {
    int64_t at_us;
    uint64_t order;
    int kind;
    int a, b;     /* their meaning depends on the kind */
    uint64_t tag; /* likewise */
    int64_t number;
    void *object; /* likewise */
};

struct heap {
    struct event *events;
    size_t count;
    size_t room;
    uint64_t pushed;
};

void heap_push(struct heap *heap, struct event event);

/* The earliest; the heap must not be empty. */
struct event heap_pop(struct heap *heap);

#endif
