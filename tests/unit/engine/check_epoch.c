/* SPDX-License-Identifier: MIT */
/*
 * Which nodes a server may quarantine, and which epoch counts: what a server
 * with a wrong configuration must leave alone.
 */
#include <stdio.h>

#include "../../../server/engine/voting/members.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

#define OF_EPOCH(epoch, fingerprint) epoch ":" fingerprint ":@:#:0:" VOTERS_LIFE
#define OURS(epoch) OF_EPOCH(epoch, VOTERS_FINGERPRINT)
#define OTHERS(epoch) OF_EPOCH(epoch, "ffffffffffffff05")
#define QUARANTINE(epoch)                                                      \
    epoch ":" VOTERS_FINGERPRINT                                               \
          ":name:" VOTERS_INCARNATION(2) ":"                                   \
                                         ":" VOTERS_LIFE

static void given(int epoch)
{
    voters.settings.config_epoch = epoch;
    voters_begin_again();
}

/* A probe of the node, which is up from now on, finds this. */
static void find(int node, enum call_probe_word word, const char *admit,
                 const char *quarantine)
{
    if (voters.members.node[node].phase == MEMBER_DOWN)
        voters_up(node);
    voters_found(node, word, admit, quarantine);
}

/* The next probe of the node, a heartbeat later. */
static void expect_next(enum member_action_kind kind, int node)
{
    voters_pass(HEARTBEAT_US);
    members_want_probe(&voters.members, node, voters.now_us);
    for (int i = 0; i < voters.settings.nodes; i++)
        if (i != node)
            voters.members.node[i].probe_due_us = INT64_MAX;
    voters_expect(kind, node);
}

/* Other servers use another machine as node 0: its generation rises. */
static void tell_of_another(int64_t generation)
{
    for (int i = 1; i < VOTERS_NODES; i++) {
        voters.memory[i].high_water[0] = generation;
        snprintf(voters.memory[i].latest[0], INCARNATION_LEN + 1, "%s",
                 VOTERS_INCARNATION(5));
    }
}

SUITE(epoch, .set_up = voters_begin);

/* ---- a name in use ------------------------------------------------------- */

TEST(story_60_a_machine_is_not_quarantined_while_its_name_is_in_use)
{
    tell_of_another(1000);
    voters_admit_from(1);
    voters_up(0);
    voters_expect(MEMBER_OBSERVE, 0); /* though nothing is known of it */
    voters_found(0, PROBE_EMPTY, "", "");
    for (int generation = 1001; generation < 1100; generation++) {
        tell_of_another(generation);
        voters_pass(HEARTBEAT_US);
        (void)voters_probe_around();
        VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    }
    voters_pass(9 * VOTERS_SECOND);
    (void)voters_probe_around();
    expect_next(MEMBER_PROBE, 0);
}

/* From before a restart: an admission under its own name; its address may have
 * changed. */
TEST_RANGE(a_machine_that_kept_its_memory_is_quarantined_at_once, 0, 2)
{
    tell_of_another(1000);
    voters_admit_from(1);
    voters.has_moved = _i == 1;
    voters_up(0);
    voters_expect(MEMBER_OBSERVE, 0);
    voters_found(0, PROBE_BARE,
                 "1:" VOTERS_FINGERPRINT
                 ":@:" VOTERS_INCARNATION(5) ":0:" VOTERS_OTHER_RUN
                                             ":" VOTERS_MEMORY,
                 "");
    voters_expect(MEMBER_PROBE, 0);
}

TEST(nothing_is_quarantined_before_a_majority_was_probed)
{
    voters.members.is_queried = false;
    for (int i = 0; i < 3; i++) {
        voters_up(i);
        voters_expect(MEMBER_OBSERVE, i);
        voters_found(i, PROBE_BARE, "", "");
    }
    expect_next(MEMBER_PROBE, 0);
}

/* ---- the epoch of the nodes ---------------------------------------------- */

