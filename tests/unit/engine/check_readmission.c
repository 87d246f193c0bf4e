/*
 * How nodes that were restarted with their memory get their vote back.
 */
#include <check.h>

#include "../../../server/engine/admission.h"
#include "guarded.h"

enum { SAID_US = 2 * HEARTBEAT_US };

/* Restarted with its memory: what it carries is of its older life. */
static void restart(int node)
{
    guarded_come(node, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
}

/* It is not readmitted before so long, and then at once. */
static void expect_readmission_in(int64_t us)
{
    guarded_pass_without(GUARD_READMIT, us - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_give(GUARD_READMIT, 0);
}

/* It has to wait until whatever it forgot is over. */
static void expect_quarantine(void)
{
    for (int i = 1; i < GUARDED_NODES; i++)
        guarded.memory[i].voted_us = 0;
    guarded_pass_without(GUARD_READMIT, 60 * GUARDED_SECOND);
    GUARDED_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    guarded_pass(GUARDED_QUARANTINE_US);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
}

/* ---- nothing was promised since ------------------------------------------ */

/* Its memory need not last for that. */
START_TEST(a_memory_younger_than_every_promise_is_whole)
{
    guarded.is_durable = _i == 0;
    int64_t voted_us = guarded.now_us - GUARDED_SECOND;
    guarded.memory[0].seen_us = voted_us + GUARDED_TIMEOUT_US + 1;
    guarded_admit_from(1, voted_us);
    restart(0);
    expect_readmission_in(GUARDED_TIMEOUT_US);
    ck_assert_str_eq(guarded.guard.node[0].mark, "");
}
END_TEST

START_TEST(a_memory_as_old_as_a_promise_is_not_whole)
{
    guarded_spread_clocks(_i);
    guarded.is_durable = false;
    guarded.memory[0].seen_us = guarded.now_us;
    guarded_admit_from(1, guarded.now_us - GUARDED_TIMEOUT_US - _i);
    restart(0);
    guarded_pass_without(GUARD_READMIT, 10 * GUARDED_SECOND);
    expect_quarantine();
}
END_TEST

/* Beats that it lost with the last second of its file counted looks only. */
START_TEST(a_memory_younger_than_every_promise_may_have_lost_beats)
{
    guarded.memory[0].beat = 7;
    guarded.memory[0].seen_us = guarded.now_us;
    guarded.memory[2].floor[0] = 9;
    guarded_admit_from(1, GUARDED_NEVER);
    restart(0);
    expect_readmission_in(GUARDED_TIMEOUT_US);
}
END_TEST

/* What it last heard itself is no answer: the others had a part in it. */
START_TEST(a_promise_that_is_in_its_own_memory_is_no_objection)
{
    guarded.memory[0].seen_us = guarded.memory[0].voted_us = guarded.now_us;
    guarded_admit_from(1, GUARDED_NEVER);
    restart(0);
    expect_readmission_in(GUARDED_TIMEOUT_US);
}
END_TEST

/* After a night all nodes come back together; each one is a witness of four. */
START_TEST(a_stack_that_slept_votes_again_without_a_quarantine)
{
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded.memory[i].seen_us = 90 * GUARDED_SECOND;
        guarded.memory[i].voted_us = 80 * GUARDED_SECOND;
        restart(i);
    }
    guarded_wait();
    guarded_pass(GUARDED_TIMEOUT_US);
    for (int i = 0; i < GUARDED_NODES; i++) {
        struct guard_action action;
        (void)guarded_look_around();
        ck_assert(guard_next(&guarded.guard, guarded.now_us, &action));
        ck_assert_int_eq((int)action.kind, GUARD_READMIT);
        guard_on_done(&guarded.guard, &action, guarded.now_us);
        guarded_found(action.node, LOOK_ADMITTED, GUARDED_ADMIT, "");
    }
    for (int i = 0; i < GUARDED_NODES; i++)
        GUARDED_ASSERT_REFUSAL(i, STATE_VOTING);
}
END_TEST

/* Nobody is left who could tell what was promised behind their copies. */
START_TEST(story_28_a_stack_that_does_not_last_waits)
{
    guarded.is_durable = false;
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded.memory[i].seen_us = 90 * GUARDED_SECOND;
        restart(i);
    }
    guarded_pass_without(GUARD_READMIT, GUARDED_QUARANTINE_US - 1);
}
END_TEST

