/*
 * When a node gets its permission to vote: what is known of all nodes is
 * weighed here. Pure.
 *
 *   after its quarantine   Q has passed since the node was marked
 *   at once, idle          nobody has promised anything for Q: whatever the
 *                          node may have forgotten is over
 *   back, idle             nobody has promised anything since its memory was
 *                          written
 *   back, durable          its memory is durable, and no server that had two
 *                          heartbeats to say so has seen a later one
 */
#ifndef REDLOCKD_ELIGIBILITY_H
#define REDLOCKD_ELIGIBILITY_H

#include "admission.h"

/* Q: how long a node that lost its memory does not vote, µs. */
int64_t eligibility_quarantine_us(const struct admission *admission);

/*
 * How long the node's quarantine lasts on, at most, with the wait for a first
 * start before it; 0: it is in none, or it has ended.
 */
int64_t eligibility_remaining_us(const struct admission *admission, int node,
                                 int64_t now_us);

/*
 * Why no node is admitted: another configuration was seen on some node within
 * Q · not all nodes carry our epoch yet, and that is how a new one begins.
 */
bool eligibility_has_foreign(const struct admission *admission, int64_t now_us);
bool eligibility_has_taken_over(const struct admission *admission);

/* Other servers see another machine under the marked node's name. */
bool eligibility_is_contested(const struct admission *admission, int node);

/*
 * Since when each node that is there was looked at; INT64_MAX: none is. One
 * that answers errors is as if it were not there.
 */
int64_t eligibility_looked_us(const struct admission *admission);

/* When all nodes should have been looked at once more for this one; 0: need
 * not be. */
int64_t eligibility_look_since_us(const struct admission *admission, int node,
                                  int64_t now_us);

/* Whether a marked node is to be admitted · to be readmitted. */
bool eligibility_is_due(const struct admission *admission, int node,
                        int64_t now_us);
bool eligibility_is_back(const struct admission *admission, int node,
                         int64_t now_us);

#endif
