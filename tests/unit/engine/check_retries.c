/*
 * Rounds that were lost to time alone, and what is done about them.
 */

#include "../../lib/suite/suite.h"
#include "../play.h"

enum { TIMEOUT_US = 50000, ROUNDS = 4 };

static engine_op extend(void)
{
    return play_extend(play_token(PLAY_EPOCH_US), 30000);
}

static engine_op release(void)
{
    return play_release(play_token(PLAY_EPOCH_US));
}

SUITE(retries, .set_up = play_begin, .tear_down = play_end);

/* ---- acquire ------------------------------------------------------------ */

TEST(silence_is_tried_again_at_once)
{
    engine_op op = play_acquire();
    char first[TOKEN_MAX + 1];
    strcpy(first, play_find(CALL_ACQUIRE, 0)->token);
    play_advance(TIMEOUT_US);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 10);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, first);
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES,
                      VOTE_GRANTED); /* of the first round */
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    ck_assert_str_ne(play_find(CALL_ACQUIRE, 0)->token, first);
    play_answer_range(CALL_ACQUIRE, 2, PLAY_NODES, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert_int_eq(play_result(op)->validity_ms, 29693);
}

/* Otherwise nodes that accepted the one before would refuse it. */
TEST(each_round_has_a_higher_number_than_the_one_before)
{
    int64_t number = PLAY_EPOCH_US + play.now_us + 1000000;
    (void)play_acquire();
    for (int i = 0; i < PLAY_NODES; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_STALE, .highest = number);
    for (int round = 3; round <= ROUNDS; round++) {
        int64_t last = play_find(CALL_ACQUIRE, 0)->call.number;
        ck_assert_int_gt(last, number);
        number = last;
        play_split_votes();
        play_await_round(round * PLAY_NODES);
    }
    ck_assert_int_gt(play_find(CALL_ACQUIRE, 0)->call.number, number);
}

/* Of a batch: others wait for its outcome. */
TEST(what_is_tried_once_does_not_pause)
{
    const struct engine_acquire acquire = {.resource = PLAY_RESOURCE,
                                           .owner = span_of("web-3"),
                                           .ttl_ms = 30000,
                                           .is_tried_once = true};
    engine_op op = engine_acquire(play.engine, &acquire, NULL);
    play_split_votes();
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), PLAY_NODES);
    engine_close(play.engine, op);
    /* a number that is too low costs no pause */
    op = engine_acquire(play.engine, &acquire, NULL);
    for (int i = 0; i < PLAY_NODES; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_STALE,
                   .highest = PLAY_EPOCH_US + play.now_us + 1000000);
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    engine_close(play.engine, op);
}

static engine_op inspect(void)
{
    return engine_inspect(play.engine, PLAY_RESOURCE, NULL);
}

static const struct {
    engine_op (*ask)(void);
    enum call_kind kind;
    int releases;
} calls[] = {
    {play_acquire, CALL_ACQUIRE, ROUNDS * 5},
    {extend, CALL_EXTEND, 0},
    {inspect, CALL_INSPECT, 0},
};

TEST_EACH(silence_uses_up_the_rounds, calls)
{
    engine_op op = calls[_i].ask();
    for (int round = 1; round <= ROUNDS; round++) {
        ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
        ck_assert_int_eq(play_count(calls[_i].kind), round * 5);
        play_advance(TIMEOUT_US - 1);
        ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
        play_advance(1);
    }
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    ck_assert_int_eq(play_count(calls[_i].kind), ROUNDS * 5);
    ck_assert_int_eq(play_count(CALL_RELEASE), calls[_i].releases);
}

/* Calls that were not sent before the server was held up. */
TEST(late_calls_are_tried_again_at_once)
{
    engine_op op = play_acquire();
    play_answer_range(CALL_ACQUIRE, 2, PLAY_NODES, VOTE_LATE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 10);
    ck_assert_int_eq(play_count(CALL_RELEASE), 2); /* who may have granted */
    play_answer_range(CALL_ACQUIRE, 2, PLAY_NODES, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

TEST(silence_after_a_split_is_no_holder)
{
    engine_op op = play_acquire();
    play_split_votes();
    play_await_round(10);
    play_advance(3 * TIMEOUT_US);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

/* Nothing would be left of a lock that is granted later. */
TEST(a_round_lasts_no_longer_than_the_ttl)
{
    struct engine_settings settings = play_settings;
    settings.node_timeout_us = 1000000;
    settings.retry_count = 0;
    play_begin_again(&settings);
    play_nodes_up();
    engine_op op = play_acquire_of((struct span){0}, 100);
    ck_assert_int_lt(play_find(CALL_ACQUIRE, 0)->call.node_deadline_us,
                     PLAY_EPOCH_US + play.now_us + 101000);
    play_advance(99999);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    play_advance(1);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

/* ---- extend ------------------------------------------------------------- */

TEST(an_extension_lost_to_time_is_tried_again)
{
    engine_op op = extend();
    play_answer(CALL_EXTEND, 0, VOTE_EXTENDED);
    play_answer(CALL_EXTEND, 1, VOTE_LATE);
    play_advance(TIMEOUT_US);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    ck_assert_int_eq(play_count(CALL_EXTEND), 10);
    play_answer_range(CALL_EXTEND, 0, 2, VOTE_EXTENDED);
    play_answer_range(CALL_EXTEND, 2, PLAY_NODES,
                      VOTE_EXTENDED); /* of the first round */
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    play_answer(CALL_EXTEND, 2, VOTE_EXTENDED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
}

/* ---- release ------------------------------------------------------------ */

/* It is right however late it runs: the first one is waited for. */
TEST(a_release_is_waited_for_as_long_as_others_try)
{
    engine_op op = release();
    play_answer(CALL_RELEASE, 0, VOTE_DELETED);
    play_advance(ROUNDS * TIMEOUT_US - 1);
    play_answer(CALL_RELEASE, 1, VOTE_FREE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    play_answer(CALL_RELEASE, 2, VOTE_FREE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);

    op = release();
    play_advance(ROUNDS * TIMEOUT_US - 1);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    play_advance(1);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

/* The server is held up for longer than all rounds, and had not sent it. */
TEST(a_release_is_waited_for_behind_a_stall)
{
    engine_op op = release();
    play.now_us += 10 * TIMEOUT_US;
    play_advance(0); /* the deadline */
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    play_advance(TIMEOUT_US - 1);
    play_answer_range(CALL_RELEASE, 2, PLAY_NODES, VOTE_DELETED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
}
