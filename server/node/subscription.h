/* Apart from world.c, which alone includes it and wires all. */
/* SPDX-License-Identifier: MIT */
/*
 * The second connection to a node, on which it announces releases. An
 * announcement is a hint: it may be missing, late, repeated or a lie.
 *
 * The heartbeats of listen calls come on it, too: an open subscription that
 * hears nothing for silence_us connects again.
 */
#ifndef REDLOCKD_SUBSCRIPTION_H
#define REDLOCKD_SUBSCRIPTION_H

#include "line.h"

struct subscription;

/*
 * Closed at first. Takes all of setup but purpose and beside; a node that says
 * nothing for its silence_us, which is longer than the interval of listen
 * calls, is reconnected. All that setup points to is borrowed until
 * subscription_free. Its events may call any function but that. NULL: no
 * memory.
 */
struct subscription *subscription_new(int node, const struct line_setup *setup,
                                      const struct node_events *events);

/* Connects in the next turn, and again whenever it breaks. No-op if open. */
void subscription_open(struct subscription *subscription);

/* Disconnects, without an event. No-op if closed. */
void subscription_close(struct subscription *subscription);

/*
 * Begins or ends to hear of a resource; leaves with the next
 * subscription_flush. Ignored while not up: ask again at the next up.
 */
void subscription_set(struct subscription *subscription, struct span resource,
                      bool is_on);

/*
 * Writes what is queued, as far as the socket takes it. To be called at the end
 * of each turn.
 */
void subscription_flush(struct subscription *subscription);

/* Closes; NULL is ignored. */
void subscription_free(struct subscription *subscription);

#endif
