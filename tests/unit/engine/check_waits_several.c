/*
 * Clients that wait for several resources at once.
 */

#include "../../../server/engine/parts.h"
#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "waiting.h"

#define A span_of("order:1")
#define B span_of("order:2")
#define C span_of("order:3")
#define BOTH span_of("order:1\norder:2")

/* The resource of the newest call. */
static void check_last(struct span resource)
{
    const struct call *call = &play.sent[play.sent_count - 1].call;
    ck_assert_int_eq(call->kind, CALL_ACQUIRE);
    ck_assert_uint_eq(call->resource.len, resource.len);
    ck_assert_mem_eq(call->resource.ptr, resource.ptr, resource.len);
}

static void release(struct span resource)
{
    (void)engine_release(play.engine, resource, span_of(PLAY_TOKEN), NULL);
}

SUITE(waits_several, .set_up = play_begin, .tear_down = play_end);

#define LONG_OWNER                                                             \
    "0123456789012345678901234567890123456789012345678901234567890123"

#define LONG_NAME "order:1" LONG_OWNER LONG_OWNER

/* It is its turn, as the one that waits for both cannot go. */
TEST(a_reader_without_memory_is_not_told_that_the_lock_is_held)
{
    int told = 0;
    for (int n = 1;; n++) {
        play_begin_again(&play_settings);
        play_nodes_up();
        (void)waiting_ask_for(B, WAITING_MS);
        (void)waiting_ask_for(span_of(LONG_NAME "\norder:2"), WAITING_MS);
        starve = (struct starve){.is_on = true, .left = n};
        engine_op op = engine_acquire(
            play.engine,
            &(struct engine_acquire){.resource = span_of(LONG_NAME),
                                     .owner = span_of(LONG_OWNER),
                                     .ttl_ms = 30000,
                                     .is_shared = true},
            NULL);
        starve.is_on = false;
        if (starve.left > 0)
            break;
        if (op == 0)
            continue;
        ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
        engine_close(play.engine, op);
        told++;
    }
    ck_assert_int_gt(told, 0);
    ck_assert_int_eq(waiting_attempts(), 2);
}

TEST(several_are_asked_for_in_one_call)
{
    engine_op op = waiting_ask_for(BOTH, WAITING_MS);
    ck_assert_int_eq(waiting_attempts(), 1);
    check_last(BOTH);
    ck_assert_int_eq(play.sent[0].call.slots[0], fence_slot(A));
    ck_assert_int_eq(play.sent[0].call.slots[1], fence_slot(B));
    waiting_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert_uint_eq(play_result(op)->resource.len, BOTH.len);
    engine_close(play.engine, op);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 0);
}

TEST(a_release_of_any_of_them_lets_it_try)
{
    (void)waiting_ask_for(BOTH, WAITING_MS);
    waiting_find_held();
    release(B);
    ck_assert_int_eq(waiting_attempts(), 2);
    check_last(BOTH);
    waiting_find_held();
    release(A);
    ck_assert_int_eq(waiting_attempts(), 3);
    waiting_find_held();
    release(BOTH); /* once, not twice */
    ck_assert_int_eq(waiting_attempts(), 4);
    waiting_grant();
    ck_assert_int_eq(waiting_attempts(), 4);
}

TEST(a_release_of_several_wakes_those_that_wait_for_one)
{
    engine_op a = waiting_ask_for(A, WAITING_MS);
    waiting_find_held();
    engine_op b = waiting_ask_for(B, WAITING_MS);
    waiting_find_held();
    release(BOTH);
    ck_assert_int_eq(waiting_attempts(), 4);
    waiting_grant();
    waiting_grant();
    ck_assert_int_eq(play_outcome(a), OUTCOME_GRANTED);
    ck_assert_int_eq(play_outcome(b), OUTCOME_GRANTED);
}

TEST(it_holds_up_nobody_who_can_go)
{
    (void)waiting_ask_for(B, WAITING_MS);
    waiting_find_held();
    engine_op both = waiting_ask_for(BOTH, WAITING_MS);
    ck_assert_int_eq(waiting_attempts(), 1);
    engine_op a = waiting_ask_for(A, WAITING_MS);
    ck_assert_int_eq(waiting_attempts(), 2);
    check_last(A);
    waiting_grant();
    ck_assert_int_eq(play_outcome(a), OUTCOME_GRANTED);
    waiting_check(both);
}

/* Nor a reader, who may wait or not, and have a key or none. */
TEST_RANGE(it_holds_up_no_reader_who_can_go, 0, 4)
{
    (void)waiting_ask_for(B, WAITING_MS);
    waiting_find_held();
    engine_op both = waiting_ask_for(BOTH, WAITING_MS);
    engine_op a = waiting_acquire((struct engine_acquire){
        .resource = A,
        .is_shared = true,
        .key_hash = span_of(_i % 2 == 0 ? "0123456789abcdefghij-_" : ""),
        .wait_ms = _i < 2 ? 0 : WAITING_MS,
    });
    const struct call *call = &play.sent[play.sent_count - 1].call;
    ck_assert_int_eq(call->kind, _i % 2 == 0 ? CALL_REPEAT : CALL_ACQUIRE);
    ck_assert_uint_eq(call->resource.len, A.len);
    ck_assert_int_eq(call->readers_max, play_settings.readers_max);
    play_answer_range(call->kind, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(a), OUTCOME_GRANTED);
    waiting_check(both);
}

