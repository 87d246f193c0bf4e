/*
 * Repairs: what happens behind an extension that not all nodes had a key for.
 */

#include "../../../server/engine/port/fence.h"
#include "../../lib/suite/suite.h"
#include "../play.h"

enum { TIMEOUT_US = 50000, TICK_US = 20000, TTL_MS = 30000 };

static engine_op extend(void)
{
    return play_extend(play_token(PLAY_EPOCH_US), TTL_MS);
}

static void answer_missing(int node, int64_t highest)
{
    struct play_call *sent = play_find(CALL_EXTEND, node);
    ck_assert(sent != NULL);
    play_reply(sent,
               (struct call_reply){.vote = VOTE_FREE, .highest = highest});
}

/* Extended on three, missing on two; the client has its answer. */
static void extend_on_three(void)
{
    engine_op op = extend();
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    answer_missing(3, 0);
    answer_missing(4, 77);
    engine_close(play.engine, op);
}

/* Then so many nodes are asked whether the lock is still there. */
static void await_look_at(int nodes)
{
    for (int us = 0; us < TIMEOUT_US + TICK_US; us += 1000)
        if (play_count(CALL_EXTEND) == 5)
            play_advance(1000);
    ck_assert_int_eq(play_count(CALL_EXTEND), 5 + nodes);
}

static void await_look(void)
{
    await_look_at(3);
}

/* In all this time. */
static void expect_no_repair(void)
{
    play_advance(10 * TICK_US);
    ck_assert_int_eq(play_count(CALL_REPAIR), 0);
}

/* Not even looked. */
static void expect_nothing(void)
{
    expect_no_repair();
    ck_assert_int_eq(play_count(CALL_EXTEND), 5);
}

SUITE(repairs, .set_up = play_begin, .tear_down = play_end);

TEST(story_50_a_lock_that_was_extended_is_set_where_it_is_missing)
{
    int64_t start_us = play.now_us;
    extend_on_three();
    play_advance(TIMEOUT_US - 1);
    ck_assert_int_eq(play_count(CALL_EXTEND), 5);
    await_look();
    const struct call *look = &play_find(CALL_EXTEND, 1)->call;
    ck_assert_int_eq(look->ttl_ms, 0);
    play_answer_range(CALL_EXTEND, 0, 2, VOTE_EXTENDED);
    ck_assert_int_eq(play_count(CALL_REPAIR), 0);
    int64_t elapsed_ms = (play.now_us - start_us) / 1000;
    play_answer(CALL_EXTEND, 2, VOTE_EXTENDED);
    ck_assert_int_eq(play_count(CALL_REPAIR), 2);

    const struct play_call *repair = play_find(CALL_REPAIR, 4);
    ck_assert_int_eq(repair->call.seen, 77);
    ck_assert_int_eq(repair->call.number, PLAY_EPOCH_US);
    ck_assert_int_eq(repair->call.ttl_ms, TTL_MS - elapsed_ms);
    ck_assert_uint_gt(repair->call.admit.len, 0);
    ck_assert_int_eq(repair->call.window_us, FENCE_WINDOW_US);
    ck_assert_str_eq(repair->token, play.sent[0].token);
    ck_assert_int_eq(play_find(CALL_REPAIR, 3)->call.seen, 0);

    play_answer_range(CALL_REPAIR, 3, 5, VOTE_GRANTED);
    play_advance(10 * TICK_US);
    ck_assert_int_eq(play_count(CALL_EXTEND), 8);
    ck_assert_int_eq(play_count(CALL_REPAIR), 2);
    ck_assert_int_eq(play.answers, 1);
}

/* Doubt about a node's clock makes a repair early, never late. */
TEST(it_has_the_deadline_of_the_look)
{
    extend_on_three();
    await_look();
    int64_t look_us = play_find(CALL_EXTEND, 0)->call.node_deadline_us;
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    int64_t repair_us = play_find(CALL_REPAIR, 3)->call.node_deadline_us;
    ck_assert_int_le(repair_us, look_us);
    ck_assert_int_gt(repair_us, look_us - 10000);
}

TEST(stragglers_that_lack_it_are_repaired_too)
{
    engine_op op = extend();
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    engine_close(play.engine, op);
    play_advance(10000);
    answer_missing(3, 0);
    play_answer(CALL_EXTEND, 4, VOTE_EXTENDED);
    await_look_at(4);
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_count(CALL_REPAIR), 1);
    ck_assert(play_find(CALL_REPAIR, 3) != NULL);
}

