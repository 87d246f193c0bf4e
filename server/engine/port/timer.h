/*
 * The slots of the port's timers: 0 is the engine's tick. The others belong
 * alternately to operations and waiters, so that the numbers stay small.
 */
#ifndef REDLOCKD_TIMER_H
#define REDLOCKD_TIMER_H

#include <stdint.h>

enum { TIMER_TICK = 0 };

enum timer_owner { TIMER_OPERATION, TIMER_WAITER, TIMER_OWNERS };

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
