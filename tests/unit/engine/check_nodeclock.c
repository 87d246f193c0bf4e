
#include "../../../server/engine/voting/clocks.h"
#include "../../lib/suite/suite.h"

/* What a link does with each reply; returns the step. */
static int64_t observe(struct nodeclock *clock, int64_t node_us,
                       int64_t sent_us, int64_t received_us)
{
    struct nodeclock seen;
    nodeclock_read(&seen, node_us, sent_us, received_us);
    if (!clock->is_known) {
        *clock = seen;
        return 0;
    }
    int64_t step_us = nodeclock_step_us(clock, &seen);
    nodeclock_narrow(clock, &seen);
    return step_us;
}

SUITE(nodeclock);

TEST(first_reply_bounds_the_offset)
{
    struct nodeclock clock = {0};
    ck_assert_int_eq(observe(&clock, 10500, 100, 300), 0);
    ck_assert(clock.is_known);
    ck_assert_int_eq(clock.low_us, 10200);
    ck_assert_int_eq(clock.high_us, 10400);
    ck_assert_int_eq(nodeclock_at(&clock, 1000), 11300);
    ck_assert_int_eq(nodeclock_latest_at(&clock, 1000), 11403);
    ck_assert_int_eq(nodeclock_earliest_at(&clock, 1000), 11197);
}

TEST(a_faster_reply_narrows_a_slower_one_does_not_widen)
{
    struct nodeclock clock = {0};
    (void)observe(&clock, 10500, 100, 300);
    (void)observe(&clock, 10650, 330, 350);
    ck_assert_int_eq(clock.low_us, 10300);
    ck_assert_int_eq(clock.high_us, 10320);
    (void)observe(&clock, 10900, 400, 1400);
    ck_assert_int_ge(clock.low_us, 10290);
    ck_assert_int_le(clock.high_us, 10330);
}

TEST(a_wait_of_seconds_is_not_a_step)
{
    struct nodeclock clock = {0};
    (void)observe(&clock, 1000100, 0, 200);
    /* the node was paused: it read its clock five seconds after the sending */
    ck_assert_int_eq(observe(&clock, 6000100, 100, 5000200), 0);
    /* the server was paused: the reply lay in its socket */
    ck_assert_int_eq(observe(&clock, 6100100, 5100000, 9000000), 0);
}

TEST(a_step_is_told_and_not_believed)
{
    struct nodeclock clock = {0};
    (void)observe(&clock, 1000100, 0, 200);
    int64_t step_us = observe(&clock, 5001100, 1000, 1200);
    ck_assert_int_gt(step_us, 3990000);
    ck_assert_int_lt(step_us, 4000100);
    ck_assert_int_eq(observe(&clock, 1002100, 2000, 2200), 0);
    ck_assert_int_eq(nodeclock_at(&clock, 0), 1000000);
}

TEST(median_of_the_known)
{
    struct nodeclock a = {true, 10, 10, 0};
    struct nodeclock b = {true, 3000, 3000, 0};
    struct nodeclock c = {true, 20, 20, 0};
    struct nodeclock unknown = {0};
    const struct nodeclock *clocks[] = {&a, &unknown, &b, &c};
    ck_assert_int_eq(nodeclock_median_at(clocks, 4, 100), 120);
    ck_assert_int_eq(nodeclock_median_at(clocks, 3, 100), 110);
    ck_assert_int_eq(nodeclock_median_at(clocks, 1, 100), 110);
    ck_assert_int_eq(nodeclock_median_at(clocks + 1, 1, 100), 0);
    ck_assert_int_eq(nodeclock_median_at(clocks, 0, 100), 0);
}

/* Offsets of 1000 … 1200, as known at the moment 0. */
static const struct nodeclock known = {true, 1000, 1200, 0};

static const struct {
    int64_t low_us, high_us, at_us, step_us;
} seen[] = {
    {1100, 1300, 0, 0},     {1200, 1400, 0, 0},  {1201, 1400, 0, 1},
    {800, 1000, 0, 0},      {800, 999, 0, -1},   {0, 9000, 0, 0},
    {1205, 1205, 1000, 0}, /* 0.5% of a millisecond */
    {1206, 1206, 1000, 1},  {995, 995, 1000, 0}, {994, 994, 1000, -1},
    {1201, 1201, -1000, 1}, /* an older reply */
};

TEST_EACH(what_lies_beyond_the_widened_bounds_is_a_step, seen)
{
    struct nodeclock reply = {true, seen[_i].low_us, seen[_i].high_us,
                              seen[_i].at_us};
    ck_assert_int_eq(nodeclock_step_us(&known, &reply), seen[_i].step_us);
}

TEST(a_reply_that_disagrees_changes_nothing)
{
    struct nodeclock clock = known;
    struct nodeclock reply = {true, 1300, 1400, 0};
    nodeclock_narrow(&clock, &reply);
    ck_assert_int_eq(clock.low_us, known.low_us);
    ck_assert_int_eq(clock.high_us, known.high_us);
    ck_assert_int_eq(clock.at_us, known.at_us);
}

TEST(bounds_widen_by_half_a_percent_to_each_side)
{
    struct nodeclock unknown = {0};
    ck_assert_int_eq(nodeclock_earliest_at(&known, 2000), 2000 + 990);
    ck_assert_int_eq(nodeclock_latest_at(&known, 2000), 2000 + 1210);
    /* never in the past */
    ck_assert_int_eq(nodeclock_earliest_at(&known, -2000), -2000 + 1000);
    ck_assert_int_eq(nodeclock_uncertainty_us(&known, 2000), 220);
    ck_assert_int_eq(nodeclock_uncertainty_us(&unknown, 2000), 0);
}
