/* SPDX-License-Identifier: MIT */
/*
 * A change of the names: whether the old ones are dead, and how long the new
 * ones wait.
 */
#include <stdio.h>

#include "../../../server/engine/voting/members.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

/* Five names, three, or four. */
#define OF_FIVE "1:ffffffffffffff05"
#define OF_THREE "1:ffffffffffffff03"
#define OF_FOUR "1:ffffffffffffff04"
#define THIRD "1:eeeeeeeeeeeeee03"
#define RIVAL "2:dddddddddddddd05"
#define ADMIT(names, incarnation)                                              \
    names ":@:" VOTERS_INCARNATION(incarnation) ":0:" VOTERS_LIFE
#define QUARANTINE_OF(names, incarnation)                                      \
    names ":name:" VOTERS_INCARNATION(incarnation) "::" VOTERS_LIFE
#define OUR_QUARANTINE(epoch, incarnation)                                     \
    QUARANTINE_OF(epoch ":" VOTERS_FINGERPRINT, incarnation)
#define QUARANTINE_2 OUR_QUARANTINE("2", 2)
#define QUARANTINE_3 OUR_QUARANTINE("2", 3)
#define ADMIT_2 "2:" VOTERS_FINGERPRINT ":@:#:0:" VOTERS_LIFE

enum { REST_US = 5000000, WAIT_US = REST_US + REST_US / 100 + 1 };

static void given(int epoch)
{
    voters.settings.config_epoch = epoch;
    voters.is_durable = false;
    voters_begin_again();
}

static void begin(void)
{
    voters_begin();
    given(2);
}

SUITE(takeover, .set_up = begin);

/* The node comes up, and a probe of it finds this. */
static void come(int node, enum call_probe_word word, const char *admit,
                 const char *quarantine)
{
    voters_up(node);
    voters_found(node, word, admit, quarantine);
}

/* Nodes from first to last were taken with all their memory. */
static void take(int first, int last, const char *admit)
{
    for (int i = first; i <= last; i++) {
        voters.memory[i].taken = admit;
        come(i, PROBE_CREATED, "", QUARANTINE_2);
    }
}

static void quarantine(int first, int last)
{
    for (int i = first; i <= last; i++)
        come(i, PROBE_FRESH, "", QUARANTINE_2);
}

/* All are examined at once more: they are quarantined at one instant. */
static void probe_again(void)
{
    voters_pass(HEARTBEAT_US);
    (void)voters_probe_around();
}

static void expect_admits(uint16_t nodes)
{
    const char *admit = textf("%d:" VOTERS_FINGERPRINT ":@:#:0:" VOTERS_LIFE,
                              voters.members.epoch);
    for (int i = 0; i < VOTERS_NODES; i++)
        if ((nodes & 1u << i) != 0)
            voters_expect(MEMBER_ADMIT, i);
    for (int i = 0; i < VOTERS_NODES; i++)
        if ((nodes & 1u << i) != 0)
            voters_found(i, PROBE_ADMITTED, admit, "");
}

/* However long: nobody knows that the old names are dead. */
static void expect_refusal(void)
{
    probe_again();
    voters_pass_without(MEMBER_ADMIT, 3 * VOTERS_QUARANTINE_US);
    ck_assert(!rules_has_taken_over(&voters.members));
    ck_assert(rules_is_refused(&voters.members));
}

/* ---- the count ----------------------------------------------------------- */

static const struct {
    const char *admit;
    int reporters, needed;
    uint16_t admitted; /* 0: nobody knows that the old names are dead */
} counts[] = {{ADMIT(OF_FIVE, 1), 3, 3, 7},
              {ADMIT(OF_FIVE, 1), 5, 3, 31},
              {ADMIT(OF_THREE, 1), 2, 2, 3},
              {ADMIT(OF_FOUR, 1), 3, 3, 7},
              {ADMIT(OF_FIVE, 1), 2, 3, 0},
              {ADMIT(OF_THREE, 1), 1, 2, 0},
              {ADMIT(OF_FOUR, 1), 2, 3, 0}, /* two rivals could share these */
              {ADMIT("1:ffffffffffffffff", 1), 5, 3, 0}, /* who knows of how
                                                            many? */
              {ADMIT("1:ffffffffffffff00", 1), 5, 3, 0}};

