/* SPDX-License-Identifier: MIT */
#include "clocks.h"

#include <assert.h>
#include <stdlib.h>

#include "../../base/types.h"

/* ---- one clock ----------------------------------------------------------- */

enum { DRIFT_DIVISOR = 200 }; /* 0.5% */

static int64_t widening_us(const struct nodeclock *clock, int64_t moment_us)
{
    return at_least(moment_us - clock->at_us, 0) / DRIFT_DIVISOR;
}

/*
 * How far a reply is outside of the known bounds, widened, µs; 0: they agree.
 */
static int64_t nodeclock_step_us(const struct nodeclock *clock,
                                 const struct nodeclock *seen)
{
    int64_t wider_us = widening_us(clock, seen->at_us);
    int64_t above_us = seen->low_us - (clock->high_us + wider_us);
    int64_t below_us = seen->high_us - (clock->low_us - wider_us);
    return at_least(above_us, 0) + at_most(below_us, 0);
}

/*
 * Narrows the bounds, widened likewise, by a reply. If the two disagree, they
 * stay: otherwise many small steps would be accepted one by one.
 */
static void nodeclock_narrow(struct nodeclock *clock,
                             const struct nodeclock *seen)
{
    int64_t wider_us = widening_us(clock, seen->at_us);
    if (nodeclock_step_us(clock, seen) != 0)
        return;
    clock->low_us = at_least(seen->low_us, clock->low_us - wider_us);
    clock->high_us = at_most(seen->high_us, clock->high_us + wider_us);
    clock->at_us = seen->at_us;
}

/* The node's time at our moment: the middle of the bounds. */
static int64_t nodeclock_at(const struct nodeclock *clock, int64_t moment_us)
{
    return moment_us + clock->low_us + (clock->high_us - clock->low_us) / 2;
}

int64_t nodeclock_earliest_at(const struct nodeclock *clock, int64_t moment_us)
{
    assert(clock->is_known);
    return moment_us + clock->low_us - widening_us(clock, moment_us);
}

int64_t nodeclock_latest_at(const struct nodeclock *clock, int64_t moment_us)
{
    assert(clock->is_known);
    return moment_us + clock->high_us + widening_us(clock, moment_us);
}

/* How far apart the bounds are at our moment. */
static int64_t nodeclock_uncertainty_us(const struct nodeclock *clock,
                                        int64_t moment_us)
{
    return clock->high_us - clock->low_us + 2 * widening_us(clock, moment_us);
}

/* Median of these clocks' times, the lower of two middle ones; 0: of none. */
static int64_t nodeclock_median_at(const struct nodeclock *const clocks[],
                                   int count, int64_t moment_us)
{
    int64_t times_us[NODES_MAX];
    for (int i = 0; i < count; i++)
        times_us[i] = nodeclock_at(clocks[i], moment_us);
    return count == 0 ? 0 : order_statistic(times_us, count, (count - 1) / 2);
}

/* ---- all of them --------------------------------------------------------- */

void clocks_init(struct clocks *clocks, int count, int64_t max_ttl_ms)
{
    assert(count >= 1 && count <= NODES_MAX);
    *clocks = (struct clocks){
        .count = count,
        .quorum = quorum_of(count),
        .steady_us = max_ttl_ms * 1000,
    };
}

void clocks_note_up(struct clocks *clocks, int node, bool is_up)
{
    clocks->node[node].is_up = is_up;
}

/* ---- the median --------------------------------------------------------- */

/* The connected nodes' clocks that are known this precisely; returns how many.
 */
static int list_known(const struct clocks *clocks, int64_t uncertainty_us,
                      int64_t moment_us,
                      const struct nodeclock *known[NODES_MAX])
{
    int count = 0;
    for (int i = 0; i < clocks->count; i++) {
        const struct nodeclock *it = &clocks->node[i].base;
        if (clocks->node[i].is_up && it->is_known &&
            nodeclock_uncertainty_us(it, moment_us) <= uncertainty_us)
            known[count++] = it;
    }
    return count;
}