/* A silent node delays the others' repair to the end of the round. */
TEST(the_round_ends_with_its_deadline)
{
    engine_op op = extend();
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    answer_missing(3, 0);
    engine_close(play.engine, op);
    play_advance(TIMEOUT_US);
    answer_missing(4, 0); /* too late */
    await_look_at(4);
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_count(CALL_REPAIR), 1);
}

TEST(a_lock_that_is_gone_by_then_is_not_set_again)
{
    extend_on_three();
    await_look();
    play_answer_range(CALL_EXTEND, 0, 2, VOTE_EXTENDED);
    play_answer(CALL_EXTEND, 2, VOTE_FREE);
    expect_no_repair();
}

TEST(nor_if_it_is_not_known_in_time)
{
    extend_on_three();
    await_look();
    play_answer_range(CALL_EXTEND, 0, 2, VOTE_EXTENDED);
    struct play_call *late = play_find(CALL_EXTEND, 2);
    play_advance(TIMEOUT_US + TICK_US);
    play_reply(late, (struct call_reply){.vote = VOTE_EXTENDED});
    expect_no_repair();
}

TEST(what_is_held_or_set_or_does_not_vote_stays_as_it_is)
{
    engine_op op = extend();
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    play_answer_held(CALL_EXTEND, 3, "x");
    play_answer(CALL_EXTEND, 4, VOTE_LATE);
    engine_close(play.engine, op);
    expect_nothing();
}

TEST(a_slot_with_a_strange_number_is_left_alone)
{
    engine_op op = extend();
    play_answer_range(CALL_EXTEND, 0, 4, VOTE_EXTENDED);
    answer_missing(4, -1);
    engine_close(play.engine, op);
    expect_nothing();
}

TEST(a_node_that_may_not_vote_any_more_is_not_repaired)
{
    extend_on_three();
    await_look();
    play_node_down(3);
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_count(CALL_REPAIR), 1);
    ck_assert(play_find(CALL_REPAIR, 4) != NULL);
}

TEST(votes_that_count_nowhere_count_here_neither)
{
    extend_on_three();
    await_look();
    play_answer_range(CALL_EXTEND, 0, 2, VOTE_EXTENDED);
    play.offset_us[2] = 1000000; /* its clock stepped */
    play_answer(CALL_EXTEND, 2, VOTE_EXTENDED);
    expect_no_repair();
}

TEST(nothing_is_repaired_past_the_validity)
{
    engine_op op = play_extend(play_token(PLAY_EPOCH_US), 60);
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    answer_missing(3, 0);
    answer_missing(4, 0);
    engine_close(play.engine, op);
    play_advance(TIMEOUT_US + TICK_US);
    ck_assert_int_eq(play_count(CALL_EXTEND), 5);
}

TEST(a_failed_extend_repairs_nothing)
{
    engine_op op = extend();
    play_answer_range(CALL_EXTEND, 0, 2, VOTE_EXTENDED);
    for (int i = 2; i < 5; i++)
        answer_missing(i, 0);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NOT_FOUND);
    engine_close(play.engine, op);
    expect_nothing();
}

TEST_RANGE(nor_does_one_whose_client_left, 0, 2)
{
    engine_op op = extend();
    answer_missing(4, 0);
    play_answer_range(CALL_EXTEND, 0, 2 + _i,
                      VOTE_EXTENDED); /* before, behind */
    engine_abandon(play.engine, op);
    for (int i = 2 + _i; i < 4; i++)
        play_answer(CALL_EXTEND, i, VOTE_EXTENDED);
    expect_nothing();
}

TEST(nor_one_that_only_asked)
{
    play.now_us += 101000000; /* beyond max_hold_ms */
    for (int i = 0; i < PLAY_NODES; i++)
        play_confirm(i);
    engine_op op = extend();
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_MAX_HOLD);
    answer_missing(3, 0);
    answer_missing(4, 0);
    engine_close(play.engine, op);
    expect_nothing();
}

/* Its operation is open until the last node has answered, for nobody. */
TEST(nothing_is_kept_when_all_is_done)
{
    for (int i = 0; i < 3; i++) {
        engine_op op = extend();
        play_answer_range(CALL_EXTEND, 0, 5, VOTE_EXTENDED);
        engine_close(play.engine, op);
        ck_assert_int_eq(engine_in_flight(play.engine), 0);
    }
    for (int i = 2; i < PLAY_TIMERS; i++)
        ck_assert_int_eq(play.timer_us[i], 0);
    play_advance(10 * TICK_US);
    ck_assert_int_eq(play_count(CALL_EXTEND), 15);
}
