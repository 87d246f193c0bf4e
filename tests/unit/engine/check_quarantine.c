/*
 * How nodes that may have forgotten something get their vote back: by time.
 */
#include <check.h>

#include "../../../server/engine/admission.h"
#include "guarded.h"

static void mark(int node, const char *mark)
{
    guarded_come(node, LOOK_FRESH, "", mark);
}

static int64_t remaining_us(int node)
{
    return admission_remaining_us(&guarded.guard, node, guarded.now_us);
}

/* ---- time --------------------------------------------------------------- */

static const struct {
    int64_t max_ttl_ms, us;
} lengths[] = {
    {60000, GUARDED_QUARANTINE_US},
    {1000, 4000000 + 6050000}, /* four windows of a second */
    {100, 4000000 + 6050000},
    {4000, 4040000 + 6050000},
    {86400000, 87264000000 + 6050000},
};

START_TEST(it_lasts_as_long_as_locks_and_numbers_that_were_forgotten)
{
    guarded.settings.max_ttl_ms = lengths[_i].max_ttl_ms;
    guarded_begin_again();
    ck_assert_int_eq(admission_quarantine_us(&guarded.guard), lengths[_i].us);
}
END_TEST

START_TEST(story_05_a_node_that_came_back_empty_waits_for_a_quarantine)
{
    mark(0, GUARDED_MARK);
    ck_assert_int_eq(remaining_us(0), GUARDED_QUARANTINE_US);
    guarded_pass(GUARDED_QUARANTINE_US - 1);
    guarded_wait();
    ck_assert_int_eq(remaining_us(0), 1);
    guarded_pass(1);
    ck_assert_int_eq(guarded_look_around(), 1); /* the second look */
    guarded_give(GUARD_ADMIT, 0);
    ck_assert_int_eq(remaining_us(0), 0);
}
END_TEST