TEST_EACH(story_65_the_last_promise_of_a_majority_is_waited_for, counts)
{
    voters.memory[counts[_i].needed - 1].rest_us = REST_US;
    take(0, counts[_i].reporters - 1, counts[_i].admit);
    quarantine(counts[_i].reporters, 4);
    if (counts[_i].admitted == 0) {
        expect_refusal();
        return;
    }
    probe_again();
    voters_expect_nothing();
    ck_assert_int_eq(voters_remaining_us(0), WAIT_US - HEARTBEAT_US);
    voters_pass_until(MEMBER_ADMIT, WAIT_US - HEARTBEAT_US);
    expect_admits(counts[_i].admitted);
    voters_wait(); /* the rest may have voted since, and forgotten it */
}

TEST(story_65_the_word_that_the_old_servers_are_stopped)
{
    voters.settings.has_take_over = true;
    given(2);
    take(0, 1, ADMIT(OF_FIVE, 1));
    quarantine(2, 4);
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(MEMBER_ADMIT, 0);
}

/* A change was given up before a node voted: the others carry its epoch no
 * more. Without the word, only the next epoch replaces them. */
TEST_RANGE(story_65_the_word_replaces_names_of_any_lower_epoch, 0, 2)
{
    voters.settings.has_take_over = _i == 1;
    given(4);
    for (int i = 0; i < 4; i++)
        come(i, PROBE_QUARANTINED, "", OUR_QUARANTINE("4", 2));
    come(4, PROBE_BARE, ADMIT("2:ffffffffffffff05", 1), "");
    probe_again();
    ck_assert_int_eq(voters.quarantining[4], _i);
}

/* It was for the change to epoch 2; the quarantine records that are followed
 * are of another, whose old servers may go on. */
TEST(story_65_the_word_does_not_hold_for_an_epoch_that_is_followed)
{
    voters.settings.has_take_over = true;
    given(2);
    for (int i = 0; i < VOTERS_NODES; i++) {
        voters.memory[i].taken = i < 2 ? ADMIT("3:ffffffffffffff05", 1) : NULL;
        come(i, PROBE_QUARANTINED, "", OUR_QUARANTINE("4", 2));
    }
    ck_assert_int_eq(voters.members.epoch, 4);
    expect_refusal();
}

/* An old majority could be among them whenever one is not quarantined yet. */
TEST(story_65_all_are_quarantined_at_one_instant)
{
    voters.trip_us =
        1; /* so a quarantine record is seen later than its probe was sent */
    take(0, 2, ADMIT(OF_FIVE, 1));
    voters.trip_us = 0;
    voters_pass(HEARTBEAT_US);
    voters_found(0, PROBE_QUARANTINED, "", QUARANTINE_2);
    voters_found(2, PROBE_QUARANTINED, "", QUARANTINE_2);
    voters.members.node[1].probe_due_us = INT64_MAX; /* not examined again */
    voters.members.node[1].is_busy = true;
    voters_pass_without(MEMBER_ADMIT, 5 * HEARTBEAT_US);
    voters_found(1, PROBE_QUARANTINED, "", QUARANTINE_2);
    voters_expect(MEMBER_ADMIT, 0);
}

TEST(story_65_quarantines_of_another_new_server_do_not_count)
{
    take(0, 1, ADMIT(OF_FIVE, 1));
    for (int i = 2; i < VOTERS_NODES; i++) {
        voters.memory[i].taken = ADMIT(OF_FIVE, 1);
        come(i, PROBE_OTHER, "", QUARANTINE_OF(RIVAL, 2));
    }
    expect_refusal();
}