TEST_RANGE(story_60_the_epoch_of_the_nodes_counts, 1, 30)
{
    given(_i);
    for (int i = 0; i < VOTERS_NODES; i++)
        find(i, _i > 7 ? PROBE_BARE : PROBE_SUPERSEDED, OURS("7"), "");
    ck_assert_int_eq(voters.members.epoch, 7);
    for (int i = 0; i < VOTERS_NODES; i++) {
        voters_found(i, PROBE_ADMITTED, OURS("7"), "");
        VOTERS_ASSERT_REFUSAL(i, STATE_NONE);
    }
}

/*
 * What nodes are found to carry, in turn: - is not seen; a digit, an admission
 * of ours of that epoch; a to d, one of other names of epoch 1 to 4; A and B, a
 * quarantine record of other names; m and M, a quarantine record of ours of
 * epoch 3 and 20 on a node that has never voted.
 */
static const struct {
    int given;
    bool has_word;
    const char *nodes;
    int epoch; /* that counts then */
    bool is_known;
} epochs[] = {
    {5, false, "d3333", 5, false}, /* names between may have granted locks */
    {5, true, "d3333", 5, false},
    {5, true, "-3333", 5, false}, /* they need not have taken a node */
    {5, true, "-7777", 7, true},
    {5, false, "33---", 5, false}, /* the node that they took is not seen */
    {5, false, "333--", 3, true},
    {5, false, "mmmmm", 5, false}, /* a wrong server may have left them */
    {1, false, "9----", 9, false},
    {1, false, "944--", 4, false}, /* that of most counts */
    {3, false, "b1---", 3, false}, /* a higher one is not followed past */
    {3, false, "B1---", 3, false},
    /* quarantine records on nodes that never voted do not bind, whoever left
       them */
    {2, false, "MMM--", 20, false},
    {2, false, "MMMa-", 2, false},
    {2, false, "MMMA-", 2, false},
    {2, false, "MMM3-", 3, false},
};

static void find_letter(int node, char letter)
{
    bool is_upper = letter >= 'A' && letter <= 'B';
    int epoch = letter == 'm'   ? 3
                : letter == 'M' ? 20
                : is_upper      ? letter - 'A' + 1
                : letter >= 'a' ? letter - 'a' + 1
                                : letter - '0';
    const char *names = letter == 'm' || letter == 'M' || letter <= '9'
                            ? VOTERS_FINGERPRINT
                            : "ffffffffffffff05";
    bool is_quarantine = is_upper || letter == 'm' || letter == 'M';
    const char *text = textf(
        is_quarantine ? "%d:%s:name:" VOTERS_INCARNATION(2) "::" VOTERS_LIFE
                      : "%d:%s:@:#:0:" VOTERS_LIFE,
        epoch, names);
    voters.memory[node].has_never_voted = letter == 'm' || letter == 'M';
    find(node, epoch > voters.members.epoch ? PROBE_SUPERSEDED : PROBE_BARE,
         is_quarantine ? "" : text, is_quarantine ? text : "");
}

TEST_EACH(stories_60_and_65_which_epoch_counts, epochs)
{
    voters.settings.has_take_over = epochs[_i].has_word;
    given(epochs[_i].given);
    for (int i = 0; i < VOTERS_NODES; i++)
        if (epochs[_i].nodes[i] != '-')
            find_letter(i, epochs[_i].nodes[i]);
    ck_assert_int_eq(voters.members.epoch, epochs[_i].epoch);
    ck_assert_int_eq(voters.members.is_epoch_known, epochs[_i].is_known);
}

/* What was above before it followed does not hinder admissions. */
TEST(nodes_of_an_epoch_that_is_followed_are_not_foreign)
{
    for (int i = 0; i < VOTERS_NODES; i++)
        find(i, i == 0 ? PROBE_SUPERSEDED : PROBE_ADMITTED, OURS("3"), "");
    ck_assert(!rules_has_other(&voters.members, voters.now_us));
    find(0, PROBE_SUPERSEDED, OTHERS("4"), "");
    ck_assert(rules_has_other(&voters.members, voters.now_us));
}

