/* SPDX-License-Identifier: MIT */
/*
 * What was begun and ended leaves no memory behind, in a process that lives on.
 */
#ifndef REDLOCKD_TEST_GROWTH_H
#define REDLOCKD_TEST_GROWTH_H

#include <stddef.h>

typedef void growth_fn(void);

/* Runs it again and again: in the end it takes no more memory each time. */
void growth_expect_none(growth_fn *round);

/* What the process has allocated now; under ASan always 0. */
size_t growth_bytes_in_use(void);

#endif
