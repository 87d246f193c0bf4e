/* SPDX-License-Identifier: MIT */
#include "../../../server/engine/waiting/waits.h"
#include "../../lib/suite/suite.h"

enum { TRIP_US = 300, NOW_US = 1000000, WAITERS = 3 };

static struct turn turn;

/* Its turn begins, with so many waiters; others wait, too. */
static void set_up(void)
{
    turn = (struct turn){0};
    turn_on_others(&turn, 1, NOW_US);
    turn_on_grant(&turn, false, WAITERS, NOW_US);
}

static bool yields(uint64_t next, int64_t now_us)
{
    turn_on_release(&turn, next, TRIP_US, now_us);
    return turn.yield_until_us > now_us;
}

SUITE(turn, .set_up = set_up);

TEST(all_that_waited_when_it_began_have_their_turn)
{
    for (uint64_t next = 2; next <= WAITERS; next++) {
        ck_assert(!yields(next, NOW_US));
        turn_on_grant(&turn, true, WAITERS + next, NOW_US);
    }
    ck_assert(yields(WAITERS + 1, NOW_US));
}

TEST(it_ends_when_nobody_waits)
{
    ck_assert(yields(0, NOW_US));
}

TEST(alone_it_has_no_end)
{
    ck_assert(!yields(WAITERS + 1, NOW_US + 1000000));
    turn = (struct turn){0};
    ck_assert(!yields(0, NOW_US));
}

TEST(a_yield_is_longer_where_nodes_are_slow)
{
    turn_on_release(&turn, 0, TRIP_US, NOW_US);
    ck_assert_int_eq(turn.yield_until_us, NOW_US + 5000);
    turn_on_release(&turn, 0, 10000, NOW_US);
    ck_assert_int_eq(turn.yield_until_us, NOW_US + 20000);
    turn_on_release(&turn, 0, 1000000000, NOW_US);
    ck_assert_int_eq(turn.yield_until_us, NOW_US + 50000);
}

/* As when the other server is paused: in the end 0.5% of the time. */
TEST(yields_that_nobody_uses_are_ever_further_apart)
{
    int64_t now_us = NOW_US, yielded_us = 0;
    while (now_us < NOW_US + 10000000) {
        turn_on_others(&turn, 1, now_us);
        if (yields(0, now_us)) {
            yielded_us += turn.yield_until_us - now_us;
            now_us = turn.yield_until_us;
        }
        turn_on_grant(&turn, false, WAITERS, now_us);
        now_us += 100;
    }
    ck_assert_int_gt(yielded_us, 0);
    ck_assert_int_lt(yielded_us, 10000000 * 2 / 100);
}

TEST(after_one_that_was_used_the_next_is_soon)
{
    for (int i = 0; i < 6; i++) {
        turn.rest_until_us = 0;
        ck_assert(yields(0, NOW_US));
        turn_on_grant(&turn, false, WAITERS, NOW_US);
    }
    ck_assert(!yields(0, NOW_US + 100000));
    turn.rest_until_us = 0;
    ck_assert(yields(0, NOW_US));
    turn_end_yield(&turn, true);
    turn_on_grant(&turn, false, WAITERS, NOW_US);
    ck_assert(yields(0, NOW_US));
    turn_on_grant(&turn, false, WAITERS, NOW_US);
    ck_assert(yields(0, NOW_US + 5000));
}

TEST(beside_one_other_server_it_is_not_behind)
{
    ck_assert_int_eq(turn_behind_us(&turn, WAITERS, NOW_US + 600000), 0);
}

TEST(of_several_whoever_had_no_turn_for_longer_is_first)
{
    turn_on_others(&turn, 2, NOW_US + 500000);
    int64_t last_us = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < WAITERS; j++)
            turn.elsewhere++;
        int64_t us = turn_behind_us(&turn, WAITERS, NOW_US + 600000);
        ck_assert_int_gt(us, 0);
        ck_assert_int_le(us, 2000);
        ck_assert_int_lt(us, last_us);
        last_us = us;
    }
    turn_on_grant(&turn, true, WAITERS, NOW_US + 600000);
    ck_assert_int_gt(turn_behind_us(&turn, WAITERS, NOW_US + 600000), last_us);
    ck_assert_int_eq(turn_behind_us(&turn, WAITERS, NOW_US + 2000000), 0);
}

/* Where locks are held for a moment, a server is behind by less. */
TEST(it_is_behind_by_a_small_part_of_the_time_at_most)
{
    turn_on_others(&turn, 2, NOW_US);
    ck_assert_int_le(turn_behind_us(&turn, WAITERS, NOW_US + 3200), 100);
}
