/* The nodes' clocks: what is a step, whose, and which clock is trusted. */
#include <check.h>
#include <stdlib.h>

#include "../../server/clocks.h"

enum {
    NODES = 5,
    QUORUM = 3,
    MS = 1000,
    SECOND = 1000000,
    TTL_MS = 60000,
    WINDOW_US = 15 * SECOND,
    PATIENCE_US = 100 * MS,
    TRIP_US = 200,
};

#define EPOCH_US INT64_C(1795221641000000)

static struct clocks clocks;
static struct clocks_judgement judgement;
static int64_t now_us, lead_us[NODES]; /* of each node's clock */

static void setup(void)
{
    clocks_init(&clocks, NODES, QUORUM, TTL_MS, WINDOW_US, PATIENCE_US);
    now_us = 10 * SECOND;
    memset(lead_us, 0, sizeof lead_us);
}

/* A reply after a round trip; what the node's clock shows in its middle. */
static bool reply(int node)
{
    int64_t sent_us = now_us;
    now_us += TRIP_US;
    return clocks_observe(&clocks, node,
                          EPOCH_US + lead_us[node] + sent_us + TRIP_US / 2,
                          sent_us, now_us);
}

static void up(int node)
{
    clocks_on_up(&clocks, node);
    ck_assert(reply(node));
}

static void all_up(void)
{
    for (int i = 0; i < NODES; i++)
        up(i);
    clocks_tick(&clocks, now_us);
}

static void all_reply(void)
{
    for (int i = 0; i < NODES; i++)
        (void)reply(i);
}

/* So long, with a reply of each connected node every second. */
static void watch(int64_t us)
{
    for (int64_t until_us = now_us + us; now_us < until_us;) {
        now_us += SECOND;
        for (int i = 0; i < NODES; i++)
            if (clocks.node[i].is_up)
                ck_assert(reply(i));
    }
    clocks_tick(&clocks, now_us);
}

#define ASSERT_STATE(node, it)                                                 \
    ck_assert_int_eq((int)clocks_state(&clocks, node), (int)(it))

static void assert_all(enum clock_state state)
{
    for (int i = 0; i < NODES; i++)
        ASSERT_STATE(i, state);
}

/* ---- without a history ------------------------------------------------------
 */

START_TEST(nothing_is_known_of_a_clock_without_a_reply)
{
    clocks_on_up(&clocks, 0);
    clocks_tick(&clocks, now_us);
    ASSERT_STATE(0, CLOCK_UNKNOWN);
    ck_assert_int_eq(clocks_median_at(&clocks, now_us), 0);
    ck_assert_int_eq(clocks_lead_us(&clocks, 0, now_us), 0);
    ck_assert_int_eq(clocks_doubt_us(&clocks, now_us), 0);
    ck_assert(!clocks_judge(&clocks, now_us, &judgement));
}
END_TEST

START_TEST(a_majority_that_agrees_is_good_at_once)
{
    up(0);
    up(1);
    ASSERT_STATE(0, CLOCK_UNPROVEN);
    ASSERT_STATE(1, CLOCK_UNPROVEN);
    up(2);
    clocks_tick(&clocks, now_us);
    for (int i = 0; i < 3; i++)
        ASSERT_STATE(i, CLOCK_GOOD);
    ASSERT_STATE(3, CLOCK_UNKNOWN);
    ck_assert_int_eq(clocks_median_at(&clocks, now_us) / MS,
                     (EPOCH_US + now_us) / MS);
}
END_TEST

START_TEST(story_30_a_clock_that_differs_is_watched_for_the_greatest_ttl)
{
    lead_us[4] = SECOND;
    all_up();
    ASSERT_STATE(3, CLOCK_GOOD);
    ASSERT_STATE(4, CLOCK_UNPROVEN);
    ck_assert_int_le(clocks_remaining_us(&clocks, 4, now_us), 60 * SECOND);
    watch(58 * SECOND);
    ASSERT_STATE(4, CLOCK_UNPROVEN);
    ck_assert_int_le(clocks_remaining_us(&clocks, 4, now_us), 2 * SECOND);
    watch(3 * SECOND);
    ASSERT_STATE(4, CLOCK_GOOD);
    ck_assert_int_eq(clocks_remaining_us(&clocks, 4, now_us), 0);
}
END_TEST

START_TEST(a_clock_that_comes_to_agree_is_good)
{
    lead_us[4] = 40 * MS;
    all_up();
    ASSERT_STATE(4, CLOCK_UNPROVEN);
    for (int i = 0; i < 9; i++) { /* slewed, each time too little to see */
        lead_us[4] -= 4 * MS;
        watch(SECOND);
    }
    ASSERT_STATE(4, CLOCK_GOOD);
}
END_TEST

