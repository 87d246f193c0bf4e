/* SPDX-License-Identifier: MIT */
/*
 * What the engine sends to the nodes, and whom it asks.
 */
#include <string.h>

#include "../../../server/engine/parts.h"
#include "../../../server/engine/port/token.h"
#include "../../../server/engine/voting/nodes.h"
#include "../../lib/suite/suite.h"
#include "../play.h"

SUITE(nodes, .set_up = play_begin, .tear_down = play_end);

TEST(nothing_is_asked_of_nodes_without_admission)
{
    play_lose_memory(0);
    engine_op op = play_acquire();
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 4);
    play_answer_range(CALL_ACQUIRE, 1, 4, VOTE_GRANTED);
    ck_assert_int_eq(play_result(op)->votes[0].state, STATE_QUARANTINED);
}

TEST(story_09_numbers_follow_the_median_of_the_nodes_clocks)
{
    play_node_down(4);
    play.offset_us[4] = 3600000000;
    play_node_connect(4);
    (void)play_acquire();
    ck_assert_int_eq(play_find(CALL_ACQUIRE, 0)->call.number,
                     PLAY_EPOCH_US + play.now_us);
    (void)play_acquire();
    ck_assert_int_eq(play.sent[play.sent_count - 1].call.number,
                     PLAY_EPOCH_US + play.now_us + 1);
}

/* Nodes from this one on have been there, with such clocks, for a max TTL. */
static void begin_with_clocks(int first, int64_t offset_us)
{
    play_begin_again(&play_settings);
    for (int i = first; i < PLAY_NODES; i++) {
        play.offset_us[i] = offset_us;
        play_node_up(i);
    }
    for (int s = 0; s < 61; s++) {
        play.sent_count = 0;
        play_advance(1000000);
        play_answer_all_probes();
    }
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES - first);
    play.sent_count = 0;
}

/* Two of five clocks are far ahead, and for a while no others are there. */
TEST(story_09_two_clocks_far_ahead_leave_no_number_anywhere)
{
    begin_with_clocks(3, 3600000000);
    ck_assert_int_eq(play_outcome(play_acquire()), OUTCOME_NO_QUORUM);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 0);
    for (int i = 0; i < 3; i++)
        play_node_up(i);
    (void)play_acquire();
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 3);
    ck_assert_int_eq(play_find(CALL_ACQUIRE, 0)->call.number,
                     PLAY_EPOCH_US + play.now_us);
}

TEST(all_clocks_that_are_set_back_take_the_numbers_along)
{
    begin_with_clocks(0, 3600000000);
    (void)play_acquire();
    ck_assert_int_gt(play_find(CALL_ACQUIRE, 0)->call.number,
                     PLAY_EPOCH_US + INT64_C(3600000000));
    play_advance(1000);
    for (int i = 0; i < PLAY_NODES; i++) {
        play.offset_us[i] = 0;
        play_confirm(i);
    }
    play.sent_count = 0;
    (void)play_acquire();
    ck_assert_int_eq(play_find(CALL_ACQUIRE, 0)->call.number,
                     PLAY_EPOCH_US + play.now_us);
}

/* It would only leave keys and numbers, and releases, on those that vote. */
TEST(what_cannot_be_won_is_not_sent)
{
    struct span token = span_of(PLAY_TOKEN);
    play_nodes_down(3);
    engine_op op = play_acquire();
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    ck_assert_int_eq(play_result(op)->votes[2].state, STATE_UNREACHABLE);
    ck_assert_int_eq(play_result(op)->votes[3].vote, VOTE_PENDING);
    op = play_extend(token, 1000);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    op = engine_inspect(play.engine, PLAY_RESOURCE, &play);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    for (int i = 0; i < play.sent_count; i++)
        ck_assert_int_eq(play.sent[i].call.kind, CALL_PROBE);
    (void)play_release(token);
    ck_assert_int_eq(play_count(CALL_RELEASE), 2);
}

TEST(a_slot_far_ahead_takes_no_other_along)
{
    (void)play_acquire();
    for (int i = 0; i < PLAY_NODES; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_STALE,
                   .highest = PLAY_EPOCH_US + INT64_C(3600000000));
    (void)play_acquire();
    ck_assert_int_eq(play.sent[play.sent_count - 1].call.number,
                     PLAY_EPOCH_US + play.now_us + 2);
}

/* ---- what is sent -------------------------------------------------------- */

enum { NONCE_LEN = 11 };

/* Node 0 is admitted once the others were probed twice, and what they told
 * has ended: 1% more than 5 s. Its quarantine record is told otherwise then. */
