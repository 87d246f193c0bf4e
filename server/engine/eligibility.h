/*
 * Decides from what is known of all nodes when one gets its permission to vote.
 * Pure.
 *
 *   after its quarantine   Q has passed since the node was marked
 *   at once, idle          nobody has promised anything for Q: whatever the
 *                          node may have forgotten has expired
 *   back, idle             nobody has promised anything since its memory was
 *                          written
 *   back, durable          its memory is durable, and no server has reported a
 *                          later one, though each had two heartbeats for it
 *
 * In any case its mark is the latest that is known under its name.
 */
#ifndef REDLOCKD_ELIGIBILITY_H
#define REDLOCKD_ELIGIBILITY_H

#include "admission.h"

/* Q: how long a node that lost its memory does not vote, µs. */
int64_t eligibility_quarantine_us(const struct admission *admission);

/*
 * For how much longer the node is in quarantine, at most, including the wait
 * for a first start before it; 0: it is in none, or it has ended.
 */
int64_t eligibility_remaining_us(const struct admission *admission, int node,
                                 int64_t now_us);

/*
 * Why no node is admitted: another configuration was seen on some node within
 * Q · a new configuration is not on all nodes yet.
 */
bool eligibility_has_foreign(const struct admission *admission, int64_t now_us);
bool eligibility_has_taken_over(const struct admission *admission);

/* Other servers see another machine under the marked node's name. */
bool eligibility_is_contested(const struct admission *admission, int node);

/*
 * Each connected node was looked at since then; INT64_MAX: none is connected.
 * A node that answers with errors counts as not connected.
 */
int64_t eligibility_looked_us(const struct admission *admission);

/* Since when all nodes must have been looked at, for this one's sake; 0: need
 * not be. */
int64_t eligibility_look_since_us(const struct admission *admission, int node,
                                  int64_t now_us);

/*
 * When the latest mark was made that is known of the node, by the median; 0:
 * none is known. One from the future is not counted: the clocks were ahead
 * when it was made.
 */
int64_t eligibility_latest_us(const struct admission *admission, int node,
                              int64_t now_us);

/* Whether a marked node should be admitted · readmitted. */
bool eligibility_is_due(const struct admission *admission, int node,
                        int64_t now_us);
bool eligibility_is_back(const struct admission *admission, int node,
                         int64_t now_us);

#endif
