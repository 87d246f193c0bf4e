/* SPDX-License-Identifier: MIT */
/*
 * Lets one of our own allocations fail: the linker leads them here. Those of
 * the libraries succeed. Or makes them slow.
 */
#ifndef REDLOCKD_TEST_STARVE_H
#define REDLOCKD_TEST_STARVE_H

#include <stdbool.h>
#include <stdint.h>

extern struct starve {
    bool is_on;       /* only what is allocated meanwhile is counted */
    int left;         /* allocations up to the one that fails; 0: none does */
    int64_t takes_us; /* each allocation */
} starve;

#endif
