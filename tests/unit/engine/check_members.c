/* SPDX-License-Identifier: MIT */
/*
 * Who may vote: phases, refusals, and how a node loses its vote. How it gets it
 * is in check_eligibility.c, configurations are in check_epoch.c.
 */
#include "../../../server/engine/voting/members.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

SUITE(members, .set_up = voters_begin);

TEST(votes_once_it_carries_the_admission_which_is_probed_every_second)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    VOTERS_ASSERT_PHASE(0, MEMBER_ADMITTED);
    VOTERS_ASSERT_REFUSAL(0, STATE_NONE);
    voters_expect_nothing();
    for (int second = 0; second < 3; second++) {
        voters_pass(VOTERS_SECOND - 1);
        voters_expect_nothing();
        voters_pass(1);
        ck_assert_int_eq(voters_probe_around(), VOTERS_NODES);
    }
}

TEST(a_vote_that_finds_no_admission_has_it_probed_at_once)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    members_on_quarantined(&voters.members, 2, voters.now_us);
    VOTERS_ASSERT_REFUSAL(2, STATE_QUARANTINED);
    voters_expect(MEMBER_PROBE, 2);
    members_on_quarantined(&voters.members, 2, voters.now_us);
    voters_expect_nothing();
    voters_found(2, PROBE_FRESH, "", VOTERS_QUARANTINE);
    VOTERS_ASSERT_PHASE(2, MEMBER_QUARANTINED);
    VOTERS_ASSERT_REFUSAL(2, STATE_QUARANTINED);
    members_on_quarantined(&voters.members, 2, voters.now_us); /* is known */
    voters_expect_nothing();
}

TEST(a_node_that_went_down_has_no_vote_and_nothing_to_do)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_pass(VOTERS_SECOND);
    voters_expect(MEMBER_PROBE, 0);
    voters_down(0);
    VOTERS_ASSERT_REFUSAL(0, STATE_UNREACHABLE);
    voters_found(0, PROBE_ADMITTED, VOTERS_ADMIT, ""); /* of that connection */
    VOTERS_ASSERT_PHASE(0, MEMBER_DOWN);
    members_on_done(&voters.members, &(struct member_action){MEMBER_ADMIT, 0},
                    voters.now_us);
    voters_fail(MEMBER_PROBE, 0);
    VOTERS_ASSERT_PHASE(0, MEMBER_DOWN);
    voters_up(0);
    voters_expect(MEMBER_PROBE, 0);
}

/* And takes no vote. */
TEST_RANGE(a_probe_that_failed_waits_a_second, 0, 2)
{
    if (_i == 0)
        voters_up(0);
    else
        voters_admit_from(0);
    voters_pass(VOTERS_SECOND);
    voters_expect(MEMBER_PROBE, 0);
    voters_fail(MEMBER_PROBE, 0);
    VOTERS_ASSERT_PHASE(0, _i == 0 ? MEMBER_UNSEEN : MEMBER_ADMITTED);
    (void)voters_probe_around();
    voters_pass(VOTERS_SECOND - 1);
    members_want_probe(&voters.members, 0, voters.now_us);
    voters_expect_nothing();
    voters_pass(1);
    voters_expect(MEMBER_PROBE, 0);
}

/* Whether an ADMIT, READMIT or REVOKE that got no answer was done is open. */
TEST(an_action_that_failed_is_probed_a_second_later)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    members_on_step(&voters.members, 3);
    voters_expect(MEMBER_REVOKE, 3);
    voters_fail(MEMBER_REVOKE, 3);
    VOTERS_ASSERT_PHASE(3, MEMBER_UNSEEN);
    voters_pass(VOTERS_SECOND - 1);
    voters_expect_nothing();
    voters_pass(1);
    for (int i = 0; i < 3; i++)
        voters_expect(MEMBER_PROBE, i); /* the heartbeats */
    voters_expect(MEMBER_PROBE, 3);
    voters_found(3, PROBE_ADMITTED, VOTERS_ADMIT, ""); /* it was not done */
    voters_expect(MEMBER_REVOKE, 3);
}

