/*
 * The turns of those that wait: when the contender of a queue tries, and what
 * comes of it.
 */
#ifndef REDLOCKD_TURNS_H
#define REDLOCKD_TURNS_H

#include "waits.h"

/* After the first announcement the contender tries, whoever else announces. */
enum { TURNS_ENOUGH_US = 5000 };

/* To be called once, before anybody waits. */
void turns_init(struct waits *waits);

/* The waiter's timer: its next attempt, or the end of its time. */
void turns_set_timer(const struct waits *waits, const struct waiter *it);

/* After an attempt, or with other knowledge: when the contender tries. */
void turns_plan(struct waits *waits, struct waiter *it, int64_t now_us);

/*
 * It is to try as soon as no attempt for one of its resources is under way.
 * turns_run lets all that are ready try, those too that this makes ready;
 * turns_wake does both.
 */
void turns_make_ready(struct waits *waits, struct waiter *it,
                      enum metrics_handover by);
void turns_run(struct waits *waits);
void turns_wake(struct waits *waits, struct waiter *it,
                enum metrics_handover by);

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

/* Nobody waits any more. */
void turns_stop(struct waits *waits, struct waiter *it, int64_t now_us);

/* Its time is up: it is told what the last attempt found. */
void turns_settle_late(struct waits *waits, struct waiter *it, int64_t now_us);

#endif
