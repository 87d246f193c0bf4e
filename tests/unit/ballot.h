/* SPDX-License-Identifier: MIT */
/*
 * Ballots of tests as one number: a vote, or UNFIT(LOADING) and the like.
 */
#ifndef REDLOCKD_UNIT_BALLOT_H
#define REDLOCKD_UNIT_BALLOT_H

#include "../../server/engine/port/call.h"

#define UNFIT(state) ((int)VOTE_UNFIT + (int)STATE_##state)

static inline int ballot_of_reply(const struct call_reply *reply)
{
    return ballot_number(call_ballot(reply));
}

/* Such a reply, with nothing else in it. */
static inline struct call_reply reply_of_ballot(int number)
{
    return call_reply_of(ballot_of_number(number));
}

#endif
