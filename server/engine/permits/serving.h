/*
 * Permits on this server: each wants one or more slots of a pool.
 *
 *            slots that may be free       granted, refused
 *   QUEUED ──────────────────────→ TRYING ────────────────→ SETTLED ──→ close
 *    │  ↑                            │                         ↑
 *    │  └────────────────────────────┘ lost                    │
 *    └─────────────────────────────────────────────────────────┘
 *        a survey told that none is free, and it does not wait; its time is
 *        up; stopped
 *
 * A try is an acquire of the slots' locks, all or none: so whatever is believed
 * of slots, never more than limit permits are granted.
 *
 * A permit tries slots that are believed free (pool.h). If it loses, or if none
 * is believed free, a survey tells which are (survey.h); one at a time, for all
 * that want to know. It is answered 409 only after a survey that began when it
 * was there already.
 *
 * All permits of a pool stand in one queue, first come, first served. One that
 * cannot go keeps the free slots that it may use from those behind it: so one
 * that wants many is not overtaken for ever.
 *
 * Those that wait are woken by a release through this server, which hands the
 * slot to the first of them in the same batch; by announcements; and by
 * surveys: when a TTL has ended, and now and then.
 */
#ifndef REDLOCKD_SERVING_H
#define REDLOCKD_SERVING_H

#include "permit.h"

/* To be called once, before any permit is asked for. */
void serving_init(struct permits *permits);

/* Permits of the pool that can go try, surveys begin, those that need not wait
 * are answered. */
void serving_run(struct permits *permits, struct pool *pool);

/* A node's answer to a survey; the pool's timer. */
void serving_on_reply(struct permits *permits, int node, uint64_t tag,
                      const struct call_reply *reply);
void serving_on_timer(struct permits *permits, struct pool *pool);

/* Its client has left. has_asked: what it tried or got is being released. */
void serving_abandon(struct permit *it, bool has_asked);

/* Asks the nodes at this moment at the latest, if permits wait. */
void serving_retry_at(struct permits *permits, struct pool *pool,
                      int64_t at_us);

#endif