static const struct play_call *await_admission(const char *quarantine,
                                               const char *later)
{
    for (int s = 0; s < 7; s++) {
        play_advance(1000000);
        ck_assert(play_find(CALL_ADMIT, 0) == NULL);
        play_answer_probes(0, PROBE_QUARANTINED, s < 4 ? quarantine : later);
        play_answer_all_probes();
    }
    play_advance(1000000);
    ck_assert_ptr_nonnull(play_find(CALL_ADMIT, 0));
    ck_assert_str_eq(play_find(CALL_ADMIT, 0)->quarantine, later);
    return play_find(CALL_ADMIT, 0);
}

TEST(a_lost_permission_is_quarantined_waited_for_and_given_back)
{
    play_advance(2200000); /* before, a first start may be under way */
    play_answer_all_probes();
    play.rest_us = 5000000;
    play.number = PLAY_EPOCH_US + 7;
    play_reconnect(0);
    struct play_call *probe = play_find(CALL_PROBE, 0);
    ck_assert_uint_eq(strlen(probe->nonce), NONCE_LEN);
    ck_assert_str_eq(probe->latest, PLAY_INCARNATION(1));
    ck_assert(probe->call.is_durable);
    ck_assert_int_eq(probe->call.max_ttl_ms, 60000);
    const char *expected =
        textf("1:" PLAY_FINGERPRINT ":%s:" PLAY_RUN_ID "0", play_name(0));
    ck_assert_str_eq(probe->admit, expected);
    play_answer_probe(0, PROBE_FRESH, "", PLAY_QUARANTINE(2));
    const struct play_call *admit =
        await_admission(PLAY_QUARANTINE(2), PLAY_QUARANTINE(2));
    ck_assert_int_eq(admit->call.max_ttl_ms, 60000);
    ck_assert_int_eq(admit->call.number, PLAY_EPOCH_US + 7);
    ck_assert(admit->call.is_durable);
    ck_assert_str_eq(admit->admit, expected);
    const char *told = textf("%s=%026d m%s=" PLAY_INCARNATION(1) " ",
                             play_name(1), 1, play_name(1));
    ck_assert_mem_eq(admit->witnesses, told, strlen(told));
    play_answer(CALL_ADMIT, 0, VOTE_DONE);
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES - 1);
    play_answer_probe(0, PROBE_ADMITTED, "", "");
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES);
}

TEST(a_restarted_node_is_readmitted_by_what_it_carries)
{
    play_advance(1000);
    play_reconnect(0);
    play_answer_probe(0, PROBE_CREATED, play_admission(0, true),
                      PLAY_QUARANTINE(2));
    for (int i = 0; i < 4 && play_find(CALL_READMIT, 0) == NULL; i++) {
        play_advance(1000000);
        while (play_find(CALL_PROBE, 0) != NULL)
            play_answer_probe(0, PROBE_QUARANTINED, play_admission(0, true),
                              PLAY_QUARANTINE(2));
        play_answer_all_probes();
    }
    struct play_call *readmit = play_find(CALL_READMIT, 0);
    ck_assert_ptr_nonnull(readmit);
    ck_assert_str_eq(readmit->found, play_admission(0, true));
    ck_assert_str_eq(readmit->quarantine, PLAY_QUARANTINE(2));
    ck_assert_int_eq(readmit->call.high_water, 1);
    ck_assert(readmit->call.is_durable);
    play_answer(CALL_READMIT, 0, VOTE_DONE);
    play_answer_probe(0, PROBE_ADMITTED, "", "");
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES);
}

/* A vote needs the whole admission, as the last probe has told it. */
TEST(votes_are_asked_for_by_the_admission_that_was_seen)
{
    (void)play_acquire();
    for (int i = 0; i < PLAY_NODES; i++)
        ck_assert_str_eq(play_find(CALL_ACQUIRE, i)->admit,
                         play_admission(i, false));
    struct span token = play_token(PLAY_EPOCH_US);
    (void)play_extend(token, 1000);
    ck_assert_str_eq(play_find(CALL_EXTEND, 3)->admit,
                     play_admission(3, false));
    (void)play_release(token);
    ck_assert_str_eq(play_find(CALL_RELEASE, 3)->admit,
                     play_admission(3, false));
}

static void expect_high_water(int node, int64_t high_water)
{
    play.sent_count = 0;
    play_advance(1200000);
    ck_assert_int_eq(play_find(CALL_PROBE, node)->call.high_water, high_water);
}

