/* SPDX-License-Identifier: MIT */
#include "heap.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

enum { PLACE_BITS = 20 /* a million events at a time */ };

static const uint64_t place_mask = (UINT64_C(1) << PLACE_BITS) - 1;

static bool is_before(struct heap_entry a, struct heap_entry b)
{
    /* without a branch that nobody can predict */
    return (a.at_us < b.at_us) |
           ((a.at_us == b.at_us) & (a.order_and_place < b.order_and_place));
}

/* Entries behind the last one say which places are free. */
static void grow(struct heap *heap)
{
    size_t room = heap->room ? 2 * heap->room : 256;
    struct heap_entry *entries = realloc(heap->entries, room * sizeof *entries);
    struct event *events = realloc(heap->events, room * sizeof *events);
    if (entries == NULL || events == NULL || room > place_mask)
        abort();
    for (size_t i = heap->room; i < room; i++)
        entries[i].order_and_place = i;
    heap->entries = entries;
    heap->events = events;
    heap->room = room;
}

/* Moves the entry up from the hole to where it belongs. */
static void rise(struct heap *heap, size_t hole, struct heap_entry entry)
{
    for (; hole > 0 && is_before(entry, heap->entries[(hole - 1) / 2]);
         hole = (hole - 1) / 2)
        heap->entries[hole] = heap->entries[(hole - 1) / 2];
    heap->entries[hole] = entry;
}

void heap_push(struct heap *heap, struct event event)
{
    if (heap->count == heap->room)
        grow(heap);
    size_t at = heap->count++;
    uint64_t place = heap->entries[at].order_and_place & place_mask;
    struct heap_entry entry = {event.at_us,
                               heap->pushed++ << PLACE_BITS | place};
    heap->events[place] = event;
    rise(heap, at, entry);
}

int64_t heap_next_us(const struct heap *heap)
{
    return heap->count > 0 ? heap->entries[0].at_us : INT64_MAX;
}

/*
 * Moves the hole at the top down, where the last entry goes; from there it
 * seldom rises, so nothing is compared with it on the way.
 */
static size_t sink(struct heap *heap)
{
    struct heap_entry *entries = heap->entries;
    size_t hole = 0, child;
    while ((child = 2 * hole + 1) + 1 < heap->count) {
        child += is_before(entries[child + 1], entries[child]);
        entries[hole] = entries[child];
        hole = child;
    }
    if (child < heap->count) {
        entries[hole] = entries[child];
        hole = child;
    }
    return hole;
}

struct event heap_pop(struct heap *heap)
{
    assert(heap->count > 0);
    struct heap_entry top = heap->entries[0];
    struct heap_entry last = heap->entries[--heap->count];
    if (heap->count > 0)
        rise(heap, sink(heap), last);
    heap->entries[heap->count] = top; /* its place is free */
    return heap->events[top.order_and_place & place_mask];
}

void heap_fini(struct heap *heap)
{
    assert(heap->count == 0);
    free(heap->entries);
    free(heap->events);
}
