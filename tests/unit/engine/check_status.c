/* SPDX-License-Identifier: MIT */
/*
 * Why a node does not vote: one reason, its name and its sentence, in the
 * order of their weight; and the votes that do not count for it.
 */
#include <string.h>

#include "../../lib/suite/suite.h"
#include "../play.h"

enum { SECOND = 1000000, NONCE_LEN = 11, QUARANTINE_US = 66600000 };

static struct engine_node_view view;

static void assert_state(int node, const char *state)
{
    engine_view_node(play.engine, node, &view);
    ck_assert_str_eq(view.state, state);
    ck_assert(view.is_voting == (strcmp(state, "voting") == 0));
}

/* And its sentence tells this. */
static void expect(int node, const char *state, const char *told)
{
    assert_state(node, state);
    ck_assert_has(view.detail, told);
}

/* ---- what the node carries ----------------------------------------------- */

static const struct {
    enum call_probe_word word;
    const char *admit, *quarantine, *state, *detail;
} probes[] = {
    {PROBE_ADMITTED, "", "", "voting", "admitted"},
    {PROBE_CREATED, "", PLAY_QUARANTINE(2), "quarantined", "lost"},
    {PROBE_MISNAMED, "1:" PLAY_FINGERPRINT ":0123:run", "", "duplicate", "two"},
    {PROBE_OTHER, "1:ffffffffffffffff:run", "", "other_configuration",
     "--config-epoch 2"},
    {PROBE_SUPERSEDED, "7:f:run", "", "superseded", " 7, this server has 1"},
    {PROBE_SUPERSEDED, "", "7:f:run:x", "superseded", " 7, this server has 1"},
    {PROBE_SUPERSEDED, "",
     "7:" PLAY_FINGERPRINT ":name:" PLAY_INCARNATION(2) "::run:" PLAY_MEMORY,
     "superseded", "epoch 7 does not count"},
};

SUITE(status, .set_up = play_begin, .tear_down = play_end);

TEST_EACH(what_a_probe_found_has_a_name_and_a_sentence, probes)
{
    play_reconnect(0);
    expect(0, "admitting", "checked");
    play_answer_probe(0, probes[_i].word, probes[_i].admit,
                      probes[_i].quarantine);
    expect(0, probes[_i].state, probes[_i].detail);
    assert_state(1, "voting");
}

/* Until one of both configurations gets the node: then it serves that. */
TEST(a_node_for_which_two_configurations_wait_says_so)
{
    static const char *const records[] = {
        PLAY_QUARANTINE(2), PLAY_QUARANTINE(3), PLAY_QUARANTINE(4),
        PLAY_QUARANTINE(5)};
    play_reconnect(0);
    for (int i = 0; i < (int)COUNT(records); i++) {
        play_answer_probe(0, PROBE_CREATED, "", records[i]);
        play_advance(SECOND);
    }
    expect(0, "other_configuration", "the same --nodes");
    play_answer_probe(0, PROBE_OTHER, "1:ffffffffffffffff:run", "");
    expect(0, "other_configuration", "--config-epoch 2");
}

static void lose_three_memories(void)
{
    for (int i = 0; i < 3; i++)
        play_lose_memory(i);
}

TEST(the_countdown_is_that_of_the_quarantine)
{
    lose_three_memories();
    engine_view_node(play.engine, 0, &view);
    ck_assert_int_eq(view.quarantine_us, QUARANTINE_US);
    play_advance(66 * SECOND);
    expect(0, "quarantined", " in 1 s");
    ck_assert_int_eq(play.metrics.quarantine_us[0] / SECOND, 0);
    ck_assert_int_gt(play.metrics.quarantine_us[0], 0);
    ck_assert(!play.metrics.node_is_restarted[0]);
    ck_assert(!play.metrics.node_is_new[0]); /* it is known to have voted */
    play_advance(SECOND);
    expect(0, "quarantined", "about to");
    ck_assert_int_eq(view.quarantine_us, 0);
}

TEST(a_node_whose_time_is_up_tells_what_it_still_waits_for)
{
    lose_three_memories();
    play_reconnect(1);
    play_answer_probe(1, PROBE_OTHER, "1:ffffffffffffffff:run", "");
    play_advance(30 * SECOND);
    play_answer_probe(1, PROBE_OTHER, "1:ffffffffffffffff:run", "");
    play_advance(37 * SECOND);
    expect(0, "quarantined", "another configuration");
    play_advance(30 * SECOND);
    expect(0, "quarantined", "about to");
}