TEST(a_generation_that_was_told_is_the_high_water_from_then_on)
{
    (void)play_acquire();
    PLAY_REPLY(CALL_ACQUIRE, 2, .vote = VOTE_GRANTED, .generation = 41);
    expect_high_water(2, 41);
    const char *told = textf(" %s=%026d ", play_name(2), 41);
    ck_assert_has(play_find(CALL_PROBE, 3)->witnesses, told);
}

/* A refusal tells nothing that is known to be of this node. */
TEST(what_is_no_answer_tells_no_generation)
{
    (void)play_acquire();
    PLAY_REPLY(CALL_ACQUIRE, 2, .vote = VOTE_UNFIT, .state = STATE_FAILED,
               .generation = 41);
    expect_high_water(2, 1);
}

/* Of fewer than a majority of the clocks nobody knows which are right. */
TEST(the_median_goes_along_once_a_majority_of_clocks_is_known)
{
    play_begin_again(&play_settings);
    for (int i = 0; i < PLAY_NODES; i++) {
        play_node_connect(i);
        ck_assert_int_eq(play_find(CALL_PROBE, i)->call.median_us,
                         i < 2 ? 0 : PLAY_EPOCH_US + play.now_us);
        play_answer_probe(i, PROBE_ADMITTED, "", "");
    }
}

TEST(story_46_who_saw_an_admission_says_so_with_each_probe)
{
    play_begin_again(&play_settings);
    play_node_up(0);
    play.sent_count = 0;
    play_node_connect(1);
    ck_assert(!play_find(CALL_PROBE, 1)->call.is_objecting);
    play_advance(1200000);
    ck_assert(play_find(CALL_PROBE, 0)->call.is_objecting);
}

/* Three nodes on one host, whose clock was set: it probes as if our own had
 * stepped, and of the other two nothing is known until they reply again. */
TEST(a_node_whose_clock_is_unknown_is_probed_all_the_same)
{
    static const int order[] = {0, 3, 4, 1, 2};
    play_advance(1000);
    for (int i = 0; i < 3; i++)
        play.offset_us[i] = 2000000;
    (void)play_acquire();
    for (int i = 0; i < PLAY_NODES; i++) {
        play_answer(CALL_ACQUIRE, order[i], VOTE_GRANTED);
        play_answer_probes(order[i], PROBE_ADMITTED, "");
    }
    ck_assert_int_eq(engine_voting(play.engine), 3);
    play.sent_count = 0;
    play.is_unconfirmed[3] = play.is_unconfirmed[4] = true;
    play_advance(1500000);
    play_answer_all_probes();
    ck_assert_int_eq(play_count(CALL_REVOKE), 0);
}

TEST(every_quarantine_has_a_nonce_of_its_own)
{
    play_advance(2200000);
    play_reconnect(0);
    play_reconnect(1);
    ck_assert_str_ne(play_find(CALL_PROBE, 0)->nonce,
                     play_find(CALL_PROBE, 1)->nonce);
}

TEST(a_deadline_is_told_as_the_nodes_own_clock_will_show_it)
{
    play_begin_again(&play_settings);
    play.offset_us[3] = 4000;
    play_nodes_up();
    (void)play_acquire();
    for (int i = 0; i < PLAY_NODES; i++) {
        int64_t ends_us =
            PLAY_EPOCH_US + play.now_us + play.offset_us[i] + 50000;
        const struct call *call = &play_find(CALL_ACQUIRE, i)->call;
        ck_assert_int_eq(call->node_deadline_us, ends_us + 250); /* of drift */
        ck_assert_int_eq(call->window_us, FENCE_WINDOW_US);
        ck_assert_int_eq(call->ttl_ms, 30000);
    }
}

TEST(a_call_that_cannot_be_sent_is_tried_again_a_second_later)
{
    play.is_refusing[1] = true;
    play_advance(1200000);
    ck_assert(play_find(CALL_PROBE, 1) == NULL);
    ck_assert(play_find(CALL_PROBE, 0) != NULL);
    play.is_refusing[1] = false;
    play_advance(1200000);
    ck_assert(play_find(CALL_PROBE, 1) != NULL);
}

/* Before that its nodes are only peeked at, which quarantines nothing. */
TEST(a_first_start_begins_with_the_first_of_the_names)
{
    struct engine_settings settings = play_settings;
    settings.node_names[0] = "z";
    play_begin_again(&settings);
    for (int i = 0; i < PLAY_NODES; i++) {
        play_node_connect(i);
        ck_assert_str_eq(play_find(CALL_PROBE, i)->nonce, "");
        play_answer_probe(i, PROBE_EMPTY, "", "");
    }
    ck_assert(play_find(CALL_PROBE, 0) == NULL);
    ck_assert_str_eq(play_find(CALL_PROBE, 1)->nonce + NONCE_LEN, "first");
}