/* The rival has quarantines, but not enough: it cannot have counted. */
TEST_RANGE(story_65_another_configuration_must_not_have_counted, 0, 3)
{
    for (int i = 0; i < _i; i++)
        voters.memory[i].passed = RIVAL ":";
    voters.memory[4].taken = ADMIT(OF_FIVE, 1);
    come(4, PROBE_OTHER, "", QUARANTINE_OF(RIVAL, 2));
    take(0, 3, ADMIT(OF_FIVE, 1));
    if (_i == 2) {
        expect_refusal();
        return;
    }
    probe_again();
    expect_admits(15);
}

/* It takes them back once one of its own votes. */
TEST(story_65_a_rival_that_was_replaced_may_still_vote)
{
    for (int i = 0; i < 3; i++)
        voters.memory[i].passed = "2:dddddddddddddd03:";
    take(0, 3, ADMIT(OF_FIVE, 1));
    quarantine(4, 4);
    expect_refusal();
}

/* It may have voted with nodes that are in no list here. */
TEST(story_65_a_node_of_third_names_stands_for_others)
{
    take(3, 3, ADMIT(THIRD, 1));
    quarantine(4, 4);
    take(0, 2, ADMIT(OF_THREE, 1));
    expect_refusal();
}

/* Machines of another installation, with a higher epoch, and one of a list in
 * use: it is not told as dead; or there are enough of it to be taken, too. */
TEST_RANGE(story_65_a_list_of_a_lower_epoch_may_live, 0, 4)
{
    static const char *const passed[] = {NULL, OF_THREE ":", NULL, THIRD ":"};
    given(3);
    for (int i = 0; i < 5; i++) {
        const char *admit = i < (_i == 2 ? 2 : 1) ? ADMIT(OF_THREE, 1)
                            : i > 2 ? ADMIT("2:eeeeeeeeeeeeee02", 1)
                                    : "";
        voters.memory[i].taken = admit;
        voters.memory[i].passed = i == 3 ? passed[_i] : NULL;
        come(i, PROBE_BARE, admit, "");
    }
    ck_assert_int_eq(rules_is_refused(&voters.members), _i == 0 || _i == 3);
}

/* It may have been admitted since, where the node did not hear of it. */
TEST(story_65_a_list_is_not_dead_as_a_node_passed_its_quarantine)
{
    given(4);
    for (int i = 0; i < VOTERS_NODES; i++) {
        const char *admit = i < 3    ? ADMIT("3:eeeeeeeeeeeeee05", 1)
                            : i == 3 ? ADMIT(OF_THREE, 1)
                                     : ADMIT("2:dddddddddddddd03", 1);
        voters.memory[i].taken = admit;
        voters.memory[i].passed = i == 0   ? OF_THREE ":"
                                  : i == 3 ? "2:dddddddddddddd03:"
                                           : NULL;
        come(i, PROBE_BARE, admit, "");
    }
    ck_assert(rules_is_refused(&voters.members));
}

/* Whichever of them is counted first, the promises of both count. */
TEST_RANGE(story_65_the_last_promise_of_each_list_is_waited_for, 0, 4)
{
    voters.memory[_i].rest_us = REST_US;
    voters.memory[_i].number = 77;
    for (int i = 0; i < 4; i++)
        come(i, PROBE_BARE, i < 2 ? ADMIT(OF_THREE, 1) : ADMIT(THIRD, 1), "");
    quarantine(4, 4);
    for (int i = 0; i < 4; i++) {
        voters.memory[i].taken = i < 2 ? ADMIT(OF_THREE, 1) : ADMIT(THIRD, 1);
        voters_found(i, PROBE_CREATED, "", QUARANTINE_2);
    }
    probe_again();
    voters_expect_nothing();
    for (int i = 0; i < VOTERS_NODES; i++)
        ck_assert_int_eq(rules_number(&voters.members, i), 77);
    voters_pass_until(MEMBER_ADMIT, WAIT_US - HEARTBEAT_US);
    expect_admits(15);
}

