/* Apart from members.h: a rule of its own, without nodes. */
/* SPDX-License-Identifier: MIT */
/*
 * The first start: N unused nodes, admitted at once. Pure.
 *
 * Empty nodes at a first start resemble nodes that lost everything. They skip
 * the quarantine only if no server has seen them in use, and one server
 * quarantined them all: then no other server acts on an older probe.
 *
 *   WAITING   for N empty nodes
 *   LEAD      quarantines the leader, the same node for all servers
 *   REST      quarantines the other nodes
 *   HOLD      until older commands have ended
 *   CHECK     checks whether all still have their quarantine record
 *   ADMIT     gives the permissions
 *   OVER
 *
 * After anything unexpected: OVER, and each node waits in its quarantine.
 */
#ifndef REDLOCKD_FIRSTSTART_H
#define REDLOCKD_FIRSTSTART_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../port/call.h"

enum firststart_step {
    FIRSTSTART_WAITING,
    FIRSTSTART_LEAD,
    FIRSTSTART_REST,
    FIRSTSTART_HOLD,
    FIRSTSTART_CHECK,
    FIRSTSTART_ADMIT,
    FIRSTSTART_OVER,
};

struct firststart {
    enum firststart_step step;
    int nodes;
    int leader;       /* the node that all servers quarantine first */
    int64_t hold_us;  /* how long HOLD lasts */
    int64_t since_us; /* WAITING: the first node came; CHECK: began */
    int64_t hold_until_us;
    int64_t yield_until_us; /* another server may lead a first start */
    uint16_t quarantined;   /* by this first start, and not yet admitted */
};

/*
 * The next step, if it is time. is_possible: no connected node forbids it;
 * are_all_empty: all N are connected, and have no state; probed_us: all
 * connected nodes were probed since then. Returns the nodes to examine soon.
 */
uint16_t firststart_advance(struct firststart *start, bool is_possible,
                            bool are_all_empty, int64_t probed_us,
                            int64_t now_us);

/* A node connected; a probe found this word, is_same_quarantine: with the
 * quarantine record known before; a node disconnected, or an action on it
 * failed. */
void firststart_on_up(struct firststart *start, int64_t now_us);
void firststart_on_probe(struct firststart *start, int node,
                         enum call_probe_word word, bool is_same_quarantine,
                         int64_t now_us);
void firststart_on_trouble(struct firststart *start, int node);

/* The node was admitted, or the first start will not admit it. */
void firststart_forget(struct firststart *start, int node);

/* The rest of the wait for missing nodes; 0: it does not wait. */
int64_t firststart_remaining_us(const struct firststart *start, int64_t now_us);

/* True if a quarantine record made now disturbs no server's first start. */
bool firststart_may_quarantine(const struct firststart *start, int node,
                               int64_t now_us);

/* True if quarantine records made now belong to this first start. */
bool firststart_is_quarantining(const struct firststart *start);

/* True if the node is to be admitted without quarantine. */
bool firststart_may_admit(const struct firststart *start, int node);

#endif