/* ---- its memory lasts ---------------------------------------------------- */

START_TEST(a_durable_node_votes_again_once_the_others_could_speak)
{
    guarded.memory[0].beat = 7;
    guarded.memory[3].floor[0] = 7; /* what others have seen of it */
    guarded_admit_from(1, guarded.now_us);
    restart(0);
    ck_assert_int_eq(admission_remaining_us(&guarded.guard, 0, guarded.now_us),
                     SAID_US);
    expect_readmission_in(SAID_US);
}
END_TEST

START_TEST(a_single_durable_node_has_nobody_to_wait_for)
{
    guarded.settings.nodes = guarded.settings.quorum = 1;
    guarded_begin_again();
    restart(0);
    expect_readmission_in(SAID_US);
}
END_TEST

/* Before that the servers that it has told of a later one had no time. */
START_TEST(others_that_have_just_come_up_count_two_heartbeats_later)
{
    guarded_admit_from(3, 0);
    restart(0);
    guarded_pass_without(GUARD_READMIT, 10 * GUARDED_SECOND);
    guarded_come(1, LOOK_ADMITTED, GUARDED_ADMIT, "");
    expect_readmission_in(SAID_US);
}
END_TEST

START_TEST(too_few_others_tell_nothing)
{
    guarded_admit_from(3, GUARDED_NEVER); /* two */
    guarded.memory[0].seen_us = guarded.now_us;
    restart(0);
    guarded_pass_without(GUARD_READMIT, GUARDED_QUARANTINE_US);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
}
END_TEST

