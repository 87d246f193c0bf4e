/*
 * How fast the nodes answer: which of them a round asks first, and when it
 * asks the others.
 *
 * A call is slow if it takes much longer than those to a quorum do. A round
 * that waits for a slow call asks the other nodes. A node whose calls are slow,
 * or that owes the answer to a slow one, is asked last until it is quick again.
 * Pure; times are CLOCK_BOOTTIME in µs.
 */
#ifndef REDLOCKD_PACE_H
#define REDLOCKD_PACE_H

#include "../../base/types.h"
#include "../../lock/lock.h"

struct pace_node {
    int64_t trip_us;  /* smoothed round trip; 0: none is known */
    int64_t since_us; /* of the calls under way, none was answered since */
    int under_way;    /* calls of rounds that the node has not answered */
};

struct pace {
    int total;
    int64_t slow_us; /* a call that takes longer is slow */
    struct pace_node node[NODES_MAX];
};

void pace_init(struct pace *pace, int total);

/*
 * A call of a round was sent to the node; a call was answered, of a round or
 * not: that the node owes answers counts only for those of rounds.
 */
void pace_on_sent(struct pace *pace, int node, int64_t now_us);
void pace_on_reply(struct pace *pace, int node, bool is_round, int64_t sent_us,
                   int64_t received_us);

/* The calls of a round are lost with the connection. */
void pace_on_down(struct pace *pace, int node);

/* To be called every few milliseconds: compares the nodes. */
void pace_tick(struct pace *pace);

/*
 * True if a round with this timeout can find that a call is slow, and then
 * still ask another node.
 */
bool pace_leaves_time(const struct pace *pace, int64_t timeout_us);

bool pace_is_slow(const struct pace *pace, int node, int64_t now_us);

#endif
