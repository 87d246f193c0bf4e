#include "heap.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

void heap_push(struct heap *heap, struct event event)
{
    if (heap->count == heap->room) {
        heap->room = heap->room ? 2 * heap->room : 256;
        struct event *events =
            realloc(heap->events, heap->room * sizeof *events);
        if (events == NULL)
            abort();
        heap->events = events;
    }
    event.order = heap->pushed++;
    size_t at = heap->count++;
    for (; at > 0 && is_before(&event, &heap->events[(at - 1) / 2]);
         at = (at - 1) / 2)
        heap->events[at] = heap->events[(at - 1) / 2];
    heap->events[at] = event;
}

struct event heap_pop(struct heap *heap)
{
    assert(heap->count > 0);
    struct event top = heap->events[0];
    struct event last = heap->events[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            is_before(&heap->events[child + 1], &heap->events[child]))
            child++;
        if (!is_before(&heap->events[child], &last))
            break;
        heap->events[at] = heap->events[child];
        at = child;
    }
    heap->events[at] = last;
    return top;
}
