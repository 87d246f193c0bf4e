/*
 * How nodes get their vote before a quarantine has passed, as nobody can have
 * promised anything that they forgot; and what hinders any admission.
 */

#include "../../../server/engine/eligibility.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

enum { TOLD = 3 /* of four others: one of them was in each majority */ };

static void mark(int node)
{
    voters_come(node, LOOK_FRESH, "", VOTERS_MARK);
}

/* Not before so long, and then at once. */
static void expect_admission_in(int64_t us)
{
    voters_pass_until(ADMISSION_ADMIT, us);
    voters_give(ADMISSION_ADMIT, 0);
}

/* ---- idle ---------------------------------------------------------------- */

enum { WATCH_US = 3 * HEARTBEAT_US };

SUITE(eligibility);

GROUP(idle, .set_up = voters_begin);

TEST_RANGE(when_all_promises_are_over_a_new_node_is_admitted_at_once, 0, 2)
{
    voters_admit_from(1, _i == 0 ? (int64_t)VOTERS_NEVER
                                 : voters.now_us - VOTERS_QUARANTINE_US);
    mark(0);
    expect_admission_in(WATCH_US);
}

TEST(the_last_promise_of_anybody_is_waited_for)
{
    voters_admit_from(1, 1);
    voters.memory[3].voted_us = voters.now_us - 60 * VOTERS_SECOND;
    voters.memory[0].voted_us = voters.now_us; /* is not its own judge */
    voters_down(3);
    voters_come(3, LOOK_ADMITTED, VOTERS_ADMIT, "");
    mark(0);
    voters_down(3); /* what it has told stays told */
    (void)voters_look_around();
    int64_t left_us = VOTERS_QUARANTINE_US - 60 * VOTERS_SECOND;
    voters_pass(VOTERS_TIMEOUT_US);
    (void)voters_look_around();
    ck_assert_int_eq(voters_remaining_us(0), left_us - VOTERS_TIMEOUT_US);
    expect_admission_in(left_us - VOTERS_TIMEOUT_US);
}

/* Somebody goes on promising all the time. */
TEST(on_a_busy_stack_it_waits_for_its_quarantine)
{
    voters_admit_from(1, voters.now_us);
    mark(0);
    for (int64_t us = 0; us < 60 * (int64_t)VOTERS_SECOND;
         us += VOTERS_SECOND) {
        voters_pass_without(ADMISSION_ADMIT, VOTERS_SECOND);
        voters.memory[2].voted_us = voters.now_us;
    }
    expect_admission_in(VOTERS_QUARANTINE_US - 60 * (int64_t)VOTERS_SECOND);
}

/* A round that it had a part in before may still be on its way to others. */
TEST(looks_count_once_the_rounds_of_before_have_ended)
{
    voters_spread_clocks(10 * VOTERS_SECOND);
    voters_admit_from(1, VOTERS_NEVER);
    mark(0);
    expect_admission_in(10 * VOTERS_SECOND + VOTERS_TIMEOUT_US);
}

/* Two servers know the median as well as the clocks lie together. */
TEST(a_promise_counts_as_late_as_it_may_have_been)
{
    voters_spread_clocks(7 * VOTERS_SECOND);
    voters_admit_from(1, voters.now_us - 50 * VOTERS_SECOND);
    mark(0);
    voters_pass_without(ADMISSION_ADMIT, 7 * VOTERS_SECOND + VOTERS_TIMEOUT_US);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US -
                                                 50 * VOTERS_SECOND -
                                                 VOTERS_TIMEOUT_US);
}

/* Nor above which beat an admission is to begin. */
TEST(without_the_clocks_nobody_knows_when_it_was)
{
    admission_on_median(&voters.admission, false, VOTERS_EPOCH_US, 0);
    voters_admit_from(1, VOTERS_NEVER);
    mark(0);
    voters_pass_without(ADMISSION_ADMIT, 2 * (int64_t)VOTERS_QUARANTINE_US);
    voters_spread_clocks(0);
    (void)voters_look_around();
    voters_give(ADMISSION_ADMIT, 0);
}

TEST(too_few_others_tell_nothing)
{
    voters_admit_from(VOTERS_NODES - TOLD + 1, VOTERS_NEVER);
    mark(0);
    voters_pass_without(ADMISSION_ADMIT, 10 * VOTERS_SECOND);
    voters.memory[1].voted_us = VOTERS_NEVER;
    voters_come(1, LOOK_ADMITTED, VOTERS_ADMIT, "");
    (void)voters_look_around();
    voters_give(ADMISSION_ADMIT, 0);
}

static const struct {
    enum call_look_word word;
    const char *admit, *mark;
} others[] = {
    {LOOK_CREATED, VOTERS_OLD_ADMIT, VOTERS_MARK}, /* perhaps an old copy */
    {LOOK_CREATED, "", VOTERS_MARK},
    {LOOK_CREATED, "1:" VOTERS_FINGERPRINT ":0123456789abcdef:r:m",
     VOTERS_MARK}, /* another node's memory */
};

