/*
 * The turns of the waiters: the attempts of a queue's contender, and their
 * outcomes.
 */
#ifndef REDLOCKD_TURNS_H
#define REDLOCKD_TURNS_H

#include "schedule.h"

/* To be called once, before any acquire waits. */
void turns_init(struct waits *waits);

/* It tries as soon as no attempt for one of its resources is under way, by
 * reason of this event. */
void turns_wake(struct waiter *it, enum metrics_handover by);

/* All that are ready try, and those that become ready meanwhile. */
void turns_run(struct waits *waits);

/* Its claim is due: it looks for its lock, or tries to get it. */
void turns_claim(struct waiter *it);

/* It has just arrived: it tries at once, waits, or is answered. */
void turns_begin(struct waiter *it, int64_t now_us);

/* It has just arrived, and is answered with this outcome. */
void turns_refuse(struct waiter *it, enum outcome outcome);

/*
 * Its client has left: it no longer waits. has_asked: a grant that it may have
 * got is being released, and the next contenders try behind that.
 */
void turns_abandon(struct waiter *it, bool has_asked, int64_t now_us);

/* It no longer waits, and is answered with this outcome. */
void turns_settle(struct waiter *it, enum outcome outcome, int64_t now_us);

/* Its time is up: it is answered with the outcome of the last attempt. */
void turns_settle_late(struct waiter *it, int64_t now_us);

#endif
