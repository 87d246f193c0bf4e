/* SPDX-License-Identifier: MIT */
/*
 * How nodes that were restarted with their memory get their vote back.
 */

#include "../../../server/engine/voting/members.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

enum {
    SAID_US = 2 * HEARTBEAT_US,
    BUSY_US = 60 * VOTERS_SECOND, /* so far ahead the others have promised */
};

static void begin(void)
{
    voters_begin();
    for (int i = 0; i < VOTERS_NODES; i++)
        voters.memory[i].rest_us = BUSY_US;
}

/* Restarted with its data: what it carries is of its older life. */
static void restart(int node)
{
    voters_pass(1);
    voters_up(node);
    voters_found(node, PROBE_CREATED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE);
}

/* It is not readmitted before so long, and then at once. */
static void expect_readmission_in(int64_t us)
{
    voters_pass_until(MEMBER_READMIT, us);
    voters_give(MEMBER_READMIT, 0);
}

/* It has to wait until what the others have promised has ended. */
static void expect_quarantine(void)
{
    voters_pass_without(MEMBER_READMIT, BUSY_US);
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    voters_pass(BUSY_US / 30);
    (void)voters_probe_around();
    voters_expect(MEMBER_ADMIT, 0);
}

SUITE(readmission);

/* ---- its data lasts ---------------------------------------------------- */

GROUP(whole, .set_up = begin);

TEST(a_durable_node_votes_again_once_the_others_could_speak)
{
    voters.memory[0].generation = 7;
    voters.memory[3].high_water[0] = 7; /* what others have seen of it */
    voters_admit_from(1);
    restart(0);
    ck_assert_int_eq(voters_remaining_us(0), HEARTBEAT_US);
    voters_pass(HEARTBEAT_US);
    (void)voters_probe_around();
    expect_readmission_in(SAID_US - HEARTBEAT_US);
}

TEST(a_single_durable_node_has_nobody_to_wait_for)
{
    voters.settings.nodes = 1;
    voters_begin_again();
    restart(0);
    ck_assert_int_eq(voters_remaining_us(0), SAID_US);
    expect_readmission_in(SAID_US);
}

/* After a night all nodes come back together; each one is a witness of four. */
TEST(a_stack_that_slept_votes_again_without_a_quarantine)
{
    for (int i = 0; i < VOTERS_NODES; i++)
        restart(i);
    voters_pass_without(MEMBER_READMIT, SAID_US - VOTERS_NODES);
    voters_pass(VOTERS_NODES);
    for (int i = 0; i < VOTERS_NODES; i++) {
        struct member_action action;
        (void)voters_probe_around();
        ck_assert(members_next(&voters.members, voters.now_us, &action));
        ck_assert_int_eq((int)action.kind, MEMBER_READMIT);
        voters_found(action.node, PROBE_ADMITTED, VOTERS_ADMIT, "");
        VOTERS_ASSERT_REFUSAL(action.node, STATE_NONE);
    }
}

/* Nobody is left who could tell what was promised behind their copies. */
TEST(story_28_a_stack_that_does_not_last_waits)
{
    voters.is_durable = false;
    for (int i = 0; i < VOTERS_NODES; i++)
        restart(i);
    voters_pass_without(MEMBER_READMIT, VOTERS_QUARANTINE_US - 1);
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}

/* Before that the servers that it has told of a later one had no time. */
TEST(others_that_have_just_come_up_count_two_heartbeats_later)
{
    voters_admit_from(3);
    restart(0);
    voters_pass_without(MEMBER_READMIT, 10 * VOTERS_SECOND);
    voters_come(1, PROBE_ADMITTED, VOTERS_ADMIT, "");
    expect_readmission_in(SAID_US);
}

/* Perhaps it has lost just what it would have to tell. */
TEST(one_whose_memory_does_not_last_tells_nothing)
{
    voters_admit_from(3);
    voters_come(2, PROBE_CREATED, "", VOTERS_QUARANTINE);
    voters.members.node[1].is_clock_good = false; /* it stays as it is */
    voters.memory[1].is_fleeting = true;
    restart(1);
    restart(0);
    voters_pass_without(MEMBER_READMIT, 10 * VOTERS_SECOND);
    voters.memory[1].is_fleeting = false; /* as if it had always lasted */
    voters_down(1);
    restart(1);
    expect_readmission_in(SAID_US);
}

/*
 * Node 2 may be as old as node 0, so that of those who had a part in some
 * promise only the one that is away may know.
 */
TEST(while_one_is_away_only_those_who_vote_tell)
{
    voters_admit_from(3);
    restart(2);
    restart(0);
    voters_pass_without(MEMBER_READMIT, 10 * VOTERS_SECOND);
    voters_come(1, PROBE_CREATED, "", VOTERS_QUARANTINE);
    (void)voters_probe_around();
    voters_give(MEMBER_READMIT, 0);
}