/* Time alone proves nothing: replies do. */
START_TEST(a_clock_that_was_not_watched_is_not_steady)
{
    lead_us[4] = SECOND;
    all_up();
    now_us += 90 * SECOND;
    for (int i = 0; i < 4; i++)
        (void)reply(i);
    clocks_tick(&clocks, now_us);
    ASSERT_STATE(4, CLOCK_UNPROVEN);
}
END_TEST

START_TEST(five_milliseconds_from_the_median_still_agree)
{
    static const struct {
        int64_t lead_us;
        enum clock_state state;
    } leads[] = {
        {4500, CLOCK_GOOD},
        {-4500, CLOCK_GOOD},
        {5500, CLOCK_UNPROVEN},
        {-5500, CLOCK_UNPROVEN},
    };
    lead_us[4] = leads[_i].lead_us;
    all_up();
    ASSERT_STATE(4, leads[_i].state);
}
END_TEST

/* It may have stepped by as much as it took. */
START_TEST(a_slow_reply_proves_nothing)
{
    for (int i = 0; i < 4; i++)
        up(i);
    clocks_on_up(&clocks, 4);
    int64_t sent_us = now_us;
    now_us += 50 * MS;
    ck_assert(clocks_observe(&clocks, 4, EPOCH_US + sent_us + 25 * MS, sent_us,
                             now_us));
    clocks_tick(&clocks, now_us);
    ASSERT_STATE(4, CLOCK_UNPROVEN);
    ck_assert_int_ge(clocks_doubt_us(&clocks, now_us), 50 * MS);
    ck_assert(reply(4));
    ASSERT_STATE(4, CLOCK_GOOD);
}
END_TEST

START_TEST(a_node_that_is_down_is_no_part_of_the_majority)
{
    up(0);
    up(1);
    clocks_on_down(&clocks, 1);
    up(2);
    clocks_tick(&clocks, now_us);
    ASSERT_STATE(0, CLOCK_UNPROVEN);
    clocks_on_up(&clocks, 1);
    clocks_tick(&clocks, now_us);
    ASSERT_STATE(0, CLOCK_GOOD);
}
END_TEST

/* ---- steps ------------------------------------------------------------------
 */

static const int64_t steps[] = {6 * MS, 3600 * (int64_t)SECOND, -6 * MS,
                                -3600 * (int64_t)SECOND};

enum { STEPS = sizeof steps / sizeof *steps };

START_TEST(story_11_a_step_is_told_and_its_reply_is_no_vote)
{
    all_up();
    lead_us[1] = steps[_i];
    ck_assert(!reply(1));
    ASSERT_STATE(1, CLOCK_STEPPED);
    ck_assert(!clocks_judge(&clocks, now_us, &judgement));
    for (int i = 0; i < NODES; i++)
        ck_assert(clocks_wants_reply(&clocks, i) == (i != 1));
    for (int i = 0; i < NODES; i++)
        if (i != 1)
            ck_assert(reply(i));
    ck_assert(clocks_judge(&clocks, now_us, &judgement));
    ck_assert(!judgement.is_own);
    ck_assert_uint_eq(judgement.stepped, 1u << 1);
    ck_assert_int_le(llabs(judgement.step_us[1] - steps[_i]), MS);
    ck_assert(!clocks_judge(&clocks, now_us, &judgement));
    clocks_tick(&clocks, now_us);
    ASSERT_STATE(0, CLOCK_GOOD);
    ASSERT_STATE(1, CLOCK_UNPROVEN); /* and learned anew */
    ck_assert(reply(1));
}
END_TEST

START_TEST(a_step_below_five_milliseconds_is_none)
{
    all_up();
    lead_us[1] = _i == 0 ? 4900 : -4900;
    ck_assert(reply(1));
    ck_assert(!clocks_judge(&clocks, now_us + SECOND, &judgement));
    ASSERT_STATE(1, CLOCK_GOOD);
}
END_TEST

/* A clock that runs fast: no reply is far from the one before. */
START_TEST(many_small_steps_in_a_row_are_one_that_is_seen)
{
    bool is_same = true;
    all_up();
    for (int i = 0; i < 20 && is_same; i++) {
        now_us += 10000;
        lead_us[1] += _i == 0 ? 1000 : -1000;
        is_same = reply(1);
    }
    ck_assert(!is_same);
    ASSERT_STATE(1, CLOCK_STEPPED);
}
END_TEST

/* One that stays is believed once drift explains it. */
START_TEST(a_small_step_that_stays_is_believed_a_second_later)
{
    all_up();
    lead_us[1] = 4900;
    for (int i = 0; i < 150; i++) {
        now_us += 10000;
        ck_assert(reply(1));
    }
    lead_us[1] = 9700;
    ck_assert(reply(1));
    ASSERT_STATE(1, CLOCK_GOOD);
}
END_TEST