/* Perhaps it has lost just what it would have to tell. */
START_TEST(one_whose_memory_does_not_last_tells_nothing)
{
    guarded_admit_from(3, GUARDED_NEVER);
    guarded_come(2, LOOK_CREATED, "", GUARDED_MARK);
    guarded.memory[1].voted_us = GUARDED_NEVER;
    guard_on_clock(&guarded.guard, 1, false); /* it stays as it is */
    guarded.is_durable = false;
    restart(1);
    guarded.is_durable = true;
    guarded.memory[0].seen_us = guarded.now_us;
    restart(0);
    for (int i = 0; i < 10; i++) {
        guarded_pass(GUARDED_SECOND);
        guarded.is_durable = false;
        guarded_found(1, LOOK_MARKED, GUARDED_OLD_ADMIT, GUARDED_MARK);
        guarded.is_durable = true;
        guarded_found(2, LOOK_MARKED, "", GUARDED_MARK);
        for (int j = 3; j < GUARDED_NODES; j++)
            guarded_found(j, LOOK_ADMITTED, GUARDED_ADMIT, "");
        guarded_expect(GUARD_LOOK, 0);
        guarded_found(0, LOOK_MARKED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    }
    guarded_down(1);
    restart(1); /* as if it had always lasted */
    (void)guarded_look_around();
    guarded_give(GUARD_READMIT, 0);
}
END_TEST

/*
 * Node 2 may be as old as node 0, so that of those who had a part in some
 * promise only the one that is away may know.
 */
START_TEST(while_one_is_away_only_those_who_vote_tell)
{
    guarded_admit_from(3, GUARDED_NEVER);
    guarded.memory[0].seen_us = guarded.memory[2].seen_us = guarded.now_us;
    guarded.memory[2].voted_us = GUARDED_NEVER;
    restart(2);
    restart(0);
    guarded_pass_without(GUARD_READMIT, 10 * GUARDED_SECOND);
    guarded.memory[1].voted_us = GUARDED_NEVER;
    guarded_come(1, LOOK_CREATED, "", GUARDED_MARK);
    (void)guarded_look_around();
    guarded_give(GUARD_READMIT, 0);
}
END_TEST

/* Behind a new connection there may be another memory. */
START_TEST(one_that_has_come_back_tells_nothing_before_a_look)
{
    guard_on_clock(&guarded.guard, 0, false);
    guarded_admit_from(2, 0);
    restart(0);
    guarded_pass_without(GUARD_READMIT, 10 * GUARDED_SECOND);
    guarded_down(2);
    guarded_up(2);
    guard_on_clock(&guarded.guard, 0, true);
    guarded_expect(GUARD_LOOK, 2);
    guarded_expect_nothing();
    guarded_found(2, LOOK_ADMITTED, GUARDED_ADMIT, "");
    expect_readmission_in(SAID_US);
}
END_TEST

START_TEST(a_clock_that_is_not_known_well_hinders)
{
    guard_on_clock(&guarded.guard, 0, false);
    guarded_admit_from(1, guarded.now_us);
    restart(0);
    guarded_pass_without(GUARD_READMIT, 10 * GUARDED_SECOND);
    guard_on_clock(&guarded.guard, 0, true);
    guarded_give(GUARD_READMIT, 0);
}
END_TEST

START_TEST(a_readmission_that_changed_nothing_looks_again)
{
    guarded_admit_from(1, guarded.now_us);
    restart(0);
    guarded_pass_without(GUARD_READMIT, SAID_US - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_do(GUARD_READMIT, 0);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_MARKED, "", GUARDED_MARK); /* somebody wiped it */
    expect_quarantine();
}
END_TEST

START_TEST(a_readmission_without_an_answer_is_tried_again)
{
    guarded_admit_from(1, guarded.now_us);
    restart(0);
    guarded_pass_without(GUARD_READMIT, SAID_US - 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_expect(GUARD_READMIT, 0);
    guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_READMIT, 0},
                     guarded.now_us);
    guarded_pass(GUARDED_SECOND);
    (void)guarded_look_around();
    guarded_expect(GUARD_READMIT, 0);
}
END_TEST

/* ---- neither ------------------------------------------------------------- */

START_TEST(story_29_a_life_without_durability_costs_a_quarantine)
{
    guarded_admit_from(1, guarded.now_us);
    guarded.is_durable = _i != 0; /* says its configuration */
    guarded_up(0);
    guarded.is_durable = _i == 0; /* says its memory */
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    guarded.is_durable = true;
    guarded_pass(1);
    for (int s = 0; s < 60; s++) {
        guarded_pass(GUARDED_SECOND);
        guarded.is_durable = _i == 0;
        guard_want_look(&guarded.guard, 0, guarded.now_us);
        guarded_expect(GUARD_LOOK, 0);
        guarded_found(0, LOOK_MARKED, GUARDED_OLD_ADMIT, GUARDED_MARK);
        guarded.is_durable = true;
        guarded_wait();
    }
    GUARDED_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}
END_TEST

/* Two servers know the node, the one that was told more has gone: a witness
 * of either of three kinds keeps its word. */
START_TEST(stories_41_to_43_a_memory_below_what_was_seen_is_not_given_back)
{
    guarded.memory[0].beat = 7;
    if (_i != 2)
        guarded.memory[1 + _i].floor[0] = 8;
    guarded_admit_from(1, 0);
    if (_i == 2)
        guard_on_beat(&guarded.guard, 0, 8); /* our own */
    restart(0);
    guarded_pass_without(GUARD_READMIT, GUARDED_QUARANTINE_US - 1);
}
END_TEST

/* Seen alive by somebody else while this server waits for it. */
START_TEST(story_45_a_twin_that_goes_on_voting_leaves_the_copy_behind)
{
    guarded.memory[0].beat = 7;
    guarded.memory[2].floor[0] = 7;
    guarded_admit_from(1, guarded.now_us);
    restart(0);
    guarded_pass_without(GUARD_READMIT, SAID_US - 1);
    guarded.memory[2].floor[0] = 8;
    guarded_pass(1);
    (void)guarded_look_around();
    expect_quarantine();
}
END_TEST

