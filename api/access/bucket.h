/*
 * A token bucket: rate requests a second, and burst of them at once. Pure.
 */
#ifndef REDLOCKD_BUCKET_H
#define REDLOCKD_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_MAX = 1000000 }; /* of rate and burst */

struct bucket {
    int64_t level;     /* millionths of a request that it has room for */
    int64_t filled_us; /* when level was true */
};

/* A full one. */
void bucket_init(struct bucket *it, int64_t burst, int64_t now_us);

/*
 * Takes count requests; more than burst count as burst. False: there is no
 * room; *wait_us: for how long. rate and burst are from 1 to BUCKET_MAX, and
 * may change between two calls.
 */
bool bucket_take(struct bucket *it, int64_t rate, int64_t burst, int64_t count,
                 int64_t now_us, int64_t *wait_us);

#endif