START_TEST(story_30_the_baseline_is_kept_over_a_lost_connection)
{
    all_up();
    clocks_on_down(&clocks, 2);
    lead_us[2] = SECOND;
    now_us += SECOND;
    clocks_on_up(&clocks, 2);
    ck_assert(!reply(2));
    ASSERT_STATE(2, CLOCK_STEPPED);
}
END_TEST

START_TEST(a_judgement_waits_no_longer_than_its_patience)
{
    all_up();
    lead_us[1] = SECOND;
    (void)reply(1);
    int64_t since_us = now_us;
    ck_assert(!clocks_judge(&clocks, since_us + PATIENCE_US - 1, &judgement));
    ck_assert(clocks_judge(&clocks, since_us + PATIENCE_US, &judgement));
    ck_assert_uint_eq(judgement.stepped, 1u << 1);
}
END_TEST

START_TEST(a_judgement_waits_for_connected_nodes_and_for_later_replies_only)
{
    all_up();
    clocks_on_down(&clocks, 4);
    int64_t before_us = now_us - 1;
    lead_us[1] = SECOND;
    (void)reply(1);
    ck_assert(reply(0));
    ck_assert(reply(2));
    /* this one's call had left before the step was seen */
    ck_assert(clocks_observe(&clocks, 3, EPOCH_US + now_us - TRIP_US, before_us,
                             now_us));
    ck_assert(!clocks_judge(&clocks, now_us, &judgement));
    ck_assert(clocks_wants_reply(&clocks, 3));
    ck_assert(reply(3));
    ck_assert(clocks_judge(&clocks, now_us, &judgement));
}
END_TEST

START_TEST(a_clock_that_stepped_there_and_back_has_stepped_twice)
{
    all_up();
    lead_us[1] = SECOND;
    ck_assert(!reply(1));
    lead_us[1] = 0;
    ck_assert(!reply(1));
    ASSERT_STATE(1, CLOCK_STEPPED);
    now_us += PATIENCE_US;
    ck_assert(clocks_judge(&clocks, now_us, &judgement));
    ck_assert_uint_eq(judgement.stepped, 1u << 1);
    ASSERT_STATE(1, CLOCK_GOOD); /* where the others are */
}
END_TEST

START_TEST(two_of_five_that_step_together_are_two_steps)
{
    all_up();
    lead_us[1] = lead_us[3] = -SECOND;
    all_reply();
    all_reply();
    ck_assert(clocks_judge(&clocks, now_us, &judgement));
    ck_assert(!judgement.is_own);
    ck_assert_uint_eq(judgement.stepped, 1u << 1 | 1u << 3);
}
END_TEST

/* Then it is our clock, or all is lost anyway: nobody is revoked. */
START_TEST(a_majority_that_steps_at_once_makes_our_own_clock_suspect)
{
    all_up();
    for (int i = 0; i < 3 + _i; i++)
        lead_us[i] = SECOND;
    all_reply();
    all_reply();
    ck_assert(clocks_judge(&clocks, now_us, &judgement));
    ck_assert(judgement.is_own);
    ck_assert_uint_eq(judgement.stepped, 0);
    for (int i = 0; i < 3 + _i; i++)
        ASSERT_STATE(i, CLOCK_GOOD); /* they agree with each other */
    for (int i = 3 + _i; i < NODES; i++)
        ASSERT_STATE(i, CLOCK_UNKNOWN); /* learned anew as well */
    all_reply();
    clocks_tick(&clocks, now_us);
    for (int i = 3 + _i; i < NODES; i++)
        ASSERT_STATE(i, CLOCK_UNPROVEN);
}
END_TEST

START_TEST(a_majority_whose_clocks_are_all_over_the_place_is_watched)
{
    all_up();
    for (int i = 0; i < NODES; i++)
        lead_us[i] = (i + 1) * SECOND;
    all_reply();
    ck_assert(clocks_judge(&clocks, now_us, &judgement));
    ck_assert(judgement.is_own);
    int good = 0;
    clocks_tick(&clocks, now_us);
    for (int i = 0; i < NODES; i++)
        good += clocks_state(&clocks, i) == CLOCK_GOOD;
    ck_assert_int_le(good, 1); /* the median itself */
    watch(62 * SECOND);
    assert_all(CLOCK_GOOD);
}
END_TEST

/* ---- no steps
 * ---------------------------------------------------------------- */

START_TEST(story_35_a_node_that_was_paused_has_not_stepped)
{
    all_up();
    int64_t sent_us = now_us;
    now_us += 30 * SECOND;
    /* it read its clock when it woke up, or before it fell asleep */
    int64_t node_us = EPOCH_US + (_i == 0 ? now_us - 10 : sent_us + 10);
    ck_assert(clocks_observe(&clocks, 1, node_us, sent_us, now_us));
    ASSERT_STATE(1, CLOCK_GOOD);
    ck_assert(reply(1));
}
END_TEST

