/* SPDX-License-Identifier: MIT */
/*
 * The first start, step by step; when there is none; and each way out of it.
 */
#include "../../lib/suite/suite.h"
#include "voters.h"

enum {
    LEAD = 2,
    HOLD_US = 2 * HEARTBEAT_US,
    YIELD_US = 2000000,
    PATIENCE_US = 30000000,
};

/* What is quarantined in two of the steps says so, for whoever objects. */
static void assert_step(enum firststart_step step)
{
    const struct firststart *start = &voters.members.start;
    ck_assert_int_eq((int)start->step, (int)step);
    ck_assert(firststart_is_quarantining(start) ==
              (step == FIRSTSTART_LEAD || step == FIRSTSTART_REST));
}

/* A first start is possible, and no node is connected. */
static void begin(void)
{
    voters_begin();
    voters.settings.first_start = FIRST_START_AUTO;
    voters.settings.node_names[LEAD] = "A:1"; /* the least */
    voters_begin_again();
}

/* So many nodes are there, and empty. */
static void find_empty(int count)
{
    for (int i = 0; i < count; i++) {
        voters_up(i);
        voters_expect(MEMBER_OBSERVE, i);
        voters_found(i, PROBE_EMPTY, "", "");
        VOTERS_ASSERT_REFUSAL(i, STATE_WAITING);
    }
}

/* All of them, and the first is quarantined by us. */
static void lead(void)
{
    find_empty(VOTERS_NODES);
    assert_step(FIRSTSTART_WAITING);
    voters_expect(MEMBER_PROBE, LEAD);
    assert_step(FIRSTSTART_LEAD);
    voters_expect_nothing();
    voters_found(LEAD, PROBE_FRESH, "", VOTERS_QUARANTINE);
}

static void quarantine_all(void)
{
    lead();
    for (int i = 0; i < VOTERS_NODES; i++) {
        voters_expect(MEMBER_PROBE, i);
        assert_step(FIRSTSTART_REST);
        voters_found(i, i == LEAD ? PROBE_QUARANTINED : PROBE_FRESH, "",
                     VOTERS_QUARANTINE);
    }
    voters_expect_nothing();
    assert_step(FIRSTSTART_HOLD);
}

/* So long they are probed, and quarantined no other time. */
static void hold(int64_t us)
{
    for (int64_t until_us = voters.now_us + us; voters.now_us < until_us;) {
        int64_t left_us = until_us - voters.now_us;
        voters_pass(left_us < HEARTBEAT_US ? left_us : HEARTBEAT_US);
        if (voters.now_us < until_us)
            (void)voters_probe_around();
    }
}

