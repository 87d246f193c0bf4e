/*
 * Decides from what is known of all nodes when one gets its permission to vote.
 * Pure.
 *
 *   asked    a majority of all, without it, knew of its mark, and told then
 *            when all that they have promised ends; this has ended
 *   in time  fewer can be asked, and Q has passed since the mark was seen
 *   back     its memory is durable, and no server has reported a later one,
 *            though each had two heartbeats for it
 *
 * In any case no later birth is known under the node's name. Why this is
 * enough: docs/guarantees.md.
 */
#ifndef REDLOCKD_ELIGIBILITY_H
#define REDLOCKD_ELIGIBILITY_H

#include "admission.h"

/* The greatest TTL that any server is known to allow, ms. */
int64_t eligibility_greatest_ttl_ms(const struct admission *admission);

/* Q: how long a node that lost its memory does not vote if too few others can
 * be asked, µs. */
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

/*
 * Whether a later birth is known under its name than that of its admission or
 * mark: another machine answers to it, and this one does not count · whether
 * the other one is silent for so long that this one may be marked anew.
 */
bool eligibility_is_outdated(const struct admission *admission, int node);
bool eligibility_may_renew(const struct admission *admission, int node,
                           int64_t now_us);

/* A look at an admitted node told this of its promises, and, through witness,
 * of the births of others. */
void eligibility_on_told(struct admission *admission, int node,
                         const struct call_look *look, int64_t now_us);

/*
 * Each connected node was looked at since then; INT64_MAX: none is connected.
 * A node that answers with errors counts as not connected.
 */
int64_t eligibility_looked_us(const struct admission *admission);

/* Whether a marked node should be admitted · readmitted. */
bool eligibility_is_due(const struct admission *admission, int node,
                        int64_t now_us);
bool eligibility_is_back(const struct admission *admission, int node,
                         int64_t now_us);

#endif
