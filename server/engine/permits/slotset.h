/*
 * A set of slots of a pool. Pure.
 */
#ifndef REDLOCKD_SLOTSET_H
#define REDLOCKD_SLOTSET_H

#include <stdbool.h>

#include "../../lock/lock.h"

enum { SLOTSET_WORDS = (POOL_SLOTS_MAX + 63) / 64 };

/* All zero: empty. */
struct slotset {
    uint64_t words[SLOTSET_WORDS];
};

static inline bool slotset_has(const struct slotset *set, int slot)
{
    return set->words[slot / 64] >> slot % 64 & 1;
}

static inline void slotset_add(struct slotset *set, int slot)
{
    set->words[slot / 64] |= UINT64_C(1) << slot % 64;
}

static inline void slotset_drop(struct slotset *set, int slot)
{
    set->words[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

/* Adds those of other; keeps those that are in other, or are not. */
void slotset_join(struct slotset *set, const struct slotset *other);
void slotset_keep(struct slotset *set, const struct slotset *other);
void slotset_remove(struct slotset *set, const struct slotset *other);

/* The slots below limit. */
struct slotset slotset_below(int limit);

int slotset_count(const struct slotset *set);

/* The first from this slot on; -1: there is none. */
int slotset_next(const struct slotset *set, int from);

/* The n-th, from 0; it must be there. */
int slotset_nth(const struct slotset *set, int n);

#endif
