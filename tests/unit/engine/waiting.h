/*
 * Clients that wait for PLAY_RESOURCE, which others hold.
 */
#ifndef WAITING_H
#define WAITING_H

#include "../play.h"

enum { WAITING_MS = 10000, WAITING_ROUND_TRIP_US = 300 };

#define WAITING_OTHERS PLAY_TOKEN_OF(1)

/* An acquire, for 30 s. */
engine_op waiting_acquire(struct engine_acquire acquire);

/* Another engine, on which so many may wait. */
void waiting_begin_limited(int most);

/* Acquires that wait for so long; this one for WAITING_MS. */
engine_op waiting_ask_for(struct span resource, int64_t wait_ms);
engine_op waiting_ask(void);

/* It has no outcome yet. */
void waiting_check(engine_op op);

/* All nodes answer the oldest attempt that is under way, a round trip later. */
void waiting_find_held(void);
void waiting_grant(void);

/* How many were made. */
int waiting_attempts(void);

/* So many nodes announce from now on. */
void waiting_begin_to_announce(struct span resource, int nodes);

/* One client waits, a quorum announces, and nothing is under way. */
engine_op waiting_for_news(void);

void waiting_announce(int node);

/* Lets time pass, with the heartbeats of three nodes. */
void waiting_heartbeats(int64_t us);

#endif