/* Another machine has voted under its name. */
TEST_RANGE(story_59_a_machine_that_was_replaced_tells_nothing, 0, 2)
{
    strcpy(voters.memory[1].latest[0],
           _i == 0 ? VOTERS_INCARNATION(2) : VOTERS_INCARNATION(1));
    take(0, 1, ADMIT(OF_THREE, 1));
    quarantine(2, 4);
    if (_i == 0) {
        expect_refusal();
        return;
    }
    probe_again();
    expect_admits(3);
}

TEST(a_machine_whose_clock_steps_has_told_a_wrong_end)
{
    take(0, 1, ADMIT(OF_THREE, 1));
    quarantine(2, 4);
    members_on_step(&voters.members, 1);
    voters_probe_around();
    voters_do(MEMBER_REVOKE, 1);
    voters.memory[1].taken = NULL;
    expect_refusal();
}

TEST(a_machine_whose_clock_is_unknown_tells_nothing)
{
    voters.members.node[1].is_clock_good = false;
    take(0, 1, ADMIT(OF_THREE, 1));
    quarantine(2, 4);
    voters_pass_without(MEMBER_ADMIT, 4 * HEARTBEAT_US);
    ck_assert(!rules_may_take_over(&voters.members));
    ck_assert(rules_is_refused(&voters.members));
    voters.members.node[1].is_clock_good = true;
    probe_again();
    expect_admits(3);
}

/* Since then it may have voted under the new names, and forgotten it. */
TEST(who_forgets_after_all_was_told_waits_like_others)
{
    voters.memory[0].rest_us = REST_US;
    take(0, 4, ADMIT(OF_FIVE, 1));
    probe_again();
    voters.memory[4].taken = NULL;
    voters_found(4, PROBE_FRESH, "", QUARANTINE_3);
    voters_pass_until(MEMBER_ADMIT, WAIT_US - HEARTBEAT_US);
    expect_admits(15);
    voters_wait();
    VOTERS_ASSERT_REFUSAL(4, STATE_QUARANTINED);
}

/* Another server counts. Until then the old names may have granted locks, with
 * higher numbers than the rest has, which was quarantined long before. */
TEST(story_65_the_rest_waits_from_when_the_new_names_vote)
{
    quarantine(0, 3);
    come(4, PROBE_BARE, ADMIT(OF_FIVE, 1), "");
    voters_pass(2 * VOTERS_QUARANTINE_US);
    (void)voters_probe_around();
    come(4, PROBE_ADMITTED, ADMIT_2, "");
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
}

TEST(numbers_go_on_above_those_that_were_told)
{
    voters.memory[2].number = 77;
    voters.memory[1].number = 76;
    take(0, 4, ADMIT(OF_FIVE, 1));
    probe_again();
    for (int i = 0; i < VOTERS_NODES; i++)
        ck_assert_int_eq(rules_number(&voters.members, i), 77);
}

/* ---- before anything is quarantined -------------------------------------- */

/* Those that are in reach carry the old names. */
static void find_old_names(int first, const char *admit)
{
    for (int i = 0; i < first; i++)
        come(i, PROBE_EMPTY, "", "");
    for (int i = first; i < VOTERS_NODES; i++)
        come(i, PROBE_BARE, admit, "");
}

TEST_RANGE(story_65_a_list_that_cannot_replace_the_old_one_quarantines_nothing,
           0, 2)
{
    find_old_names(_i == 0 ? 3 : 2, ADMIT(OF_FIVE, 1));
    voters_pass(HEARTBEAT_US);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_expect(_i == 0 ? MEMBER_OBSERVE : MEMBER_PROBE, i);
}

/* Nobody replaces anything: the old names may be anywhere. */
TEST_RANGE(story_65_new_nodes_of_a_later_epoch_wait_for_the_word, 0, 2)
{
    voters.settings.has_take_over = _i == 1;
    given(2);
    for (int i = 0; i < VOTERS_NODES; i++)
        come(i, PROBE_BARE, "", "");
    for (int i = 0; i < 100; i++)
        probe_again();
    ck_assert_int_eq(voters.quarantining[0] > 0, _i);
}

/* ---- the way back -------------------------------------------------------- */

