/* Apart from parts.h: a part of the engine, as waits.h is. */
/* SPDX-License-Identifier: MIT */
/*
 * Permits: at most so many holders of one resource, its limit.
 *
 * A permit is a lock on a slot of the pool, or several: slots 0 to limit - 1
 * are locks with names of their own (names.h), so a permit has all that a lock
 * has. What is new is to find a free slot.
 *
 * A try is an acquire of the slots' locks, all or none: so whatever is believed
 * of slots, never more than limit permits are granted.
 *
 * A permit tries slots that are believed free (pool.h). If it loses, or if none
 * is believed free, a query tells which are (pool.h); one at a time, for all
 * that want to know. It is answered 409 only after a query that began when it
 * was there already.
 *
 * All permits of a pool stand in one queue, first come, first served. One that
 * cannot go keeps the free slots that it may use from those behind it: so one
 * that wants many is not overtaken for ever.
 *
 * Those that wait are woken by a release through this server, which hands the
 * slot to the first of them in the same batch; by announcements; and by
 * queries: when a TTL has ended, and now and then.
 */
#ifndef REDLOCKD_PERMITS_H
#define REDLOCKD_PERMITS_H

#include "../waiting/waits.h"
#include "pool.h"

struct permits {
    const struct environment *env;
    struct tickets *tickets;
    struct waits *waits; /* announcements, how many wait for a pool */
    struct pools pools;
};

void permits_init(struct permits *permits, struct tickets *tickets,
                  struct waits *waits);
void permits_fini(struct permits *permits);

/* What is asked for, beside the request, whose resource is the pool's name. */
struct permits_request {
    int limit;
    int count;          /* of slots, all or none */
    int asker;          /* as in struct engine_acquire */
    int64_t wait_ms;    /* 0: it does not wait */
    bool is_tried_once; /* as in struct engine_acquire: it does not pause */
    bool only_repeats;  /* no slots but those that it has already */
};

/* As operation_start; it has a ticket. */
uint64_t permits_start(struct permits *permits, const struct request *asked,
                       const struct permits_request *request);

/* As waits_withdraw; name: that of the pool. */
void permits_withdraw(struct permits *permits, struct span name,
                      struct span key_hash);

/* How many permits of the pool wait; name: that of the pool. */
int permits_waiting(const struct permits *permits, struct span name);

/*
 * A release of these locks was just sent to the nodes: calls that are sent now
 * arrive behind it.
 */
void permits_on_release(struct permits *permits, struct span names);

/* The events of port.h; resource: a slot's name. */
void permits_on_announced(struct permits *permits, int node,
                          struct span resource, int64_t number);

/* A node's answer to a query. */
void permits_on_reply(struct permits *permits, int node, uint64_t tag,
                      const struct call_reply *reply);

/* The port's timer of the pool with this index. */
void permits_on_pool_timer(struct permits *permits, uint32_t index);

void permits_tick(struct permits *permits, int64_t now_us);

#endif