/* One node of another installation that has the same names. */
TEST(once_a_majority_told_it_one_node_changes_it_no_more)
{
    for (int i = 0; i < 3; i++)
        find(i, PROBE_ADMITTED, VOTERS_ADMIT, "");
    ck_assert(voters.members.is_epoch_known);
    find(3, PROBE_SUPERSEDED, OURS("2"), "");
    find(4, PROBE_SUPERSEDED, OURS("2"), "");
    ck_assert_int_eq(voters.members.epoch, 1);
    VOTERS_ASSERT_REFUSAL(3, STATE_SUPERSEDED);
    VOTERS_ASSERT_REFUSAL(0, STATE_NONE);
    find(0, PROBE_EMPTY, "", ""); /* not even if they are more for a while */
    find(1, PROBE_EMPTY, "", "");
    find(3, PROBE_SUPERSEDED, OURS("2"), "");
    ck_assert_int_eq(voters.members.epoch, 1);
}

/*
 * A server follows its own names to an epoch in which it has seen no admission:
 * what it saw in the one before proves nothing, so it waits like those that
 * raised it.
 */
TEST(an_epoch_that_is_followed_is_taken_over_anew)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    for (int i = 0; i < 3; i++)
        voters_found(i, PROBE_SUPERSEDED, "", QUARANTINE("3"));
    ck_assert_int_eq(voters.members.epoch, 3);
    ck_assert(!rules_is_established(&voters.members));
    for (int i = 0; i < 4; i++)
        voters_found(i, PROBE_QUARANTINED, "", QUARANTINE("3"));
    voters.members.node[4].probe_due_us = INT64_MAX;
    ck_assert(!rules_has_taken_over(&voters.members));
    voters_pass_without(MEMBER_ADMIT, 2 * VOTERS_QUARANTINE_US);
}

/* ---- quarantine records of a wrong epoch --------------------------------- */

/* It has never voted, and a quarantine record is all that it has got. */
static void find_only_quarantined(int node, const char *quarantine)
{
    voters.memory[node].has_never_voted = true;
    find(node, PROBE_SUPERSEDED, "", quarantine);
}

/* The right epoch replaces them, and no other does. */
TEST_RANGE(story_60_the_next_epoch_replaces_quarantines_that_do_not_bind, 1, 22)
{
    given(_i);
    for (int i = 0; i < 3; i++)
        find_only_quarantined(i, QUARANTINE("20"));
    for (int i = 3; i < VOTERS_NODES; i++)
        find(i, PROBE_BARE, OF_EPOCH("1", "ffffffffffffff03"), "");
    ck_assert_int_eq(voters.members.epoch, _i);
    for (int i = 0; i < 3; i++)
        find_only_quarantined(i, QUARANTINE("20"));
    for (int i = 3; i < VOTERS_NODES; i++)
        find(i, PROBE_BARE, OF_EPOCH("1", "ffffffffffffff03"), "");
    ck_assert_int_eq(rules_may_renew(&voters.members, 0, voters.now_us),
                     _i == 2);
    if (_i >
        1) /* with the same epoch as the others it quarantines, but not these */
        expect_next(_i == 2 ? MEMBER_PROBE : MEMBER_OBSERVE, 0);
}

/* Two nodes vote in the right epoch: too few to decide, but it is in use. */
TEST(story_60_an_epoch_in_use_replaces_quarantines_that_do_not_bind)
{
    given(2);
    for (int i = 3; i < VOTERS_NODES; i++)
        find(i, PROBE_ADMITTED, OURS("2"), "");
    for (int i = 0; i < 3; i++)
        find_only_quarantined(i, QUARANTINE("20"));
    ck_assert_int_eq(voters.members.epoch, 2);
    ck_assert(rules_may_renew(&voters.members, 0, voters.now_us));
    expect_next(MEMBER_PROBE, 0);
}