#define OWN_1 "1:" VOTERS_FINGERPRINT ":@:#:0:" VOTERS_LIFE
#define BETWEEN(incarnation) ADMIT("2:ffffffffffffff05", incarnation)

/*
 * Nodes that were not taken meanwhile know earlier incarnations of those that
 * were, or later ones. They tell nothing of the names between, which are dead.
 */
TEST_RANGE(story_65_the_order_in_which_nodes_are_seen_is_no_matter, 0, 2)
{
    const char *between = _i == 0 ? BETWEEN(3) : BETWEEN(1);
    given(3);
    for (int i = 3; i < VOTERS_NODES; i++) {
        for (int k = 0; k < 3; k++)
            strcpy(voters.memory[i].latest[k], VOTERS_INCARNATION(2));
        come(i, PROBE_BARE, OWN_1, "");
    }
    for (int i = 0; i < 3; i++) {
        voters.memory[i].taken = between;
        voters.memory[i].passed = "1:" VOTERS_FINGERPRINT ":"; /* is dead */
        come(i, PROBE_SUPERSEDED, between, "");
    }
    ck_assert_int_eq(voters.members.epoch, 3);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_found(i, PROBE_BARE, i < 3 ? between : OWN_1, "");
    ck_assert(!rules_is_refused(&voters.members));
    voters_pass(HEARTBEAT_US);
    voters_expect(MEMBER_PROBE, 0);
}

/*
 * The server heard in epoch 1 when two nodes were born, which then voted under
 * the names of epoch 2. Its own names come back with epoch 3. Later
 * incarnations outdate neither node; after earlier ones they are other
 * machines.
 */
TEST_RANGE(story_65_incarnations_of_the_epoch_before_outdate_no_other_names, 0,
           2)
{
    const char *between = _i == 0 ? ADMIT("2:ffffffffffffff03", 3)
                                  : ADMIT("2:ffffffffffffff03", 1);
    given(1);
    for (int i = 2; i < VOTERS_NODES; i++) {
        for (int k = 0; k < 2; k++)
            strcpy(voters.memory[i].latest[k], VOTERS_INCARNATION(2));
        come(i, PROBE_ADMITTED, OWN_1, "");
    }
    for (int i = 0; i < 2; i++) {
        voters.memory[i].passed = "1:" VOTERS_FINGERPRINT ":"; /* is dead */
        come(i, PROBE_SUPERSEDED, between, "");
    }
    for (int k = 0; k < 2; k++)
        for (int i = 2; i < VOTERS_NODES; i++) {
            voters.memory[i].taken = OWN_1;
            voters_found(i, k == 0 ? PROBE_SUPERSEDED : PROBE_QUARANTINED, "",
                         OUR_QUARANTINE("3", 3));
        }
    ck_assert_int_eq(voters.members.epoch, 3);
    for (int i = 0; i < 2; i++)
        voters_found(i, PROBE_BARE, between, "");
    ck_assert_int_eq(rules_is_refused(&voters.members), _i == 1);
}

/*
 * The new servers are stopped before one of their nodes votes. Of their three
 * names, or of four, two carry our quarantine record now, in place of theirs:
 * no majority is left. Of five, another two may have been admitted since, which
 * are not on our list.
 */
TEST_RANGE(story_65_back_before_a_new_name_votes, 0, 3)
{
    static const char *const between[] = {
        "2:dddddddddddddd03", "2:dddddddddddddd05", "2:dddddddddddddd04"};
    static const char *const quarantines[] = {
        QUARANTINE_OF("2:dddddddddddddd03", 2),
        QUARANTINE_OF("2:dddddddddddddd05", 2),
        QUARANTINE_OF("2:dddddddddddddd04", 2)};
    char passed[CALL_STATE_MAX + 1];
    given(3);
    for (int i = 0; i < 3; i++) {
        voters.memory[i].taken = i < 2 ? ADMIT(OF_FIVE, 1) : NULL;
        come(i, PROBE_BARE, i < 2 ? "" : ADMIT(OF_FIVE, 1),
             i < 2 ? quarantines[_i] : "");
    }
    ck_assert_int_eq(rules_is_refused(&voters.members), _i == 1);
    if (_i == 1)
        return;
    snprintf(passed, sizeof passed, "%s:", between[_i]);
    for (int i = 0; i < 3; i++) {
        voters.memory[i].taken = ADMIT(OF_FIVE, 1);
        voters.memory[i].passed = i < 2 ? passed : NULL;
        voters_found(i, PROBE_CREATED, "", OUR_QUARANTINE("3", 3));
    }
    probe_again();
    expect_admits(7);
}

