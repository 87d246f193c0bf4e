/* SPDX-License-Identifier: MIT */
/*
 * What a driver and the shim in its server share: a file that both map.
 */
#ifndef REDLOCKD_TEST_STARVED_PAGE_H
#define REDLOCKD_TEST_STARVED_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct starved_page {
    _Atomic int64_t left; /* allocations up to the one that fails; 0: none */
    atomic_bool lasts;    /* those behind it fail, too */
    _Atomic int64_t failed;
};

#endif