/* ---- memory -------------------------------------------------------------- */

static void report_full(int node, bool is_full)
{
    PLAY_REPLY(CALL_PROBE, node, .vote = VOTE_DONE,
               .probe = {.word = PROBE_ADMITTED,
                         .admit = span_of(play_admission(node, false)),
                         .is_durable = true,
                         .generation = 5,
                         .is_full = is_full});
}

static void assert_state(int node, const char *state)
{
    struct engine_node_view view;
    engine_view_node(play.engine, node, &view);
    ck_assert_str_eq(view.state, state);
}

/* Of all five; each is probed again after a heartbeat. */
static void probe_again(bool are_full)
{
    play.sent_count = 0;
    play_advance(1200000);
    for (int i = 0; i < PLAY_NODES; i++)
        report_full(i, are_full);
}

TEST(story_76_full_nodes_vote_for_what_is_held)
{
    probe_again(true);
    ck_assert_int_eq(engine_voting(play.engine), 0);
    for (int i = 0; i < PLAY_NODES; i++)
        ck_assert(status_is_serving(&play.engine->nodes, i));
    assert_state(1, "out_of_memory");
    engine_op op = play_extend(play_token(PLAY_EPOCH_US), 1000);
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    op = play_acquire();
    play_answer_range(CALL_ACQUIRE, 0, 3, UNFIT(OUT_OF_MEMORY));
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    probe_again(false);
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES);
    assert_state(1, "voting");
}

static void connect_evicting(int node)
{
    struct node_facts facts = play_facts(node);
    facts.evicts = "would evict locks";
    play_node_down(node);
    play.sent_count = 0;
    engine_on_node_up(play.engine, node, &facts);
}