/* A change to a second list was given up; of its third one, whose quarantines
 * replace those of the second, the server restarts. */
TEST(the_epoch_of_lists_that_were_passed_counts)
{
    given(3);
    for (int i = 0; i < 3; i++) {
        voters.memory[i].taken = ADMIT(OF_FIVE, 1);
        voters.memory[i].passed = "2:dddddddddddddd03:";
        come(i, PROBE_QUARANTINED, "", OUR_QUARANTINE("3", 3));
    }
    ck_assert(rules_may_take_over(&voters.members));
    probe_again();
    expect_admits(7);
}

/* A node of a third list is cut off after it was seen: that list goes on. Once
 * the node is back, and was flushed, nothing is left of that list. */
TEST_RANGE(a_list_that_was_seen_goes_on_while_its_node_is_away, 0, 3)
{
    voters.memory[3].passed = _i == 2 ? THIRD ":" : NULL;
    come(3, PROBE_BARE, _i == 0 ? ADMIT(THIRD, 1) : "",
         _i == 1 ? QUARANTINE_OF("1:eeeeeeeeeeeeee03", 1) : "");
    voters.memory[3].passed = NULL;
    members_on_down(&voters.members, 3);
    for (int i = 0; i < 3; i++)
        come(i, PROBE_BARE, ADMIT(OF_FIVE, 1), "");
    ck_assert(!rules_may_take_over(&voters.members));
    come(3, PROBE_EMPTY, "", "");
    ck_assert(rules_may_take_over(&voters.members));
}

/* The server then follows its own names to the next epoch. */
TEST(a_list_that_was_seen_goes_on_in_the_next_epoch)
{
    given(3);
    come(3, PROBE_BARE, ADMIT(THIRD, 1), "");
    members_on_down(&voters.members, 3);
    for (int i = 0; i < 3; i++)
        come(i, PROBE_SUPERSEDED, ADMIT("3:ffffffffffffff05", 1),
             OUR_QUARANTINE("4", 2));
    ck_assert_int_eq(voters.members.epoch, 4);
    for (int i = 0; i < 3; i++)
        voters_found(i, PROBE_BARE, ADMIT("3:ffffffffffffff05", 1), "");
    ck_assert(!rules_may_take_over(&voters.members));
    come(3, PROBE_EMPTY, "", "");
    ck_assert(rules_may_take_over(&voters.members));
}

/*
 * A quarantine record of a first start, of epoch 1, needs no node of the base:
 * its servers may have admitted their nodes since, even below the base, as it
 * may be another installation's; not if these were told that it is dead. Those
 * of the next epoch had to count the names that we do.
 */
static const struct {
    int given;
    const char *quarantine, *base, *passed;
    bool is_harmless;
} starts[] = {
    {2, QUARANTINE_OF("1:eeeeeeeeeeeeee05", 1), ADMIT(OF_FIVE, 1), NULL, false},
    {3, QUARANTINE_OF("2:eeeeeeeeeeeeee05", 1), ADMIT(OF_FIVE, 1), NULL, true},
    {4, QUARANTINE_OF("1:eeeeeeeeeeeeee05", 1), ADMIT("3:ffffffffffffff05", 1),
     NULL, false},
    {4, QUARANTINE_OF("2:eeeeeeeeeeeeee05", 1), ADMIT("3:ffffffffffffff05", 1),
     NULL, true},
    {4, QUARANTINE_OF("1:eeeeeeeeeeeeee05", 1), ADMIT("3:ffffffffffffff05", 1),
     "1:eeeeeeeeeeeeee05:", true},
};

