/* SPDX-License-Identifier: MIT */
/*
 * Ways between servers and nodes that are slow, or closed for a while: the
 * nemesis' proxy, which ends with this process.
 */
#ifndef REDLOCKD_TEST_WAYS_H
#define REDLOCKD_TEST_WAYS_H

#include "harness.h"

enum way { WAY_TO_NODE, WAY_TO_SERVER };

struct ways {
    int commands, answers; /* of the proxy */
};

/*
 * Starts a proxy from so many servers to the nodes. ports: where it listens for
 * each node, the first server's first.
 */
void ways_start(struct ways *ways, int servers, const struct node *nodes,
                int nodes_count, int *ports);

/*
 * The same for the first servers of world, which must not run yet: they reach
 * all nodes through the proxy.
 */
void ways_start_between(struct ways *ways, int servers);

/*
 * What these nodes say to the server, which does not run yet, arrives ms later;
 * what is sent to them passes at once.
 */
void ways_slow(struct server *server, int first, int count, int ms);

/* What passes in that way arrives ms later from now on. */
void ways_delay(const struct ways *ways, int server, int node, enum way way,
                int ms);

/* Nothing arrives in that way until it is opened; nothing gets lost. */
void ways_close(const struct ways *ways, int server, int node, enum way way);
void ways_open(const struct ways *ways, int server, int node, enum way way);

#endif
