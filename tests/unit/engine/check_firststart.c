/*
 * The first start, step by step, and when there is none. The ways out are in
 * check_firststart_ends.c, servers that race for one in check_rivals.c.
 */
#include <check.h>

#include "../../../server/engine/admission.h"
#include "started.h"

START_TEST(empty_nodes_are_admitted_within_a_few_looks)
{
    started_check_most();
    guarded_found(4, LOOK_MARKED, "", GUARDED_MARK);
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded_give(GUARD_ADMIT, i);
        STARTED_ASSERT_STEP(i < GUARDED_NODES - 1 ? FIRSTSTART_ADMIT
                                                  : FIRSTSTART_OVER);
    }
    guarded_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}
END_TEST

START_TEST(marked_nodes_wait_for_the_first_start_without_a_countdown)
{
    started_mark_all();
    for (int i = 0; i < GUARDED_NODES; i++) {
        GUARDED_ASSERT_REFUSAL(i, STATE_WAITING);
        ck_assert_int_eq(
            admission_remaining_us(&guarded.guard, i, guarded.now_us), 0);
    }
    guarded_down(0); /* none comes */
    GUARDED_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    ck_assert_int_gt(admission_remaining_us(&guarded.guard, 1, guarded.now_us),
                     0);
}
END_TEST

/* Two heartbeats of whoever may object, and until older commands have ended. */
START_TEST(story_46_the_hold_is_two_heartbeats_or_four_node_timeouts)
{
    static const int64_t timeouts_us[] = {50000, 500000, 500001, 2000000};
    static const int64_t holds_us[] = {STARTED_HOLD_US, STARTED_HOLD_US,
                                       2000004, 8000000};
    guarded.settings.node_timeout_us = timeouts_us[_i];
    guarded_begin_again();
    started_mark_all();
    started_hold(holds_us[_i] - 1);
    (void)guarded_look_around();
    STARTED_ASSERT_STEP(FIRSTSTART_HOLD);
    guarded_expect_nothing();
    guarded_pass(1);
    guarded_expect(GUARD_PEEK, 0);
    STARTED_ASSERT_STEP(FIRSTSTART_CHECK);
}
END_TEST

/* What is marked then says so, for whoever objects. */
START_TEST(story_46_it_marks_while_it_leads_and_while_it_marks_the_rest)
{
    const struct firststart *start = &guarded.guard.start;
    ck_assert(!firststart_is_marking(start));
    started_find_all_empty();
    ck_assert(!firststart_is_marking(start));
    guarded_expect(GUARD_LOOK, STARTED_LEAD);
    ck_assert(firststart_is_marking(start));
    guarded_found(STARTED_LEAD, LOOK_FRESH, "", GUARDED_MARK);
    guarded_expect(GUARD_LOOK, 0);
    STARTED_ASSERT_STEP(FIRSTSTART_REST);
    ck_assert(firststart_is_marking(start));
    guarded_found(0, LOOK_FRESH, "", GUARDED_MARK);
    for (int i = 1; i < GUARDED_NODES; i++) {
        guarded_expect(GUARD_LOOK, i);
        guarded_found(i, i == STARTED_LEAD ? LOOK_MARKED : LOOK_FRESH, "",
                      GUARDED_MARK);
    }
    guarded_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_HOLD);
    ck_assert(!firststart_is_marking(start));
}
END_TEST

/* The mark is a plain one now: somebody saw this node vote before. */
START_TEST(story_46_an_objection_ends_it)
{
    static const enum call_look_word words[] = {LOOK_MARKED, LOOK_CREATED};
    started_mark_all();
    started_hold(HEARTBEAT_US);
    guarded_expect(GUARD_PEEK, 0);
    guarded_found(0, words[_i], "", GUARDED_OTHER_MARK);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    for (int i = 0; i < GUARDED_NODES; i++)
        GUARDED_ASSERT_REFUSAL(i, STATE_QUARANTINED);
    guarded_pass_without(GUARD_ADMIT, GUARDED_QUARANTINE_US - 2 * HEARTBEAT_US);
}
END_TEST

/* ---- none -----------------------------------------------------------------
 */

START_TEST(story_28_nodes_that_are_not_durable_wait_for_the_operators_word)
{
    guarded.settings.first_start = (enum first_start)_i;
    guarded_begin_again();
    guarded.is_durable = false;
    guarded_up(STARTED_LEAD);
    struct guard_action action;
    ck_assert(guard_next(&guarded.guard, guarded.now_us, &action));
    bool is_possible = _i == FIRST_START_YES;
    ck_assert_int_eq((int)action.kind, is_possible ? GUARD_PEEK : GUARD_LOOK);
    STARTED_ASSERT_STEP(is_possible ? FIRSTSTART_WAITING : FIRSTSTART_OVER);
}
END_TEST

