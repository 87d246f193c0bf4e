/* SPDX-License-Identifier: MIT */
/*
 * The state hash and the locks that a batch leaves behind, on both nodes.
 */
#ifndef DIFFER_STATE_H
#define DIFFER_STATE_H

#include "hands.h"

/* Whether both have the same fields; prints them if not. */
bool state_is_same(struct run *run);

/*
 * Whether both have the same values of the locks; prints the first other one.
 * Those about to end are not compared.
 */
bool state_has_same_locks(struct run *run);

#endif
