/*
 * The first start, step by step, and when there is none. The ways out are in
 * check_firststart_ends.c, servers that race for one in check_rivals.c.
 */

#include "../../lib/suite/suite.h"
#include "started.h"

SUITE(firststart, .set_up = started_begin);

TEST(empty_nodes_are_admitted_within_a_few_looks)
{
    started_check_most();
    voters_found(4, LOOK_MARKED, "", VOTERS_MARK);
    for (int i = 0; i < VOTERS_NODES; i++) {
        voters_give(ADMISSION_ADMIT, i);
        STARTED_ASSERT_STEP(i < VOTERS_NODES - 1 ? FIRSTSTART_ADMIT
                                                 : FIRSTSTART_OVER);
    }
    voters_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

TEST(marked_nodes_wait_for_the_first_start_without_a_countdown)
{
    started_mark_all();
    for (int i = 0; i < VOTERS_NODES; i++) {
        VOTERS_ASSERT_REFUSAL(i, STATE_WAITING);
        ck_assert_int_eq(voters_remaining_us(i), 0);
    }
    voters_down(0); /* none comes */
    VOTERS_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    ck_assert_int_gt(voters_remaining_us(1), 0);
}

/* Two heartbeats of whoever may object, and until older commands have ended. */
TEST_RANGE(story_46_the_hold_is_two_heartbeats_or_four_node_timeouts, 0, 4)
{
    static const int64_t timeouts_us[] = {50000, 500000, 500001, 2000000};
    static const int64_t holds_us[] = {STARTED_HOLD_US, STARTED_HOLD_US,
                                       2000004, 8000000};
    voters.settings.node_timeout_us = timeouts_us[_i];
    voters_begin_again();
    started_mark_all();
    started_hold(holds_us[_i] - 1);
    (void)voters_look_around();
    STARTED_ASSERT_STEP(FIRSTSTART_HOLD);
    voters_expect_nothing();
    voters_pass(1);
    voters_expect(ADMISSION_PROBE, 0);
    STARTED_ASSERT_STEP(FIRSTSTART_CHECK);
}

/* What is marked then says so, for whoever objects. */
TEST(story_46_it_marks_while_it_leads_and_while_it_marks_the_rest)
{
    const struct firststart *start = &voters.admission.start;
    ck_assert(!firststart_is_marking(start));
    started_find_empty(VOTERS_NODES);
    ck_assert(!firststart_is_marking(start));
    voters_expect(ADMISSION_LOOK, STARTED_LEAD);
    ck_assert(firststart_is_marking(start));
    voters_found(STARTED_LEAD, LOOK_FRESH, "", VOTERS_MARK);
    voters_expect(ADMISSION_LOOK, 0);
    STARTED_ASSERT_STEP(FIRSTSTART_REST);
    ck_assert(firststart_is_marking(start));
    voters_found(0, LOOK_FRESH, "", VOTERS_MARK);
    for (int i = 1; i < VOTERS_NODES; i++) {
        voters_expect(ADMISSION_LOOK, i);
        voters_found(i, i == STARTED_LEAD ? LOOK_MARKED : LOOK_FRESH, "",
                     VOTERS_MARK);
    }
    voters_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_HOLD);
    ck_assert(!firststart_is_marking(start));
}

/* The mark is a plain one now: somebody saw this node vote before. */
TEST_RANGE(story_46_an_objection_ends_it, 0, 2)
{
    static const enum call_look_word words[] = {LOOK_MARKED, LOOK_CREATED};
    started_mark_all();
    started_hold(HEARTBEAT_US);
    voters_expect(ADMISSION_PROBE, 0);
    voters_found(0, words[_i], "", VOTERS_OTHER_MARK);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    for (int i = 0; i < VOTERS_NODES; i++)
        VOTERS_ASSERT_REFUSAL(i, STATE_QUARANTINED);
    voters_pass_without(ADMISSION_ADMIT,
                        VOTERS_QUARANTINE_US - 2 * HEARTBEAT_US);
}

/* ---- none -----------------------------------------------------------------
 */

TEST_RANGE(story_28_nodes_that_are_not_durable_wait_for_the_operators_word,
           FIRST_START_AUTO, FIRST_START_NO + 1)
{
    voters.settings.first_start = (enum first_start)_i;
    voters_begin_again();
    voters.is_durable = false;
    voters_up(STARTED_LEAD);
    struct admission_action action;
    ck_assert(admission_next(&voters.admission, voters.now_us, &action));
    bool is_possible = _i == FIRST_START_YES;
    ck_assert_int_eq((int)action.kind,
                     is_possible ? ADMISSION_PROBE : ADMISSION_LOOK);
    STARTED_ASSERT_STEP(is_possible ? FIRSTSTART_WAITING : FIRSTSTART_OVER);
}

/* The old servers are stopped, but what they granted may still be held. */
TEST(new_names_on_new_machines_are_no_first_start)
{
    voters.settings.config_epoch = 2;
    voters.settings.has_take_over = true;
    voters_begin_again();
    voters_come(0, LOOK_EMPTY, "", "");
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

TEST(one_node_that_is_not_durable_is_enough_for_no_first_start)
{
    started_find_empty(4);
    voters.is_durable = false;
    voters_up(4);
    voters_expect(ADMISSION_LOOK, 4);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

TEST(the_last_node_is_waited_for_half_a_minute)
{
    started_find_empty(4);
    voters_pass(STARTED_PATIENCE_US - 1);
    for (int i = 0; i < 4; i++) {
        voters_expect(ADMISSION_PROBE, i);
        voters_found(i, LOOK_EMPTY, "", "");
    }
    voters_expect_nothing();
    voters_pass(VOTERS_SECOND);
    voters_expect(ADMISSION_LOOK, 0);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    voters_found(0, LOOK_FRESH, "", VOTERS_MARK);
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}

static void find_four_empty_and(enum call_look_word word, const char *admit,
                                const char *mark)
{
    started_find_empty(4);
    voters_up(4);
    voters_expect(ADMISSION_PROBE, 4);
    voters_found(4, word, admit, mark);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

/* By somebody who may be in the middle of a first start of its own: nothing is
 * marked for two seconds. */
TEST(a_node_that_was_marked_before_ends_it)
{
    find_four_empty_and(LOOK_MARKED, "", VOTERS_OTHER_MARK);
    voters_expect_nothing();
    voters_pass(STARTED_YIELD_US - 1);
    struct admission_action action;
    while (admission_next(&voters.admission, voters.now_us, &action)) {
        ck_assert_int_eq((int)action.kind, ADMISSION_PROBE);
        if (action.node == 4)
            voters_found(4, LOOK_MARKED, "", VOTERS_OTHER_MARK);
        else
            voters_found(action.node, LOOK_EMPTY, "", "");
    }
    voters_pass(1);
    voters_expect(ADMISSION_LOOK, 0);
}

/* Then nobody has a first start, and nobody is disturbed. */
TEST_RANGE(a_node_that_was_used_before_ends_it, 0, STARTED_SIGNS)
{
    if (started_signs[_i].word == LOOK_MARKED)
        return;
    find_four_empty_and(started_signs[_i].word, started_signs[_i].admit,
                        started_signs[_i].mark);
    voters_pass(HEARTBEAT_US);
    for (int i = 0; i < 4; i++) {
        voters_expect(ADMISSION_LOOK, i);
        voters_found(i, LOOK_FRESH, "", VOTERS_MARK);
        VOTERS_ASSERT_REFUSAL(i, STATE_QUARANTINED);
    }
}
