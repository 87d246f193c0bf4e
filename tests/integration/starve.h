/* SPDX-License-Identifier: MIT */
/*
 * A server whose allocations fail on demand: tests/starved/shim.c.
 */
#ifndef REDLOCKD_TEST_STARVE_H
#define REDLOCKD_TEST_STARVE_H

#include "harness.h"

/* Server i of world, which is not started yet, is to have the shim. */
void starve_prepare(struct server *server);

/* Its n-th allocation from now on fails; lasts: and all behind it. */
void starve_begin(int n, bool lasts);

/* How many have failed since. */
int starve_count(void);

/* The same, and none fails any more. */
int starve_end(void);

#endif
