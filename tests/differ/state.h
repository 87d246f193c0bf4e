/*
 * The state hash that a batch leaves behind, on both nodes.
 */
#ifndef DIFFER_STATE_H
#define DIFFER_STATE_H

#include "hands.h"

/* Whether both have the same fields; prints them if not. */
bool state_is_same(struct run *run);

#endif
