/*
 * The first start: each step, and each way out. Servers that race for one are
 * in check_rivals.c.
 */
#include <check.h>

#include "guarded.h"

enum {
    LEAD = 2,
    HOLD_US = 4 * 50000,
    YIELD_US = 2000000,
    PATIENCE_US = 30000000,
};

static void begin(void)
{
    guarded_begin();
    guarded.settings.first_start = FIRST_START_AUTO;
    guarded.settings.lead = LEAD;
    guarded_begin_again();
}

static enum firststart_step step(void)
{
    return guarded.guard.start.step;
}

#define ASSERT_STEP(it) ck_assert_int_eq((int)step(), (int)(it))

/* All are there, and empty. */
static void find_all_empty(void)
{
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded_up(i);
        guarded_expect(GUARD_PEEK, i);
        guarded_found(i, LOOK_EMPTY, "", "");
        GUARDED_ASSERT_REFUSAL(i, VOTE_WAITING);
    }
}

/* The first node is marked by us. */
static void lead(void)
{
    find_all_empty();
    ASSERT_STEP(FIRSTSTART_WAITING);
    guarded_expect(GUARD_LOOK, LEAD);
    ASSERT_STEP(FIRSTSTART_LEAD);
    guarded_expect_nothing();
    guarded_found(LEAD, LOOK_FRESH, "", GUARDED_MARK);
}

/* All are. */
static void mark_all(void)
{
    lead();
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded_expect(GUARD_LOOK, i);
        ASSERT_STEP(FIRSTSTART_REST);
        guarded_found(i, i == LEAD ? LOOK_MARKED : LOOK_FRESH, "",
                      GUARDED_MARK);
    }
    guarded_expect_nothing();
    ASSERT_STEP(FIRSTSTART_HOLD);
}

/* And were looked at again, but for the last one, which is asked. */
static void check_most(void)
{
    mark_all();
    guarded_pass(HOLD_US);
    for (int i = 0; i < GUARDED_NODES; i++)
        guarded_expect(GUARD_PEEK, i);
    ASSERT_STEP(FIRSTSTART_CHECK);
    for (int i = 0; i < GUARDED_NODES - 1; i++)
        guarded_found(i, LOOK_MARKED, "", GUARDED_MARK);
    guarded_expect_nothing();
    ASSERT_STEP(FIRSTSTART_CHECK);
}

static void give_no_answer(enum guard_action_kind kind, int node)
{
    guard_on_failure(&guarded.guard, &(struct guard_action){kind, node},
                     guarded.now_us);
}

START_TEST(empty_nodes_are_admitted_within_a_few_looks)
{
    check_most();
    guarded_found(4, LOOK_MARKED, "", GUARDED_MARK);
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded_do(GUARD_ADMIT, i, true);
        ASSERT_STEP(FIRSTSTART_ADMIT);
        GUARDED_ASSERT_REFUSAL(i, VOTE_DONE);
    }
    guarded_expect_nothing();
    ASSERT_STEP(FIRSTSTART_OVER);
}
END_TEST

START_TEST(marked_nodes_wait_for_the_first_start_without_a_countdown)
{
    mark_all();
    for (int i = 0; i < GUARDED_NODES; i++) {
        GUARDED_ASSERT_REFUSAL(i, VOTE_WAITING);
        ck_assert_int_eq(guard_remaining_us(&guarded.guard, i, guarded.now_us),
                         0);
    }
    guard_on_down(&guarded.guard, 0); /* none comes */
    GUARDED_ASSERT_REFUSAL(1, VOTE_QUARANTINED);
    ck_assert_int_gt(guard_remaining_us(&guarded.guard, 1, guarded.now_us), 0);
}
END_TEST

START_TEST(the_hold_is_four_node_timeouts)
{
    mark_all();
    guarded_pass(HOLD_US - 1);
    guarded_expect_nothing();
    guarded_pass(1);
    guarded_expect(GUARD_PEEK, 0);
}
END_TEST

