/*
 * Servers of different configurations on the same nodes.
 */
#include <check.h>

#include "guarded.h"

enum { QUARANTINE_US = 60600000 + 5000000 + 50000 + 1000000 };

#define OTHER_ADMIT "1:ffffffffffffffff:" GUARDED_RUN
#define MARK_2 "2:" GUARDED_RUN ":aaaaaaaaaaaaaaaa"
#define ADMIT_2 "2:" GUARDED_FINGERPRINT ":" GUARDED_RUN
#define OLD_ADMIT_2 "2:" GUARDED_FINGERPRINT ":" GUARDED_OTHER_RUN

static void begin_with_epoch(int epoch)
{
    guarded.settings.epoch = epoch;
    guarded_begin_again();
}

/* These nodes are marked, and their time is up; the others are down. */
static void quarantine(int nodes, const char *mark, const char *admit)
{
    for (int i = 0; i < nodes; i++) {
        guarded_up(i);
        guarded_expect(GUARD_LOOK, i);
        guarded_found(i, LOOK_CREATED, admit, mark);
    }
    guarded_pass(QUARANTINE_US);
    ck_assert_int_ge(guarded_look_around(), nodes);
}

/* ---- the same epoch --------------------------------------------------------
 */

START_TEST(story_10_another_configuration_of_this_epoch_is_never_touched)
{
    guarded_up(0);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_FOREIGN, OTHER_ADMIT, "");
    GUARDED_ASSERT_PHASE(0, GUARD_FOREIGN);
    GUARDED_ASSERT_REFUSAL(0, VOTE_FOREIGN);
    guard_on_step(&guarded.guard, 0);
    guard_on_clock(&guarded.guard, 0, true);
    for (int i = 0; i < 200; i++) { /* it is looked at, and nothing else */
        guarded_pass(GUARDED_SECOND);
        ck_assert_int_eq(guarded_look_around(), 1);
        guarded_expect_nothing();
    }
}
END_TEST

START_TEST(story_10_while_one_node_is_foreign_none_is_admitted)
{
    guarded_up(4);
    guarded_expect(GUARD_LOOK, 4);
    guarded_found(4, LOOK_FOREIGN, OTHER_ADMIT, "");
    quarantine(4, GUARDED_MARK, "");
    guarded_expect_nothing();
    ck_assert(guard_has_foreign(&guarded.guard));
    ck_assert_int_eq(guard_remaining_us(&guarded.guard, 0, guarded.now_us), 0);
    guard_on_down(&guarded.guard, 4); /* out of sight is not out of mind */
    guarded_expect_nothing();
    guarded_up(4);
    guarded_expect(GUARD_LOOK, 4);
    guarded_expect_nothing();
    guarded_found(4, LOOK_FRESH, "", GUARDED_MARK);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(while_one_node_is_foreign_none_is_readmitted)
{
    guarded_up(4);
    guarded_expect(GUARD_LOOK, 4);
    guarded_found(4, LOOK_FOREIGN, OTHER_ADMIT, "");
    guard_on_clock(&guarded.guard, 0, true);
    guarded_up(0);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded_expect_nothing();
}
END_TEST

START_TEST(what_is_admitted_already_votes_on_beside_a_foreign_node)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_down(&guarded.guard, 4);
    guarded_up(4);
    guarded_expect(GUARD_LOOK, 4);
    guarded_found(4, LOOK_FOREIGN, OTHER_ADMIT, "");
    GUARDED_ASSERT_REFUSAL(0, VOTE_DONE);
    GUARDED_ASSERT_REFUSAL(4, VOTE_FOREIGN);
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

START_TEST(story_32_the_lower_epoch_stands_down_until_it_is_restarted)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_step(&guarded.guard, 1);
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_SUPERSEDED, higher[_i].admit, higher[_i].mark);
    ck_assert_int_eq(guarded.guard.superseded_by, higher[_i].epoch);
    for (int i = 0; i < GUARDED_NODES; i++)
        GUARDED_ASSERT_REFUSAL(i, VOTE_SUPERSEDED);
    for (int i = 0; i < 100; i++) {
        guarded_pass(GUARDED_SECOND);
        guarded_expect_nothing();
    }
    guard_on_down(&guarded.guard, 2);
    guarded_up(2);
    guarded_expect_nothing();
    GUARDED_ASSERT_REFUSAL(2, VOTE_SUPERSEDED);
}
END_TEST

/* ---- a lower one -----------------------------------------------------------
 */

START_TEST(story_32_the_higher_epoch_marks_all_nodes_before_it_admits_one)
{
    begin_with_epoch(2);
    quarantine(4, MARK_2, GUARDED_ADMIT);
    guarded_expect_nothing();
    ck_assert(!guard_has_taken_over(&guarded.guard));
    guarded_up(4);
    guarded_expect(GUARD_LOOK, 4);
    guarded_found(4, LOOK_CREATED, GUARDED_ADMIT, MARK_2);
    ck_assert(guard_has_taken_over(&guarded.guard));
    /* until now the old configuration may have had a majority, and granted */
    guarded_expect_nothing();
    guarded_pass(guard_quarantine_us(&guarded.guard) - 1);
    (void)guarded_look_around();
    for (int i = 0; i < GUARDED_NODES; i++)
        GUARDED_ASSERT_REFUSAL(i, VOTE_QUARANTINED);
    guarded_pass(1);
    (void)guarded_look_around();
    for (int i = 0; i < GUARDED_NODES; i++)
        guarded_do(GUARD_ADMIT, i, true);
    guarded_expect_nothing();
}
END_TEST

START_TEST(a_node_that_was_marked_may_be_down_when_the_others_are_admitted)
{
    begin_with_epoch(2);
    guarded_up(4);
    guarded_expect(GUARD_LOOK, 4);
    guarded_found(4, LOOK_CREATED, GUARDED_ADMIT, MARK_2);
    guard_on_down(&guarded.guard, 4);
    quarantine(4, MARK_2, GUARDED_ADMIT);
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* Such a node has kept its durable memory: of the old configuration. */
START_TEST(an_admission_of_a_lower_epoch_is_not_given_back)
{
    begin_with_epoch(2);
    for (int i = 0; i < GUARDED_NODES; i++)
        guard_on_clock(&guarded.guard, i, true);
    guarded_all(LOOK_CREATED, GUARDED_OLD_ADMIT, MARK_2);
    guarded_expect_nothing();
    GUARDED_ASSERT_REFUSAL(0, VOTE_QUARANTINED);
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
        enum script_look_word word;
        const char *admit, *mark;
    } signs[] = {
        {LOOK_ADMITTED, ADMIT_2, ""},
        {LOOK_CREATED, OLD_ADMIT_2, MARK_2},
    };
    begin_with_epoch(2);
    quarantine(3, MARK_2, "");
    guarded_expect_nothing();
    guarded_up(3);
    guarded_expect(GUARD_LOOK, 3);
    guarded_found(3, signs[_i].word, signs[_i].admit, signs[_i].mark);
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
    guarded_pass(QUARANTINE_US - 1);
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
    tcase_add_test(tc, story_10_while_one_node_is_foreign_none_is_admitted);
    tcase_add_test(tc, while_one_node_is_foreign_none_is_readmitted);
    tcase_add_test(tc, what_is_admitted_already_votes_on_beside_a_foreign_node);
    tcase_add_loop_test(
        tc, story_32_the_lower_epoch_stands_down_until_it_is_restarted, 0,
        (int)(sizeof higher / sizeof *higher));
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
