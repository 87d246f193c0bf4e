/*
 * Clients that want permits of the pool "pool".
 */
#ifndef POOLING_H
#define POOLING_H

#include "../../../server/lock/names.h"
#include "../play.h"

/* The name of a slot, its number as in the source. */
#define SLOT(number) "pool" NAMES_SLOT #number

enum { POOLING_WAIT_MS = 10000 };

/* An acquire of so many of limit permits; without wait_ms it does not wait. */
engine_op pooling_ask(int limit, int permits, int64_t wait_ms);
engine_op pooling_ask_with_key(int limit, int permits, const char *key_hash);

/* All nodes grant the oldest try · hold it. */
void pooling_grant(void);
void pooling_hold(void);

/* The first so many nodes, or this one, answer the oldest query with these
 * letters. */
void pooling_tell(int nodes, const char *letters);
void pooling_tell_from(int node, const char *letters);

/* How many tries, how many queries were sent. */
int pooling_tries(void);
int pooling_queries(void);

/* The resource of the newest try. */
const char *pooling_tried(void);

/* One is granted: its slot's name, in a buffer. */
const char *pooling_win(int limit);

/* A release of this resource, with a token of this number. */
void pooling_release(const char *resource, int64_t number);

#endif
