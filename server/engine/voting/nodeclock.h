/*
 * One node's clock, measured by its replies.
 *
 * A reply with the node's time bounds the node's offset to [time - received,
 * time - sent]. A node or a server that was paused gives a wide interval, which
 * must not look like a step. Moments are CLOCK_BOOTTIME in µs, a node's time is
 * µs since 1970.
 */
#ifndef REDLOCKD_NODECLOCK_H
#define REDLOCKD_NODECLOCK_H

#include "../../base/types.h"
#include "../../lock/lock.h"

/* Smaller steps of a clock are not detected: each validity allows for them. */
enum { NODECLOCK_STEP_US = 5000 };

struct nodeclock {
    bool is_known;
    int64_t low_us;  /* lower bound of the offset, the node's time minus ours */
    int64_t high_us; /* upper bound */
    int64_t at_us;   /* the moment at which both were measured */
};

/* The clock as one reply shows it. */
void nodeclock_read(struct nodeclock *clock, int64_t node_us, int64_t sent_us,
                    int64_t received_us);

/*
 * How far a reply is outside of the known bounds, µs; 0: they agree. The bounds
 * are first widened for drift, by 0.5% of their age.
 */
int64_t nodeclock_step_us(const struct nodeclock *clock,
                          const struct nodeclock *seen);

/*
 * Narrows the bounds, widened likewise, by a reply. If the two disagree, they
 * stay: otherwise many small steps would be accepted one by one.
 */
void nodeclock_narrow(struct nodeclock *clock, const struct nodeclock *seen);

/* The node's time at our moment: the middle of the bounds. */
int64_t nodeclock_at(const struct nodeclock *clock, int64_t moment_us);

/* The earliest and the latest time that the node may show at our moment. */
int64_t nodeclock_earliest_at(const struct nodeclock *clock, int64_t moment_us);
int64_t nodeclock_latest_at(const struct nodeclock *clock, int64_t moment_us);

/* How far apart the bounds are at our moment; 0 if nothing is known. */
int64_t nodeclock_uncertainty_us(const struct nodeclock *clock,
                                 int64_t moment_us);

/*
 * Median of the known clocks' times at our moment, the lower of two middle
 * ones; 0 if no clock is known. count at most NODES_MAX.
 */
int64_t nodeclock_median_at(const struct nodeclock *const clocks[], int count,
                            int64_t moment_us);

#endif
