/* SPDX-License-Identifier: MIT */
/*
 * The state hash of a simulated node: permission.lua in plain C.
 */
#ifndef REDLOCKD_TEST_SIMSTATE_H
#define REDLOCKD_TEST_SIMSTATE_H

#include "simnode.h"

/* True if there is a state hash. */
bool simstate_is_there(const struct simmemory *memory);

/* The highest reported generation of the node with this name; 0: none. */
int64_t simstate_witness(const struct simmemory *memory, const char *name);

/* Probe, admit, readmit, revoke. */
enum vote simstate_execute(struct simbatch *batch, const struct simcall *call,
                           struct simreply *answer);

#endif
