/*
 * Acquires that wait while others hold the lock: a queue for each resource,
 * first come, first served. Pure.
 *
 * ticket.h tells how one waits and ends. A try is lost if the lock is held, or
 * without a quorum. When the server stops, the contender of a queue still tries
 * once.
 *
 * Only the contender of a queue tries, by an operation of its own: mostly the
 * first, see waitqueue.h. It is woken by one of these:
 *
 *   release       a release of the lock passes through this server: the acquire
 *                 follows it to each node in the same batch
 *   announcement  a quorum of nodes announced a release, or 5 ms have passed
 *                 since the first of them did
 *   expiry        the TTL of the present lock has ended
 *   retry         a random delay has passed, a long one while a quorum
 *                 announces releases of the holder
 *
 * Announcements are hints (waitqueue.h). When a quorum begins to announce,
 * the contender tries once more, as a release may have been missed.
 *
 * A waiter with the key of the present holder repeats an acquire that was
 * granted: it need not wait, as the lock is its own (waitqueue.h).
 *
 * Order among several servers is best effort (waitqueue.h).
 */
#ifndef REDLOCKD_WAITS_H
#define REDLOCKD_WAITS_H

#include "waitqueue.h"

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

void waits_init(struct waits *waits, struct nodes *nodes,
                struct tickets *tickets);
void waits_fini(struct waits *waits);

/*
 * As operation_start, for an acquire that waits for wait_ms at most; it has a
 * ticket. 0: it does not wait, but may not overtake those that do. Unless it is
 * its turn, it is answered at once.
 */
uint64_t waits_start(struct waits *waits, const struct request *asked,
                     int64_t wait_ms);

/*
 * The client with this key has asked again, and does not wait: whatever of its
 * requests waits here is answered, and what that tries is released. Its close
 * may never come, as not every proxy passes it on.
 */
void waits_withdraw(struct waits *waits, struct span resource,
                    struct span key_hash);

/* The number of waiters for the resource; of several, the greatest. */
int waits_count(const struct waits *waits, struct span resource);

/* Whether one of them wants one of the resources for itself. */
bool waits_has_writer(const struct waits *waits, struct span resource);

/* Whether a reader who comes now would overtake one of these: it is not so if
 * they wait for other resources, and do not contend for this one. */
bool waits_bars_readers(const struct waits *waits, struct span resource);

/*
 * A release of the resource was just sent to the nodes: calls that are sent now
 * arrive behind it.
 */
void waits_on_release(struct waits *waits, struct span resource);

/* A node announced a release to so many connections, of all servers. */
void waits_on_listeners(struct waits *waits, struct span resource,
                        int64_t listeners);

/* The events of port.h. */
void waits_on_listener_down(struct waits *waits, int node);
void waits_on_subscribed(struct waits *waits, int node, struct span resource);
void waits_on_announced(struct waits *waits, int node, struct span resource,
                        int64_t number);

/* Sends listen calls, drops unused queues. */
void waits_tick(struct waits *waits, int64_t now_us);

#endif