START_TEST(one_node_that_is_not_durable_is_enough_for_no_first_start)
{
    for (int i = 0; i < 4; i++) {
        guarded_up(i);
        guarded_expect(GUARD_PEEK, i);
        guarded_found(i, LOOK_EMPTY, "", "");
    }
    guarded.is_durable = false;
    guarded_up(4);
    guarded_expect(GUARD_LOOK, 4);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}
END_TEST

START_TEST(durable_nodes_have_none_if_the_operator_says_so)
{
    guarded.settings.first_start = FIRST_START_NO;
    guarded_begin_again();
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    guarded_up(0);
    guarded_expect(GUARD_LOOK, 0);
}
END_TEST

START_TEST(the_last_node_is_waited_for_half_a_minute)
{
    for (int i = 0; i < 4; i++) {
        guarded_up(i);
        guarded_expect(GUARD_PEEK, i);
        guarded_found(i, LOOK_EMPTY, "", "");
    }
    guarded_pass(STARTED_PATIENCE_US - 1);
    for (int i = 0; i < 4; i++) {
        guarded_expect(GUARD_PEEK, i);
        guarded_found(i, LOOK_EMPTY, "", "");
    }
    guarded_expect_nothing();
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    guarded_found(0, LOOK_FRESH, "", GUARDED_MARK);
    GUARDED_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}
END_TEST

static void find_four_empty_and(enum call_look_word word, const char *admit,
                                const char *mark)
{
    for (int i = 0; i < 4; i++) {
        guarded_up(i);
        guarded_expect(GUARD_PEEK, i);
        guarded_found(i, LOOK_EMPTY, "", "");
    }
    guarded_up(4);
    guarded_expect(GUARD_PEEK, 4);
    guarded_found(4, word, admit, mark);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

/* By somebody who may be in the middle of a first start of its own: nothing is
 * marked for two seconds. */
START_TEST(a_node_that_was_marked_before_ends_it)
{
    find_four_empty_and(LOOK_MARKED, "", GUARDED_OTHER_MARK);
    guarded_expect_nothing();
    guarded_pass(STARTED_YIELD_US - 1);
    struct guard_action action;
    while (guard_next(&guarded.guard, guarded.now_us, &action)) {
        ck_assert_int_eq((int)action.kind, GUARD_PEEK);
        if (action.node == 4)
            guarded_found(4, LOOK_MARKED, "", GUARDED_OTHER_MARK);
        else
            guarded_found(action.node, LOOK_EMPTY, "", "");
    }
    guarded_pass(1);
    guarded_expect(GUARD_LOOK, 0);
}
END_TEST

/* Then nobody has a first start, and nobody is disturbed. */
START_TEST(a_node_that_was_used_before_ends_it)
{
    if (started_signs[_i].word == LOOK_MARKED)
        return;
    find_four_empty_and(started_signs[_i].word, started_signs[_i].admit,
                        started_signs[_i].mark);
    guarded_pass(HEARTBEAT_US);
    for (int i = 0; i < 4; i++) {
        guarded_expect(GUARD_LOOK, i);
        guarded_found(i, LOOK_FRESH, "", GUARDED_MARK);
        GUARDED_ASSERT_REFUSAL(i, STATE_QUARANTINED);
    }
}
END_TEST

Suite *check_firststart(void);

Suite *check_firststart(void)
{
    Suite *suite = suite_create("firststart");
    TCase *tc = tcase_create("firststart");
    tcase_add_checked_fixture(tc, started_begin, NULL);
    tcase_add_test(tc, empty_nodes_are_admitted_within_a_few_looks);
    tcase_add_test(tc,
                   marked_nodes_wait_for_the_first_start_without_a_countdown);
    tcase_add_loop_test(
        tc, story_46_the_hold_is_two_heartbeats_or_four_node_timeouts, 0, 4);
    tcase_add_test(
        tc, story_46_it_marks_while_it_leads_and_while_it_marks_the_rest);
    tcase_add_loop_test(tc, story_46_an_objection_ends_it, 0, 2);
    tcase_add_loop_test(
        tc, story_28_nodes_that_are_not_durable_wait_for_the_operators_word,
        FIRST_START_AUTO, FIRST_START_NO + 1);
    tcase_add_test(tc,
                   one_node_that_is_not_durable_is_enough_for_no_first_start);
    tcase_add_test(tc, durable_nodes_have_none_if_the_operator_says_so);
    tcase_add_test(tc, the_last_node_is_waited_for_half_a_minute);
    tcase_add_test(tc, a_node_that_was_marked_before_ends_it);
    tcase_add_loop_test(tc, a_node_that_was_used_before_ends_it, 0,
                        STARTED_SIGNS);
    suite_add_tcase(suite, tc);
    return suite;
}
