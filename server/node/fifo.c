#include "fifo.h"

#include <assert.h>
#include <stdlib.h>

static bool grow(struct fifo *fifo)
{
    uint32_t room = fifo->room > 0 ? 2 * fifo->room : 64;
    struct fifo_entry *ring = malloc(room * sizeof *ring);
    if (ring == NULL)
        return false;
    for (uint32_t i = 0; i < fifo->count; i++)
        ring[i] = fifo->ring[(fifo->first + i) & (fifo->room - 1)];
    free(fifo->ring);
    fifo->ring = ring;
    fifo->room = room;
    fifo->first = 0;
    return true;
}

bool fifo_push(struct fifo *fifo, struct fifo_entry entry)
{
    if (fifo->count == FIFO_MAX)
        return false;
    if (fifo->count == fifo->room && !grow(fifo))
        return false;
    fifo->ring[(fifo->first + fifo->count) & (fifo->room - 1)] = entry;
    fifo->count++;
    return true;
}

int fifo_answered(const struct fifo *fifo)
{
    uint32_t count = fifo->count > 0;
    while (count < fifo->count &&
           !fifo->ring[(fifo->first + count) & (fifo->room - 1)].is_first)
        count++;
    return (int)count;
}

const struct fifo_entry *fifo_first(const struct fifo *fifo)
{
    return fifo->count > 0 ? &fifo->ring[fifo->first] : NULL;
}

bool fifo_pop(struct fifo *fifo, struct fifo_entry *entry)
{
    if (fifo->count == 0)
        return false;
    *entry = fifo->ring[fifo->first];
    fifo->first = (fifo->first + 1) & (fifo->room - 1);
    fifo->count--;
    return true;
}

void fifo_fini(struct fifo *fifo)
{
    free(fifo->ring);
    *fifo = (struct fifo){0};
}