START_TEST(story_35_a_server_that_was_stopped_has_seen_no_step)
{
    int64_t sent_us[NODES];
    all_up();
    for (int i = 0; i < NODES; i++)
        sent_us[i] = now_us + i;
    now_us += 3600 * (int64_t)SECOND;
    for (int i = 0; i < NODES; i++)
        ck_assert(clocks_observe(&clocks, i, EPOCH_US + sent_us[i] + 100,
                                 sent_us[i], now_us));
    assert_all(CLOCK_GOOD);
    all_reply();
    assert_all(CLOCK_GOOD);
    ck_assert(!clocks_judge(&clocks, now_us, &judgement));
}
END_TEST

START_TEST(a_clock_that_drifts_by_a_two_hundred_and_fiftieth_has_not_stepped)
{
    int sign = _i == 0 ? 1 : -1;
    all_up();
    for (int i = 0; i < 600; i++) {
        now_us += SECOND;
        lead_us[1] += sign * 4 * MS;
        ck_assert(reply(1));
    }
    clocks_on_down(&clocks, 1);
    now_us += 600 * SECOND;
    lead_us[1] += sign * 600 * 4 * MS;
    clocks_on_up(&clocks, 1);
    ck_assert(reply(1));
}
END_TEST

START_TEST(a_clock_far_from_the_median_is_known_but_far)
{
    lead_us[4] = WINDOW_US / 2 - 10 * MS;
    lead_us[0] = -WINDOW_US / 2 - 10 * MS;
    all_up();
    watch(62 * SECOND);
    ASSERT_STATE(4, CLOCK_GOOD);
    ASSERT_STATE(0, CLOCK_FAR);
    ck_assert_int_eq(clocks_lead_us(&clocks, 0, now_us) / SECOND, -7);
    clocks_on_down(&clocks, 1); /* the median is of those that are there */
    clocks_on_down(&clocks, 2);
    clocks_on_down(&clocks, 3);
    clocks_tick(&clocks, now_us);
    ASSERT_STATE(0, CLOCK_GOOD);
    ASSERT_STATE(4, CLOCK_FAR);
}
END_TEST

static void add_steps(TCase *tc)
{
    tcase_add_loop_test(tc, story_11_a_step_is_told_and_its_reply_is_no_vote, 0,
                        STEPS);
    tcase_add_loop_test(tc, a_step_below_five_milliseconds_is_none, 0, 2);
    tcase_add_loop_test(tc, many_small_steps_in_a_row_are_one_that_is_seen, 0,
                        2);
    tcase_add_test(tc, a_small_step_that_stays_is_believed_a_second_later);
    tcase_add_test(tc, story_30_the_baseline_is_kept_over_a_lost_connection);
    tcase_add_test(tc, a_judgement_waits_no_longer_than_its_patience);
    tcase_add_test(
        tc, a_judgement_waits_for_connected_nodes_and_for_later_replies_only);
    tcase_add_test(tc, a_clock_that_stepped_there_and_back_has_stepped_twice);
    tcase_add_test(tc, two_of_five_that_step_together_are_two_steps);
    tcase_add_loop_test(
        tc, a_majority_that_steps_at_once_makes_our_own_clock_suspect, 0, 3);
    tcase_add_test(tc,
                   a_majority_whose_clocks_are_all_over_the_place_is_watched);
}

Suite *check_clocks(void);

Suite *check_clocks(void)
{
    Suite *suite = suite_create("clocks");
    TCase *tc = tcase_create("clocks");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, nothing_is_known_of_a_clock_without_a_reply);
    tcase_add_test(tc, a_majority_that_agrees_is_good_at_once);
    tcase_add_test(
        tc, story_30_a_clock_that_differs_is_watched_for_the_greatest_ttl);
    tcase_add_test(tc, a_clock_that_comes_to_agree_is_good);
    tcase_add_test(tc, a_clock_that_was_not_watched_is_not_steady);
    tcase_add_loop_test(tc, five_milliseconds_from_the_median_still_agree, 0,
                        4);
    tcase_add_test(tc, a_slow_reply_proves_nothing);
    tcase_add_test(tc, a_node_that_is_down_is_no_part_of_the_majority);
    add_steps(tc);
    tcase_add_loop_test(tc, story_35_a_node_that_was_paused_has_not_stepped, 0,
                        2);
    tcase_add_test(tc, story_35_a_server_that_was_stopped_has_seen_no_step);
    tcase_add_loop_test(
        tc, a_clock_that_drifts_by_a_two_hundred_and_fiftieth_has_not_stepped,
        0, 2);
    tcase_add_test(tc, a_clock_far_from_the_median_is_known_but_far);
    suite_add_tcase(suite, tc);
    return suite;
}
