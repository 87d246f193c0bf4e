/*
 * The locks a, b and c on a real node, over live.h. Their slots are 7, 8 and 9.
 */
#ifndef REDLOCKD_TEST_SEVERAL_H
#define REDLOCKD_TEST_SEVERAL_H

#include "live.h"

enum { SEVERAL = 3 };

/* Like live_call and live_run; the slots count up from 7. */
struct call several_call(enum call_kind kind, const char *names,
                         const char *token);
int several_run(enum call_kind kind, const char *names, const char *token);

/* The names of the three values, letters; '-' where there is none. */
const char *several_values(void);

/* By number, 0 to 2. Values by their names, as in tokens.h. */
const char *several_value(int lock);
long long several_pttl(int lock);
void several_set(int lock, const char *value, int64_t pttl_ms);
long long several_slot(int lock); /* 0: no number */
void several_raise(int lock, int64_t number);

/* Of the node. */
long long several_beat(void);

/* Leaves the user rights on the node's state and these; "%%" is a "%". */
void several_restrict(const char *rights);

#endif
