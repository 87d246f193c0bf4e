/* SPDX-License-Identifier: MIT */
/*
 * The tokens that tests know by names.
 *
 * "A" stands for <number>.A, and ".abc" for <number>.abc, where the number is
 * that with which the name was set last; "~A" and "~abc" for the shared forms
 * of these tokens. Whatever else a test calls a token is one.
 */
#ifndef REDLOCKD_TEST_TOKENS_H
#define REDLOCKD_TEST_TOKENS_H

#include "../../../server/engine/port/call.h"
#include "../../../server/lock/lock.h"

/* Forgets all. */
void tokens_begin(void);

/* The number of a name; now_us if it has none yet. 0: it is no name. */
int64_t tokens_number(struct span name, int64_t now_us);

/* Gives a name another one; does nothing if it is no name. */
void tokens_renumber(struct span name, int64_t number);

/* The token of this name with another number, in text. */
struct span tokens_make(struct span name, int64_t number,
                        char text[TOKEN_MAX + 1]);

/* The name of this token; or the token, if it has none. */
const char *tokens_name(const char *token);

/* The name of this number; NULL: it has none. */
const char *tokens_named(int64_t number);

#endif
