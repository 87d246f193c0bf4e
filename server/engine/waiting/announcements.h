/*
 * Whose releases the nodes announce, and whether announcements arrive: the
 * engine's side of the connections that port.listen opens.
 *
 * They are open while somebody waits, and a little longer. waits.h tells when a
 * node counts as announcing.
 */
#ifndef REDLOCKD_ANNOUNCEMENTS_H
#define REDLOCKD_ANNOUNCEMENTS_H

#include "../../lock/lock.h"
#include "../port/environment.h"
#include "waitqueue.h"

struct announcements {
    const struct environment *env;
    struct waitqueues *queues;
    bool is_listening;           /* the connections are wanted */
    int64_t listen_us;           /* the next listen calls are due */
    int64_t wanted_us;           /* when a queue last wanted them */
    int64_t heard_us[NODES_MAX]; /* the last heartbeat; 0: none */
};

void announcements_init(struct announcements *it, const struct environment *env,
                        struct waitqueues *queues);

/* Somebody waits in the queue: its releases are to be announced. */
void announcements_want(struct announcements *it, struct waitqueue *queue,
                        int64_t now_us);

/* Whether a quorum announces the releases of the queue's resource. */
bool announcements_cover(const struct announcements *it,
                         const struct waitqueue *queue, int64_t now_us);

/* The events of port.h. */
void announcements_on_up(struct announcements *it, int node);
void announcements_on_down(struct announcements *it, int node);

/* The same; returns the queue that it is about, NULL: none. */
struct waitqueue *announcements_on_subscribed(struct announcements *it,
                                              int node, struct span resource);

/* A heartbeat came. True: none had come of late. */
bool announcements_on_heartbeat(struct announcements *it, int node,
                                int64_t now_us);

/*
 * Sends the listen calls that are due, ends the subscriptions of queues that
 * nobody has used for a while, and frees those.
 */
void announcements_tick(struct announcements *it, int64_t now_us);

#endif