TEST(evicting_nodes_get_releases_and_no_calls_for_votes)
{
    for (int i = 0; i < 3; i++)
        connect_evicting(i);
    ck_assert_int_eq(engine_voting(play.engine), 2);
    ck_assert_int_eq(play_count(CALL_PROBE), 0);
    assert_state(0, "evicts");
    engine_op op = play_acquire();
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 0);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    op = play_extend(play_token(PLAY_EPOCH_US), 1000);
    ck_assert_int_eq(play_count(CALL_EXTEND), 0);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    op = play_release(play_token(PLAY_EPOCH_US));
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    play_answer(CALL_RELEASE, 0, VOTE_DELETED);
    play_answer(CALL_RELEASE, 1, VOTE_FREE);
    play_answer(CALL_RELEASE, 2, VOTE_NOT_ADMITTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    /* but to an inspection what they lack is not free: they may have lost
     * it */
    op = engine_inspect(play.engine, span_of("r"), NULL);
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

/* ---- another replication ID, and the same data ------------------------- */

#define OTHER_MEMORY "dcbadcbadcbadcbadcbadcbadcbadcbadcbadcba"

static void answer_with_trace(int node, const char *trace)
{
    PLAY_REPLY(CALL_PROBE, node, .vote = VOTE_DONE, .generation = 2,
               .probe = {.word = PROBE_ADMITTED,
                         .admit = span_of(play_admission(node, false)),
                         .is_durable = true,
                         .generation = 2,
                         .trace = span_of(trace)});
    play_answer_all_probes();
}

TEST(story_74_a_trace_ends_with_its_connection)
{
    play_advance(1200000);
    answer_with_trace(3, "ab:0:7");
    play_advance(1200000);
    ck_assert_str_eq(play_find(CALL_PROBE, 3)->trace, "ab:0:7");
    ck_assert_str_eq(play_find(CALL_PROBE, 2)->trace, "");
    answer_with_trace(3, "cd:0:8");
    play_reconnect(3);
    ck_assert_str_eq(play_find(CALL_PROBE, 3)->trace, "");
}

/* Five seconds, give or take half of one; true: they are over. */
static bool expect_trace(const struct play_call *probe, int64_t age_us)
{
    bool is_late = age_us > 5500000;
    if (is_late || age_us < 4500000)
        ck_assert_str_eq(probe->trace, is_late ? "" : "ab:0:7");
    return is_late;
}

/* While its probes fail, be it as the server stands still. */
TEST(story_74_a_trace_ends_with_its_time)
{
    play_advance(1200000);
    int64_t sent_us = play.now_us;
    answer_with_trace(3, "ab:0:7");
    int probes = 0;
    while (play.now_us < sent_us + 8000000) {
        play_advance(500000);
        struct play_call *probe = play_find(CALL_PROBE, 3);
        if (probe != NULL) {
            probes += expect_trace(probe, play.now_us - sent_us);
            PLAY_REPLY(CALL_PROBE, 3, .vote = VOTE_UNFIT, .state = STATE_BUSY);
        }
        play_answer_all_probes();
    }
    ck_assert_int_ge(probes, 1);
}

/* What the others promised need not be waited for once more. */
TEST(story_74_a_quarantine_with_another_replication_id_is_the_same)
{
    static const char other[] =
        "1:" PLAY_FINGERPRINT
        ":name:" PLAY_INCARNATION(2) "::run:" OTHER_MEMORY;
    play.rest_us = 5000000;
    play_reconnect(0);
    play_answer_probe(0, PROBE_FRESH, "", PLAY_QUARANTINE(2));
    (void)await_admission(PLAY_QUARANTINE(2), other);
}

/* One that was restarted is quarantined at once. */
TEST(story_74_others_have_a_heartbeat_to_follow)
{
    const char *before =
        textf("1:" PLAY_FINGERPRINT ":%s:%s:0:" PLAY_RUN_ID "3:" OTHER_MEMORY,
              play_name(3), PLAY_INCARNATION(1));
    play_advance(1500000);
    play_answer_probe(4, PROBE_BARE, play_admission(4, true), "");
    ck_assert_ptr_nonnull(play_find(CALL_PROBE, 4));
    play_answer_probe(3, PROBE_BARE, before, "");
    ck_assert_ptr_null(play_find(CALL_PROBE, 3));
    play_advance(1000000);
    ck_assert_uint_gt(strlen(play_find(CALL_PROBE, 3)->nonce), 0);
}

/* ---- what a reply tells of its node -------------------------------------- */

static void reply_after(int64_t us, enum vote vote)
{
    const struct call_reply reply = {.vote = vote};
    struct play_call *sent = play_find(CALL_ACQUIRE, 0);
    sent->is_answered = true;
    engine_on_reply(play.engine, 0, sent->tag, &reply, play.now_us - us,
                    play.now_us);
}

TEST(the_last_round_trip_is_shown_and_each_one_counted)
{
    static const int64_t trips_us[] = {3000, 200};
    struct metrics_histogram before = play.metrics.node_rtt[0];
    struct engine_node_view view;
    for (int i = 0; i < 2; i++) {
        (void)play_acquire();
        reply_after(trips_us[i], VOTE_GRANTED);
        engine_view_node(play.engine, 0, &view);
        ck_assert_int_eq(view.rtt_us, trips_us[i]);
    }
    (void)play_acquire();
    reply_after(70000, VOTE_DISCONNECTED); /* nothing came back */
    engine_view_node(play.engine, 0, &view);
    ck_assert_int_eq(view.rtt_us, 200);
    ck_assert_uint_eq(play.metrics.node_rtt[0].count, before.count + 2);
    ck_assert_uint_eq(play.metrics.node_rtt[0].sum_us, before.sum_us + 3200);
}

/* The clock of node 0 has passed its confirmation, and no tick has come. */
static engine_op let_confirmation_pass(void)
{
    play.is_unconfirmed[0] = true;
    play_advance(4970000);
    engine_op op = play_acquire();
    play.now_us += 40000;
    ck_assert(play.metrics.node_is_voting[0]);
    return op;
}

TEST(story_31_a_vote_that_is_distrusted_tells_who_votes_at_once)
{
    engine_op op = let_confirmation_pass();
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    ck_assert(!play.metrics.node_is_voting[0]);
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES - 1);
    play_answer_range(CALL_ACQUIRE, 1, 4, VOTE_GRANTED);
    ck_assert_int_eq(play_result(op)->votes[0].vote, VOTE_DISTRUSTED);
    ck_assert_int_eq(play_result(op)->votes_for, 3);
}

/* So that each vote need not search at all nodes. */
TEST(a_vote_that_counts_changes_nothing_of_who_votes)
{
    (void)let_confirmation_pass();
    play_answer(CALL_ACQUIRE, 1, VOTE_GRANTED);
    ck_assert(play.metrics.node_is_voting[0]);
    play_advance(400000); /* the tick sees it, too */
    ck_assert(!play.metrics.node_is_voting[0]);
}
