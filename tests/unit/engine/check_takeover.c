/*
 * A change of the names: how long the new ones wait.
 */
#include "../../../server/engine/voting/eligibility.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

/* Five names, or three, all of which are among the new ones. */
#define OF_FIVE "ffffffffffffff05"
#define OF_THREE "ffffffffffffff03"
#define THIRD "eeeeeeeeeeeeee03"
#define ADMIT(fingerprint, birth)                                              \
    "1:" fingerprint ":@:" VOTERS_BIRTH(birth) ":0:" VOTERS_LIFE
#define MARK_2 "2:" VOTERS_FINGERPRINT ":name:" VOTERS_BIRTH(2) "::" VOTERS_LIFE
#define MARK_3 "2:" VOTERS_FINGERPRINT ":name:" VOTERS_BIRTH(3) "::" VOTERS_LIFE
#define ADMIT_2 "2:" VOTERS_FINGERPRINT ":@:#:0:" VOTERS_LIFE

enum { REST_US = 5000000, WAIT_US = REST_US + REST_US / 100 + 1 };

static void begin(void)
{
    voters_begin();
    voters.settings.epoch = 2;
    voters.is_durable = false;
    voters_begin_again();
}

SUITE(takeover, .set_up = begin);

/* Nodes from first to last had all their memory. */
static void take(int first, int last, const char *admit)
{
    for (int i = first; i <= last; i++)
        voters_come(i, LOOK_TAKEN, admit, MARK_2);
}

static void mark(int first, int last)
{
    for (int i = first; i <= last; i++)
        voters_come(i, LOOK_FRESH, "", MARK_2);
}

/* All are looked at once more: none votes under the new names yet. */
static void look_again(void)
{
    voters_pass(HEARTBEAT_US);
    (void)voters_look_around();
}

static void expect_wait(int64_t us)
{
    voters_pass_until(ADMISSION_ADMIT, us);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_give(ADMISSION_ADMIT, i);
}

TEST(nothing_is_waited_for_if_nothing_is_held)
{
    take(0, 4, ADMIT(OF_FIVE, 1));
    voters_expect_nothing();
    look_again();
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_give(ADMISSION_ADMIT, i);
}

static const struct {
    const char *admit;
    int tellers;
} enough[] = {{ADMIT(OF_FIVE, 1), 3},
              {ADMIT(OF_FIVE, 1), 5},
              {ADMIT(OF_THREE, 1), 2},
              {ADMIT(OF_THREE, 1), 3}};

TEST_EACH(story_59_the_last_promise_is_waited_for, enough)
{
    voters.memory[enough[_i].tellers - 1].rest_us = REST_US;
    take(0, enough[_i].tellers - 1, enough[_i].admit);
    mark(enough[_i].tellers, 4);
    look_again();
    voters_expect_nothing();
    ck_assert_int_eq(voters_remaining_us(0), WAIT_US - HEARTBEAT_US);
    expect_wait(WAIT_US - HEARTBEAT_US);
}

static const struct {
    const char *admit;
    int tellers;
} too_few[] = {{ADMIT(OF_FIVE, 1), 2},
               {ADMIT(OF_THREE, 1), 1},
               {ADMIT("ffffffffffffffff", 1), 5}, /* how many, nobody knows */
               {ADMIT("ffffffffffffff00", 1), 5}};

TEST_EACH(story_59_no_majority_of_the_old_names_tells, too_few)
{
    take(0, too_few[_i].tellers - 1, too_few[_i].admit);
    mark(too_few[_i].tellers, 4);
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
}

/* It may have voted with nodes that are in no list here. */
TEST(a_node_of_third_names_makes_all_wait)
{
    take(0, 2, ADMIT(OF_THREE, 1));
    take(3, 3, ADMIT(THIRD, 1));
    mark(4, 4);
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
}

TEST(what_it_had_before_it_was_restarted_names_them_too)
{
    voters_come(4, LOOK_BARE, ADMIT(THIRD, 1), "");
    take(0, 2, ADMIT(OF_THREE, 1));
    mark(3, 3);
    voters_found(4, LOOK_CREATED, "", MARK_2);
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
}

