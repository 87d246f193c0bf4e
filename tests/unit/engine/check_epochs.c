/*
 * Servers of different configurations on the same nodes.
 */
#include <check.h>

#include "../../../server/engine/admission.h"
#include "guarded.h"

#define OTHER_ADMIT "1:ffffffffffffffff:@:" GUARDED_LIFE
#define MARK_2 "2:" GUARDED_LIFE ":0:aaaaaaaaaaaaaaaa"
#define ADMIT_2 "2:" GUARDED_FINGERPRINT ":@:" GUARDED_LIFE
#define OLD_ADMIT_2                                                            \
    "2:" GUARDED_FINGERPRINT ":@:" GUARDED_OTHER_RUN ":" GUARDED_MEMORY

static void begin_with_epoch(int epoch)
{
    guarded.settings.epoch = epoch;
    guarded_begin_again();
}

/* These nodes are marked, and their time is up; the others are down. */
static void quarantine(int nodes, const char *mark, const char *admit)
{
    for (int i = 0; i < nodes; i++)
        guarded_come(i, LOOK_CREATED, admit, mark);
    guarded_pass(GUARDED_QUARANTINE_US);
    ck_assert_int_ge(guarded_look_around(), nodes);
}

/* ---- the same epoch --------------------------------------------------------
 */

START_TEST(story_10_another_configuration_of_this_epoch_is_never_touched)
{
    guarded_come(0, LOOK_FOREIGN, OTHER_ADMIT, "");
    GUARDED_ASSERT_PHASE(0, GUARD_FOREIGN);
    GUARDED_ASSERT_REFUSAL(0, STATE_FOREIGN);
    guard_on_step(&guarded.guard, 0);
    guard_on_clock(&guarded.guard, 0, true);
    for (int i = 0; i < 200; i++) { /* it is looked at, and nothing else */
        guarded_pass(GUARDED_SECOND);
        ck_assert_int_eq(guarded_look_around(), 1);
        guarded_expect_nothing();
    }
}
END_TEST

static const struct {
    enum call_look_word word;
    const char *admit, *mark;
} strangers[] = {
    {LOOK_FOREIGN, OTHER_ADMIT, ""},
    {LOOK_SUPERSEDED, ADMIT_2, ""},
    {LOOK_SUPERSEDED, "", MARK_2},
};

enum { STRANGERS = sizeof strangers / sizeof *strangers };

static void find_stranger(int i)
{
    guarded_come(4, strangers[i].word, strangers[i].admit, strangers[i].mark);
}

START_TEST(story_10_while_one_node_is_foreign_none_is_admitted)
{
    find_stranger(_i);
    quarantine(4, GUARDED_MARK, "");
    guarded_expect_nothing();
    ck_assert(admission_has_foreign(&guarded.guard, guarded.now_us));
    ck_assert_int_eq(admission_remaining_us(&guarded.guard, 0, guarded.now_us),
                     0);
    for (int i = 0; i < 200; i++) {
        guarded_pass(GUARDED_SECOND);
        ck_assert_int_eq(guarded_look_around(), GUARDED_NODES);
        guarded_expect_nothing();
    }
}
END_TEST

/* Out of sight is not out of mind: whatever it promised there until now may
 * also lie on a node that is to be admitted. So for a while. */
