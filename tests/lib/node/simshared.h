/* SPDX-License-Identifier: MIT */
/*
 * The calls about shared locks on a simulated node: server/node/scripts/
 * shared.lua and what stands on it, in plain C.
 */
#ifndef REDLOCKD_TEST_SIMSHARED_H
#define REDLOCKD_TEST_SIMSHARED_H

#include "simnode.h"

/* Whether the call's token has the shared form. */
bool simshared_is(const struct simcall *call);

/* What they answer when admission, deadline and number, and of a replication
 * the slots, are as they should be. */
enum vote simshared_acquire(struct simbatch *batch, const struct simcall *call,
                            struct simreply *answer);
enum vote simshared_extend(struct simbatch *batch, const struct simcall *call,
                           struct simreply *answer);
enum vote simshared_replication(struct simbatch *batch,
                                const struct simcall *call,
                                struct simreply *answer);

/* What a release finds in one of its places. */
enum simleft {
    SIMLEFT_ALL,    /* it had the lock, and nobody has it now */
    SIMLEFT_OTHERS, /* it had the lock, others still have it */
    SIMLEFT_FREE,   /* it is free, or a shared one without it */
    SIMLEFT_HELD,   /* another one has it */
};

/* Deletes the lock at this place, or one holder, if it has the token in either
 * form. The announcement is left to the caller. */
enum simleft simshared_leave(struct simbatch *batch, const struct simcall *call,
                             int place);

/* Tells the tokens of its locks; FREE: none is there. */
enum vote simshared_tokens(struct simbatch *batch, const struct simcall *call,
                           struct simreply *answer);

#endif
