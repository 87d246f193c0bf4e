/*
 * How durable nodes get their vote back at once, and how one is revoked.
 */
#include <check.h>

#include "guarded.h"

enum { QUARANTINE_US = 60600000 + 5000000 + 50000 + 1000000 };

static void mark(int node)
{
    guarded_up(node);
    guarded_expect(GUARD_LOOK, node);
    guarded_found(node, LOOK_FRESH, "", GUARDED_MARK);
}

/* ---- durable nodes ------------------------------------------------------- */

/* Restarted with its memory: what it carries is of its older life. */
static void restart(int node)
{
    guarded_up(node);
    guarded_expect(GUARD_LOOK, node);
    guarded_found(node, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
}

START_TEST(a_durable_node_votes_again_as_soon_as_its_clock_is_known)
{
    restart(2);
    guarded_expect_nothing();
    guard_on_clock(&guarded.guard, 2, true);
    guarded_do(GUARD_READMIT, 2, true);
    ck_assert_str_eq(guarded.guard.node[2].found, GUARDED_OLD_ADMIT);
    GUARDED_ASSERT_REFUSAL(2, VOTE_DONE);
}
END_TEST

START_TEST(a_durable_node_may_try_once)
{
    guard_on_clock(&guarded.guard, 2, true);
    restart(2);
    guarded_do(GUARD_READMIT, 2, false);
    guarded_expect(GUARD_LOOK, 2);
    guarded_found(2, LOOK_MARKED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded_expect_nothing();
    GUARDED_ASSERT_REFUSAL(2, VOTE_QUARANTINED);
}
END_TEST

START_TEST(a_readmission_without_an_answer_is_tried_again)
{
    guard_on_clock(&guarded.guard, 2, true);
    restart(2);
    guarded_expect(GUARD_READMIT, 2);
    guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_READMIT, 2},
                     guarded.now_us);
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 2);
    guarded_found(2, LOOK_MARKED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded_expect(GUARD_READMIT, 2);
}
END_TEST

START_TEST(story_29_a_life_without_durability_costs_a_quarantine)
{
    guard_on_clock(&guarded.guard, 0, true);
    guard_on_clock(&guarded.guard, 1, true);
    guarded_up(0);
    guarded.is_durable = false; /* says its state */
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded_expect_nothing();
    guarded_up(1); /* says its configuration */
    guarded.is_durable = true;
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded_expect_nothing();
}
END_TEST

START_TEST(a_durable_node_without_an_admission_has_nothing_to_be_given_back)
{
    guard_on_clock(&guarded.guard, 0, true);
    mark(0);
    guarded_expect_nothing();
    GUARDED_ASSERT_REFUSAL(0, VOTE_QUARANTINED);
}
END_TEST

START_TEST(durability_that_was_turned_off_is_written_down_at_once)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_durable(&guarded.guard, 3, true, guarded.now_us);
    guarded_expect_nothing();
    guard_on_durable(&guarded.guard, 3, false, guarded.now_us);
    guarded_expect(GUARD_LOOK, 3);
    ck_assert(!guarded.guard.node[3].is_durable);
    guarded_found(3, LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_durable(&guarded.guard, 3, false, guarded.now_us);
    guarded_expect_nothing();
}
END_TEST

/* ---- what takes the vote --------------------------------------------------
 */

START_TEST(story_11_a_node_whose_clock_stepped_loses_its_vote)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_step(&guarded.guard, 1);
    GUARDED_ASSERT_REFUSAL(1, VOTE_STEPPED);
    guarded_do(GUARD_REVOKE, 1, true);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    GUARDED_ASSERT_REFUSAL(1, VOTE_QUARANTINED);
    ck_assert_int_eq(guard_remaining_us(&guarded.guard, 1, guarded.now_us),
                     QUARANTINE_US);
}
END_TEST

START_TEST(a_step_seen_on_a_lost_connection_takes_the_vote_after_it)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_down(&guarded.guard, 1);
    guard_on_step(&guarded.guard, 1);
    guarded_up(1);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_expect(GUARD_REVOKE, 1);
}
END_TEST

/* Its locks ended before their time, whatever the file has kept. */
START_TEST(a_durable_node_whose_clock_stepped_is_not_readmitted)
{
    guard_on_clock(&guarded.guard, 0, true);
    guard_on_clock(&guarded.guard, 1, true);
    guarded_up(0);
    guard_on_step(&guarded.guard, 0); /* judged before the look came back */
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded_expect_nothing();
    restart(1);
    guard_on_step(&guarded.guard, 1); /* and behind it */
    guarded_do(GUARD_REVOKE, 1, false);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_MARKED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded_expect_nothing();
}
END_TEST

