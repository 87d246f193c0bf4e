/*
 * The acquires that wait, and the time of their attempts: timers, and the list
 * of those that are ready.
 */
#ifndef REDLOCKD_SCHEDULE_H
#define REDLOCKD_SCHEDULE_H

#include "announcements.h"

struct waits {
    const struct environment *env;
    struct operations *operations;
    struct tickets *tickets;
    struct waitqueues queues;
    /* Ready to try. Between two events only repeats that another attempt bars.
     */
    TAILQ_HEAD(, waiter) ready;
    struct announcements announcements;
};

enum {
    SCHEDULE_ENOUGH_US = 5000, /* from the first announcement to the attempt */
    SCHEDULE_LEAST_US = 1000,  /* between two attempts that no event woke */
};

/* Sets the waiter's timer: to its next attempt, or the end of its wait. */
void schedule_timer(const struct waiter *it);

/* Plans the contender's next attempt. */
void schedule_plan(struct waiter *it, int64_t now_us);

/* The contender tries as soon as nothing bars it. */
void schedule_ready(struct waiter *it, enum metrics_handover by);

/* Its claim has changed: it may be ready now, or later. */
void schedule_claim(struct waiter *it, int64_t now_us);

/* It does not try. */
void schedule_not_ready(struct waiter *it);

/*
 * Takes a waiter that may try at once from the list; NULL: there is none. A
 * barred contender leaves the list, and is woken when the bar ends; other
 * barred ones stay.
 */
struct waiter *schedule_next(struct waits *waits);

#endif
