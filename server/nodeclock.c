#include "nodeclock.h"

#include <assert.h>

enum { DRIFT_DIVISOR = 200 }; /* 0.5% */

static int64_t widening_us(const struct nodeclock *clock, int64_t moment_us)
{
    int64_t age_us = moment_us - clock->at_us;
    return age_us > 0 ? age_us / DRIFT_DIVISOR : 0;
}

int64_t nodeclock_observe(struct nodeclock *clock, int64_t node_us,
                          int64_t sent_us, int64_t received_us)
{
    assert(sent_us <= received_us);
    struct nodeclock seen = {
        .is_known = true,
        .low_us = node_us - received_us,
        .high_us = node_us - sent_us,
        .at_us = received_us,
    };
    if (!clock->is_known) {
        *clock = seen;
        return 0;
    }
    int64_t wider_us = widening_us(clock, received_us);
    int64_t low_us = clock->low_us - wider_us;
    int64_t high_us = clock->high_us + wider_us;
    if (seen.low_us > high_us || seen.high_us < low_us) {
        *clock = seen;
        return seen.low_us > high_us ? seen.low_us - high_us
                                     : seen.high_us - low_us;
    }
    clock->low_us = seen.low_us > low_us ? seen.low_us : low_us;
    clock->high_us = seen.high_us < high_us ? seen.high_us : high_us;
    clock->at_us = received_us;
    return 0;
}

int64_t nodeclock_at(const struct nodeclock *clock, int64_t moment_us)
{
    assert(clock->is_known);
    return moment_us + clock->low_us + (clock->high_us - clock->low_us) / 2;
}

int64_t nodeclock_latest_at(const struct nodeclock *clock, int64_t moment_us)
{
    assert(clock->is_known);
    return moment_us + clock->high_us + widening_us(clock, moment_us);
}

int64_t nodeclock_doubt_us(const struct nodeclock *clock, int64_t moment_us)
{
    if (!clock->is_known)
        return 0;
    return clock->high_us - clock->low_us + 2 * widening_us(clock, moment_us);
}

int64_t nodeclock_median_at(const struct nodeclock *const clocks[], int count,
                            int64_t moment_us)
{
    int64_t sorted[NODES_MAX];
    int known = 0;
    assert(count <= NODES_MAX);
    for (int i = 0; i < count; i++) {
        if (!clocks[i]->is_known)
            continue;
        int64_t time_us = nodeclock_at(clocks[i], moment_us);
        int at = known++;
        /* cppcheck-suppress uninitvar; those below known are filled */
        for (; at > 0 && sorted[at - 1] > time_us; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = time_us;
    }
    return known == 0 ? 0 : sorted[(known - 1) / 2];
}
