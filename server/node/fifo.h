/*
 * The replies that a node owes on one connection, in the order of the
 * commands: a ring that grows up to a limit.
 */
#ifndef REDLOCKD_FIFO_H
#define REDLOCKD_FIFO_H

#include "../base/types.h"

enum { FIFO_MAX = 16384 };

struct fifo_entry {
    uint64_t tag;
    int64_t sent_us; /* of the first; 0: of the others */
    int command;     /* what was sent; the pipeline numbers it */
    bool is_first;   /* of the entries that one reply answers */
};

struct fifo {
    struct fifo_entry *ring;
    uint32_t room; /* a power of two, or 0 */
    uint32_t first;
    uint32_t count;
};

/* False: it holds FIFO_MAX entries, or no memory. */
bool fifo_push(struct fifo *fifo, struct fifo_entry entry);

/* How many the next reply answers: the oldest, up to the next that is_first. */
int fifo_answered(const struct fifo *fifo);

/* The oldest; NULL: nothing is owed. Valid until the next push. */
const struct fifo_entry *fifo_first(const struct fifo *fifo);

/* Takes the oldest out; false: there is none. */
bool fifo_pop(struct fifo *fifo, struct fifo_entry *entry);

void fifo_fini(struct fifo *fifo);

#endif
