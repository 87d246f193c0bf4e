/* SPDX-License-Identifier: MIT */
/*
 * The names that one lock covers: of one resource, or of several, each once, in
 * the order of their bytes, joined by U+000A, which no name contains.
 * A single name is the same text with and without this module.
 */
#ifndef REDLOCKD_NAMES_H
#define REDLOCKD_NAMES_H

#include "../base/types.h"
#include "lock.h"

/* Takes the first name off rest; an empty rest is one empty name. */
struct span names_next(struct span *rest);

int names_count(struct span names);

/* Whether there is more than one. */
bool names_are_several(struct span names);

/* The order of two names, each a struct span: for qsort, tsearch. */
int names_compare(const void *left, const void *right);

/*
 * Sorts count names and joins them; returns the length, which is at most that
 * of all names and count - 1. list is left sorted.
 */
size_t names_join(char *to, struct span *list, int count);

/* Whether each name comes before the next one: the form that names_join gives.
 */
bool names_are_sorted(struct span names);

/* Whether a name is in both; each is in the form that names_join gives. */
bool names_overlap(struct span left, struct span right);

/*
 * A slot of a pool is a lock whose name is that of the pool, NAMES_SLOT and a
 * number from 0 to POOL_SLOTS_MAX - 1, without zeros in front. No resource
 * contains a control character, so no client can ask for a lock of such a name:
 * only a limit leads to it. And the pool's name stays in front, for prefixes
 * and for patterns of an ACL.
 */
#define NAMES_SLOT "\x1f" /* the unit separator of ASCII */

/* What a slot's name has more than that of its pool, at most. */
enum { NAMES_SLOT_MAX = sizeof NAMES_SLOT "999" - 1 };

/* Writes the name of a slot, its length at most NAMES_SLOT_MAX more than that
 * of the pool; returns the length. */
size_t names_put_slot(char *to, struct span pool, int slot);

/* The number of a slot, and its pool; -1: the name is none of a slot. */
int names_slot(struct span name, struct span *pool);

/*
 * The slots that joined names are, in the order of their numbers, and the pool
 * of all of them; returns how many, at most NAMES_MAX. 0: at least one is none,
 * or of another pool.
 */
int names_slots(struct span names, struct span *pool, int slots[NAMES_MAX]);

#endif