/* Another machine has voted under its name. */
TEST_RANGE(story_59_a_machine_that_was_replaced_tells_nothing, 0, 2)
{
    strcpy(voters.memory[1].latest[0],
           _i == 0 ? VOTERS_BIRTH(2) : VOTERS_BIRTH(1));
    take(0, 1, ADMIT(OF_THREE, 1));
    mark(2, 4);
    if (_i == 0)
        voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
    else
        look_again();
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST(a_machine_whose_clock_steps_has_told_a_wrong_end)
{
    take(0, 1, ADMIT(OF_THREE, 1));
    mark(2, 4);
    admission_on_step(&voters.admission, 1);
    voters_look_around();
    voters_do(ADMISSION_REVOKE, 1);
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
}

TEST(a_machine_whose_clock_is_unknown_tells_nothing)
{
    admission_on_clock(&voters.admission, 1, false);
    take(0, 1, ADMIT(OF_THREE, 1));
    mark(2, 4);
    voters_pass_without(ADMISSION_ADMIT, 4 * HEARTBEAT_US);
    admission_on_clock(&voters.admission, 1, true);
    look_again();
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST(all_must_be_marked)
{
    take(0, 3, ADMIT(OF_FIVE, 1));
    voters_pass_without(ADMISSION_ADMIT, 4 * HEARTBEAT_US);
    take(4, 4, ADMIT(OF_FIVE, 1));
    look_again();
    voters_expect(ADMISSION_ADMIT, 0);
}

/* Since then it may have voted under the new names, and forgotten it. */
TEST(who_forgets_after_all_was_told_waits_like_others)
{
    voters.memory[0].rest_us = REST_US;
    take(0, 4, ADMIT(OF_FIVE, 1));
    look_again();
    voters_found(4, LOOK_FRESH, "", MARK_3);
    voters_pass_until(ADMISSION_ADMIT, WAIT_US - HEARTBEAT_US);
    for (int i = 0; i < 4; i++)
        voters_give(ADMISSION_ADMIT, i);
    voters_wait();
    VOTERS_ASSERT_REFUSAL(4, STATE_QUARANTINED);
}

TEST(nobody_is_taken_once_a_node_votes_under_the_new_names)
{
    take(0, 3, ADMIT(OF_FIVE, 1));
    voters_come(4, LOOK_ADMITTED, ADMIT_2, "");
    voters_pass_without(ADMISSION_ADMIT, VOTERS_QUARANTINE_US / 2);
}

TEST(numbers_go_on_above_those_that_were_told)
{
    voters.memory[2].number = 77;
    voters.memory[1].number = 76;
    take(0, 4, ADMIT(OF_FIVE, 1));
    look_again();
    for (int i = 0; i < VOTERS_NODES; i++)
        ck_assert_int_eq(eligibility_number(&voters.admission, i), 77);
}

/* ---- two servers --------------------------------------------------------- */

/* All are in reach, and carry the old names. */
static void find_old_names(void)
{
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_come(i, LOOK_BARE, ADMIT(OF_FIVE, 1), "");
}

TEST(who_marks_the_leader_marks_the_others)
{
    int leader = voters.settings.leader;
    find_old_names();
    voters_pass(HEARTBEAT_US);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_expect(i == leader ? ADMISSION_LOOK : ADMISSION_PROBE, i);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_found(i, i == leader ? LOOK_TAKEN : LOOK_BARE, ADMIT(OF_FIVE, 1),
                     i == leader ? MARK_2 : "");
    for (int i = 0; i < VOTERS_NODES; i++)
        if (i != leader)
            voters_expect(ADMISSION_LOOK, i);
}

/* Whoever marked it may be gone. */
TEST(if_another_has_marked_the_leader_it_has_ten_seconds)
{
    int leader = voters.settings.leader;
    find_old_names();
    voters_found(leader, LOOK_MARKED, "", MARK_2);
    voters_pass_without(ADMISSION_LOOK, 9 * HEARTBEAT_US);
    voters_pass(2 * HEARTBEAT_US);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_expect(ADMISSION_LOOK, i);
}
