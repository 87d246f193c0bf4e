/* SPDX-License-Identifier: MIT */
/*
 * A pool of equal objects, referred to by handles instead of pointers: the
 * handle of an object that was given back finds nothing, even if its place is
 * in use again. Objects keep their address; their memory is kept for reuse.
 */
#ifndef REDLOCKD_ENTRIES_H
#define REDLOCKD_ENTRIES_H

#include "types.h"

/*
 * Bits of a handle: generation (32) · for the user (10) · index (22). Never 0.
 * The user's bits are ignored by entries_find.
 */
enum { ENTRIES_INDEX_BITS = 22, ENTRIES_USER_BITS = 10 };

/* First member of each object. */
struct entries_head {
    uint32_t generation; /* odd while in use */
    uint32_t index;
    struct entries_head *next_free;
};

struct entries {
    size_t object_size;
    uint32_t limit; /* of objects at once */
    uint32_t count; /* made so far */
    uint32_t used;
    struct entries_head *free;
    struct entries_head **chunks;
};

/* limit: below 2^ENTRIES_INDEX_BITS. No memory is taken yet. */
void entries_init(struct entries *entries, size_t object_size, uint32_t limit);
void entries_fini(struct entries *entries);

/* An object, undefined after its head; NULL: the limit is reached, or no
 * memory. */
void *entries_take(struct entries *entries);
void entries_give(struct entries *entries, void *object);

uint64_t entries_handle(const void *object, unsigned user_bits);
void *entries_find(const struct entries *entries, uint64_t handle);

/* The object in use with this index, or NULL. */
void *entries_at(const struct entries *entries, uint32_t index);

static inline unsigned entries_user_bits(uint64_t handle)
{
    return (unsigned)(handle >> ENTRIES_INDEX_BITS) &
           ((1u << ENTRIES_USER_BITS) - 1);
}

#endif
