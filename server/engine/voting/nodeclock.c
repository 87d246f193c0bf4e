#include "nodeclock.h"

#include <assert.h>

#include "../../base/types.h"

enum { DRIFT_DIVISOR = 200 }; /* 0.5% */

static int64_t widening_us(const struct nodeclock *clock, int64_t moment_us)
{
    int64_t age_us = moment_us - clock->at_us;
    return age_us > 0 ? age_us / DRIFT_DIVISOR : 0;
}

void nodeclock_read(struct nodeclock *clock, int64_t node_us, int64_t sent_us,
                    int64_t received_us)
{
    assert(sent_us <= received_us);
    *clock = (struct nodeclock){
        .is_known = true,
        .low_us = node_us - received_us,
        .high_us = node_us - sent_us,
        .at_us = received_us,
    };
}

int64_t nodeclock_step_us(const struct nodeclock *clock,
                          const struct nodeclock *seen)
{
    int64_t wider_us = widening_us(clock, seen->at_us);
    int64_t above_us = seen->low_us - (clock->high_us + wider_us);
    int64_t below_us = seen->high_us - (clock->low_us - wider_us);
    return at_least(above_us, 0) + at_most(below_us, 0);
}

void nodeclock_narrow(struct nodeclock *clock, const struct nodeclock *seen)
{
    int64_t wider_us = widening_us(clock, seen->at_us);
    if (nodeclock_step_us(clock, seen) != 0)
        return;
    clock->low_us = at_least(seen->low_us, clock->low_us - wider_us);
    clock->high_us = at_most(seen->high_us, clock->high_us + wider_us);
    clock->at_us = seen->at_us;
}

int64_t nodeclock_at(const struct nodeclock *clock, int64_t moment_us)
{
    assert(clock->is_known);
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

int64_t nodeclock_uncertainty_us(const struct nodeclock *clock,
                                 int64_t moment_us)
{
    if (!clock->is_known)
        return 0;
    return clock->high_us - clock->low_us + 2 * widening_us(clock, moment_us);
}

int64_t nodeclock_median_at(const struct nodeclock *const clocks[], int count,
                            int64_t moment_us)
{
    int64_t times_us[NODES_MAX];
    int known = 0;
    assert(count <= NODES_MAX);
    for (int i = 0; i < count; i++)
        if (clocks[i]->is_known)
            times_us[known++] = nodeclock_at(clocks[i], moment_us);
    return known == 0 ? 0 : order_statistic(times_us, known, (known - 1) / 2);
}
