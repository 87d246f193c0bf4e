/* SPDX-License-Identifier: MIT */
/*
 * The nodes' clocks, and which of them may be trusted. Pure.
 *
 * A clock that steps forward expires locks too early. So each node's clock has
 * a baseline for the life of this process, and a reply that deviates from it is
 * no vote. A reply with the node's time bounds the node's offset to [time -
 * received, time - sent]: a node or a server that was paused gives a wide
 * interval, which does not resemble a step. Moments are CLOCK_BOOTTIME in µs,
 * a node's time is µs since 1970.
 *
 *             first reply           agrees with a majority, or
 *   unknown ──────────────→ UNPROVEN ───────────────────────→ good
 *                            ↑      was steady for a max TTL   │
 *            judged: revoked │                                 │
 *                            └──────────── STEPPED ←───────────┘
 *                                  a reply beyond the baseline
 *
 * A step is judged once every other node has replied since: if a majority
 * stepped, our own clock did, and no node loses its permission.
 */
#ifndef REDLOCKD_CLOCKS_H
#define REDLOCKD_CLOCKS_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../port/call.h"
#include "../port/token.h"

enum {
    /* smaller steps are not detected: each validity allows for them */
    NODECLOCK_STEP_US = 5000,
    /* slower replies prove nothing, however long rounds may wait */
    CLOCK_REPLY_US = 100000,
    CLOCK_FAR_US = FENCE_WINDOW_US / 2, /* from the median, at most */
};

/* One clock: bounds of its offset, the node's time minus ours. */
struct nodeclock {
    bool is_known;
    int64_t low_us;
    int64_t high_us;
    int64_t at_us; /* the moment at which both were measured */
};

/* The earliest and the latest time that a known clock may show at our moment:
 * for drift, the bounds are widened by 0.5% of their age. */
int64_t nodeclock_earliest_at(const struct nodeclock *clock, int64_t moment_us);
int64_t nodeclock_latest_at(const struct nodeclock *clock, int64_t moment_us);

struct clock_node {
    struct nodeclock base; /* the baseline */
    struct nodeclock last; /* the last reply that deviated */
    bool is_up;
    bool is_proven;
    bool is_far; /* too far from the median for our numbers */
    int64_t steady_since_us;
    int64_t read_us; /* when the last answered call was sent */
    int64_t step_us; /* deviation of the last reply; 0: none to judge */
};

struct clocks {
    int count;
    int quorum;
    int64_t steady_us;    /* a clock that was steady this long is good */
    int64_t suspected_us; /* when a judgement became due; 0: none is */
    struct clock_node node[NODES_MAX];
};

void clocks_init(struct clocks *clocks, int count, int64_t max_ttl_ms);

void clocks_note_up(struct clocks *clocks, int node, bool is_up);

/*
 * A call sent at sent_us got a reply with the node's time. False: it deviates
 * from the baseline, and the reply must not count.
 */
bool clocks_observe(struct clocks *clocks, int node, int64_t node_us,
                    int64_t sent_us, int64_t received_us);

/* True if a judgement waits for a reply from this node. */
bool clocks_wants_reply(const struct clocks *clocks, int node);

/* The result of a judgement. */
struct clocks_judgement {
    bool is_own; /* a majority stepped: our own clock is suspect */
    int64_t step_us[NODES_MAX]; /* of those to lose their permission; 0: not */
};

/* True: a judgement was made, and the baselines that it concerns are new. */
bool clocks_judge(struct clocks *clocks, int64_t now_us,
                  struct clocks_judgement *judgement);

/* Compares each clock with the median. Called often. */
void clocks_tick(struct clocks *clocks, int64_t now_us);

/* Why the node's clock keeps it from voting; STATE_NONE: it is good. */
enum node_state clocks_refusal(const struct clocks *clocks, int node);

/* The rest of the time that an unproven clock is watched, at most, µs. */
int64_t clocks_remaining_us(const struct clocks *clocks, int node,
                            int64_t now_us);

/* Median of the connected nodes' clocks at our moment; 0: none is known. */
int64_t clocks_median_at(const struct clocks *clocks, int64_t moment_us);

/* How far the node's clock is ahead of the median, µs; 0 if unknown. */
int64_t clocks_offset_us(const struct clocks *clocks, int node,
                         int64_t moment_us);

/* True if a majority of the clocks is proven: then the median is right. */
bool clocks_are_known(const struct clocks *clocks);

/*
 * The greatest difference between the medians of servers, as far as this one
 * can know: others may reach other nodes, or get slower replies.
 */
int64_t clocks_apart_us(const struct clocks *clocks, int64_t moment_us);

/*
 * How far off our estimate of the node's clock may be, and so how much later a
 * call with a deadline there may run; 0 if unknown.
 */
int64_t clocks_uncertainty_us(const struct clocks *clocks, int node,
                              int64_t moment_us);

#endif