/* Another node tells of one that was quarantined later. */
TEST(story_45_a_machine_that_is_outdated_tells_so)
{
    play_advance(2 * SECOND);
    struct call_reply reply = {
        .vote = VOTE_DONE,
        .probe = {.word = PROBE_ADMITTED,
                  .admit = span_of(play_admission(1, false)),
                  .generation = 2,
                  .witnesses = play_heard(1, 0, 0, PLAY_INCARNATION(2))}};
    play_reply(play_find(CALL_PROBE, 1), reply);
    expect(0, "quarantined", "another machine");
}

/* Or only its replication ID has changed. */
TEST_RANGE(story_74_a_restarted_node_tells_what_it_waits_for, 0, 2)
{
    const char *before =
        textf("%.*s%s", (int)(strlen(play_admission(0, false)) - 3),
              play_admission(0, false), "000");
    play_reconnect(0);
    play_answer_probe(0, PROBE_CREATED,
                      _i == 0 ? play_admission(0, true) : before,
                      PLAY_QUARANTINE(2));
    expect(0, "quarantined", _i == 0 ? "restarted" : "replica");
    ck_assert_has(view.detail, " in 1 s");
    ck_assert_int_eq(view.quarantine_us, SECOND);
    play_advance(SECOND / 2);
    ck_assert(play.metrics.node_is_restarted[0]);
    ck_assert(!play.metrics.node_is_restarted[1]);
}

TEST(a_new_epoch_tells_what_it_waits_for)
{
    struct engine_settings settings = play_settings;
    settings.config_epoch = 2;
    settings.first_start = FIRST_START_NO;
    play_begin_again(&settings);
    play_node_connect(0);
    play_answer_probe(0, PROBE_CREATED, "1:f:run", "2:run:n");
    play_advance(67 * SECOND);
    expect(0, "quarantined", "--take-over 2");
}

TEST(when_a_quorum_votes_again_is_told)
{
    ck_assert_int_eq(engine_quorum_in_us(play.engine), 0);
    for (int i = 0; i < 4; i++) {
        play_advance(SECOND);
        play_lose_memory(i);
    }
    /* one votes; the second of the four to come is the third voter */
    ck_assert_int_eq(engine_quorum_in_us(play.engine),
                     QUARANTINE_US - 2 * SECOND);
    play_node_down(0);
    ck_assert_int_eq(engine_quorum_in_us(play.engine), QUARANTINE_US - SECOND);
    play_node_down(1);
    ck_assert_int_eq(engine_quorum_in_us(play.engine), QUARANTINE_US);
    play_node_down(2);
    ck_assert_int_eq(engine_quorum_in_us(play.engine), 0); /* not known */
}

/* ---- before it was there ------------------------------------------------- */

TEST(a_node_that_was_never_there_is_being_connected_to)
{
    play.now_us += 1000 * SECOND;
    play_begin_again(&play_settings);
    play_advance(2 * SECOND);
    expect(0, "connecting", "not connected");
    ck_assert_int_eq(play.now_us - view.since_us, 2 * SECOND);
    engine_on_node_down(play.engine, 0, STATE_SILENT, "no reply for 250 ms");
    expect(0, "silent", "no reply for 250 ms");
    assert_state(1, "connecting");
}

/* Until all are there, and new; else as long as the others may object. Marked
 * by us, it waits for nothing but the others' quarantines. */
TEST(a_new_node_tells_what_it_waits_for)
{
    play_begin_again(&play_settings);
    for (int i = 0; i < PLAY_NODES; i++) {
        play_node_connect(i);
        play_answer_probe(i, PROBE_EMPTY, "", "");
        engine_view_node(play.engine, 0, &view);
        if (i < PLAY_NODES - 1)
            expect(0, "first_start",
                   textf("in %d s",
                         (int)((view.quarantine_us + SECOND - 1) / SECOND)));
    }
    play_answer_probe(0, PROBE_FRESH, "", "1:run:0");
    expect(0, "first_start", "first time");
    ck_assert_int_eq(view.quarantine_us, 0);
}

/* ---- who it is ----------------------------------------------------------- */

