/*
 * How a waiter with a key learns that it has the lock already: from what this
 * server knew when it arrived, from the attempts of all that wait for the
 * resource, or from a look of its own, an inspection. A look takes no lock, and
 * so overtakes nobody.
 */
#ifndef REDLOCKD_LOOK_H
#define REDLOCKD_LOOK_H

#include "schedule.h"

/* The nodes' clocks may have been unknown when it came. */
void look_date(struct waiter *it, int64_t now_us);

/* It has just arrived: others may have found its lock before. */
void look_remember(struct waiter *it, int64_t now_us);

/*
 * True if no attempt would find its lock: all contenders wait for several
 * resources, and their attempts may report the holder of another one.
 */
bool look_is_needed(const struct waiter *it);

/* True: it has its outcome already. */
bool look_begin(struct waiter *it, int64_t now_us);

/* It has its outcome: updates the claim, and ends. */
void look_take(struct waiter *it, int64_t now_us);

/* Ends a look, finished or not; none may be under way. */
void look_end(struct waiter *it);

/* An attempt has this outcome: updates the claims of all in its queues. */
void look_tell_of_grant(const struct waiter *granted);
void look_tell_of_loss(struct waiter *tried, const struct operation *operation,
                       int64_t now_us);

#endif
