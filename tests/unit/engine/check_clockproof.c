/* The nodes' clocks: which are believed by a server without a history. */
#include <stdlib.h>

#include "../../lib/suite/suite.h"
#include "five.h"

SUITE(clockproof, .set_up = five_begin);

TEST(nothing_is_known_of_a_clock_without_a_reply)
{
    clocks_note_up(&five.clocks, 0, true);
    clocks_tick(&five.clocks, five.now_us);
    FIVE_ASSERT_STATE(0, STATE_UNPROVEN);
    ck_assert_int_eq(clocks_median_at(&five.clocks, five.now_us), 0);
    ck_assert_int_eq(clocks_offset_us(&five.clocks, 0, five.now_us), 0);
    ck_assert_int_eq(clocks_uncertainty_us(&five.clocks, 0, five.now_us), 0);
    ck_assert(!clocks_judge(&five.clocks, five.now_us, &five.judgement));
}

TEST(a_majority_that_agrees_is_good_at_once)
{
    five_up(0);
    five_up(1);
    FIVE_ASSERT_STATE(0, STATE_UNPROVEN);
    FIVE_ASSERT_STATE(1, STATE_UNPROVEN);
    five_up(2);
    clocks_tick(&five.clocks, five.now_us);
    for (int i = 0; i < 3; i++)
        FIVE_ASSERT_STATE(i, STATE_NONE);
    FIVE_ASSERT_STATE(3, STATE_UNPROVEN);
    ck_assert_int_eq(clocks_median_at(&five.clocks, five.now_us) / FIVE_MS,
                     (FIVE_EPOCH_US + five.now_us) / FIVE_MS);
}

TEST(story_30_a_clock_that_differs_is_watched_for_the_greatest_ttl)
{
    five.offset_us[4] = FIVE_SECOND;
    five_all_up();
    FIVE_ASSERT_STATE(3, STATE_NONE);
    FIVE_ASSERT_STATE(4, STATE_UNPROVEN);
    ck_assert_int_le(clocks_remaining_us(&five.clocks, 4, five.now_us),
                     60 * FIVE_SECOND);
    five_watch(58 * FIVE_SECOND);
    FIVE_ASSERT_STATE(4, STATE_UNPROVEN);
    ck_assert_int_le(clocks_remaining_us(&five.clocks, 4, five.now_us),
                     2 * FIVE_SECOND);
    five_watch(3 * FIVE_SECOND);
    FIVE_ASSERT_STATE(4, STATE_NONE);
    ck_assert_int_eq(clocks_remaining_us(&five.clocks, 4, five.now_us), 0);
}

TEST(a_clock_that_comes_to_agree_is_good)
{
    five.offset_us[4] = 40 * FIVE_MS;
    five_all_up();
    FIVE_ASSERT_STATE(4, STATE_UNPROVEN);
    for (int i = 0; i < 9; i++) { /* slewed, each time too little to see */
        five.offset_us[4] -= 4 * FIVE_MS;
        five_watch(FIVE_SECOND);
    }
    FIVE_ASSERT_STATE(4, STATE_NONE);
}

/* Time alone proves nothing: replies do. */
TEST(a_clock_that_was_not_watched_is_not_steady)
{
    five.offset_us[4] = FIVE_SECOND;
    five_all_up();
    five.now_us += 90 * FIVE_SECOND;
    for (int i = 0; i < 4; i++)
        (void)five_reply(i);
    clocks_tick(&five.clocks, five.now_us);
    FIVE_ASSERT_STATE(4, STATE_UNPROVEN);
}

TEST_RANGE(five_milliseconds_from_the_median_still_agree, 0, 4)
{
    static const struct {
        int64_t offset_us;
        enum node_state state;
    } leads[] = {
        {4500, STATE_NONE},
        {-4500, STATE_NONE},
        {5500, STATE_UNPROVEN},
        {-5500, STATE_UNPROVEN},
    };
    five.offset_us[4] = leads[_i].offset_us;
    five_all_up();
    FIVE_ASSERT_STATE(4, leads[_i].state);
}

/* It may have stepped by as much as it took. */
TEST(a_slow_reply_proves_nothing)
{
    for (int i = 0; i < 4; i++)
        five_up(i);
    clocks_note_up(&five.clocks, 4, true);
    ck_assert(five_reply_after(4, 50 * FIVE_MS));
    clocks_tick(&five.clocks, five.now_us);
    FIVE_ASSERT_STATE(4, STATE_UNPROVEN);
    ck_assert_int_ge(clocks_uncertainty_us(&five.clocks, 4, five.now_us),
                     50 * FIVE_MS);
    ck_assert(five_reply(4));
    FIVE_ASSERT_STATE(4, STATE_NONE);
}

/* A long way is no slow reply; but one of more than two timeouts tells nothing.
 */
TEST_RANGE(replies_that_are_all_slow_prove_something_within_limits, 0, 2)
{
    static const struct {
        int64_t trip_us;
        enum node_state state;
    } trips[] = {
        {80 * FIVE_MS, STATE_NONE},
        {101 * FIVE_MS, STATE_UNPROVEN},
    };
    for (int i = 0; i < FIVE_NODES; i++) {
        clocks_note_up(&five.clocks, i, true);
        ck_assert(five_reply_after(i, trips[_i].trip_us));
    }
    clocks_tick(&five.clocks, five.now_us);
    FIVE_ASSERT_STATE(4, trips[_i].state);
}

/* The median of three that differ is one of them: it agrees with itself. */
TEST(story_11_a_median_that_nobody_shares_proves_nothing)
{
    five.offset_us[0] = 1965 * FIVE_MS;
    five.offset_us[2] = 470 * FIVE_MS;
    for (int i = 0; i < 3; i++)
        five_up(i);
    clocks_tick(&five.clocks, five.now_us);
    for (int i = 0; i < 3; i++)
        FIVE_ASSERT_STATE(i, STATE_UNPROVEN);
}

/* Two stepped, two did not, and the fifth may show what both pairs do. */
TEST(story_11_a_slow_reply_in_the_middle_joins_nobody)
{
    five.offset_us[2] = five.offset_us[3] = 470 * FIVE_MS;
    for (int i = 0; i < 4; i++)
        five_up(i);
    clocks_note_up(&five.clocks, 4, true);
    (void)five_reply_after(4, 2 * FIVE_SECOND);
    for (int i = 0; i < 4; i++)
        (void)five_reply(i);
    clocks_tick(&five.clocks, five.now_us);
    for (int i = 0; i < FIVE_NODES; i++)
        FIVE_ASSERT_STATE(i, STATE_UNPROVEN);
    (void)five_reply(4);
    FIVE_ASSERT_STATE(0, STATE_NONE);
    FIVE_ASSERT_STATE(4, STATE_NONE);
    FIVE_ASSERT_STATE(2, STATE_UNPROVEN);
}

TEST(a_node_that_is_down_is_no_part_of_the_majority)
{
    five_up(0);
    five_up(1);
    clocks_note_up(&five.clocks, 1, false);
    five_up(2);
    clocks_tick(&five.clocks, five.now_us);
    FIVE_ASSERT_STATE(0, STATE_UNPROVEN);
    clocks_note_up(&five.clocks, 1, true);
    clocks_tick(&five.clocks, five.now_us);
    FIVE_ASSERT_STATE(0, STATE_NONE);
}