/* ---- none -----------------------------------------------------------------
 */

START_TEST(story_28_nodes_that_are_not_durable_wait_for_the_operators_word)
{
    guarded.settings.first_start = (enum first_start)_i;
    guarded_begin_again();
    guarded.is_durable = false;
    guarded_up(LEAD);
    struct guard_action action;
    ck_assert(guard_next(&guarded.guard, guarded.now_us, &action));
    bool is_possible = _i == FIRST_START_YES;
    ck_assert_int_eq((int)action.kind, is_possible ? GUARD_PEEK : GUARD_LOOK);
    ASSERT_STEP(is_possible ? FIRSTSTART_WAITING : FIRSTSTART_OVER);
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
    ASSERT_STEP(FIRSTSTART_OVER);
}
END_TEST

START_TEST(durable_nodes_have_none_if_the_operator_says_so)
{
    guarded.settings.first_start = FIRST_START_NO;
    guarded_begin_again();
    ASSERT_STEP(FIRSTSTART_OVER);
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
    guarded_pass(PATIENCE_US - 1);
    for (int i = 0; i < 4; i++) {
        guarded_expect(GUARD_PEEK, i);
        guarded_found(i, LOOK_EMPTY, "", "");
    }
    guarded_expect_nothing();
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    ASSERT_STEP(FIRSTSTART_OVER);
    guarded_found(0, LOOK_FRESH, "", GUARDED_MARK);
    GUARDED_ASSERT_REFUSAL(0, VOTE_QUARANTINED);
}
END_TEST

static const struct {
    enum script_look_word word;
    const char *admit, *mark;
} signs[] = {
    {LOOK_ADMITTED, GUARDED_ADMIT, ""},
    {LOOK_MARKED, "", GUARDED_OTHER_MARK},
    {LOOK_BARE, "", ""},
    {LOOK_BARE, GUARDED_OLD_ADMIT, ""},
    {LOOK_FOREIGN, "1:ffffffffffffffff:run", ""},
};

enum { SIGNS = sizeof signs / sizeof *signs };

/* By somebody who may be in the middle of a first start of its own. */
START_TEST(a_node_that_was_used_before_ends_it)
{
    for (int i = 0; i < 4; i++) {
        guarded_up(i);
        guarded_expect(GUARD_PEEK, i);
        guarded_found(i, LOOK_EMPTY, "", "");
    }
    guarded_up(4);
    guarded_expect(GUARD_PEEK, 4);
    guarded_found(4, signs[_i].word, signs[_i].admit, signs[_i].mark);
    ASSERT_STEP(FIRSTSTART_OVER);
    guarded_expect_nothing(); /* nothing is marked for two seconds */
    guarded_pass(YIELD_US - 1);
    struct guard_action action;
    while (guard_next(&guarded.guard, guarded.now_us, &action)) {
        ck_assert_int_eq((int)action.kind, GUARD_PEEK);
        guarded_found(action.node,
                      action.node == 4 ? signs[_i].word : LOOK_EMPTY,
                      action.node == 4 ? signs[_i].admit : "",
                      action.node == 4 ? signs[_i].mark : "");
    }
    guarded_pass(1);
    guarded_expect(GUARD_LOOK, 0);
}
END_TEST

/* ---- ways out --------------------------------------------------------------
 */

START_TEST(the_first_node_was_marked_by_somebody_else)
{
    find_all_empty();
    guarded_expect(GUARD_LOOK, LEAD);
    guarded_found(LEAD, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    ASSERT_STEP(FIRSTSTART_OVER);
    guarded_expect_nothing();
    guarded_pass(YIELD_US);
    guarded_expect(GUARD_LOOK, 0);
}
END_TEST

START_TEST(another_node_was_marked_by_somebody_else)
{
    lead();
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, signs[_i].word, signs[_i].admit, signs[_i].mark);
    ASSERT_STEP(FIRSTSTART_OVER);
    GUARDED_ASSERT_REFUSAL(LEAD, VOTE_QUARANTINED);
    ck_assert(!guarded.guard.start.is_marked[LEAD]);
}
END_TEST