static void connect_as(int node, const char *run_id)
{
    struct node_facts facts = play_facts(node);
    facts.run_id = run_id;
    play_node_down(node);
    play.is_up[node] = true;
    engine_on_node_up(play.engine, node, &facts);
    play_answer_probe(node, PROBE_ADMITTED, "", "");
}

TEST(story_23_behind_two_names_one_server_has_no_vote)
{
    connect_as(0, play_facts(1).run_id);
    assert_state(0, "duplicate");
    assert_state(1, "duplicate");
    assert_state(2, "voting");
    ck_assert_int_eq(engine_voting(play.engine), 3);
    play_node_down(1);
    assert_state(0, "voting");
}

TEST(story_31_a_node_that_no_fresh_connection_confirms_loses_its_vote)
{
    play.is_unconfirmed[0] = true;
    play_advance(4900000);
    assert_state(0, "voting");
    play_advance(400000);
    assert_state(0, "unconfirmed");
    assert_state(1, "voting");
    (void)play_acquire();
    ck_assert(play_find(CALL_ACQUIRE, 0) == NULL);
    struct node_facts facts = play_facts(0);
    facts.run_id = "another server";
    engine_on_node_confirmed(play.engine, 0, &facts);
    assert_state(0, "unconfirmed");
    play_confirm(0);
    assert_state(0, "voting");
}

TEST(an_older_confirmation_takes_nothing_back)
{
    struct node_facts facts = play_facts(0);
    facts.confirmed_us -= 4 * (int64_t)SECOND;
    engine_on_node_confirmed(play.engine, 0, &facts);
    play.is_unconfirmed[0] = true;
    play_advance(2 * SECOND);
    assert_state(0, "voting");
}

/* ---- its clock ----------------------------------------------------------- */

