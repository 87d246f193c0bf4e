/*
 * Fencing numbers: every grant of a resource carries a higher number than
 * every earlier grant.
 *
 * A number is the median of the nodes' clocks in microseconds, raised above the
 * last one issued here. A node accepts only rising numbers in a slot, and two
 * majorities share a node: so numbers rise whichever server issues them.
 */
#ifndef REDLOCKD_FENCE_H
#define REDLOCKD_FENCE_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "call.h"

/* The highest number: exact in Lua and in JSON, 16 digits. */
#define FENCE_MAX ((INT64_C(1) << 53) - 1)

/* Slot of a resource: CRC-16/XMODEM mod 16384, as in Redis Cluster. */
int fence_slot(struct span resource);

/* The slot of each name that names has. */
void fence_slots(struct span names, uint16_t slots[NAMES_MAX]);

/* A call about a lock, with the slots of its names. Borrows both texts. */
struct call fence_call(enum call_kind kind, struct span resource,
                       struct span token);

/*
 * A number, µs: time_us, raised above the number above; 0: above none. Never
 * higher than FENCE_MAX: a number written into a slot by hand must not stop the
 * server. No node grants in such a slot.
 */
int64_t fence_next(int64_t time_us, int64_t above);

/* W: how far a number may be from a node's clock, µs. */
enum { FENCE_WINDOW_US = 2000000 };

#endif
