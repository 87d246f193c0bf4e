/*
 * Durations, counted in buckets.
 */
#ifndef REDLOCKD_HISTOGRAM_H
#define REDLOCKD_HISTOGRAM_H

#include <stdint.h>

enum { METRICS_BUCKETS = 14 };

/* Durations in µs; bucket i counts those up to the i-th bound. */
struct metrics_histogram {
    uint64_t buckets[METRICS_BUCKETS + 1]; /* the last: above all bounds */
    uint64_t sum_us;
    uint64_t count;
};

/* Upper bounds of the buckets, in µs, and in seconds for Prometheus. */
struct histogram_bound {
    int64_t us;
    const char *seconds;
};

/* Of most durations · of acquires that wait: up to WAIT_MAX_MS, and an attempt.
 */
extern const struct histogram_bound histogram_bounds[METRICS_BUCKETS];
extern const struct histogram_bound histogram_wait_bounds[METRICS_BUCKETS];

void histogram_observe(struct metrics_histogram *histogram,
                       const struct histogram_bound *bounds,
                       int64_t duration_us);

#endif
