/* SPDX-License-Identifier: MIT */
/*
 * Nodes whose scripts were flushed: a call that found none changed nothing, and
 * is sent once more within its request.
 */
#include "../../lib/suite/suite.h"
#include "waiting.h"

enum { FLUSHED = UNFIT(NO_SCRIPT) };

SUITE(flushed, .set_up = play_begin, .tear_down = play_end);

TEST(an_acquire_is_sent_again_once)
{
    engine_op op = play_acquire();
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, FLUSHED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 2 * PLAY_NODES);
    ck_assert_str_eq(play.sent[0].token, play.sent[PLAY_NODES].token);
    ck_assert_int_eq(play.sent[0].call.node_deadline_us,
                     play.sent[PLAY_NODES].call.node_deadline_us);
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

/* Somebody flushes them again and again. */
TEST(what_finds_none_twice_has_no_vote)
{
    engine_op op = play_acquire();
    play_answer_range(CALL_ACQUIRE, 0, 3, FLUSHED);
    play_answer_range(CALL_ACQUIRE, 0, 3, FLUSHED);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), PLAY_NODES + 3);
    ck_assert_int_eq(play_result(op)->votes[0].state, STATE_NO_SCRIPT);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

/* The client may have released it by now: what is set after that would stay. */
TEST(what_is_decided_is_not_sent_again)
{
    engine_op op = play_win();
    play_answer_range(CALL_ACQUIRE, 3, PLAY_NODES, FLUSHED);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), PLAY_NODES);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

TEST(extends_and_inspections_are_sent_again)
{
    int64_t number = PLAY_EPOCH_US + play.now_us;
    engine_op op = play_extend(play_token(number), 9000);
    play_answer_range(CALL_EXTEND, 0, 3, FLUSHED);
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    op = engine_inspect(play.engine, PLAY_RESOURCE, NULL);
    play_answer_range(CALL_INSPECT, 0, 3, FLUSHED);
    play_answer_range(CALL_INSPECT, 3, PLAY_NODES, VOTE_FREE);
    play_answer(CALL_INSPECT, 0, VOTE_FREE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NOT_FOUND);
}

TEST(a_release_is_sent_again_once)
{
    engine_op op = play_release(span_of(PLAY_TOKEN));
    play_answer_range(CALL_RELEASE, 0, PLAY_NODES, FLUSHED);
    ck_assert_int_eq(play_count(CALL_RELEASE), 2 * PLAY_NODES);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    play_answer_range(CALL_RELEASE, 0, 2, VOTE_DELETED);
    play_answer_range(CALL_RELEASE, 2, PLAY_NODES, FLUSHED);
    ck_assert_int_eq(play_count(CALL_RELEASE), 2 * PLAY_NODES);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

TEST(a_query_is_sent_again_once)
{
    waiting_play("a#1,0 held queries=1");
    play_answer_range(CALL_SLOTS, 0, PLAY_NODES, FLUSHED);
    waiting_play("queries=2 told3:1 a=held a.");
}

TEST(a_scan_is_sent_again_once)
{
    engine_op op = engine_list(
        play.engine, &(struct engine_list){.prefix = span_of("o"), .limit = 9},
        NULL);
    play_answer(CALL_SCAN, 0, FLUSHED);
    ck_assert_int_eq(play_count(CALL_SCAN), 2);
    play_answer(CALL_SCAN, 0, FLUSHED);
    ck_assert_int_eq(play_count(CALL_SCAN), 2);
    engine_close(play.engine, op);
}
