/* SPDX-License-Identifier: MIT */
/*
 * Clients that wait for PLAY_RESOURCE, which others hold, or want permits of
 * the pool "pool".
 */
#ifndef WAITING_H
#define WAITING_H

#include "../../../server/lock/names.h"
#include "../play.h"

/* The name of a slot, its number as in the source. */
#define SLOT(number) "pool" NAMES_SLOT #number

enum {
    WAITING_MS = 10000,
    WAITING_ROUND_TRIP_US = 300,
    WAITING_TICK_US = 20000
};

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

/* At once, the nodes that were asked; they have this value. */
void waiting_find(const char *value);

/* How many were made. */
int waiting_attempts(void);

/* So many nodes announce from now on. */
void waiting_begin_to_announce(struct span resource, int nodes);

/* One client waits, a quorum announces, and nothing is under way. */
engine_op waiting_for_news(void);

void waiting_announce(int node);

/* The nodes from <= i < to answer the oldest query with these letters. */
void waiting_tell(int from, int to, const char *letters);

/* How many queries were sent · the resource of the newest try. */
int waiting_queries(void);
const char *waiting_tried(void);

/* A permit is granted: its slot's name, in a buffer. */
const char *waiting_win(int limit);

/* A examine PLAY_RESOURCE comes within so long. */
void waiting_await_inspection(int64_t within_us);

/*
 * Plays a story, word by word. The clients are a to h; @1+2 are the resources
 * order:1 and order:2 (BOTH), @ alone is PLAY_RESOURCE; #3 is the pool with a
 * limit of 3, or its slot 3.
 *
 *   a@1         it asks, and waits for WAITING_MS; a@1,5 for 5 ms; a@1,r as a
 *               reader, ,k with the key PLAY_KEY, ,0 without a wait
 *   a#3         it asks for a permit; a#3,n2 for two; ,K with another key; ,o
 *               with PLAY_KEY, for what it has
 *   a-          it leaves without a grant;  a.  it has read its answer
 *   a=held      that is what came of it: see the names in waiting.c
 *   held, own   the nodes asked have a token of others, of PLAY_KEY
 *   seen        an inspection finds the lock of PLAY_KEY;  nothing: it finds no
 * lock a?1         it waits for another version than 1; a?1,5 for 5 ms soon:2
 * an inspection comes soon, and finds a lock with the number 2, or soon:- none;
 * later:2 a second later a~2         it is told this version, and reads it
 *   grant       all grant the oldest attempt; repeat: the oldest repeat
 *   free@1      a holder releases it
 *   news@1      a quorum announces it from now on
 *   full#3      three permits are granted
 *   told:011    all nodes answer the oldest query; told3:011 the first three;
 *               from3:011 node 3;  told:1*9 is told:111111111
 *   said3#1     node 3 announces that slot 1 was released
 *   slots=1+2   these were tried last;  queries=2  so many were sent
 *   pass:9      so many µs pass;  round:3  … until so many attempts were made
 *   stop        the server stops waiting;  down:3  three nodes go down
 *   tries=3     so many attempts were made;  for@1  the last one was for it
 *   inspections=2     so many inspections were made
 *   waits=2     so many wait;  answers=2  so many are answered
 */
void waiting_play(const char *story);

/* The operation of a client of the story. */
engine_op waiting_op(char client);

/* Lets time pass, with the heartbeats of three nodes. */
void waiting_heartbeats(int64_t us);

#endif