/* Behind a new connection there may be another memory. */
TEST(one_that_has_come_back_tells_nothing_before_a_probe)
{
    voters.members.node[0].is_clock_good = false;
    voters_admit_from(2);
    restart(0);
    voters_pass_without(MEMBER_READMIT, 10 * VOTERS_SECOND);
    voters_down(2);
    voters_up(2);
    voters.members.node[0].is_clock_good = true;
    voters_expect(MEMBER_PROBE, 2);
    voters_expect_nothing();
    voters_found(2, PROBE_ADMITTED, VOTERS_ADMIT, "");
    expect_readmission_in(SAID_US);
}

TEST(a_clock_that_is_not_known_well_hinders)
{
    voters.members.node[0].is_clock_good = false;
    voters_admit_from(1);
    restart(0);
    voters_pass_without(MEMBER_READMIT, 10 * VOTERS_SECOND);
    voters.members.node[0].is_clock_good = true;
    voters_give(MEMBER_READMIT, 0);
}

/* ---- it may not ---------------------------------------------------------- */

GROUP(not_whole, .set_up = begin);

TEST_RANGE(story_29_a_life_without_durability_costs_a_quarantine, 0, 2)
{
    voters_admit_from(1);
    voters.is_durable = _i != 0; /* says its configuration */
    voters_up(0);
    voters.is_durable = true;
    voters.memory[0].is_fleeting = _i != 0; /* says its data */
    voters_found(0, PROBE_CREATED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE);
    voters_pass_without(MEMBER_READMIT, BUSY_US);
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}

/* Two servers know the node, the one that was told more has gone: a witness
 * of either of three kinds keeps its word. */
TEST_RANGE(stories_41_to_43_a_memory_below_what_was_seen_is_not_given_back, 0,
           3)
{
    voters.memory[0].generation = 7;
    if (_i != 2)
        voters.memory[1 + _i].high_water[0] = 8;
    voters_admit_from(1);
    if (_i == 2)
        members_on_generation(&voters.members, 0, 8); /* our own */
    restart(0);
    voters_pass_without(MEMBER_READMIT, VOTERS_QUARANTINE_US - 1);
}

/* Seen alive by somebody else while this server waits for it. */
TEST(story_45_a_twin_that_goes_on_voting_leaves_the_copy_behind)
{
    voters.memory[0].generation = 7;
    voters.memory[2].high_water[0] = 7;
    voters_admit_from(1);
    restart(0);
    voters_pass_without(MEMBER_READMIT, SAID_US - 1);
    voters.memory[2].high_water[0] = 8;
    voters_pass(1);
    (void)voters_probe_around();
    voters.memory[0].generation = 8; /* by the next probe */
    voters_pass(1);
    voters_found(0, PROBE_CREATED, "", VOTERS_OTHER_QUARANTINE);
    expect_quarantine();
}

/* Another machine waits under its name, for another server. Only the one that
 * was quarantined last may come back: otherwise both of them do in one moment.
 */
TEST_RANGE(
    story_45_beside_a_twin_that_was_quarantined_later_it_does_not_come_back, 2,
    4)
{
    voters_admit_from(1);
    restart(0);
    voters_pass_without(MEMBER_READMIT, SAID_US - 1);
    strcpy(voters.memory[2].latest[0],
           _i == 2 ? VOTERS_INCARNATION(2) : VOTERS_INCARNATION(3));
    voters_pass(1);
    (void)voters_probe_around();
    if (_i == 2) { /* it is told of the quarantine record that it has */
        voters_give(MEMBER_READMIT, 0);
        return;
    }
    voters_pass_without(MEMBER_READMIT, VOTERS_SECOND);
    voters_found(0, PROBE_CREATED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE_OF(4));
    expect_readmission_in(SAID_US);
}

static const char *const not_own[] = {
    "",
    "1:" VOTERS_FINGERPRINT ":0123456789abcdef:#:0:" VOTERS_LIFE, /* a name */
    "1:ffffffffffffffff:@:#:0:" VOTERS_LIFE,
    "1:" VOTERS_FINGERPRINT ":@",
};

/* Rebuilt from another node's files, or made its replica for a moment. */
TEST_EACH(stories_37_and_38_memory_of_another_node_is_none, not_own)
{
    voters_admit_from(1);
    voters_pass(1);
    voters_come(0, PROBE_CREATED, not_own[_i], VOTERS_QUARANTINE);
    expect_quarantine();
}

/* Its locks ended before their time, whatever the file has kept. */
TEST_RANGE(a_durable_node_whose_clock_stepped_is_not_readmitted, 0, 2)
{
    voters_admit_from(1);
    voters_up(0);
    if (_i == 0)
        members_on_step(&voters.members, 0); /* before the probe comes back … */
    voters_expect(MEMBER_PROBE, 0);
    voters_found(0, PROBE_CREATED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE);
    if (_i == 1)
        members_on_step(&voters.members, 0); /* … or behind it */
    voters_do(MEMBER_REVOKE, 0);
    voters_expect(MEMBER_PROBE, 0);
    voters_pass(1);
    voters_found(0, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE);
    expect_quarantine();
}