/* Those whom it replaced must not come back: their epoch may be 3. */
TEST(the_quarantine_of_a_node_that_has_voted_is_not_replaced_by_quarantines)
{
    given(2);
    for (int i = 1; i < 4; i++)
        find(i, PROBE_CREATED, "", QUARANTINE("2"));
    find(0, PROBE_SUPERSEDED, "", QUARANTINE("4"));
    ck_assert_int_eq(voters.members.epoch, 2);
    ck_assert(!rules_may_renew(&voters.members, 0, voters.now_us));
    given(2);
    for (int i = 1; i < 4; i++)
        find(i, PROBE_ADMITTED, OURS("2"), "");
    find(0, PROBE_SUPERSEDED, "", QUARANTINE("4"));
    ck_assert(rules_may_renew(&voters.members, 0, voters.now_us));
}

/* ---- other machines ------------------------------------------------------ */

/* A name server that is wrong leads it to a machine without memory. */
TEST_RANGE(story_60_a_name_that_leads_elsewhere_is_not_taken_at_once, 0, 2)
{
    voters_admit_from(0);
    voters_pass(HEARTBEAT_US);
    voters_down(4);
    voters.has_moved = _i == 1;
    voters_up(4);
    voters_found(4, PROBE_EMPTY, "", "");
    expect_next(_i == 1 ? MEMBER_OBSERVE : MEMBER_PROBE, 4);
    if (_i == 0)
        return;
    voters_found(4, PROBE_EMPTY, "", "");
    for (int i = 0; i < 30; i++) { /* another server uses the old one */
        voters_pass(HEARTBEAT_US);
        voters.memory[0].high_water[4] = 1000 + i;
        voters_found(0, PROBE_ADMITTED, VOTERS_ADMIT, "");
        expect_next(MEMBER_OBSERVE, 4);
        voters_found(4, PROBE_EMPTY, "", "");
    }
    voters_pass(10 * HEARTBEAT_US);
    expect_next(MEMBER_PROBE, 4);
}

/* ---- other names --------------------------------------------------------- */

TEST_RANGE(only_the_next_epoch_replaces_other_nodes, 1, 6)
{
    given(_i);
    for (int i = 0; i < VOTERS_NODES; i++)
        find(i,
             _i < 3   ? PROBE_SUPERSEDED
             : _i > 3 ? PROBE_BARE
                      : PROBE_OTHER,
             OTHERS("3"), "");
    VOTERS_ASSERT_REFUSAL(0, _i < 3 ? STATE_SUPERSEDED : STATE_OTHER);
    expect_next(_i == 4 ? MEMBER_PROBE : MEMBER_OBSERVE, 0);
}

/* What is done with the node next, whatever is done with others before. */
static enum member_action_kind next_at(int node)
{
    struct member_action action;
    voters_pass(HEARTBEAT_US);
    do
        ck_assert(members_next(&voters.members, voters.now_us, &action));
    while (action.node != node);
    return action.kind;
}

/* The quarantine record on one node came late: the others have lost the epoch
 * that was to be replaced, and it has one before that. */
TEST_RANGE(a_change_that_has_begun_is_finished, 0, 2)
{
    const char *late = _i == 0 ? OURS("1") : OF_EPOCH("1", "eeeeeeeeeeeeeeee");
    given(3);
    for (int i = 0; i < 4; i++) {
        voters.memory[i].taken = OTHERS("2");
        voters.memory[i].passed = /* is dead, as they know */
            _i == 0 ? "1:" VOTERS_FINGERPRINT ":" : "1:eeeeeeeeeeeeeeee:";
        find(i, PROBE_BARE, OTHERS("2"), "");
    }
    find(4, PROBE_BARE, late, "");
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq((int)next_at(i), (int)MEMBER_PROBE);
        voters_found(i, PROBE_CREATED, "", QUARANTINE("3"));
    }
    voters_found(4, PROBE_BARE, late, "");
    ck_assert_int_eq((int)next_at(4), (int)MEMBER_PROBE);
}