int64_t clocks_median_at(const struct clocks *clocks, int64_t moment_us)
{
    const struct nodeclock *known[NODES_MAX] = {NULL};
    int count = list_known(clocks, INT64_MAX, moment_us, known);
    return nodeclock_median_at(known, count, moment_us);
}

/* The clock minus the median; 0: one of the two is unknown. */
static int64_t offset_from(const struct nodeclock *clock, int64_t median_us,
                           int64_t moment_us)
{
    if (median_us == 0 || !clock->is_known)
        return 0;
    return nodeclock_at(clock, moment_us) - median_us;
}

int64_t clocks_offset_us(const struct clocks *clocks, int node,
                         int64_t moment_us)
{
    return offset_from(&clocks->node[node].base,
                       clocks_median_at(clocks, moment_us), moment_us);
}

int64_t clocks_uncertainty_us(const struct clocks *clocks, int node,
                              int64_t moment_us)
{
    const struct nodeclock *it = &clocks->node[node].base;
    return it->is_known ? nodeclock_uncertainty_us(it, moment_us) : 0;
}

bool clocks_are_known(const struct clocks *clocks)
{
    int known = 0;
    for (int i = 0; i < clocks->count; i++) {
        const struct clock_node *it = &clocks->node[i];
        known += it->is_up && it->is_proven && it->step_us == 0;
    }
    return known >= clocks->quorum;
}

int64_t clocks_apart_us(const struct clocks *clocks, int64_t moment_us)
{
    int64_t least_us = INT64_MAX, most_us = INT64_MIN;
    for (int i = 0; i < clocks->count; i++) {
        const struct clock_node *it = &clocks->node[i];
        if (!it->base.is_known || it->is_far)
            continue;
        int64_t at_us = nodeclock_at(&it->base, moment_us);
        least_us = at_most(at_us, least_us);
        most_us = at_least(most_us, at_us);
    }
    /* half of the timeout is for each server */
    return CLOCK_REPLY_US + (most_us > least_us ? most_us - least_us : 0);
}

/* ---- proof -------------------------------------------------------------- */

/* The clocks of a majority; others are compared with it. */
struct majority {
    int64_t median_us;
    int64_t far_us;
    int64_t uncertainty_us; /* clocks known less precisely do not agree */
};

static bool agrees(const struct majority *majority,
                   const struct nodeclock *clock, int64_t moment_us)
{
    int64_t offset_us = nodeclock_at(clock, moment_us) - majority->median_us;
    return nodeclock_uncertainty_us(clock, moment_us) <=
               majority->uncertainty_us &&
           llabs(offset_us) <= majority->far_us;
}

/*
 * Without a history only a majority can show that a clock has stepped. The
 * median alone is no majority: of three clocks that differ, one is the median.
 * A clock that is known only roughly, without a quick reply, could show any
 * time, and does not belong to the majority.
 */
static bool find_majority(const struct clocks *clocks, int64_t now_us,
                          struct majority *majority)
{
    const struct nodeclock *known[NODES_MAX] = {NULL};
    int count = list_known(clocks, INT64_MAX, now_us, known);
    if (count < clocks->quorum)
        return false;
    int64_t uncertainties_us[NODES_MAX];
    for (int i = 0; i < count; i++)
        uncertainties_us[i] = nodeclock_uncertainty_us(known[i], now_us);
    /* the greatest in the best measured majority */
    int64_t usual_us =
        order_statistic(uncertainties_us, count, clocks->quorum - 1);
    if (usual_us > CLOCK_REPLY_US)
        return false;
    majority->far_us = NODECLOCK_STEP_US + usual_us / 2;
    majority->uncertainty_us = usual_us + 2 * (int64_t)NODECLOCK_STEP_US;
    count = list_known(clocks, majority->uncertainty_us, now_us, known);
    majority->median_us = nodeclock_median_at(known, count, now_us);
    int near = 0;
    for (int i = 0; i < count; i++)
        near += agrees(majority, known[i], now_us);
    return near >= clocks->quorum;
}

static void prove(struct clocks *clocks, int64_t now_us)
{
    struct majority majority = {0};
    bool has_majority = find_majority(clocks, now_us, &majority);
    for (int i = 0; i < clocks->count; i++) {
        struct clock_node *it = &clocks->node[i];
        if (it->is_proven || !it->is_up || !it->base.is_known)
            continue;
        it->is_proven =
            it->base.at_us - it->steady_since_us >= clocks->steady_us ||
            (has_majority && agrees(&majority, &it->base, now_us));
    }
}

