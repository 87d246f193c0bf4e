/* SPDX-License-Identifier: MIT */
/*
 * Runs a loop until something is so, with a deadline: the tests wait for
 * states, never for a time.
 */
#ifndef REDLOCKD_TEST_TURNS_H
#define REDLOCKD_TEST_TURNS_H

#include "../../server/base/loop.h"

typedef bool turns_fn(void *arg);

/* Runs turns until is_so(arg); fails the test after 10 s. */
void turns_until(struct loop *loop, turns_fn *is_so, void *arg);

/* Runs turns until *counter is at least value. */
void turns_until_count(struct loop *loop, const int *counter, int value);

/* Lets turns go by: to see that nothing happens, not to wait for something. */
void turns_pass(struct loop *loop, int64_t us);

/* Turns for a while, in which nothing wakes the loop but the test itself. */
void turns_expect_rest(struct loop *loop);

#endif
