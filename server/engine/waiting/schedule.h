/*
 * The acquires that wait, and when each of them tries: timers, and the list of
 * those that are ready.
 */
#ifndef REDLOCKD_SCHEDULE_H
#define REDLOCKD_SCHEDULE_H

#include "../rounds/operation.h"
#include "announcements.h"

struct waits {
    const struct environment *env;
    struct operations *operations;
    struct slots slots; /* waiters */
    struct waitqueues queues;
    /* Ready to try. Between two events only repeats that another attempt bars.
     */
    TAILQ_HEAD(, waiter) ready;
    struct announcements announcements;
    int count;       /* of those that wait */
    bool is_stopped; /* nobody waits any more */
};

enum {
    SCHEDULE_ENOUGH_US = 5000, /* from the first announcement to the attempt */
    SCHEDULE_LEAST_US = 1000,  /* between two attempts that nobody woke */
};

/* The waiter's timer: its next attempt, or the end of its time. */
void schedule_timer(const struct waits *waits, const struct waiter *it);
void schedule_no_timer(const struct waits *waits, const struct waiter *it);

/* After an attempt, or with other knowledge: when the contender tries. */
void schedule_plan(struct waits *waits, struct waiter *it, int64_t now_us);

/* The contender is to try as soon as nothing bars it. */
void schedule_ready(struct waits *waits, struct waiter *it,
                    enum metrics_handover by);

/* Its claim has changed: it may be to try, too, now or later. */
void schedule_claim(struct waits *waits, struct waiter *it, int64_t now_us);

/* It is not to try. */
void schedule_not_ready(struct waits *waits, struct waiter *it);

/*
 * Takes one that may try at once from the list; NULL: there is none. Contenders
 * that are barred by then are woken by the end of what bars them; others stay
 * in the list.
 */
struct waiter *schedule_next(struct waits *waits);

#endif
