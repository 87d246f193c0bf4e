/*
 * The names that one lock covers: of one resource, or of several, each once, in
 * the order of their bytes, joined by U+000A, which no name contains.
 * A single name is the same text with and without this module.
 */
#ifndef REDLOCKD_NAMES_H
#define REDLOCKD_NAMES_H

#include "../base/types.h"

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
 * A slot of a pool is a lock whose name is that of the pool, "#" and a number
 * from 0 to POOL_SLOTS_MAX - 1, without zeros in front. names_slot tells the
 * number, and the pool; -1: the name is none of a slot.
 */
int names_slot(struct span name, struct span *pool);

#endif
