/*
 * Announcements of releases: the engine's side of the connections that
 * port.listen opens. They are open while an acquire waits, and a little longer.
 *
 * Each queue is subscribed to on all nodes. A node counts as announcing if it
 * has confirmed the subscription and a heartbeat has arrived lately: each of
 * our listen calls has it publish one.
 */
#ifndef REDLOCKD_ANNOUNCEMENTS_H
#define REDLOCKD_ANNOUNCEMENTS_H

#include "../../lock/lock.h"
#include "../port/port.h"
#include "waitqueue.h"

enum {
    /* from the first announcement of a release until it counts as released */
    ANNOUNCEMENTS_ENOUGH_US = 5000,
    EXPIRY_US = 1000, /* a TTL ends so much later than a node tells */
};

/* Zeroed at first, except for the first two. */
struct announcements {
    const struct environment *env;
    struct waitqueues *queues;
    bool is_listening;           /* the connections are wanted */
    int64_t listen_us;           /* when the next listen calls are due */
    int64_t wanted_us;           /* when a queue was last in use */
    int64_t heard_us[NODES_MAX]; /* time of the last heartbeat; 0: none */
};

/* The queue is in use: subscribes to releases of its resource. */
void announcements_want(struct announcements *it, struct waitqueue *queue,
                        int64_t now_us);

/* True if a quorum announces releases of the queue's resource. */
bool announcements_cover(const struct announcements *it,
                         const struct waitqueue *queue, int64_t now_us);

/* How long to wait for an event before the next try: a random time, and a long
 * one if a quorum announces. */
int64_t announcements_pause_us(const struct announcements *it,
                               bool is_announced);

/* The events of port.h. */
void announcements_on_up(struct announcements *it, int node);
void announcements_on_down(struct announcements *it, int node);

/* Returns the queue that the node confirmed; NULL: none. */
struct waitqueue *announcements_on_subscribed(struct announcements *it,
                                              int node, struct span resource);

/* A heartbeat arrived. True: none had arrived lately. */
bool announcements_on_heartbeat(struct announcements *it, int node,
                                int64_t now_us);

/*
 * Sends the listen calls that are due. Unsubscribes and frees queues that have
 * not been used for a while.
 */
void announcements_tick(struct announcements *it, int64_t now_us);

#endif
