/*
 * The turn of whoever is first in a queue: when it tries, and what comes of it.
 */
#ifndef REDLOCKD_TURNS_H
#define REDLOCKD_TURNS_H

#include "waits.h"

/* After the first announcement the head tries, whoever else announces. */
enum { TURNS_ENOUGH_US = 5000 };

/* To be called once, before anybody waits. */
void turns_init(struct waits *waits);

/* The waiter's timer; at_us 0 stops it. */
void turns_set_timer(const struct waits *waits, const struct waiter *it,
                     int64_t at_us);

/* To when the head, if it is not trying, tries next or has waited enough. */
void turns_set_head_timer(const struct waits *waits,
                          const struct waitqueue *queue);

/* After an attempt, or with other knowledge: when the head tries. */
void turns_plan(struct waits *waits, struct waitqueue *queue, int64_t now_us);

/* The head tries, which must be waiting. */
void turns_try(struct waits *waits, struct waitqueue *queue,
               enum metrics_handover by);

/* The head, if any, tries now, or again as soon as its attempt is lost. */
void turns_wake(struct waits *waits, struct waitqueue *queue,
                enum metrics_handover by);

/* It no longer waits. If it was trying, the caller plans for the next one. */
void turns_leave(struct waits *waits, struct waiter *it, int64_t now_us);

/* It has this outcome, of which no operation tells. */
void turns_settle_plainly(struct waits *waits, struct waiter *it,
                          enum outcome outcome, int64_t now_us);

/* Its time is up: it is told what the last attempt of the queue found. */
void turns_settle_late(struct waits *waits, struct waiter *it, int64_t now_us);

#endif
