/* SPDX-License-Identifier: MIT */
/*
 * Two clients and one lock: the holder has it on a bare majority, so that one
 * node which forgets gives it away; whoever else asks is a rival.
 */
#ifndef REDLOCKD_TEST_RIVAL_H
#define REDLOCKD_TEST_RIVAL_H

#include "http.h"

struct holder {
    struct lock lock;
    int64_t ends_ms; /* its validity, by harness_now_ms */
};

/*
 * Starts nodes and the first servers over them with these options, and waits
 * until all vote: by a first start.
 */
void rival_start(int nodes, int servers, const char *options);

/* Starts a server, which has looked at the nodes when this returns. */
void rival_start_fresh(int server, const char *options);

/* What the server tells of a node: its "state" or "detail". */
const char *rival_told(int server, int node, const char *member);
bool rival_is_in_state(int server, int node, const char *state);

/* GET /nodes: whether the node votes for the server; how many do. */
bool rival_is_voting(int server, int node);
int rival_count_voting(int server);

/* Until so many vote · until it is in this state. */
void rival_await_count(int server, int count);
void rival_await_state(int server, int node, const char *state);

/* Until the server has looked at the node once more; a second at most. */
void rival_await_look(int server, int node);

/* Until it has looked twice at each node, all of which run: they have heard of
 * one another what it knew before. */
void rival_await_looks(int server);

/* On each server that runs. */
bool rival_is_voting_anywhere(int node);
bool rival_all_vote_everywhere(void);

/*
 * Acquires "contended" through the server, on the first nodes that vote and no
 * more than a majority. The others are occupied for that moment.
 */
void rival_hold(int server, int ttl_ms, struct holder *holder);

/* The holder extends its lock through the server. */
void rival_extend(int server, int ttl_ms, struct holder *holder);

/*
 * Asks all servers that run for the holder's lock until its validity ends:
 * none may grant it. Afterwards one does, with a higher number.
 */
void rival_expect_refused(const struct holder *holder);

/*
 * The same after node has lost its data: it must have lost its vote as soon
 * as the servers have had time to look, and have it again within return_ms.
 */
void rival_expect_refused_without(const struct holder *holder, int node,
                                  int return_ms);

/* Acquires and releases, with a TTL of less than a second. */
void rival_cycle(const struct server *server, const char *resource);

/*
 * Until the node votes, locks are granted without its help. Returns for how
 * long; it must be less than ms.
 */
int64_t rival_lock_without(int node, int server, int ms);

#endif