/* By another server, which is gone: what the nodes tell is enough. */
TEST_RANGE(what_another_has_begun_is_finished_if_nodes_tell, 0, 2)
{
    given(3);
    for (int i = 0; i < 4; i++) {
        voters.memory[i].taken = _i == 0 ? OTHERS("2") : NULL;
        voters.memory[i].passed = "1:" VOTERS_FINGERPRINT ":";
        voters.memory[i].rest_us = VOTERS_QUARANTINE_US;
        find(i, PROBE_QUARANTINED, "", QUARANTINE("3"));
    }
    find(4, PROBE_BARE, OURS("1"), "");
    expect_next(_i == 0 ? MEMBER_PROBE : MEMBER_OBSERVE, 4);
}

/* After the names have changed: of the node with its name. */
static void find_four_of_ours(void)
{
    for (int i = 0; i < 4; i++)
        find(i, PROBE_QUARANTINED, OURS("3"), QUARANTINE("3"));
}

static void find_left(int64_t generation)
{
    voters.memory[4].generation = generation;
    find(4, PROBE_BARE, OTHERS("1"), "");
}

TEST(a_node_that_is_left_over_is_quarantined_when_nobody_uses_it)
{
    given(3);
    find_four_of_ours();
    find_left(7);
    int64_t since_us = voters.now_us;
    expect_next(MEMBER_OBSERVE, 4);
    voters_pass(SILENT_US - 2 * HEARTBEAT_US - 1);
    find_left(7);
    expect_next(MEMBER_OBSERVE, 4);
    find_left(7);
    expect_next(MEMBER_PROBE, 4);
    /* what it has promised is waited for, from when it was last used */
    int64_t end_us = since_us + rules_quarantine_us(&voters.members);
    ck_assert(rules_has_other(&voters.members, end_us - 1));
    ck_assert(!rules_has_other(&voters.members, end_us));
}

/* The others know its incarnation under the old names as the latest of its
 * name. If they know a later one, another machine has the name. */
TEST_RANGE(a_node_that_is_left_over_is_no_outdated_machine, 0, 2)
{
    given(3);
    for (int i = 0; i < 4; i++) {
        strcpy(voters.memory[i].latest[4],
               _i == 0 ? VOTERS_INCARNATION(1) : VOTERS_INCARNATION(2));
        find(i, PROBE_ADMITTED, OURS("3"), "");
    }
    find_left(7);
    voters_pass(SILENT_US);
    find_left(7);
    expect_next(_i == 0 ? MEMBER_PROBE : MEMBER_OBSERVE, 4);
}

/* Looked at for twice the silence. A quarantine record of before the names
 * changed is of a server that has ended; in epoch 4 nothing tells that they
 * have changed. */
static const struct {
    int epoch;
    enum call_probe_word word;
    const char *admit, *quarantine;
    int rise; /* of its generation, at each probe */
    enum member_action_kind next;
} left_over[] = {
    {3, PROBE_BARE, OTHERS("1"), "", 0, MEMBER_PROBE},
    {3, PROBE_BARE, OTHERS("1"), "", 1, MEMBER_OBSERVE},
    {3, PROBE_OTHER, OTHERS("3"), "", 0, MEMBER_OBSERVE},
    {3, PROBE_BARE, OTHERS("1"), "2:ffffffffffffffff:name:#::" VOTERS_LIFE, 0,
     MEMBER_PROBE},
    {3, PROBE_BARE, OTHERS("1"), "3:ffffffffffffffff:name:#::" VOTERS_LIFE, 0,
     MEMBER_OBSERVE},
    {3, PROBE_BARE, "1:ffffffffffffffff:eeeeeeeeeeeeeeee:#:0:" VOTERS_LIFE, "",
     0, MEMBER_OBSERVE},
    {4, PROBE_BARE, OTHERS("1"), "", 0, MEMBER_OBSERVE},
};

