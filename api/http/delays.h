/*
 * Connections whose refusal is answered a second later, as there were too many:
 * who asks again as soon as it is answered then asks slowly. It costs nothing
 * meanwhile.
 */
#ifndef REDLOCKD_DELAYS_H
#define REDLOCKD_DELAYS_H

#include <sys/queue.h>

#include "../../server/base/loop.h"

enum { DELAYS_US = 1000000 };

/* Part of what is delayed. */
struct delay {
    TAILQ_ENTRY(delay) link;
    int64_t due_us; /* 0: not delayed */
};

typedef void delays_fn(struct delay *it);

/* From the one that is due first to the last. */
struct delays {
    TAILQ_HEAD(, delay) list;
    struct loop_timer *timer;
    delays_fn *on_due;
    int count;
    int most; /* at once; 0: none is delayed */
};

/* Calls on_due for each when its time has come. False: no memory. */
bool delays_init(struct delays *all, struct loop *loop, delays_fn *on_due);

/* None must be delayed any more. */
void delays_fini(struct delays *all);

static inline bool delays_have_room(const struct delays *all)
{
    return all->count < all->most;
}

void delay_begin(struct delays *all, struct delay *it, int64_t now_us);

/* It is not delayed any more; that it was not is fine. */
void delay_end(struct delays *all, struct delay *it);

#endif