/* One that forgot, too, or may have, cannot tell what it has promised. */
TEST_EACH(only_those_who_vote_tell_what_was_promised, others)
{
    voters_admit_from(VOTERS_NODES - TOLD, VOTERS_NEVER);
    voters_down(2);
    admission_on_clock(&voters.admission, 2, false); /* it stays as it is */
    voters_come(2, others[_i].word, others[_i].admit, others[_i].mark);
    mark(0);
    voters_pass_without(ADMISSION_ADMIT, 10 * VOTERS_SECOND);
    voters_found(2, LOOK_ADMITTED, VOTERS_ADMIT, "");
    (void)voters_look_around();
    voters_give(ADMISSION_ADMIT, 0);
}

/* Each other time of a life is another memory. */
TEST(who_has_forgotten_meanwhile_tells_nothing_any_more)
{
    voters_admit_from(VOTERS_NODES - TOLD, VOTERS_NEVER);
    mark(0);
    voters_pass_without(ADMISSION_ADMIT, WATCH_US - 1);
    admission_on_quarantined(&voters.admission, 2, voters.now_us);
    voters_expect(ADMISSION_LOOK, 2);
    voters_found(2, LOOK_FRESH, "", VOTERS_OTHER_MARK);
    voters_pass_without(ADMISSION_ADMIT, 10 * VOTERS_SECOND);
}

/* ---- contested ----------------------------------------------------------- */

GROUP(hindered, .set_up = voters_begin);

/* Another server sees the name vote, on what it takes for it: each look that
 * knows of that makes another mark. */
TEST_RANGE(story_45_while_others_see_the_name_vote_it_waits, 0, 2)
{
    voters_admit_from(1, _i == 0 ? (int64_t)VOTERS_NEVER : 0);
    mark(0);
    for (int i = 0; i < 100; i++) {
        ck_assert(eligibility_is_contested(&voters.admission, 0) == (i >= 4));
        voters_pass_without(ADMISSION_ADMIT, VOTERS_SECOND);
        voters_found(0, LOOK_CREATED, "", voters_mark_of(voters.now_us));
    }
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    expect_admission_in(_i == 0 ? (int64_t)WATCH_US : VOTERS_QUARANTINE_US);
    voters_found(0, LOOK_CREATED, "", VOTERS_MARK); /* another loss */
    ck_assert(!eligibility_is_contested(&voters.admission, 0));
}

/* ---- what else hinders --------------------------------------------------- */

/* Which of the names is its own, nobody knows. */
TEST_RANGE(story_23_one_server_behind_two_names_is_admitted_under_none, 0, 2)
{
    voters_admit_from(2, VOTERS_NEVER);
    mark(0);
    char run_id[] = VOTERS_RUN; /* that of node 0 */
    admission_on_up(&voters.admission, 1, run_id, true, voters.now_us);
    voters_expect(ADMISSION_LOOK, 1);
    voters_found(1, LOOK_CREATED, _i == 0 ? "" : VOTERS_OLD_ADMIT, VOTERS_MARK);
    for (int i = 0; i < 100; i++) {
        voters_wait();
        voters_pass(VOTERS_SECOND);
    }
    voters_down(1);
    (void)voters_look_around();
    voters_give(ADMISSION_ADMIT, 0);
}

TEST(a_node_that_is_not_marked_has_nothing_to_wait_for)
{
    voters_admit_from(0, 0);
    ck_assert_int_eq(
        eligibility_look_since_us(&voters.admission, 0, voters.now_us), 0);
    ck_assert_int_eq(voters_remaining_us(0), 0);
    ck_assert(!eligibility_is_due(&voters.admission, 0, voters.now_us));
    ck_assert(!eligibility_is_back(&voters.admission, 0, voters.now_us));
}

TEST(nodes_that_are_down_or_mute_were_looked_at_long_enough)
{
    ck_assert_int_eq(eligibility_looked_us(&voters.admission), INT64_MAX);
    voters_up(0);
    ck_assert_int_eq(eligibility_looked_us(&voters.admission), 0);
    voters_expect(ADMISSION_LOOK, 0);
    voters_found(0, LOOK_FRESH, "", VOTERS_MARK);
    int64_t first_us = voters.now_us;
    voters_pass(1);
    voters_come(1, LOOK_FRESH, "", VOTERS_MARK);
    ck_assert_int_eq(eligibility_looked_us(&voters.admission), first_us);
    voters_pass(VOTERS_SECOND);
    voters_expect(ADMISSION_LOOK, 0);
    voters_fail(ADMISSION_LOOK, 0);
    ck_assert_int_eq(eligibility_looked_us(&voters.admission), first_us + 1);
}
