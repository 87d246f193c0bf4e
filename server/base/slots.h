/*
 * A pool of equal objects, referred to by handles instead of pointers: the
 * handle of an object that was given back finds nothing, even if its slot is in
 * use again. Objects keep their address; their memory is kept for reuse.
 */
#ifndef REDLOCKD_SLOTS_H
#define REDLOCKD_SLOTS_H

#include "types.h"

/*
 * Bits of a handle: generation (32) · for the user (10) · index (22). Never 0.
 * The user's bits are ignored by slots_find.
 */
enum { SLOTS_INDEX_BITS = 22, SLOTS_USER_BITS = 10 };

/* First member of each object. */
struct slots_head {
    uint32_t generation; /* odd while in use */
    uint32_t index;
    struct slots_head *next_free;
};

struct slots {
    size_t object_size;
    uint32_t limit; /* of objects at once */
    uint32_t count; /* made so far */
    uint32_t used;
    struct slots_head *free;
    struct slots_head **chunks;
};

/* limit: below 2^SLOTS_INDEX_BITS. No memory is taken yet. */
void slots_init(struct slots *slots, size_t object_size, uint32_t limit);
void slots_fini(struct slots *slots);

/* An object, undefined after its head; NULL: the limit is reached, or no
 * memory. */
void *slots_take(struct slots *slots);
void slots_give(struct slots *slots, void *object);

uint64_t slots_handle(const void *object, unsigned user_bits);
void *slots_find(const struct slots *slots, uint64_t handle);

/* The object in use with this index, or NULL. */
void *slots_at(const struct slots *slots, uint32_t index);

static inline unsigned slots_user_bits(uint64_t handle)
{
    return (unsigned)(handle >> SLOTS_INDEX_BITS) &
           ((1u << SLOTS_USER_BITS) - 1);
}

#endif