void clocks_tick(struct clocks *clocks, int64_t now_us)
{
    prove(clocks, now_us);
    int64_t median_us = clocks_median_at(clocks, now_us);
    if (median_us == 0) /* no node is up: those that were far still are */
        return;
    for (int i = 0; i < clocks->count; i++) {
        struct clock_node *it = &clocks->node[i];
        it->is_far =
            llabs(offset_from(&it->base, median_us, now_us)) > CLOCK_FAR_US;
    }
}

/* ---- replies ------------------------------------------------------------ */

static void learn(struct clock_node *node, const struct nodeclock *clock)
{
    node->base = *clock;
    node->is_proven = false;
    node->steady_since_us = clock->at_us;
    node->step_us = 0;
}

bool clocks_observe(struct clocks *clocks, int node, int64_t node_us,
                    int64_t sent_us, int64_t received_us)
{
    assert(node >= 0 && node < clocks->count);
    struct clock_node *it = &clocks->node[node];
    const struct nodeclock seen = {true, node_us - received_us,
                                   node_us - sent_us, received_us};
    assert(sent_us <= received_us);
    it->read_us = at_least(sent_us, it->read_us);
    if (!it->base.is_known) {
        learn(it, &seen);
        return true;
    }
    int64_t step_us = nodeclock_step_us(&it->base, &seen);
    if (llabs(step_us) > NODECLOCK_STEP_US) {
        it->step_us = step_us;
        it->last = seen;
        if (clocks->suspected_us == 0)
            clocks->suspected_us = received_us;
        return false;
    }
    nodeclock_narrow(&it->base, &seen);
    if (it->step_us != 0)
        it->last = seen;
    if (!it->is_proven)
        prove(clocks, received_us);
    return it->step_us == 0; /* one that stepped back has stepped twice */
}

/* ---- judgement ---------------------------------------------------------- */

bool clocks_wants_reply(const struct clocks *clocks, int node)
{
    const struct clock_node *it = &clocks->node[node];
    return clocks->suspected_us != 0 && it->is_up && it->step_us == 0 &&
           it->read_us < clocks->suspected_us;
}

static bool is_waiting(const struct clocks *clocks, int64_t now_us)
{
    if (now_us >= clocks->suspected_us + CLOCK_REPLY_US)
        return false;
    for (int i = 0; i < clocks->count; i++)
        if (clocks_wants_reply(clocks, i))
            return true;
    return false;
}

bool clocks_judge(struct clocks *clocks, int64_t now_us,
                  struct clocks_judgement *judgement)
{
    if (clocks->suspected_us == 0 || is_waiting(clocks, now_us))
        return false;
    int stepped = 0;
    for (int i = 0; i < clocks->count; i++)
        stepped += clocks->node[i].step_us != 0;
    *judgement = (struct clocks_judgement){
        .is_own = stepped >= clocks->quorum,
    };
    for (int i = 0; i < clocks->count; i++) {
        struct clock_node *it = &clocks->node[i];
        judgement->step_us[i] = judgement->is_own ? 0 : it->step_us;
        if (it->step_us != 0)
            learn(it, &it->last);
        else if (judgement->is_own)
            it->base.is_known = it->is_proven = false;
    }
    clocks->suspected_us = 0;
    prove(clocks, now_us);
    return true;
}

/* ---- state -------------------------------------------------------------- */

enum node_state clocks_refusal(const struct clocks *clocks, int node)
{
    const struct clock_node *it = &clocks->node[node];
    if (it->base.is_known && it->step_us != 0)
        return STATE_STEPPED;
    if (!it->base.is_known || !it->is_proven)
        return STATE_UNPROVEN;
    return it->is_far ? STATE_SKEWED : STATE_NONE;
}

int64_t clocks_remaining_us(const struct clocks *clocks, int node,
                            int64_t now_us)
{
    return at_least(
        clocks->node[node].steady_since_us + clocks->steady_us - now_us, 0);
}
