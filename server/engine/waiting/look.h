/*
 * How a waiter with a key learns that it has the lock already: from what was
 * known when it came, from the attempts of all that wait for the resource, and
 * otherwise from a look of its own. That asks, and takes nothing, so it
 * overtakes nobody.
 */
#ifndef REDLOCKD_LOOK_H
#define REDLOCKD_LOOK_H

#include "schedule.h"

/* It has just come: others may have found its lock before. */
void look_remember(struct waiter *it, int64_t now_us);

/*
 * Whether no attempt would tell who has its lock: those that contend wait for
 * something else as well, and are told who has that.
 */
bool look_is_needed(const struct waiter *it);

/* True: it has been answered already. */
bool look_begin(struct waits *waits, struct waiter *it, int64_t now_us);

/* It has been answered: what it found goes to the claim, and it ends. */
void look_take(struct waits *waits, struct waiter *it, int64_t now_us);

/* Whatever is under way is not waited for. */
void look_end(struct waits *waits, struct waiter *it);

/* What an attempt says to those that wait with it, or beside it. */
void look_tell_of_grant(const struct waiter *granted);
void look_tell_of_loss(struct waits *waits, struct waiter *tried,
                       const struct operation *operation, int64_t now_us);

#endif