/* A machine that is admitted under another name is left alone. */
TEST(story_23_a_node_with_another_name_is_probed_only)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_found(1, PROBE_MISNAMED, "1:" VOTERS_FINGERPRINT ":0123:#:0:r:m",
                 "");
    VOTERS_ASSERT_REFUSAL(1, STATE_DUPLICATE);
    members_on_step(&voters.members, 1);
    voters_expect_probes_only(VOTERS_NODES);
    ck_assert_int_eq(voters.members.witness.node[1].reported_us, 0);
    voters_found(1, PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(MEMBER_REVOKE, 1); /* by the step */
}

/* ---- its data ---------------------------------------------------------- */

static void find_admitted(int node)
{
    voters_found(node, PROBE_ADMITTED, VOTERS_ADMIT, "");
}

static void find_quarantined(int node)
{
    voters_found(node, PROBE_CREATED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE);
}

/* By another server, before this one has seen the quarantine record. */
static void find_admitted_anew(int node)
{
    voters_found(node, PROBE_ADMITTED, VOTERS_ADMIT_OF(VOTERS_INCARNATION(2)),
                 "");
}

static void quarantine(int node)
{
    members_on_quarantined(&voters.members, node, voters.now_us);
}

/* Another node tells of a later machine under its name. */
static void learn(int node)
{
    int other = (node + 1) % VOTERS_NODES;
    strcpy(voters.memory[other].latest[node], VOTERS_INCARNATION(2));
    voters_found(other, PROBE_ADMITTED, VOTERS_ADMIT, "");
}

/* What happens after the node's vote; it counts if all that leaves its data
 * as it was. */
static const struct {
    void (*first)(int node), (*then)(int node);
    bool counts;
} turns[] = {
    {find_admitted, find_admitted, true},
    {voters_down, voters_up, true},
    {quarantine, find_admitted, true},
    {find_quarantined, find_admitted, false},
    {voters_down, find_admitted, true},
    {find_admitted_anew, quarantine, false},
    {learn, find_admitted, false},
    {voters_down, learn, false},
    {quarantine, learn, false},
    {learn, voters_down, false},
    {find_quarantined, voters_down, false},
};

/* Whether it is connected or not: who voted after it knows of the other one,
 * and counts on it. */
TEST_EACH(what_was_answered_counts_as_long_as_the_memory_does, turns)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    uint32_t life = voters.members.node[2].life;
    ck_assert(members_has_data(&voters.members, 2, life));
    turns[_i].first(2);
    turns[_i].then(2);
    ck_assert(members_has_data(&voters.members, 2, life) == turns[_i].counts);
    ck_assert(!members_has_data(&voters.members, 2, life + 9));
}

/* ---- first starts -------------------------------------------------------- */

static const struct {
    enum call_probe_word word;
    const char *admit, *quarantine;
    bool is_seen;
} sights[] = {
    {PROBE_ADMITTED, VOTERS_ADMIT, "", true},
    {PROBE_CREATED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE, true},
    {PROBE_CREATED, "1:" VOTERS_FINGERPRINT ":0123456789abcdef:#:0:r:m",
     VOTERS_QUARANTINE, false},
    {PROBE_CREATED, "", VOTERS_QUARANTINE, false},
    {PROBE_OTHER, "1:ffffffffffffffff:@:#:0:r:m", "", false},
    {PROBE_MISNAMED, "1:" VOTERS_FINGERPRINT ":0123456789abcdef:#:0:r:m", "",
     false},
    {PROBE_SUPERSEDED, "2:" VOTERS_FINGERPRINT ":@:#:0:r:m", "", false},
};

/* Of the node's own, now or in an older life: an admission tells that a first
 * start is none. The first of one that is under way tells nothing yet. */
TEST_EACH(story_46_who_saw_an_admission_objects_to_a_first_start, sights)
{
    voters_come(3, sights[_i].word, sights[_i].admit, sights[_i].quarantine);
    ck_assert(!members_is_objecting(&voters.members, voters.now_us));
    voters_pass(HEARTBEAT_US - 1);
    ck_assert(!members_is_objecting(&voters.members, voters.now_us));
    voters_pass(1);
    ck_assert(members_is_objecting(&voters.members, voters.now_us) ==
              sights[_i].is_seen);
    voters_down(3); /* it stays so */
    voters_come(2, PROBE_CREATED, "", VOTERS_QUARANTINE);
    ck_assert(members_is_objecting(&voters.members, voters.now_us) ==
              sights[_i].is_seen);
}

