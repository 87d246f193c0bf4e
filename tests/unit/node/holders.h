/*
 * The holders of the shared locks a, b and c on a real node, over several.h.
 */
#ifndef REDLOCKD_TEST_HOLDERS_H
#define REDLOCKD_TEST_HOLDERS_H

#include "several.h"

/* What a writer leaves there that readers keep out. */
#define HOLDERS_WISH "0000000000000000~"

/* What an acquire with a number replies; 0: about now. */
int holders_acquire(int lock, const char *token, int64_t number);

/* What a call with another TTL replies. */
int holders_ask(enum call_kind kind, int lock, const char *token,
                int64_t ttl_ms);

/* Whoever is in the set, the letters of the names, in the order in which they
 * end; "": nobody. */
const char *holders_of(int lock);

/* How long one of them still holds the lock by the node's clock; below 0: it
 * ended so long ago. */
int64_t holders_left_ms(int lock, const char *token);

/* How long the wish of a writer is left there; below 0: there is none. */
int64_t holders_wish_ms(int lock);

/* Adds one by hand, with an end likewise; the key ends with the last. It is
 * known by the key hash of its token. */
void holders_add(int lock, const char *token, int64_t left_ms);

/* The field in which readers record the numbers of a slot, counted from 7 on;
 * "": there is none. */
const char *holders_numbers(int slot);

/* Whether an inspection tells of so many holders, and of a time that is left
 * which is above low_ms and at most high_ms. */
bool holders_are_told(int lock, int64_t count, int64_t low_ms, int64_t high_ms);

/* Whether a plain SET NX gets in. */
bool holders_let_in(int lock);

#endif