START_TEST(story_10_a_configuration_that_is_gone_counts_for_a_quarantine)
{
    find_stranger(_i % STRANGERS);
    quarantine(4, GUARDED_MARK, "");
    guarded_down(4);
    if (_i >= STRANGERS) /* its memory is gone, too */
        guarded_come(4, LOOK_FRESH, "", GUARDED_MARK);
    guarded_pass_without(GUARD_ADMIT, GUARDED_QUARANTINE_US - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    ck_assert(!admission_has_foreign(&guarded.guard, guarded.now_us));
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(a_configuration_that_comes_back_counts_anew)
{
    find_stranger(_i);
    quarantine(4, GUARDED_MARK, "");
    guarded_down(4);
    guarded_pass_without(GUARD_ADMIT, GUARDED_QUARANTINE_US / 2);
    guarded_pass(1);
    (void)guarded_look_around();
    find_stranger(_i);
    guarded_down(4);
    guarded_pass_without(GUARD_ADMIT, GUARDED_QUARANTINE_US - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(while_one_node_is_foreign_none_is_readmitted)
{
    find_stranger(_i);
    for (int i = 1; i < 4; i++) {
        guarded.memory[i].voted_us = GUARDED_NEVER;
        guarded_come(i, LOOK_ADMITTED, GUARDED_ADMIT, "");
    }
    guarded.memory[0].seen_us = guarded.now_us;
    guarded_come(0, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded_pass_without(GUARD_READMIT, GUARDED_QUARANTINE_US);
    guard_want_look(&guarded.guard, 4, guarded.now_us);
    (void)guarded_look_around();
    guarded_down(4);
    guarded_pass_without(GUARD_READMIT, GUARDED_QUARANTINE_US - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_expect(GUARD_READMIT, 0);
}
END_TEST

START_TEST(what_is_admitted_already_votes_on_beside_a_foreign_node)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_down(4);
    guarded_come(4, LOOK_FOREIGN, OTHER_ADMIT, "");
    GUARDED_ASSERT_REFUSAL(0, STATE_VOTING);
    GUARDED_ASSERT_REFUSAL(4, STATE_FOREIGN);
}
END_TEST

/* ---- a higher one ----------------------------------------------------------
 */

static const struct {
    const char *admit, *mark;
    int epoch;
} higher[] = {
    {ADMIT_2, "", 2},
    {"", MARK_2, 2},
    {GUARDED_ADMIT, "3:run:x", 3},
    {"7:f:run", "12:run:x", 12},
    {"999999999999999999999999:f:run", "", 999999999},
};

/* A staging server with one production node in its list is not the end. */
START_TEST(story_47_one_node_of_a_higher_epoch_costs_one_vote)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_SUPERSEDED, higher[_i].admit, higher[_i].mark);
    ck_assert_int_eq(guarded.guard.node[0].epoch_above, higher[_i].epoch);
    GUARDED_ASSERT_REFUSAL(0, STATE_SUPERSEDED);
    for (int i = 1; i < GUARDED_NODES; i++)
        GUARDED_ASSERT_REFUSAL(i, STATE_VOTING);
    guard_on_step(&guarded.guard, 0);
    for (int i = 0; i < 100; i++) { /* it is looked at, and nothing else */
        ck_assert_int_ge(guarded_look_around(), 4);
        guarded_expect_nothing();
        guarded_pass(GUARDED_SECOND);
    }
}
END_TEST

/* By the operator, who saw the mistake. */
START_TEST(story_47_a_node_that_is_taken_back_is_admitted_again)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_found(0, LOOK_SUPERSEDED, ADMIT_2, "");
    guarded_found(0, LOOK_FRESH, "", GUARDED_MARK); /* FLUSHALL */
    GUARDED_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    guarded_pass_without(GUARD_ADMIT, GUARDED_QUARANTINE_US - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_give(GUARD_ADMIT, 0);
}
END_TEST

/* ---- a lower one -----------------------------------------------------------
 */

START_TEST(story_32_the_higher_epoch_marks_all_nodes_before_it_admits_one)
{
    begin_with_epoch(2);
    quarantine(4, MARK_2, GUARDED_ADMIT);
    guarded_expect_nothing();
    ck_assert(!admission_has_taken_over(&guarded.guard));
    guarded_come(4, LOOK_CREATED, GUARDED_ADMIT, MARK_2);
    ck_assert(admission_has_taken_over(&guarded.guard));
    /* until now the old configuration may have had a majority, and granted */
    guarded_expect_nothing();
    guarded_pass(admission_quarantine_us(&guarded.guard) - 1);
    (void)guarded_look_around();
    for (int i = 0; i < GUARDED_NODES; i++)
        GUARDED_ASSERT_REFUSAL(i, STATE_QUARANTINED);
    guarded_pass(1);
    (void)guarded_look_around();
    for (int i = 0; i < GUARDED_NODES; i++)
        guarded_give(GUARD_ADMIT, i);
    guarded_expect_nothing();
}
END_TEST

START_TEST(a_node_that_was_marked_may_be_down_when_the_others_are_admitted)
{
    begin_with_epoch(2);
    guarded_come(4, LOOK_CREATED, GUARDED_ADMIT, MARK_2);
    guarded_down(4);
    quarantine(4, MARK_2, GUARDED_ADMIT);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* Such a node has kept its durable memory: of the old configuration. */
START_TEST(an_admission_of_a_lower_epoch_is_not_given_back)
{
    begin_with_epoch(2);
    for (int i = 0; i < GUARDED_NODES; i++)
        guarded.memory[i].seen_us = guarded.now_us;
    guarded_all(LOOK_CREATED, GUARDED_OLD_ADMIT, MARK_2);
    guarded_pass_without(GUARD_READMIT, 10 * GUARDED_SECOND);
    GUARDED_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}
END_TEST

START_TEST(a_node_that_is_dead_for_good_is_given_up_by_take_over)
{
    guarded.settings.has_take_over = true;
    begin_with_epoch(2);
    quarantine(4, MARK_2, GUARDED_ADMIT);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* Who admitted it had seen the mark on all. */
START_TEST(an_admission_of_this_epoch_tells_that_all_nodes_were_marked)
{
    static const struct {
        enum call_look_word word;
        const char *admit, *mark;
    } signs[] = {
        {LOOK_ADMITTED, ADMIT_2, ""},
        {LOOK_CREATED, OLD_ADMIT_2, MARK_2},
    };
    begin_with_epoch(2);
    quarantine(3, MARK_2, "");
    guarded_expect_nothing();
    guarded_come(3, signs[_i].word, signs[_i].admit, signs[_i].mark);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(the_first_epoch_takes_nothing_over)
{
    quarantine(3, GUARDED_MARK, "");
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(story_33_a_new_configuration_waits_by_the_ttl_of_the_old_one)
{
    guarded.settings.max_ttl_ms = 1000;
    begin_with_epoch(2);
    guarded_all(LOOK_CREATED, GUARDED_ADMIT, MARK_2);
    guarded_pass(GUARDED_QUARANTINE_US - 1);
    (void)guarded_look_around();
    guarded_expect_nothing();
    guarded_pass(1);
    ck_assert_int_eq(guarded_look_around(), GUARDED_NODES);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

Suite *check_epochs(void);

Suite *check_epochs(void)
{
    Suite *suite = suite_create("epochs");
    TCase *tc = tcase_create("epochs");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_test(
        tc, story_10_another_configuration_of_this_epoch_is_never_touched);
    tcase_add_loop_test(tc, story_10_while_one_node_is_foreign_none_is_admitted,
                        0, STRANGERS);
    tcase_add_loop_test(
        tc, story_10_a_configuration_that_is_gone_counts_for_a_quarantine, 0,
        2 * STRANGERS);
    tcase_add_loop_test(tc, a_configuration_that_comes_back_counts_anew, 0,
                        STRANGERS);
    tcase_add_loop_test(tc, while_one_node_is_foreign_none_is_readmitted, 0,
                        STRANGERS);
    tcase_add_test(tc, what_is_admitted_already_votes_on_beside_a_foreign_node);
    tcase_add_loop_test(tc, story_47_one_node_of_a_higher_epoch_costs_one_vote,
                        0, (int)(sizeof higher / sizeof *higher));
    tcase_add_test(tc, story_47_a_node_that_is_taken_back_is_admitted_again);
    tcase_add_test(
        tc, story_32_the_higher_epoch_marks_all_nodes_before_it_admits_one);
    tcase_add_test(
        tc, a_node_that_was_marked_may_be_down_when_the_others_are_admitted);
    tcase_add_test(tc, an_admission_of_a_lower_epoch_is_not_given_back);
    tcase_add_test(tc, a_node_that_is_dead_for_good_is_given_up_by_take_over);
    tcase_add_loop_test(
        tc, an_admission_of_this_epoch_tells_that_all_nodes_were_marked, 0, 2);
    tcase_add_test(tc, the_first_epoch_takes_nothing_over);
    tcase_add_test(
        tc, story_33_a_new_configuration_waits_by_the_ttl_of_the_old_one);
    suite_add_tcase(suite, tc);
    return suite;
}
