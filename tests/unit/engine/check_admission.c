/*
 * How nodes get their vote before a quarantine has passed, as nobody can have
 * promised anything that they forgot; and what hinders any admission.
 */
#include <check.h>

#include "../../../server/engine/admission.h"
#include "guarded.h"

enum { TOLD = 3 /* of four others: one of them was in each majority */ };

static void mark(int node)
{
    guarded_come(node, LOOK_FRESH, "", GUARDED_MARK);
}

/* Not before so long, and then at once. */
static void expect_admission_in(int64_t us)
{
    guarded_pass_without(GUARD_ADMIT, us - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_give(GUARD_ADMIT, 0);
}

/* ---- idle ---------------------------------------------------------------- */

enum { WATCH_US = 3 * HEARTBEAT_US };

START_TEST(when_all_promises_are_over_a_new_node_is_admitted_at_once)
{
    guarded_admit_from(1, _i == 0 ? (int64_t)GUARDED_NEVER
                                  : guarded.now_us - GUARDED_QUARANTINE_US);
    mark(0);
    expect_admission_in(WATCH_US);
}
END_TEST

START_TEST(the_last_promise_of_anybody_is_waited_for)
{
    guarded_admit_from(1, 1);
    guarded.memory[3].voted_us = guarded.now_us - 60 * GUARDED_SECOND;
    guarded.memory[0].voted_us = guarded.now_us; /* is not its own judge */
    guarded_down(3);
    guarded_come(3, LOOK_ADMITTED, GUARDED_ADMIT, "");
    mark(0);
    guarded_down(3); /* what it has told stays told */
    (void)guarded_look_around();
    int64_t left_us = GUARDED_QUARANTINE_US - 60 * GUARDED_SECOND;
    guarded_pass(GUARDED_TIMEOUT_US);
    (void)guarded_look_around();
    ck_assert_int_eq(admission_remaining_us(&guarded.guard, 0, guarded.now_us),
                     left_us - GUARDED_TIMEOUT_US);
    expect_admission_in(left_us - GUARDED_TIMEOUT_US);
}
END_TEST

/* Somebody goes on promising all the time. */
START_TEST(on_a_busy_stack_it_waits_for_its_quarantine)
{
    guarded_admit_from(1, guarded.now_us);
    mark(0);
    for (int64_t us = 0; us < 60 * (int64_t)GUARDED_SECOND;
         us += GUARDED_SECOND) {
        guarded_pass_without(GUARD_ADMIT, GUARDED_SECOND);
        guarded.memory[2].voted_us = guarded.now_us;
    }
    expect_admission_in(GUARDED_QUARANTINE_US - 60 * (int64_t)GUARDED_SECOND);
}
END_TEST

/* A round that it had a part in before may still be on its way to others. */
START_TEST(looks_count_once_the_rounds_of_before_have_ended)
{
    guarded_spread_clocks(10 * GUARDED_SECOND);
    guarded_admit_from(1, GUARDED_NEVER);
    mark(0);
    expect_admission_in(10 * GUARDED_SECOND + GUARDED_TIMEOUT_US);
}
END_TEST

/* Two servers know the median as well as the clocks lie together. */
START_TEST(a_promise_counts_as_late_as_it_may_have_been)
{
    guarded_spread_clocks(7 * GUARDED_SECOND);
    guarded_admit_from(1, guarded.now_us - 50 * GUARDED_SECOND);
    mark(0);
    guarded_pass_without(GUARD_ADMIT, 7 * GUARDED_SECOND + GUARDED_TIMEOUT_US);
    ck_assert_int_eq(admission_remaining_us(&guarded.guard, 0, guarded.now_us),
                     GUARDED_QUARANTINE_US - 50 * GUARDED_SECOND -
                         GUARDED_TIMEOUT_US);
}
END_TEST

/* Nor above which beat an admission is to begin. */
START_TEST(without_the_clocks_nobody_knows_when_it_was)
{
    guard_on_median(&guarded.guard, false, GUARDED_EPOCH_US, 0);
    guarded_admit_from(1, GUARDED_NEVER);
    mark(0);
    guarded_pass_without(GUARD_ADMIT, 2 * (int64_t)GUARDED_QUARANTINE_US);
    guarded_spread_clocks(0);
    (void)guarded_look_around();
    guarded_give(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(too_few_others_tell_nothing)
{
    guarded_admit_from(GUARDED_NODES - TOLD + 1, GUARDED_NEVER);
    mark(0);
    guarded_pass_without(GUARD_ADMIT, 10 * GUARDED_SECOND);
    guarded.memory[1].voted_us = GUARDED_NEVER;
    guarded_come(1, LOOK_ADMITTED, GUARDED_ADMIT, "");
    (void)guarded_look_around();
    guarded_give(GUARD_ADMIT, 0);
}
END_TEST

static const struct {
    enum call_look_word word;
    const char *admit, *mark;
} others[] = {
    {LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK}, /* perhaps an old copy */
    {LOOK_CREATED, "", GUARDED_MARK},
    {LOOK_CREATED, "1:" GUARDED_FINGERPRINT ":0123456789abcdef:r:m",
     GUARDED_MARK}, /* another node's memory */
};

/* One that forgot, too, or may have, cannot tell what it has promised. */
START_TEST(only_those_who_vote_tell_what_was_promised)
{
    guarded_admit_from(GUARDED_NODES - TOLD, GUARDED_NEVER);
    guarded_down(2);
    guard_on_clock(&guarded.guard, 2, false); /* it stays as it is */
    guarded_come(2, others[_i].word, others[_i].admit, others[_i].mark);
    mark(0);
    guarded_pass_without(GUARD_ADMIT, 10 * GUARDED_SECOND);
    guarded_found(2, LOOK_ADMITTED, GUARDED_ADMIT, "");
    (void)guarded_look_around();
    guarded_give(GUARD_ADMIT, 0);
}
END_TEST

/* Each other time of a life is another memory. */
START_TEST(who_has_forgotten_meanwhile_tells_nothing_any_more)
{
    guarded_admit_from(GUARDED_NODES - TOLD, GUARDED_NEVER);
    mark(0);
    guarded_pass_without(GUARD_ADMIT, WATCH_US - 1);
    guard_on_quarantined(&guarded.guard, 2, guarded.now_us);
    guarded_expect(GUARD_LOOK, 2);
    guarded_found(2, LOOK_FRESH, "", GUARDED_OTHER_MARK);
    guarded_pass_without(GUARD_ADMIT, 10 * GUARDED_SECOND);
}
END_TEST

static TCase *idle_case(void)
{
    TCase *tc = tcase_create("idle");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_loop_test(
        tc, when_all_promises_are_over_a_new_node_is_admitted_at_once, 0, 2);
    tcase_add_test(tc, the_last_promise_of_anybody_is_waited_for);
    tcase_add_test(tc, on_a_busy_stack_it_waits_for_its_quarantine);
    tcase_add_test(tc, looks_count_once_the_rounds_of_before_have_ended);
    tcase_add_test(tc, a_promise_counts_as_late_as_it_may_have_been);
    tcase_add_test(tc, without_the_clocks_nobody_knows_when_it_was);
    tcase_add_test(tc, too_few_others_tell_nothing);
    tcase_add_loop_test(tc, only_those_who_vote_tell_what_was_promised, 0,
                        (int)(sizeof others / sizeof *others));
    tcase_add_test(tc, who_has_forgotten_meanwhile_tells_nothing_any_more);
    return tc;
}

/* ---- contested ----------------------------------------------------------- */

/* Another server sees the name vote, on what it takes for it: each look that
 * knows of that makes another mark. */
START_TEST(story_45_while_others_see_the_name_vote_it_waits)
{
    guarded_admit_from(1, _i == 0 ? (int64_t)GUARDED_NEVER : 0);
    mark(0);
    for (int i = 0; i < 100; i++) {
        ck_assert(admission_is_contested(&guarded.guard, 0) == (i >= 4));
        guarded_pass_without(GUARD_ADMIT, GUARDED_SECOND);
        guarded_found(0, LOOK_CREATED, "", guarded_mark_of(guarded.now_us));
    }
    ck_assert_int_eq(admission_remaining_us(&guarded.guard, 0, guarded.now_us),
                     GUARDED_QUARANTINE_US);
    expect_admission_in(_i == 0 ? (int64_t)WATCH_US : GUARDED_QUARANTINE_US);
    guarded_found(0, LOOK_CREATED, "", GUARDED_MARK); /* another loss */
    ck_assert(!admission_is_contested(&guarded.guard, 0));
}
END_TEST

/* ---- what else hinders --------------------------------------------------- */

/* Which of the names is its own, nobody knows. */
START_TEST(story_23_one_server_behind_two_names_is_admitted_under_none)
{
    guarded_admit_from(2, GUARDED_NEVER);
    mark(0);
    char run_id[] = GUARDED_RUN; /* that of node 0 */
    guard_on_up(&guarded.guard, 1, run_id, true, guarded.now_us);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_CREATED, _i == 0 ? "" : GUARDED_OLD_ADMIT,
                  GUARDED_MARK);
    for (int i = 0; i < 100; i++) {
        guarded_wait();
        guarded_pass(GUARDED_SECOND);
    }
    guarded_down(1);
    (void)guarded_look_around();
    guarded_give(GUARD_ADMIT, 0);
}
END_TEST

START_TEST(a_node_that_is_not_marked_has_nothing_to_wait_for)
{
    guarded_admit_from(0, 0);
    ck_assert_int_eq(admission_look_since_us(&guarded.guard, 0, guarded.now_us),
                     0);
    ck_assert_int_eq(admission_remaining_us(&guarded.guard, 0, guarded.now_us),
                     0);
    ck_assert(!admission_is_due(&guarded.guard, 0, guarded.now_us));
    ck_assert(!admission_is_back(&guarded.guard, 0, guarded.now_us));
}
END_TEST

START_TEST(nodes_that_are_down_or_mute_were_looked_at_long_enough)
{
    ck_assert_int_eq(admission_looked_us(&guarded.guard), INT64_MAX);
    guarded_up(0);
    ck_assert_int_eq(admission_looked_us(&guarded.guard), 0);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_FRESH, "", GUARDED_MARK);
    int64_t first_us = guarded.now_us;
    guarded_pass(1);
    guarded_come(1, LOOK_FRESH, "", GUARDED_MARK);
    ck_assert_int_eq(admission_looked_us(&guarded.guard), first_us);
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_LOOK, 0},
                     guarded.now_us);
    ck_assert_int_eq(admission_looked_us(&guarded.guard), first_us + 1);
}
END_TEST

static TCase *hindered_case(void)
{
    TCase *tc = tcase_create("hindered");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_loop_test(tc, story_45_while_others_see_the_name_vote_it_waits, 0,
                        2);
    tcase_add_loop_test(
        tc, story_23_one_server_behind_two_names_is_admitted_under_none, 0, 2);
    tcase_add_test(tc, a_node_that_is_not_marked_has_nothing_to_wait_for);
    tcase_add_test(tc, nodes_that_are_down_or_mute_were_looked_at_long_enough);
    return tc;
}

Suite *check_admission(void);

Suite *check_admission(void)
{
    Suite *suite = suite_create("admission");
    suite_add_tcase(suite, idle_case());
    suite_add_tcase(suite, hindered_case());
    return suite;
}