TEST_EACH(a_node_that_others_may_use_is_not_left_over, left_over)
{
    given(left_over[_i].epoch);
    if (left_over[_i].epoch == 3)
        find_four_of_ours();
    for (int i = 0; i < 20; i++) {
        voters.memory[4].generation += left_over[_i].rise;
        find(4, left_over[_i].word, left_over[_i].admit,
             left_over[_i].quarantine);
        voters_pass(HEARTBEAT_US);
    }
    expect_next(left_over[_i].next, 4);
    ck_assert(rules_has_other(&voters.members, voters.now_us));
}

/* It may carry other names, and a quarantine record would take it from them. */
TEST_RANGE(a_node_that_was_never_probed_is_not_quarantined, 0, 2)
{
    for (int i = 0; i < 4; i++)
        find(i, PROBE_ADMITTED, OURS("1"), "");
    voters.members.node[4].is_known = false;
    voters_up(4);
    expect_next(MEMBER_OBSERVE, 4);
    voters_found(4, PROBE_BARE, _i == 0 ? OTHERS("1") : "", "");
    expect_next(_i == 0 ? MEMBER_OBSERVE : MEMBER_PROBE, 4);
}

/* A wrong address: another installation's, whose name another machine has. */
TEST(a_machine_of_other_names_is_no_outdated_one)
{
    given(2);
    tell_of_another(1000);
    for (int i = 1; i < VOTERS_NODES; i++)
        find(i, PROBE_ADMITTED, OURS("2"), "");
    find(0, PROBE_BARE, "1:ffffffffffffffff:eeeeeeeeeeeeeeee:#:0:" VOTERS_LIFE,
         "");
    voters_pass(20 * HEARTBEAT_US);
    expect_next(MEMBER_OBSERVE, 0);
}

/* ---- other servers: the same epoch --------------------------------------- */

#define OTHER_QUARANTINE_2                                                     \
    "2:ffffffffffffffff:name:" VOTERS_INCARNATION(2) "::" VOTERS_LIFE

/* Four nodes are quarantined, and their time is up. */
static void quarantine_four(void)
{
    for (int i = 0; i < 4; i++)
        voters_come(i, PROBE_CREATED, "", VOTERS_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US);
    ck_assert_int_ge(voters_probe_around(), 4);
}

TEST(story_10_another_configuration_of_this_epoch_is_never_touched)
{
    voters_come(0, PROBE_OTHER, OTHERS("1"), "");
    VOTERS_ASSERT_PHASE(0, MEMBER_OTHER);
    VOTERS_ASSERT_REFUSAL(0, STATE_OTHER);
    members_on_step(&voters.members, 0);
    voters.members.node[0].is_clock_good = true;
    voters_expect_probes_only(1);
}

static const struct {
    enum call_probe_word word;
    const char *admit, *quarantine;
} strangers[] = {
    {PROBE_OTHER, OTHERS("1"), ""},
    {PROBE_SUPERSEDED, OTHERS("2"), ""},
    {PROBE_SUPERSEDED, "", OTHER_QUARANTINE_2},
};

enum { STRANGERS = sizeof strangers / sizeof *strangers };

/* It admits nobody by time alone from then on: see takeover. */
static bool is_newer(int i)
{
    return strangers[i % STRANGERS].word == PROBE_SUPERSEDED &&
           strangers[i % STRANGERS].admit[0] != '\0';
}

static void find_stranger(int i)
{
    voters_come(4, strangers[i].word, strangers[i].admit,
                strangers[i].quarantine);
}

TEST_RANGE(story_10_while_one_node_is_foreign_none_is_admitted, 0, STRANGERS)
{
    find_stranger(_i);
    quarantine_four();
    voters_expect_nothing();
    ck_assert(rules_has_other(&voters.members, voters.now_us));
    ck_assert_int_eq(voters_remaining_us(0), 0);
    voters_expect_probes_only(VOTERS_NODES);
}

