/*
 * Acquires that wait while others hold the lock: a queue for each resource,
 * first come, first served. Pure.
 *
 *   asked ──→ QUEUED ──────────────────────→ TRYING ──→ SETTLED ──→ close
 *               ↑ │   it contends, and is woken │  granted, or   ↑
 *               │ │                             │  refused       │
 *               │ └── its time is up, or no longer waited for ───┤
 *               └────────── held, or no quorum ─┴────────────────┘
 *
 * Only the contender of a queue tries, by an operation of its own: mostly the
 * first, see waitqueue.h. It is woken:
 *
 *   release       a release of the lock passes through this server: the acquire
 *                 goes to each node right behind it, in the same batch
 *   announcement  a quorum of nodes announced a release, or 5 ms have passed
 *                 since the first of them did
 *   expiry        the TTL of the lock that is in the way has ended
 *   retry         a random delay has passed. While a quorum announces, releases
 *                 of our own kind need none, and the delay is long
 *
 * Announcements are hints. They come on connections of their own, which are
 * opened for the first that waits. A node counts as announcing if it has
 * confirmed the subscription and its heartbeat arrived of late: each of our
 * listen calls has it publish one. When a quorum begins to announce, the
 * contender tries once more, as a release may have been missed.
 *
 * A waiter whose key is that of the lock's holder repeats an acquire that was
 * granted: it need not wait, as the lock is its own. claim.h tells when that is
 * so; look.h how it learns that while others contend.
 *
 * Order among several servers is best effort: a server that others wait with
 * lets them go first after some grants in a row.
 */
#ifndef REDLOCKD_WAITS_H
#define REDLOCKD_WAITS_H

#include "schedule.h"

void waits_init(struct waits *waits, struct nodes *nodes,
                struct operations *operations);
void waits_fini(struct waits *waits);

/*
 * Begins an acquire that waits for wait_ms at most, as operation_start; the
 * handle is one for which waits_owns is true.
 */
uint64_t waits_start(struct waits *waits, const struct operation_order *order,
                     int64_t wait_ms);
bool waits_owns(uint64_t handle);

/* As engine_take, engine_peek, engine_close, engine_abandon. */
const struct engine_result *waits_take(struct waits *waits, uint64_t handle,
                                       int64_t now_us);
const struct engine_result *waits_peek(const struct waits *waits,
                                       uint64_t handle);
void waits_close(struct waits *waits, uint64_t handle);
bool waits_abandon(struct waits *waits, uint64_t handle);

/* As engine_stop_waiting. */
void waits_stop(struct waits *waits);

/* How many wait for the resource; of several, for the one that most wait for.
 */
int waits_count(const struct waits *waits, struct span resource);

/*
 * A release of the resource was just sent to the nodes: what is sent now
 * arrives behind it.
 */
void waits_on_release(struct waits *waits, struct span resource);

/* A node told so many connections of a release: those of other servers too. */
void waits_on_listeners(struct waits *waits, struct span resource,
                        int64_t listeners);

/* The events of port.h. */
void waits_on_listener_down(struct waits *waits, int node);
void waits_on_subscribed(struct waits *waits, int node, struct span resource);
void waits_on_announced(struct waits *waits, int node, struct span resource,
                        int64_t number);

/* The port's timer of the waiter with this index. */
void waits_on_timer(struct waits *waits, uint32_t index);

/* Listen calls that are due, queues that nobody needs any more. */
void waits_tick(struct waits *waits, int64_t now_us);

#endif