TEST(story_11_a_vote_of_a_clock_that_stepped_is_no_vote)
{
    play_advance(1000);
    engine_op op = play_acquire();
    play.offset_us[0] = 2 * SECOND + 500;
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    assert_state(0, "clock_stepped");
    ck_assert_int_eq(play_count(CALL_PROBE), 4); /* to hear the others */
    play_answer_range(CALL_ACQUIRE, 1, 4, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert_int_eq(play_result(op)->votes[0].state, STATE_STEPPED);
    ck_assert_ptr_null(play_find(CALL_REVOKE, 0));
    play_answer_probe(4, PROBE_ADMITTED, "", "");
    struct play_call *revoke = play_find(CALL_REVOKE, 0);
    ck_assert_ptr_nonnull(revoke);
    ck_assert_uint_eq(strlen(revoke->nonce), NONCE_LEN);
    ck_assert_uint_eq(play.metrics.clock_steps[0], 1);
    play_answer(CALL_REVOKE, 0, VOTE_DONE);
    play_answer_probe(0, PROBE_QUARANTINED, "", PLAY_QUARANTINE(2));
    expect(0, "quarantined", " 2000 ms");
}

TEST(story_34_a_clock_far_from_the_others_has_no_vote)
{
    play_node_down(0);
    play_begin_again(&play_settings);
    play.offset_us[0] = 8 * SECOND; /* the window is 2 s */
    play_nodes_up();
    expect(0, "clock_unproven", " 61 s");
    ck_assert_has(view.detail, " 8000 ms ");
    for (int i = 0; i < 61; i++) {
        play.sent_count = 0;
        for (int j = 0; j < PLAY_NODES; j++)
            play_confirm(j);
        play_advance(SECOND);
    }
    expect(0, "skewed", " 8000 ms ");
    ck_assert_int_eq(play.metrics.clock_offset_us[0] / SECOND, 8);
}

/* However long it is away, it says by how much; until it votes again. */
TEST(a_step_is_told_until_the_node_votes_again)
{
    play_advance(1000);
    play.offset_us[0] = -SECOND / 2 - 500;
    (void)play_acquire();
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    play_answer_all_probes();
    play_answer(CALL_REVOKE, 0, VOTE_DONE);
    expect(0, "admitting", " -500 ms");
    for (int s = 0; s < 62; s++) { /* its clock is watched for so long */
        play_answer_all_probes();
        play.sent_count = 0;
        play_advance(SECOND);
    }
    expect(0, "voting", "admitted");
    play_reconnect(0);
    assert_state(0, "admitting");
    ck_assert_lacks(view.detail, " ms");
}

/* ---- what it answers ----------------------------------------------------- */

static const int errors[] = {
    UNFIT(LOADING),       UNFIT(READ_ONLY), UNFIT(MISCONFIGURED),
    UNFIT(OUT_OF_MEMORY), UNFIT(BUSY),      UNFIT(NO_PERMISSION),
    UNFIT(FAILED),
};

TEST_EACH(story_24_an_error_is_shown_until_a_probe_is_answered, errors)
{
    (void)play_acquire();
    play_answer(CALL_ACQUIRE, 2, errors[_i]);
    assert_state(2, ballot_name(ballot_of_number(errors[_i])));
    ck_assert_int_eq(engine_voting(play.engine), 4);
    play_advance(1200000);
    play_answer(CALL_PROBE, 2, errors[_i]);
    assert_state(2, ballot_name(ballot_of_number(errors[_i])));
    play_advance(1200000);
    play_answer_probe(2, PROBE_ADMITTED, "", "");
    assert_state(2, "voting");
}

TEST(the_error_of_a_node_says_more_than_its_quarantine)
{
    play_reconnect(2);
    play_answer(CALL_PROBE, 2, UNFIT(NO_PERMISSION));
    assert_state(2, "no_permission");
    play_node_down(2);
    expect(2, "unreachable", "reset");
}

/* ---- the order ----------------------------------------------------------- */

/* All that speaks against node 0, one reason after the other taken away. */
TEST(the_first_reason_is_the_one_that_is_shown)
{
    play_advance(1000);
    struct node_facts facts = play_facts(0);
    facts.run_id = play_facts(1).run_id;
    facts.confirmed_us = 0;
    play_node_down(0);
    assert_state(0, "unreachable");
    facts.node_now_us += 2 * SECOND;
    engine_on_node_up(play.engine, 0, &facts);
    play.offset_us[0] = 2 * SECOND;
    assert_state(0, "duplicate");
    play_node_down(1);
    assert_state(0, "admitting");
    play_answer_probe(0, PROBE_ADMITTED, "", "");
    assert_state(0, "unconfirmed");
    facts.confirmed_us = play.now_us;
    engine_on_node_confirmed(play.engine, 0, &facts);
    assert_state(0, "clock_stepped");
    for (int i = 2; i < PLAY_NODES; i++)
        play_answer_probe(i, PROBE_ADMITTED, "", "");
    assert_state(0, "clock_stepped"); /* and is judged: to be revoked */
    play_answer(CALL_REVOKE, 0, VOTE_CHANGED);
    play_answer_probe(0, PROBE_ADMITTED, "", "");
    assert_state(0, "clock_unproven");
}

/* What it voted before is known here: it is not new. */
TEST(a_node_that_never_voted_is_new)
{
    struct node_facts facts = play_facts(0);
    struct engine_settings settings = play_settings;
    settings.first_start = FIRST_START_AUTO;
    play_begin_again(&settings);
    facts.is_durable = false;
    facts.not_durable = "appendonly is no";
    for (int i = 0; i < PLAY_NODES; i++) {
        facts.run_id = play_facts(i).run_id;
        engine_on_node_up(play.engine, i, &facts);
        play_answer_probe(i, PROBE_QUARANTINED, "", PLAY_QUARANTINE(1));
    }
    play_advance(SECOND / 10);
    ck_assert(play.metrics.node_is_new[0]);
    expect(0, "quarantined", "is new");
    ck_assert_has(view.detail, "all durable");
    ck_assert_has(view.detail, facts.not_durable);
}

TEST(a_node_that_votes_tells_what_it_lacks)
{
    struct node_facts facts = play_facts(1);
    facts.is_durable = false;
    facts.not_durable = "appendfsync is everysec";
    facts.lacks = "its user lacks +scan";
    engine_on_node_confirmed(play.engine, 1, &facts);
    expect(1, "voting",
           textf("; not durable: %s; %s", facts.not_durable, facts.lacks));
}

/* Until the next answer that is none; and without what it may have repeated. */
TEST(an_error_keeps_the_words_of_the_node)
{
    (void)play_acquire();
    PLAY_REPLY(CALL_ACQUIRE, 2, .vote = VOTE_UNFIT, .state = STATE_FAILED,
               .words = span_of("ERR what\nnobody expects"));
    expect(2, "failed", ": ERR what?nobody expects");
    play_answer_all_probes();
    play_advance(SECOND);
    play_answer_all_probes();
    assert_state(2, "voting");
    ck_assert_lacks(view.detail, "ERR");
}