TEST(with_the_guard_off_nodes_are_admitted_at_sight)
{
    voters.settings.is_guard_off = true;
    voters_begin_again();
    ck_assert_int_eq(rules_quarantine_us(&voters.members), 0);
    voters_come(4, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(1);
    voters_give(MEMBER_ADMIT, 4);
}

/* Each of them replaces the record of the other, at every heartbeat. */
TEST(two_configurations_that_wait_for_one_node_are_named)
{
    static const char *const records[] = {VOTERS_QUARANTINE_OF(3),
                                          VOTERS_QUARANTINE_OF(4),
                                          VOTERS_QUARANTINE_OF(5)};
    voters_come(2, PROBE_CREATED, "", VOTERS_QUARANTINE);
    for (int i = 0; i < 3; i++) {
        VOTERS_ASSERT_REFUSAL(2, STATE_QUARANTINED);
        voters_pass(HEARTBEAT_US);
        voters_found(2, PROBE_CREATED, "", records[i]);
    }
    VOTERS_ASSERT_REFUSAL(2, STATE_OTHER);
    voters_pass(SILENT_US - 1);
    voters_found(2, PROBE_QUARANTINED, "", records[2]);
    VOTERS_ASSERT_REFUSAL(2, STATE_OTHER);
    voters_pass(1);
    voters_found(2, PROBE_QUARANTINED, "", records[2]);
    VOTERS_ASSERT_REFUSAL(2, STATE_QUARANTINED);
}

TEST(a_node_that_restarts_often_is_not_contested)
{
    for (int digit = 0; digit < 5; digit++) {
        voters_down(2);
        voters_come(2, PROBE_CREATED, "",
                    digit % 2 == 0 ? VOTERS_QUARANTINE
                                   : VOTERS_OTHER_QUARANTINE);
        VOTERS_ASSERT_REFUSAL(2, STATE_QUARANTINED);
    }
}

/* ---- how a node loses its vote ------------------------------------------- */

TEST(story_44_durability_that_was_turned_off_is_written_down_at_once)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    members_on_durable(&voters.members, 3, true, voters.now_us);
    voters_expect_nothing();
    members_on_durable(&voters.members, 3, false, voters.now_us);
    voters_expect(MEMBER_PROBE, 3);
    ck_assert(!voters.members.node[3].is_durable);
    voters_found(3, PROBE_ADMITTED, VOTERS_ADMIT, "");
    members_on_durable(&voters.members, 3, false, voters.now_us);
    voters_expect_nothing();
}

TEST(story_11_a_node_whose_clock_stepped_loses_its_vote)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    members_on_step(&voters.members, 1);
    VOTERS_ASSERT_REFUSAL(1, STATE_STEPPED);
    voters_do(MEMBER_REVOKE, 1);
    voters_expect(MEMBER_PROBE, 1);
    voters_found(1, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE);
    voters_expect_nothing();
    VOTERS_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    voters_pass_until(MEMBER_ADMIT, 2 * HEARTBEAT_US + 1);
    voters_give(MEMBER_ADMIT, 1);
}

TEST(a_step_seen_on_a_lost_connection_takes_the_vote_after_it)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_down(1);
    members_on_step(&voters.members, 1);
    voters_pass(1);
    (void)voters_probe_around();
    voters_come(1, PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(MEMBER_REVOKE, 1);
}

/* Somebody else admitted it meanwhile, so that our own attempt did nothing. */
TEST(a_step_is_not_forgotten_over_an_admission_that_was_too_late)
{
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US);
    (void)voters_probe_around();
    voters_expect(MEMBER_ADMIT, 0);
    members_on_step(&voters.members, 0);
    members_on_done(&voters.members, &(struct member_action){MEMBER_ADMIT, 0},
                    voters.now_us);
    voters_expect(MEMBER_PROBE, 0);
    voters_found(0, PROBE_ADMITTED, VOTERS_ADMIT, "");
    VOTERS_ASSERT_REFUSAL(0, STATE_STEPPED);
    voters_expect(MEMBER_REVOKE, 0);
}
