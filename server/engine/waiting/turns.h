/*
 * The turns of those that wait: when the contender of a queue tries, and what
 * comes of it.
 */
#ifndef REDLOCKD_TURNS_H
#define REDLOCKD_TURNS_H

#include "schedule.h"

/* To be called once, before anybody waits. */
void turns_init(struct waits *waits);

/* It tries as soon as no attempt for one of its resources is under way. */
void turns_wake(struct waits *waits, struct waiter *it,
                enum metrics_handover by);

/* All that are ready try, those too that this makes ready. */
void turns_run(struct waits *waits);

/* It is time for its claim: it asks for its lock, or tries to have it. */
void turns_claim(struct waits *waits, struct waiter *it);

/* It has just come: it tries at once, waits, or learns that it may not. */
void turns_begin(struct waits *waits, struct waiter *it, int64_t now_us);

/* The same, but it may not even wait. */
void turns_refuse(struct waits *waits, struct waiter *it, enum outcome outcome);

/*
 * Its client has gone: it no longer waits. If it has asked the nodes, what it
 * may have had is being released, and the next ones try behind that.
 */
void turns_abandon(struct waits *waits, struct waiter *it, bool has_asked,
                   int64_t now_us);

/* It no longer waits, without having asked any node. */
void turns_settle(struct waits *waits, struct waiter *it, enum outcome outcome,
                  int64_t now_us);

/* Its time is up: it is told what the last attempt found. */
void turns_settle_late(struct waits *waits, struct waiter *it, int64_t now_us);

#endif
