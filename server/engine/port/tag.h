/*
 * Whose a reply is, whose a timer, and what a client's handle refers to.
 *
 * The tag that travels with a call is the handle of its sender, with the
 * purpose of the call in the user's bits.
 */
#ifndef REDLOCKD_TAG_H
#define REDLOCKD_TAG_H

#include "../../base/slots.h"

enum tag_kind {
    TAG_OPERATION,
    TAG_RELEASE,
    TAG_ADMISSION,
    TAG_SPREAD,
    TAG_SCAN,
    TAG_SLOTS
};

/* In the user's bits of the handles that clients get. */
enum handle_kind { HANDLE_OPERATION, HANDLE_TICKET, HANDLE_LISTING };

static inline enum handle_kind handle_kind_of(uint64_t handle)
{
    return (enum handle_kind)slots_user_bits(handle);
}

/* An operation's round: --retry-count is at most 100. */
enum { TAG_ROUND_BITS = 7, TAG_ROUNDS = 1 << TAG_ROUND_BITS };

static inline unsigned tag_bits(enum tag_kind kind, unsigned round)
{
    return (unsigned)kind << TAG_ROUND_BITS |
           (round & ((1u << TAG_ROUND_BITS) - 1));
}

static inline enum tag_kind tag_kind_of(uint64_t tag)
{
    return (enum tag_kind)(slots_user_bits(tag) >> TAG_ROUND_BITS);
}

static inline unsigned tag_round_of(uint64_t tag)
{
    return slots_user_bits(tag) & ((1u << TAG_ROUND_BITS) - 1);
}

/*
 * A release that is repeated, from a queue of this kind. Other releases have
 * the round 0.
 */
static inline uint64_t tag_debt(unsigned kind, uint32_t number)
{
    return (uint64_t)number << 32 | (uint64_t)tag_bits(TAG_RELEASE, 1 + kind)
                                        << SLOTS_INDEX_BITS;
}

static inline bool tag_is_debt(uint64_t tag)
{
    return tag_kind_of(tag) == TAG_RELEASE && tag_round_of(tag) != 0;
}

static inline unsigned tag_debt_kind_of(uint64_t tag)
{
    return tag_round_of(tag) - 1;
}

static inline uint32_t tag_debt_number_of(uint64_t tag)
{
    return (uint32_t)(tag >> 32);
}

/* A release whose answer is ignored: no slot has this handle. */
static inline uint64_t tag_forgotten(void)
{
    return (uint64_t)tag_bits(TAG_RELEASE, 0) << SLOTS_INDEX_BITS;
}

/* A call about the node's admission. */
static inline uint64_t tag_admission(void)
{
    return (uint64_t)tag_bits(TAG_ADMISSION, 0) << SLOTS_INDEX_BITS;
}

/*
 * The slots of the port's timers: 0 is the engine's tick. The others belong to
 * their owners in turn, so that the numbers stay small.
 */
enum { TIMER_TICK = 0 };

enum timer_owner {
    TIMER_OPERATION,
    TIMER_TICKET,
    TIMER_POOL,
};

enum { TIMER_OWNERS = TIMER_POOL + 1 };

/* The slot of the owner's object with this index. */
static inline uint32_t timer_slot(enum timer_owner owner, uint32_t index)
{
    return 1 + index * TIMER_OWNERS + (uint32_t)owner;
}

static inline enum timer_owner timer_owner_of(uint32_t slot)
{
    return (enum timer_owner)((slot - 1) % TIMER_OWNERS);
}

static inline uint32_t timer_index_of(uint32_t slot)
{
    return (slot - 1) / TIMER_OWNERS;
}

#endif