/* All were probed again, but for the last one, which is asked. */
static void check_most(void)
{
    quarantine_all();
    hold(HOLD_US);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_expect(MEMBER_OBSERVE, i);
    assert_step(FIRSTSTART_CHECK);
    for (int i = 0; i < VOTERS_NODES - 1; i++)
        voters_found(i, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    voters_expect_nothing();
    assert_step(FIRSTSTART_CHECK);
}

SUITE(firststart, .set_up = begin);

TEST(empty_nodes_are_admitted_within_a_few_probes)
{
    check_most();
    voters_found(4, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    for (int i = 0; i < VOTERS_NODES; i++) {
        voters_give(MEMBER_ADMIT, i);
        assert_step(i < VOTERS_NODES - 1 ? FIRSTSTART_ADMIT : FIRSTSTART_OVER);
    }
    voters_expect_nothing();
    assert_step(FIRSTSTART_OVER);
}

TEST(quarantined_nodes_wait_for_the_first_start_without_a_countdown)
{
    quarantine_all();
    for (int i = 0; i < VOTERS_NODES; i++) {
        VOTERS_ASSERT_REFUSAL(i, STATE_WAITING);
        ck_assert_int_eq(voters_remaining_us(i), 0);
    }
    voters_down(0); /* none comes */
    VOTERS_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    ck_assert_int_gt(voters_remaining_us(1), 0);
}

/* Two heartbeats of whoever may object, and until older commands have ended. */
TEST_RANGE(story_46_the_hold_is_two_heartbeats_or_four_node_timeouts, 0, 4)
{
    static const int64_t timeouts_us[] = {50000, 500000, 500001, 2000000};
    static const int64_t holds_us[] = {HOLD_US, HOLD_US, 2000004, 8000000};
    voters.settings.node_timeout_us = timeouts_us[_i];
    voters_begin_again();
    quarantine_all();
    hold(holds_us[_i] - 1);
    (void)voters_probe_around();
    assert_step(FIRSTSTART_HOLD);
    voters_expect_nothing();
    voters_pass(1);
    voters_expect(MEMBER_OBSERVE, 0);
    assert_step(FIRSTSTART_CHECK);
}

/* ---- none ---------------------------------------------------------------- */

TEST_RANGE(story_28_nodes_that_are_not_durable_wait_for_the_operators_word,
           FIRST_START_AUTO, FIRST_START_NO + 1)
{
    voters.settings.first_start = (enum first_start)_i;
    voters_begin_again();
    voters.is_durable = false;
    voters_up(LEAD);
    struct member_action action;
    ck_assert(members_next(&voters.members, voters.now_us, &action));
    bool is_possible = _i == FIRST_START_YES;
    ck_assert_int_eq((int)action.kind,
                     is_possible ? MEMBER_OBSERVE : MEMBER_PROBE);
    assert_step(is_possible ? FIRSTSTART_WAITING : FIRSTSTART_OVER);
}

/* The old servers are stopped, but what they granted may still be held. */
TEST(new_names_on_new_machines_are_no_first_start)
{
    voters.settings.config_epoch = 2;
    voters.settings.has_take_over = true;
    voters_begin_again();
    voters_come(0, PROBE_EMPTY, "", "");
    assert_step(FIRSTSTART_OVER);
}

TEST(the_last_node_is_waited_for_half_a_minute)
{
    find_empty(4);
    voters_pass(PATIENCE_US - 1);
    for (int i = 0; i < 4; i++) {
        voters_expect(MEMBER_OBSERVE, i);
        voters_found(i, PROBE_EMPTY, "", "");
    }
    voters_expect_nothing();
    voters_pass(VOTERS_SECOND);
    voters_expect(MEMBER_PROBE, 0);
    assert_step(FIRSTSTART_OVER);
    voters_found(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}

static void find_four_empty_and(enum call_probe_word word, const char *admit,
                                const char *quarantine)
{
    find_empty(4);
    voters_up(4);
    voters_expect(MEMBER_OBSERVE, 4);
    voters_found(4, word, admit, quarantine);
    assert_step(FIRSTSTART_OVER);
}

/* By somebody who may be in the middle of a first start of its own: nothing is
 * quarantined for two seconds. */
TEST(a_node_that_was_quarantined_before_ends_it)
{
    find_four_empty_and(PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE);
    voters_expect_nothing();
    voters_pass(YIELD_US - 1);
    struct member_action action;
    while (members_next(&voters.members, voters.now_us, &action)) {
        ck_assert_int_eq((int)action.kind, MEMBER_OBSERVE);
        if (action.node == 4)
            voters_found(4, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE);
        else
            voters_found(action.node, PROBE_EMPTY, "", "");
    }
    voters_pass(1);
    voters_expect(MEMBER_PROBE, 0);
}

/* Then nobody has a first start, and nobody is disturbed. */
TEST_RANGE(a_node_that_was_used_before_ends_it, 0, 4)
{
    static const enum call_probe_word words[] = {PROBE_ADMITTED, PROBE_BARE,
                                                 PROBE_BARE, PROBE_OTHER};
    static const char *const admits[] = {VOTERS_ADMIT, "", VOTERS_OLD_ADMIT,
                                         "1:ffffffffffffffff:run"};
    find_four_empty_and(words[_i], admits[_i], "");
    voters_pass(HEARTBEAT_US);
    for (int i = 0; i < 4; i++) {
        voters_expect(MEMBER_PROBE, i);
        voters_found(i, PROBE_FRESH, "", VOTERS_QUARANTINE);
        VOTERS_ASSERT_REFUSAL(i, STATE_QUARANTINED);
    }
}

/* ---- the ways out -------------------------------------------------------- */

/* Whether the node was quarantined is not known. */
TEST_RANGE(a_lead_without_an_answer_begins_anew, 0, 2)
{
    find_empty(VOTERS_NODES);
    voters_expect(MEMBER_PROBE, LEAD);
    if (_i == 0)
        voters_fail(MEMBER_PROBE, LEAD);
    else
        voters_down(LEAD);
    assert_step(FIRSTSTART_WAITING);
    voters_pass(VOTERS_SECOND);
    if (_i == 1)
        voters_up(LEAD);
    struct member_action action;
    while (members_next(&voters.members, voters.now_us, &action)) {
        if (action.kind == MEMBER_PROBE)
            break;
        voters_found(action.node, PROBE_EMPTY, "", "");
    }
    ck_assert_int_eq((int)action.kind, MEMBER_PROBE);
    ck_assert_int_eq(action.node, LEAD);
    voters_found(LEAD, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE);
    assert_step(FIRSTSTART_OVER);
}

TEST_RANGE(trouble_at_any_node_later_ends_it, 0, 6)
{
    static void (*const reach[])(void) = {lead, quarantine_all, check_most};
    reach[_i / 2]();
    if (_i / 2 == 0)
        voters_expect(MEMBER_PROBE, 0); /* the others' turn */
    if (_i % 2 == 0)
        voters_down(4);
    else
        voters_fail(MEMBER_OBSERVE, 4);
    assert_step(FIRSTSTART_OVER);
}

/* What a probe finds at a node when the first start has come so far. An
 * objection resembles a quarantine record of somebody else. */
static const struct {
    void (*reach)(void);
    int node;
    enum call_probe_word word;
    const char *admit, *quarantine;
} ends[] = {
    {lead, 0, PROBE_ADMITTED, VOTERS_ADMIT, ""},
    {lead, 0, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE},
    {lead, 0, PROBE_BARE, "", ""},
    {lead, 0, PROBE_BARE, VOTERS_OLD_ADMIT, ""},
    {lead, 0, PROBE_OTHER, "1:ffffffffffffffff:run", ""},
    {lead, LEAD, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE},
    {quarantine_all, 0, PROBE_CREATED, "", VOTERS_OTHER_QUARANTINE},
    {quarantine_all, 0, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE},
    {quarantine_all, 1, PROBE_EMPTY, "", ""},
    {quarantine_all, 1, PROBE_ADMITTED, "", ""},
    {quarantine_all, 1, PROBE_BARE, "", ""},
    {check_most, 4, PROBE_EMPTY, "", ""},
    {check_most, 4, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE},
    {check_most, 4, PROBE_ADMITTED, "", ""},
    {check_most, 4, PROBE_BARE, "", ""},
};

TEST_EACH(stories_27_and_46_what_a_probe_finds_ends_it, ends)
{
    ends[_i].reach();
    voters_found(ends[_i].node, ends[_i].word, ends[_i].admit,
                 ends[_i].quarantine);
    assert_step(FIRSTSTART_OVER);
    ck_assert(voters.members.start.quarantined == 0);
    VOTERS_ASSERT_REFUSAL(ends[_i].node == 1 ? 3 : 1, ends[_i].reach == lead
                                                          ? STATE_WAITING
                                                          : STATE_QUARANTINED);
    voters_pass(HEARTBEAT_US);
    struct member_action action;
    while (members_next(&voters.members, voters.now_us, &action))
        ck_assert_int_ne((int)action.kind, MEMBER_ADMIT);
}

/* One node less; the others were quarantined by us alone, and still are. */
TEST_RANGE(story_27_a_node_that_was_lost_while_others_are_admitted_waits, 0, 3)
{
    check_most();
    voters_found(4, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    voters_expect(MEMBER_ADMIT, 0);
    if (_i == 0) {
        voters_down(0);
    } else if (_i == 1) {
        voters_fail(MEMBER_ADMIT, 0);
    } else {
        members_on_done(&voters.members,
                        &(struct member_action){MEMBER_ADMIT, 0},
                        voters.now_us);
        voters_expect(MEMBER_OBSERVE, 0);
        voters_found(0, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE);
    }
    for (int i = 1; i < VOTERS_NODES; i++)
        voters_give(MEMBER_ADMIT, i);
    voters_expect_nothing();
    assert_step(FIRSTSTART_OVER);
    ck_assert_int_ne((int)members_refusal(&voters.members, 0), STATE_NONE);
}

/* The answer to a probe that was on its way when the last check came in. */
TEST(story_27_a_quarantine_that_changed_at_the_last_moment_waits)
{
    check_most();
    members_want_probe(&voters.members, 0, voters.now_us);
    voters_expect(MEMBER_OBSERVE, 0);
    voters_found(4, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    voters_give(MEMBER_ADMIT, 1);
    assert_step(FIRSTSTART_ADMIT);
    voters_found(0, PROBE_QUARANTINED, "", VOTERS_OTHER_QUARANTINE);
    for (int i = 2; i < VOTERS_NODES; i++)
        voters_give(MEMBER_ADMIT, i);
    voters_expect_nothing();
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}