/* Out of sight is not out of mind: whatever it promised there until now may
 * also lie on a node that is to be admitted. So for a while, also if its data
 * is gone; and anew if it comes back. */
TEST_RANGE(story_10_a_configuration_that_is_gone_counts_for_a_quarantine, 0,
           3 * STRANGERS)
{
    find_stranger(_i % STRANGERS);
    quarantine_four();
    voters_down(4);
    if (_i / STRANGERS == 1) {
        voters_come(4, PROBE_FRESH, "", VOTERS_QUARANTINE);
    } else if (_i / STRANGERS == 2) {
        voters_pass_without(MEMBER_ADMIT, VOTERS_QUARANTINE_US / 2);
        voters_pass(1);
        (void)voters_probe_around();
        find_stranger(_i % STRANGERS);
        voters_down(4);
    }
    if (is_newer(_i)) {
        voters_pass_without(MEMBER_ADMIT, 2 * VOTERS_QUARANTINE_US);
        return;
    }
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    ck_assert(!rules_has_other(&voters.members, voters.now_us));
    voters_expect(MEMBER_ADMIT, 0);
}

TEST_RANGE(while_one_node_is_foreign_none_is_readmitted, 0, STRANGERS)
{
    find_stranger(_i);
    for (int i = 1; i < 4; i++)
        voters_come(i, PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_come(0, PROBE_CREATED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE);
    voters_pass_without(MEMBER_READMIT, VOTERS_QUARANTINE_US);
    members_want_probe(&voters.members, 4, voters.now_us);
    (void)voters_probe_around();
    voters_down(4);
    voters_pass_until(MEMBER_READMIT, VOTERS_QUARANTINE_US);
    voters_expect(MEMBER_READMIT, 0);
}

/* ---- a higher one -------------------------------------------------------- */

static const struct {
    enum call_probe_word word;
    const char *admit, *quarantine;
    int epoch;
} higher[] = {
    {PROBE_SUPERSEDED, OURS("2"), "", 2},
    {PROBE_SUPERSEDED, "", QUARANTINE("2"), 2},
    {PROBE_SUPERSEDED, VOTERS_ADMIT, "3:run:x", 3},
    {PROBE_SUPERSEDED, "7:f:run", "12:run:x", 12},
    {PROBE_SUPERSEDED, "1000000:f:run", "", 1000000},
    {PROBE_OTHER, OTHERS("1"), "", 1},
};

/* A staging server with one production node in its list is not the end. */
TEST_EACH(story_47_one_node_of_a_higher_epoch_costs_one_vote, higher)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_pass(VOTERS_SECOND);
    voters_expect(MEMBER_PROBE, 0);
    voters_found(0, higher[_i].word, higher[_i].admit, higher[_i].quarantine);
    const struct member *it = &voters.members.node[0];
    ck_assert(it->epoch_ours == higher[_i].epoch ||
              it->epoch_other == higher[_i].epoch ||
              it->epoch_quarantine == higher[_i].epoch);
    ck_assert_int_eq(voters.members.epoch, 1);
    VOTERS_ASSERT_REFUSAL(0, higher[_i].word == PROBE_OTHER ? STATE_OTHER
                                                            : STATE_SUPERSEDED);
    for (int i = 1; i < VOTERS_NODES; i++)
        VOTERS_ASSERT_REFUSAL(i, STATE_NONE);
    members_on_step(&voters.members, 0);
    (void)voters_probe_around();
    voters_expect_probes_only(VOTERS_NODES);
}

/* By the operator, who saw the mistake. */
TEST(story_47_a_node_that_is_taken_back_is_admitted_again)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_found(0, PROBE_SUPERSEDED, OURS("2"), "");
    voters_found(0, PROBE_FRESH, "", VOTERS_QUARANTINE); /* FLUSHALL */
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    voters_give(MEMBER_ADMIT, 0);
}
