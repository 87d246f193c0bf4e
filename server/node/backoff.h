/*
 * The wait before the next attempt: doubled each time, with jitter, so that the
 * connections of many servers do not come back at the same moment.
 * Pure.
 */
#ifndef REDLOCKD_BACKOFF_H
#define REDLOCKD_BACKOFF_H

#include <stdint.h>

/* A node that becomes ready votes after the longest wait at the latest. */
enum { BACKOFF_FIRST_US = 20000, BACKOFF_LAST_US = 500000 };

struct backoff {
    int64_t longest_us; /* of the next wait; 0: BACKOFF_FIRST_US */
};

/* The next wait: between half of longest_us and all of it. */
int64_t backoff_next_us(struct backoff *backoff, uint32_t random);

void backoff_reset(struct backoff *backoff);

#endif
