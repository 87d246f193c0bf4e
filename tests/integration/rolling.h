/* SPDX-License-Identifier: MIT */
/*
 * Three servers over the names a to e, whose nodes move, and workers meanwhile;
 * other nodes are spare. The servers are restarted one after the other, or find
 * nodes by DNS.
 */
#ifndef REDLOCKD_TEST_ROLLING_H
#define REDLOCKD_TEST_ROLLING_H

#include "harness.h"

enum { ROLLING_NAMES = 5, ROLLING_SERVERS = 3, ROLLING_BACK_MS = 20000 };

/* Which nodes have the names at first. */
extern const int rolling_first[ROLLING_NAMES];

/*
 * Of the locks that workers keep: 2 s, which make a move short; half of them as
 * ROLLING_TTL_MS says, if it is set.
 */
const int *rolling_ttls_ms(void);

/*
 * Starts nodes, servers with these options besides, and workers that keep locks
 * of ttl_ms. rolling_begin_dns gives the names no addresses: DNS does.
 */
void rolling_begin(int nodes, const int ttl_ms[2], const char *options);
void rolling_begin_dns(int nodes, const int ttl_ms[2]);

/* Ends all; the workers must not have failed. */
void rolling_end(void);

/* The option --nodes, behind others: these nodes under the five names. */
const char *rolling_options(const char *others, const int nodes[ROLLING_NAMES]);

/* Restarts the servers, one after the other, with these options. */
void rolling_restart(const char *options);

/* Until all nodes vote for each of the three servers. */
void rolling_wait_votes(int ms);

/* The DNS of this server leads the names to these nodes. */
void rolling_point_dns(int server, const int nodes[ROLLING_NAMES]);

/*
 * The names lead to these nodes from now on: by DNS, if they began so, or by a
 * restart with these options besides. Waits until the nodes vote.
 */
void rolling_move(const int nodes[ROLLING_NAMES], const char *options);

#endif
