/*
 * The surveys of pools: who asks the nodes, and what comes of the answers.
 */
#ifndef REDLOCKD_ASKING_H
#define REDLOCKD_ASKING_H

#include "permit.h"

/*
 * Surveys of large pools cost the nodes time, and clients cause them. So all of
 * them together may ask about one slot in 10 µs. False: not now;
 * pool->survey_from_us tells when.
 */
bool asking_may_begin(const struct permits *permits, struct pool *pool);

/*
 * Asks the nodes which of the pool's slots are free, for all in its queue. It
 * may end at once. Those that need not wait are answered if it fails.
 */
void asking_begin(struct permits *permits, struct pool *pool);

/* After a vote was noted. True: the survey has ended. */
bool asking_end(struct permits *permits, struct pool *pool);

#endif