START_TEST(before_an_admission_every_node_that_is_there_is_looked_at)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_down(4);
    (void)guarded_look_around();
    guarded_found(0, LOOK_FRESH, "", GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US - 1);
    guarded_wait(); /* which is too early to count */
    guarded_pass(1);
    for (int i = 0; i < 3; i++)
        guarded_expect(GUARD_LOOK, i);
    guarded_found(0, LOOK_MARKED, "", GUARDED_MARK);
    guarded_found(1, LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_found(2, LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_expect(GUARD_LOOK, 3);
    guarded_expect_nothing();
    guarded_found(3, LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* One that answers errors only would hold up all others for ever. */
START_TEST(a_node_that_answers_no_look_holds_up_no_other)
{
    const struct guard_action look = {GUARD_LOOK, 1};
    mark(0, GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US);
    guarded_up(1);
    guarded_expect(GUARD_LOOK, 0);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(0, LOOK_MARKED, "", GUARDED_MARK);
    guarded_expect_nothing();
    guard_on_failure(&guarded.guard, &look, guarded.now_us);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(a_node_that_answers_no_look_is_not_admitted)
{
    mark(0, GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US);
    for (int i = 0; i < 5; i++) {
        guarded_expect(GUARD_LOOK, 0);
        guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_LOOK, 0},
                         guarded.now_us);
        guarded_expect_nothing();
        guarded_pass(GUARDED_SECOND);
    }
    ck_assert_int_eq(guarded_look_around(), 1);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(a_lost_connection_does_not_stop_the_timer)
{
    mark(0, GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US / 2);
    guarded_down(0);
    guarded_pass(GUARDED_QUARANTINE_US - GUARDED_QUARANTINE_US / 2);
    guarded_come(0, LOOK_MARKED, "", GUARDED_MARK);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(story_25_every_loss_has_a_timer_of_its_own)
{
    mark(0, GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US - 1);
    (void)guarded_look_around();
    guarded_found(0, LOOK_FRESH, "", GUARDED_OTHER_MARK); /* a FLUSHALL */
    guarded_pass(GUARDED_QUARANTINE_US - 1);
    guarded_wait();
    guarded_pass(1);
    ck_assert_int_eq(guarded_look_around(), 1);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(story_06_memory_lost_on_a_live_connection_is_a_loss_like_any_other)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_quarantined(&guarded.guard, 1, guarded.now_us);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_FRESH, "", GUARDED_MARK);
    GUARDED_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    guarded_pass(GUARDED_QUARANTINE_US - 1);
    guarded_wait();
    guarded_pass(1);
    ck_assert_int_eq(guarded_look_around(), GUARDED_NODES);
    guarded_expect(GUARD_ADMIT, 1);
}
END_TEST

/* S2 takes the vote away, S1 comes back with its timer run out long ago. */
START_TEST(story_26_an_old_timer_admits_no_node_that_was_lost_again)
{
    mark(0, GUARDED_MARK);
    guarded_down(0);
    guarded_pass(10 * (int64_t)GUARDED_QUARANTINE_US);
    guarded_come(0, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    guarded_wait();
    ck_assert_int_eq(remaining_us(0), GUARDED_QUARANTINE_US);
}
END_TEST

START_TEST(an_admission_that_came_too_late_begins_with_a_look)
{
    mark(0, GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US);
    (void)guarded_look_around();
    guarded_do(GUARD_ADMIT, 0);
    GUARDED_ASSERT_PHASE(0, GUARD_UNSEEN);
    GUARDED_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    guarded_wait();
}
END_TEST

START_TEST(an_admission_without_an_answer_is_looked_at_and_tried_again)
{
    mark(0, GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
    guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_ADMIT, 0},
                     guarded.now_us);
    GUARDED_ASSERT_PHASE(0, GUARD_UNSEEN);
    guarded_expect_nothing();
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_MARKED, "", GUARDED_MARK);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* A node whose clock stepped by an hour says it had run for an hour. */
START_TEST(story_07_no_word_of_the_node_shortens_its_quarantine)
{
    guarded.memory[0] = (struct guarded_memory){
        .beat = INT64_MAX, .seen_us = 3600000000, .voted_us = 3600000000};
    mark(0, GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US - 1);
    guarded_wait();
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* ---- the greatest TTL ---------------------------------------------------- */

START_TEST(story_33_the_greatest_ttl_governs_every_timer)
{
    mark(0, GUARDED_MARK);
    mark(1, GUARDED_OTHER_MARK);
    guarded_pass(GUARDED_QUARANTINE_US - 1);
    guarded.max_ttl_ms = 2 * GUARDED_TTL_MS;
    (void)guarded_look_around();
    ck_assert_int_eq(admission_quarantine_us(&guarded.guard),
                     GUARDED_QUARANTINE_US + 60600000);
    guarded_pass(60600000);
    guarded_wait();
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* Whoever still names the old one may have promised by it: who is down, too. */
START_TEST(a_lower_ttl_counts_once_no_node_names_the_greater_one)
{
    guarded.settings.max_ttl_ms = 1000;
    guarded_begin_again();
    mark(0, GUARDED_MARK);
    mark(1, GUARDED_MARK);
    ck_assert_int_eq(remaining_us(0), GUARDED_QUARANTINE_US);
    guarded.max_ttl_ms = 1000;
    guarded_found(0, LOOK_MARKED, "", GUARDED_MARK);
    ck_assert_int_eq(remaining_us(0), GUARDED_QUARANTINE_US);
    guarded_down(1);
    ck_assert_int_eq(remaining_us(0), GUARDED_QUARANTINE_US);
    guarded_up(1);
    guarded_found(1, LOOK_MARKED, "", GUARDED_MARK);
    ck_assert_int_eq(admission_quarantine_us(&guarded.guard), lengths[1].us);
}
END_TEST

START_TEST(a_ttl_that_some_hand_wrote_counts_as_a_day_at_most)
{
    guarded.max_ttl_ms = INT64_MAX;
    mark(0, GUARDED_MARK);
    ck_assert_int_eq(admission_quarantine_us(&guarded.guard), lengths[4].us);
    guarded.max_ttl_ms = INT64_MIN;
    mark(1, GUARDED_MARK);
    ck_assert_int_eq(admission_quarantine_us(&guarded.guard), lengths[4].us);
}
END_TEST

/* ---- the birth of a mark ------------------------------------------------- */

/* Servers that are restarted every few seconds would never end one else. */
START_TEST(story_48_a_quarantine_goes_on_when_servers_are_restarted)
{
    int64_t born_us = guarded.now_us;
    const char *made = guarded_mark_of(born_us);
    for (int i = 0; i < 13; i++) {
        guarded_begin_again();
        mark(0, made);
        ck_assert_int_eq(remaining_us(0),
                         born_us + GUARDED_QUARANTINE_US - guarded.now_us);
        guarded_pass_without(GUARD_ADMIT, 5 * GUARDED_SECOND);
    }
    guarded_pass_without(GUARD_ADMIT,
                         born_us + GUARDED_QUARANTINE_US - 1 - guarded.now_us);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

static const char *const strange[] = {
    "1:" GUARDED_LIFE ":0:aaaaaaaaaaaaaaaa", /* who made it knew no time */
    "1:" GUARDED_LIFE,
    "1:" GUARDED_LIFE ":",
    "1:" GUARDED_LIFE ":9223372036854775807:a", /* is yet to come */
    "1:" GUARDED_LIFE ":99999999999999999999999999999999:a",
    "",
};

START_TEST(a_birth_that_says_nothing_counts_from_the_first_sight)
{
    if (strange[_i][0] == '\0') /* a good one, but no clocks to read it by */
        guard_on_median(&guarded.guard, false, GUARDED_EPOCH_US, 0);
    mark(0, strange[_i][0] != '\0' ? strange[_i] : guarded_mark_of(1));
    int64_t left_us = remaining_us(0);
    ck_assert_int_eq(left_us, GUARDED_QUARANTINE_US);
    guarded_pass_without(GUARD_ADMIT, GUARDED_QUARANTINE_US - 1);
}
END_TEST

/* Sooner it is not known whether another server sees it vote. */
START_TEST(story_45_a_mark_of_long_ago_is_watched_for_three_heartbeats)
{
    mark(0, guarded_mark_of(1));
    ck_assert_int_eq(remaining_us(0), 3 * HEARTBEAT_US);
    guarded_pass_without(GUARD_ADMIT, 3 * HEARTBEAT_US - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* Two servers know the median as well as the clocks lie together. */
START_TEST(a_birth_counts_as_late_as_it_may_have_been)
{
    int64_t born_us = guarded.now_us - 10 * GUARDED_SECOND;
    guarded_spread_clocks(7 * GUARDED_SECOND);
    mark(0, guarded_mark_of(born_us));
    ck_assert_int_eq(remaining_us(0), GUARDED_QUARANTINE_US -
                                          10 * GUARDED_SECOND +
                                          7 * GUARDED_SECOND);
    mark(1, guarded_mark_of(born_us + 5 * GUARDED_SECOND));
    ck_assert_int_eq(remaining_us(1), GUARDED_QUARANTINE_US);
}
END_TEST

static void add_births(TCase *tc)
{
    tcase_add_test(tc,
                   story_48_a_quarantine_goes_on_when_servers_are_restarted);
    tcase_add_loop_test(tc,
                        a_birth_that_says_nothing_counts_from_the_first_sight,
                        0, (int)(sizeof strange / sizeof *strange));
    tcase_add_test(tc,
                   story_45_a_mark_of_long_ago_is_watched_for_three_heartbeats);
    tcase_add_test(tc, a_birth_counts_as_late_as_it_may_have_been);
}

Suite *check_quarantine(void);

Suite *check_quarantine(void)
{
    Suite *suite = suite_create("quarantine");
    TCase *tc = tcase_create("time");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_loop_test(
        tc, it_lasts_as_long_as_locks_and_numbers_that_were_forgotten, 0,
        (int)(sizeof lengths / sizeof *lengths));
    tcase_add_test(tc,
                   story_05_a_node_that_came_back_empty_waits_for_a_quarantine);
    tcase_add_test(tc,
                   before_an_admission_every_node_that_is_there_is_looked_at);
    tcase_add_test(tc, a_node_that_answers_no_look_holds_up_no_other);
    tcase_add_test(tc, a_node_that_answers_no_look_is_not_admitted);
    tcase_add_test(tc, a_lost_connection_does_not_stop_the_timer);
    tcase_add_test(tc, story_25_every_loss_has_a_timer_of_its_own);
    tcase_add_test(
        tc, story_06_memory_lost_on_a_live_connection_is_a_loss_like_any_other);
    tcase_add_test(tc,
                   story_26_an_old_timer_admits_no_node_that_was_lost_again);
    tcase_add_test(tc, an_admission_that_came_too_late_begins_with_a_look);
    tcase_add_test(tc,
                   an_admission_without_an_answer_is_looked_at_and_tried_again);
    tcase_add_test(tc, story_07_no_word_of_the_node_shortens_its_quarantine);
    tcase_add_test(tc, story_33_the_greatest_ttl_governs_every_timer);
    tcase_add_test(tc, a_lower_ttl_counts_once_no_node_names_the_greater_one);
    tcase_add_test(tc, a_ttl_that_some_hand_wrote_counts_as_a_day_at_most);
    add_births(tc);
    suite_add_tcase(suite, tc);
    return suite;
}