/* Somebody else admitted it meanwhile, so that our own attempt did nothing. */
START_TEST(a_step_is_not_forgotten_over_an_admission_that_was_too_late)
{
    mark(0);
    guarded_pass(QUARANTINE_US);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
    guard_on_step(&guarded.guard, 0);
    guard_on_done(&guarded.guard, &(struct guard_action){GUARD_ADMIT, 0}, false,
                  0, guarded.now_us);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_ADMITTED, GUARDED_ADMIT, "");
    GUARDED_ASSERT_REFUSAL(0, VOTE_STEPPED);
    guarded_expect(GUARD_REVOKE, 0);
}
END_TEST

/* S1 revoked, S2 has revoked before. */
START_TEST(a_revocation_that_found_another_state_looks_again)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_step(&guarded.guard, 1);
    guarded_do(GUARD_REVOKE, 1, false);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    guarded_expect_nothing();
}
END_TEST

static void look_with_beat(int64_t beat_us)
{
    guarded_pass(GUARDED_SECOND);
    guarded.beat_us = beat_us;
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_ADMITTED, GUARDED_ADMIT, "");
}

START_TEST(a_beat_that_runs_backwards_takes_the_vote)
{
    guarded_up(0);
    look_with_beat(1); /* of somebody else, long ago */
    int64_t written_us = GUARDED_EPOCH_US + guarded.now_us;
    look_with_beat(written_us);
    GUARDED_ASSERT_REFUSAL(0, VOTE_DONE);
    written_us += GUARDED_SECOND;
    look_with_beat(written_us - 1);
    guarded_expect(GUARD_REVOKE, 0);
}
END_TEST

START_TEST(a_beat_that_is_gone_takes_the_vote)
{
    guarded_up(0);
    look_with_beat(0);
    GUARDED_ASSERT_REFUSAL(0, VOTE_DONE);
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    const struct script_look look = {.word = LOOK_ADMITTED,
                                     .admit = span_of(GUARDED_ADMIT)};
    guard_on_look(&guarded.guard, 0, &look, GUARDED_EPOCH_US, guarded.now_us,
                  guarded.now_us);
    guarded_expect(GUARD_REVOKE, 0);
}
END_TEST

START_TEST(a_beat_of_an_older_life_tells_nothing_of_this_one)
{
    guarded_up(0);
    look_with_beat(0);
    guard_on_up(&guarded.guard, 0, GUARDED_OTHER_RUN, true, guarded.now_us);
    look_with_beat(1);
    GUARDED_ASSERT_REFUSAL(0, VOTE_DONE);
}
END_TEST

/* Put back under the same life: a timer that once ran out must not count. */
START_TEST(a_mark_that_was_used_up_is_replaced)
{
    mark(0);
    guarded_pass(QUARANTINE_US);
    (void)guarded_look_around();
    guarded_do(GUARD_ADMIT, 0, true);
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_MARKED, "", GUARDED_MARK);
    ck_assert_str_eq(guarded.guard.node[0].spent, GUARDED_MARK);
    ck_assert_int_eq(guard_remaining_us(&guarded.guard, 0, guarded.now_us),
                     QUARANTINE_US);
    guarded_do(GUARD_REVOKE, 0, true);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    guarded_expect_nothing();
}
END_TEST

static TCase *durable_case(void)
{
    TCase *tc = tcase_create("durable");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_test(tc,
                   a_durable_node_votes_again_as_soon_as_its_clock_is_known);
    tcase_add_test(tc, a_durable_node_may_try_once);
    tcase_add_test(tc, a_readmission_without_an_answer_is_tried_again);
    tcase_add_test(tc, story_29_a_life_without_durability_costs_a_quarantine);
    tcase_add_test(
        tc, a_durable_node_without_an_admission_has_nothing_to_be_given_back);
    tcase_add_test(tc, durability_that_was_turned_off_is_written_down_at_once);
    return tc;
}

static TCase *revoke_case(void)
{
    TCase *tc = tcase_create("revoke");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_test(tc, story_11_a_node_whose_clock_stepped_loses_its_vote);
    tcase_add_test(tc,
                   a_step_seen_on_a_lost_connection_takes_the_vote_after_it);
    tcase_add_test(tc, a_durable_node_whose_clock_stepped_is_not_readmitted);
    tcase_add_test(tc,
                   a_step_is_not_forgotten_over_an_admission_that_was_too_late);
    tcase_add_test(tc, a_revocation_that_found_another_state_looks_again);
    tcase_add_test(tc, a_beat_that_runs_backwards_takes_the_vote);
    tcase_add_test(tc, a_beat_that_is_gone_takes_the_vote);
    tcase_add_test(tc, a_beat_of_an_older_life_tells_nothing_of_this_one);
    tcase_add_test(tc, a_mark_that_was_used_up_is_replaced);
    return tc;
}

Suite *check_readmission(void);

Suite *check_readmission(void)
{
    Suite *suite = suite_create("readmission");
    suite_add_tcase(suite, durable_case());
    suite_add_tcase(suite, revoke_case());
    return suite;
}