TEST(when_it_is_its_turn_it_waits_for_an_attempt_under_way)
{
    engine_op b = waiting_ask_for(B, WAITING_MS);
    waiting_find_held();
    engine_op both = waiting_ask_for(BOTH, WAITING_MS);
    (void)waiting_ask_for(A, WAITING_MS); /* tries */
    ck_assert(!engine_abandon(play.engine, b));
    release(B);
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_find_held();
    ck_assert_int_eq(waiting_attempts(), 3);
    check_last(BOTH);
    waiting_grant();
    ck_assert_int_eq(play_outcome(both), OUTCOME_GRANTED);
}

/* The first one leaves, or is granted: so the second one may go, and the third
 * one no longer. Then the fourth one may, in whose queue nothing happened. */
TEST_RANGE(who_may_go_as_another_gives_way_goes, 0, 2)
{
    engine_op first = waiting_ask_for(A, WAITING_MS);
    waiting_find_held();
    (void)waiting_ask_for(BOTH, WAITING_MS);
    (void)waiting_ask_for(span_of("order:2\norder:3"), WAITING_MS);
    waiting_find_held();
    (void)waiting_ask_for(C, WAITING_MS);
    ck_assert_int_eq(waiting_attempts(), 2);
    if (_i == 0) {
        (void)engine_abandon(play.engine, first);
    } else {
        release(A);
        waiting_grant();
    }
    int attempts = waiting_attempts();
    play_advance(1000);
    ck_assert_int_eq(waiting_attempts(), attempts + 1);
    check_last(C);
}

/* The tick finds it, and nobody was there to take notice of the release. */
TEST(who_may_go_after_more_have_left_than_can_be_looked_at_tries_soon)
{
    (void)waiting_ask_for(C, WAITING_MS);
    waiting_find_held();
    engine_op only = waiting_ask_for(B, WAITING_MS);
    waiting_find_held();
    waiting_begin_to_announce(C, 3); /* no more attempts for seconds */
    waiting_find_held();
    waiting_begin_to_announce(B, 3);
    waiting_find_held();
    engine_op both = waiting_ask_for(BOTH, WAITING_MS);
    (void)waiting_ask_for(span_of("order:2\norder:3"), WAITING_MS);
    (void)waiting_ask_for(B, WAITING_MS);
    (void)engine_abandon(play.engine, only);
    int attempts = waiting_attempts();
    play.engine->waits.queues.looks = 0;
    (void)engine_abandon(play.engine, both);
    release(B);
    ck_assert_int_eq(waiting_attempts(), attempts);
    play_advance(20000);
    ck_assert_int_eq(waiting_attempts(), attempts + 1);
    check_last(B);
}

static int listened(void)
{
    int count = 0;
    const struct waitqueue *queue;
    for (queue = TAILQ_FIRST(&play.engine->waits.queues.listened);
         queue != NULL; queue = TAILQ_NEXT(queue, listened))
        count++;
    return count;
}

/* Those who wait behind others may name thousands of resources. */
TEST(a_tick_looks_at_no_queue_but_those_of_contenders)
{
    engine_op both = waiting_ask_for(BOTH, WAITING_MS);
    engine_op behind = waiting_ask_for(span_of("order:2\norder:3"), 9000);
    waiting_find_held();
    ck_assert_int_eq(listened(), 2);
    (void)engine_abandon(play.engine, both);
    ck_assert_int_eq(listened(), 3);
    (void)engine_abandon(play.engine, behind);
    play_advance(3000000);
    ck_assert_int_eq(listened(), 0);
    ck_assert(TAILQ_EMPTY(&play.engine->waits.queues.list));
}

TEST(its_grant_is_known_in_each_queue)
{
    (void)waiting_ask_for(BOTH, WAITING_MS);
    engine_op a = waiting_ask_for(A, 1), b = waiting_ask_for(B, 1);
    waiting_grant();
    play_advance(1000 - WAITING_ROUND_TRIP_US);
    ck_assert_int_eq(waiting_attempts(), 1);
    ck_assert(play_result(a)->has_holder);
    ck_assert(play_result(b)->has_holder);
    ck_assert_int_gt(play_result(b)->number, 0);
}

TEST(its_time_ends_in_all_queues)
{
    (void)waiting_ask_for(B, WAITING_MS);
    waiting_find_held();
    engine_op both = waiting_ask_for(BOTH, 500);
    play_advance(500000);
    ck_assert_int_eq(play_outcome(both), OUTCOME_HELD);
    ck_assert_uint_eq(play_result(both)->resource.len, BOTH.len);
    engine_close(play.engine, both);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 1);
}

/* What came to one of its resources says nothing of the other. */
TEST(it_takes_any_announcement)
{
    (void)waiting_ask_for(BOTH, WAITING_MS);
    waiting_find_held();
    waiting_begin_to_announce(A, 3);
    ck_assert_int_eq(waiting_attempts(), 1); /* B is not announced */
    waiting_begin_to_announce(B, 3);
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_find_held();
    for (int i = 0; i < 3; i++)
        engine_on_announced(play.engine, i, B, 1);
    ck_assert_int_eq(waiting_attempts(), 3);
}

TEST(when_the_server_stops_all_are_told_once)
{
    for (int i = 0; i < 4; i++)
        (void)waiting_ask_for(i % 2 == 0 ? BOTH : A, WAITING_MS);
    waiting_find_held();
    engine_stop_waiting(play.engine);
    ck_assert_int_eq(play.answers, 4);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 0);
}