START_TEST(a_mark_that_was_replaced_before_the_hold_ends_it)
{
    lead();
    guarded_expect(GUARD_LOOK, 0);
    guarded_expect(GUARD_LOOK, 1);
    guarded_expect(GUARD_LOOK, LEAD);
    guarded_found(LEAD, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    ASSERT_STEP(FIRSTSTART_OVER);
}
END_TEST

/* Whether the node was marked is not known. */
START_TEST(a_lead_without_an_answer_begins_anew)
{
    find_all_empty();
    guarded_expect(GUARD_LOOK, LEAD);
    if (_i == 0)
        give_no_answer(GUARD_LOOK, LEAD);
    else
        guard_on_down(&guarded.guard, LEAD);
    ASSERT_STEP(FIRSTSTART_WAITING);
    guarded_pass(GUARDED_SECOND);
    if (_i == 1)
        guarded_up(LEAD);
    struct guard_action action;
    while (guard_next(&guarded.guard, guarded.now_us, &action)) {
        if (action.kind == GUARD_LOOK)
            break;
        guarded_found(action.node, LOOK_EMPTY, "", "");
    }
    ck_assert_int_eq((int)action.kind, GUARD_LOOK);
    ck_assert_int_eq(action.node, LEAD);
    guarded_found(LEAD, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    ASSERT_STEP(FIRSTSTART_OVER);
}
END_TEST

START_TEST(trouble_at_any_node_later_ends_it)
{
    static void (*const reach[])(void) = {lead, mark_all, check_most};
    reach[_i / 2]();
    if (_i / 2 == 0)
        guarded_expect(GUARD_LOOK, 0); /* the others' turn */
    if (_i % 2 == 0)
        guard_on_down(&guarded.guard, 4);
    else
        give_no_answer(GUARD_PEEK, 4);
    ASSERT_STEP(FIRSTSTART_OVER);
}
END_TEST

static const struct {
    enum script_look_word word;
    const char *mark;
} changes[] = {
    {LOOK_EMPTY, ""},
    {LOOK_MARKED, GUARDED_OTHER_MARK},
    {LOOK_ADMITTED, ""},
    {LOOK_BARE, ""},
};

START_TEST(a_mark_that_changed_during_the_hold_ends_it)
{
    mark_all();
    guarded_pass(HOLD_US / 2);
    guard_want_look(&guarded.guard, 1, guarded.now_us);
    guarded_expect(GUARD_PEEK, 1); /* which marks nothing */
    guarded_found(1, changes[_i].word, "", changes[_i].mark);
    ASSERT_STEP(FIRSTSTART_OVER);
}
END_TEST

START_TEST(story_27_a_mark_that_changed_at_the_second_look_ends_it)
{
    check_most();
    guarded_found(4, changes[_i].word, "", changes[_i].mark);
    ASSERT_STEP(FIRSTSTART_OVER);
    struct guard_action action;
    while (guard_next(&guarded.guard, guarded.now_us, &action))
        ck_assert_int_eq((int)action.kind, GUARD_LOOK);
}
END_TEST

/* One node less; the others were marked by us alone, and still are. */
START_TEST(story_27_a_node_that_was_lost_while_others_are_admitted_waits)
{
    check_most();
    guarded_found(4, LOOK_MARKED, "", GUARDED_MARK);
    guarded_expect(GUARD_ADMIT, 0);
    if (_i == 0) {
        guard_on_down(&guarded.guard, 0);
    } else if (_i == 1) {
        give_no_answer(GUARD_ADMIT, 0);
    } else {
        guard_on_done(&guarded.guard, &(struct guard_action){GUARD_ADMIT, 0},
                      false, 0, guarded.now_us);
        guarded_expect(GUARD_PEEK, 0);
        guarded_found(0, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    }
    for (int i = 1; i < GUARDED_NODES; i++)
        guarded_do(GUARD_ADMIT, i, true);
    guarded_expect_nothing();
    ASSERT_STEP(FIRSTSTART_OVER);
    ck_assert_int_ne((int)guard_refusal(&guarded.guard, 0), VOTE_DONE);
}
END_TEST

/* The answer to a look that was on its way when the last check came in. */
START_TEST(story_27_a_mark_that_changed_at_the_last_moment_waits)
{
    check_most();
    guard_want_look(&guarded.guard, 0, guarded.now_us);
    guarded_expect(GUARD_PEEK, 0);
    guarded_found(4, LOOK_MARKED, "", GUARDED_MARK);
    guarded_do(GUARD_ADMIT, 1, true);
    ASSERT_STEP(FIRSTSTART_ADMIT);
    guarded_found(0, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    for (int i = 2; i < GUARDED_NODES; i++)
        guarded_do(GUARD_ADMIT, i, true);
    guarded_expect_nothing();
    GUARDED_ASSERT_REFUSAL(0, VOTE_QUARANTINED);
}
END_TEST

START_TEST(story_28_a_process_that_saw_an_admission_never_begins_one)
{
    guarded_up(0);
    guarded_expect(GUARD_PEEK, 0);
    guarded_found(0, LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_pass(YIELD_US);
    for (int i = 0; i < GUARDED_NODES; i++) {
        guard_on_down(&guarded.guard, i);
        guarded_up(i);
        guarded_expect(GUARD_LOOK, i);
        guarded_found(i, LOOK_FRESH, "", GUARDED_MARK);
        GUARDED_ASSERT_REFUSAL(i, VOTE_QUARANTINED);
    }
    guarded_expect_nothing();
}
END_TEST

static void add_ways_out(TCase *tc)
{
    tcase_add_test(tc, the_first_node_was_marked_by_somebody_else);
    tcase_add_loop_test(tc, another_node_was_marked_by_somebody_else, 0, SIGNS);
    tcase_add_test(tc, a_mark_that_was_replaced_before_the_hold_ends_it);
    tcase_add_loop_test(tc, a_lead_without_an_answer_begins_anew, 0, 2);
    tcase_add_loop_test(tc, trouble_at_any_node_later_ends_it, 0, 6);
    tcase_add_loop_test(tc, a_mark_that_changed_during_the_hold_ends_it, 0, 4);
    tcase_add_loop_test(
        tc, story_27_a_mark_that_changed_at_the_second_look_ends_it, 0, 4);
    tcase_add_loop_test(
        tc, story_27_a_node_that_was_lost_while_others_are_admitted_waits, 0,
        3);
    tcase_add_test(tc, story_27_a_mark_that_changed_at_the_last_moment_waits);
    tcase_add_test(tc,
                   story_28_a_process_that_saw_an_admission_never_begins_one);
}

Suite *check_firststart(void);

Suite *check_firststart(void)
{
    Suite *suite = suite_create("firststart");
    TCase *tc = tcase_create("firststart");
    tcase_add_checked_fixture(tc, begin, NULL);
    tcase_add_test(tc, empty_nodes_are_admitted_within_a_few_looks);
    tcase_add_test(tc,
                   marked_nodes_wait_for_the_first_start_without_a_countdown);
    tcase_add_test(tc, the_hold_is_four_node_timeouts);
    tcase_add_loop_test(
        tc, story_28_nodes_that_are_not_durable_wait_for_the_operators_word,
        FIRST_START_AUTO, FIRST_START_NO + 1);
    tcase_add_test(tc,
                   one_node_that_is_not_durable_is_enough_for_no_first_start);
    tcase_add_test(tc, durable_nodes_have_none_if_the_operator_says_so);
    tcase_add_test(tc, the_last_node_is_waited_for_half_a_minute);
    tcase_add_loop_test(tc, a_node_that_was_used_before_ends_it, 0, SIGNS);
    add_ways_out(tc);
    suite_add_tcase(suite, tc);
    return suite;
}