TEST_EACH(a_first_start_goes_on_beside_the_base, starts)
{
    given(starts[_i].given);
    come(3, PROBE_BARE, "", starts[_i].quarantine);
    voters.memory[0].passed = starts[_i].passed;
    for (int i = 0; i < 3; i++)
        come(i, PROBE_BARE, starts[_i].base, "");
    ck_assert_int_eq(rules_may_take_over(&voters.members),
                     starts[_i].is_harmless);
}

/* The old names were dead, but all who told so forget it before they vote. */
TEST(a_change_that_nobody_tells_any_more_is_refused)
{
    take(0, 2, ADMIT(OF_THREE, 1));
    probe_again();
    ck_assert(voters.members.takeover.is_over);
    ck_assert(!rules_is_refused(&voters.members));
    for (int i = 0; i < 3; i++) {
        voters.memory[i].taken = NULL;
        voters_found(i, PROBE_FRESH, "", QUARANTINE_3);
    }
    ck_assert(rules_is_refused(&voters.members));
}

/* ---- the new servers restart --------------------------------------------- */

/* Two of five vote, and tell who is dead, or not. Old servers go on, and use
 * the third old node. */
TEST_RANGE(story_65_a_server_that_restarts_knows_who_is_dead, 0, 4)
{
    static const char *const told[] = {"", "1:ffffffffffffff04:", OF_THREE ":",
                                       "1:ffffffffffffff04:" OF_THREE ":"};
    for (int i = 0; i < 2; i++) {
        voters.memory[i].passed = told[_i];
        come(i, PROBE_ADMITTED, ADMIT_2, "");
    }
    come(2, PROBE_BARE, ADMIT(OF_THREE, 1), "");
    quarantine(3, 4);
    for (int i = 0; i < 60; i++) {
        voters.memory[2].generation++;
        probe_again();
    }
    ck_assert_int_eq(voters.quarantining[2] > 0, _i >= 2);
}

/* So do its nodes when all restart with their memory: the node that is left
 * over does not keep them from their votes. */
TEST_RANGE(story_65_who_is_dead_is_known_after_a_restart, 0, 2)
{
    for (int i = 0; i < 4; i++) {
        voters.memory[i].passed = _i == 1 ? OF_THREE ":" : NULL;
        come(i, PROBE_CREATED,
             "2:" VOTERS_FINGERPRINT ":@:#:0:" VOTERS_OTHER_RUN
             ":" VOTERS_MEMORY,
             QUARANTINE_2);
    }
    come(4, PROBE_BARE, ADMIT(OF_THREE, 1), "");
    ck_assert_int_eq(rules_has_other(&voters.members, voters.now_us), _i == 0);
}

/* ---- the old servers ----------------------------------------------------- */

static const struct {
    const char *admit, *quarantine, *taken;
    bool is_succeeded;
} newer[] = {
    {"2:ffffffffffffff05:@:#:0:" VOTERS_LIFE, "", "", true},
    {"", QUARANTINE_OF(RIVAL, 2), ADMIT(OF_FIVE, 1), true},
    {"", QUARANTINE_OF(RIVAL, 2), "", false},
    /* another installation's node */
    {"2:ffffffffffffff05:other:" VOTERS_INCARNATION(2) ":0:" VOTERS_LIFE, "",
     "", false},
};

/* It would bring names back to life that were counted as dead. */
TEST_EACH(story_65_who_saw_newer_names_admits_nobody_by_time_alone, newer)
{
    given(1);
    voters.memory[4].taken = newer[_i].taken;
    come(4, PROBE_SUPERSEDED, newer[_i].admit, newer[_i].quarantine);
    voters_down(4);
    for (int i = 0; i < 4; i++)
        come(i, PROBE_CREATED, "", VOTERS_QUARANTINE);
    if (newer[_i].is_succeeded) {
        voters_pass_without(MEMBER_ADMIT, 3 * VOTERS_QUARANTINE_US);
        return;
    }
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(MEMBER_ADMIT, 0);
}