static const char *const not_own[] = {
    "",
    "1:" GUARDED_FINGERPRINT ":0123456789abcdef:" GUARDED_LIFE, /* a name */
    "1:ffffffffffffffff:@:" GUARDED_LIFE,
    "1:" GUARDED_FINGERPRINT ":@",
    "1:" GUARDED_FINGERPRINT ":@:",
};

/* Rebuilt from another node's files, or made its replica for a moment. */
START_TEST(stories_37_and_38_memory_of_another_node_is_none)
{
    guarded.memory[0].seen_us = guarded.now_us;
    guarded_admit_from(1, guarded.now_us - GUARDED_SECOND);
    guarded_come(0, LOOK_CREATED, not_own[_i], GUARDED_MARK);
    expect_quarantine();
}
END_TEST

/* Its locks ended before their time, whatever the file has kept. */
START_TEST(a_durable_node_whose_clock_stepped_is_not_readmitted)
{
    guarded_admit_from(1, guarded.now_us);
    guarded_up(0);
    if (_i == 0)
        guard_on_step(&guarded.guard, 0); /* before the look comes back … */
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK);
    if (_i == 1)
        guard_on_step(&guarded.guard, 0); /* … or behind it */
    guarded_do(GUARD_REVOKE, 0);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    expect_quarantine();
}
END_TEST

static TCase *whole_case(void)
{
    TCase *tc = tcase_create("whole");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_loop_test(tc, a_memory_younger_than_every_promise_is_whole, 0, 2);
    tcase_add_loop_test(tc, a_memory_as_old_as_a_promise_is_not_whole, 0, 2);
    tcase_add_test(tc, a_memory_younger_than_every_promise_may_have_lost_beats);
    tcase_add_test(tc, a_promise_that_is_in_its_own_memory_is_no_objection);
    tcase_add_test(tc, a_stack_that_slept_votes_again_without_a_quarantine);
    tcase_add_test(tc, story_28_a_stack_that_does_not_last_waits);
    tcase_add_test(tc, a_durable_node_votes_again_once_the_others_could_speak);
    tcase_add_test(tc, a_single_durable_node_has_nobody_to_wait_for);
    tcase_add_test(tc,
                   others_that_have_just_come_up_count_two_heartbeats_later);
    tcase_add_test(tc, too_few_others_tell_nothing);
    tcase_add_test(tc, one_whose_memory_does_not_last_tells_nothing);
    tcase_add_test(tc, while_one_is_away_only_those_who_vote_tell);
    tcase_add_test(tc, one_that_has_come_back_tells_nothing_before_a_look);
    tcase_add_test(tc, a_clock_that_is_not_known_well_hinders);
    tcase_add_test(tc, a_readmission_that_changed_nothing_looks_again);
    tcase_add_test(tc, a_readmission_without_an_answer_is_tried_again);
    return tc;
}

static TCase *neither_case(void)
{
    TCase *tc = tcase_create("neither");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_loop_test(
        tc, story_29_a_life_without_durability_costs_a_quarantine, 0, 2);
    tcase_add_loop_test(
        tc, stories_41_to_43_a_memory_below_what_was_seen_is_not_given_back, 0,
        3);
    tcase_add_test(tc,
                   story_45_a_twin_that_goes_on_voting_leaves_the_copy_behind);
    tcase_add_loop_test(tc, stories_37_and_38_memory_of_another_node_is_none, 0,
                        (int)(sizeof not_own / sizeof *not_own));
    tcase_add_loop_test(
        tc, a_durable_node_whose_clock_stepped_is_not_readmitted, 0, 2);
    return tc;
}

Suite *check_readmission(void);

Suite *check_readmission(void)
{
    Suite *suite = suite_create("readmission");
    suite_add_tcase(suite, whole_case());
    suite_add_tcase(suite, neither_case());
    return suite;
}
