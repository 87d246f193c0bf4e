#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "waiting.h"

static const struct engine_acquire patient = {
    .resource = {"order:42", 8}, .ttl_ms = 30000, .wait_ms = WAITING_MS};

SUITE(waits, .set_up = play_begin, .tear_down = play_end);

/* ---- granted ------------------------------------------------------------ */

TEST(a_free_lock_is_granted_at_once)
{
    engine_op op = waiting_ask();
    waiting_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert_int_eq(play_result(op)->waited_ms, 0);
    ck_assert(!play.is_listening);
    engine_close(play.engine, op);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 0);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_GRANTED], 1);
}

/* For the audit, whether it was granted or refused. */
TEST(an_outcome_may_be_looked_at_before_it_is_taken)
{
    engine_op op = waiting_ask(), last = waiting_ask();
    ck_assert_int_eq((int)engine_peek(play.engine, op)->outcome,
                     OUTCOME_PENDING);
    waiting_grant();
    const struct engine_result *result = engine_peek(play.engine, op);
    ck_assert_int_eq((int)result->outcome, OUTCOME_GRANTED);
    ck_assert_int_gt(result->number, 0);
    engine_close(play.engine, op);
    engine_stop_waiting(play.engine);
    ck_assert_int_eq((int)engine_peek(play.engine, last)->outcome,
                     (int)play_result(last)->outcome);
    ck_assert_int_eq(play_outcome(last), OUTCOME_STOPPED);
}

TEST(only_the_first_of_a_queue_tries)
{
    engine_op a = waiting_ask(), b = waiting_ask(), c = waiting_ask();
    ck_assert_int_eq(waiting_attempts(), 1);
    waiting_find_held();
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 3);
    play_await_round(10);
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_grant();
    ck_assert_int_eq(play_outcome(a), OUTCOME_GRANTED);
    waiting_check(b);
    waiting_check(c);
    ck_assert_int_eq(play.answers, 1);
}

TEST(another_resource_has_a_queue_of_its_own)
{
    (void)waiting_ask();
    (void)waiting_ask_for(span_of("order:43"), WAITING_MS);
    ck_assert_int_eq(waiting_attempts(), 2);
}

TEST(the_next_acquire_follows_right_behind_a_release)
{
    engine_op a = waiting_ask(), b = waiting_ask();
    waiting_grant();
    char token[TOKEN_MAX + 1];
    struct span span = play_result(a)->token;
    snprintf(token, sizeof token, "%.*s", (int)span.len, span.ptr);
    engine_close(play.engine, a);
    play_advance(1000);
    ck_assert_int_eq(waiting_attempts(), 1); /* it is known to be held */
    int before = play.sent_count;
    (void)play_release(span_of(token));
    for (int i = 0; i < PLAY_NODES; i++) {
        ck_assert_int_eq(play.sent[before + i].call.kind, CALL_RELEASE);
        ck_assert_int_eq(play.sent[before + PLAY_NODES + i].call.kind,
                         CALL_ACQUIRE);
    }
    waiting_grant();
    ck_assert_int_eq(play_outcome(b), OUTCOME_GRANTED);
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_RELEASE], 1);
}

TEST(a_release_during_an_attempt_causes_another_at_once)
{
    engine_op op = waiting_ask();
    (void)play_release(span_of(PLAY_TOKEN));
    ck_assert_int_eq(waiting_attempts(), 1);
    waiting_find_held();
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

TEST(it_tries_when_the_ttl_has_ended)
{
    (void)waiting_for_news();
    waiting_heartbeats(4900000);
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_heartbeats(102000); /* 5 s were left */
    ck_assert_int_eq(waiting_attempts(), 3);
    waiting_grant();
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_EXPIRY], 1);
}

TEST(without_announcements_it_tries_after_a_random_delay)
{
    (void)waiting_ask();
    for (int round = 1; round <= 10; round++) {
        ck_assert_int_eq(waiting_attempts(), round);
        waiting_find_held();
        play_await_round((round + 1) * PLAY_NODES);
    }
    waiting_grant();
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_RETRY], 1);
}

/* Its release announces nothing, whatever the nodes do. */
TEST(a_lock_of_another_library_is_tried_again_and_again)
{
    engine_op op = waiting_ask();
    for (int round = 1; round < 5; round++) {
        play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, "a foreign value");
        if (round == 1)
            waiting_begin_to_announce(PLAY_RESOURCE, 3);
        else
            play_await_round((round + 1) * PLAY_NODES);
    }
    waiting_check(op);
}

/* ---- the end of waiting -------------------------------------------------- */

TEST(when_its_time_is_up_it_is_told_who_has_the_lock)
{
    engine_op a = waiting_ask_for(PLAY_RESOURCE, 1000);
    engine_op b = waiting_ask_for(PLAY_RESOURCE, 500);
    waiting_find_held();
    waiting_begin_to_announce(PLAY_RESOURCE, 3);
    waiting_find_held();
    play_advance(500000 - 2 * WAITING_ROUND_TRIP_US - 1);
    waiting_check(b);
    play_advance(1);
    const struct engine_result *result = play_result(b);
    ck_assert_int_eq(result->outcome, OUTCOME_HELD);
    ck_assert_int_eq(result->waited_ms, 500);
    ck_assert(result->has_holder);
    ck_assert_int_eq(result->number, 1);
    ck_assert_int_eq(result->remaining_ms, 5000 - 499);
    ck_assert_uint_eq(result->resource.len, PLAY_RESOURCE.len);
    waiting_check(a);
    play_advance(500000);
    ck_assert_int_eq(play_outcome(a), OUTCOME_HELD);
    engine_close(play.engine, a);
    engine_close(play.engine, b);
    ck_assert_int_eq(waiting_attempts(), 2);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_HELD], 2);
    ck_assert_uint_eq(play.metrics.wait_duration.count, 2);
}

TEST(when_its_time_is_up_without_a_quorum_it_is_told_so)
{
    play_nodes_down(3);
    engine_op op = waiting_ask_for(PLAY_RESOURCE, 1000);
    ck_assert_int_eq(play.answers, 0);
    play_advance(1001000);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    ck_assert_int_eq(play_result(op)->votes[0].vote, VOTE_UNFIT);
    engine_close(play.engine, op);
}

TEST(it_waits_for_a_quorum_as_well)
{
    play_nodes_down(3);
    engine_op op = waiting_ask();
    play_advance(1000000);
    waiting_check(op);
    play_node_up(1);
    play_await_round(3); /* of three nodes */
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_ACQUIRE, i) != NULL)
            play_answer(CALL_ACQUIRE, i, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

TEST(whoever_is_first_then_tries_soon)
{
    (void)waiting_ask_for(PLAY_RESOURCE, 1);
    engine_op next = waiting_ask();
    play_advance(2000);
    waiting_find_held();
    ck_assert_int_eq(play.answers, 1); /* its time is up */
    play_await_round(2 * PLAY_NODES);
    waiting_grant();
    ck_assert_int_eq(play_outcome(next), OUTCOME_GRANTED);
}

/* What is under way when the time is up is waited for. */
TEST(a_grant_that_comes_a_little_late_counts)
{
    engine_op op = waiting_ask_for(PLAY_RESOURCE, 1);
    play_advance(2000);
    waiting_check(op);
    waiting_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

TEST(a_grant_that_nobody_takes_in_time_is_no_grant)
{
    const struct engine_acquire acquire = {
        .resource = PLAY_RESOURCE, .ttl_ms = 100, .wait_ms = WAITING_MS};
    engine_op op = engine_acquire(play.engine, &acquire, NULL);
    waiting_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    play.now_us += 100000;
    ck_assert_int_eq(play_outcome(op), OUTCOME_VALIDITY_EXHAUSTED);
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    engine_close(play.engine, op);
}

TEST(a_refused_key_ends_the_waiting)
{
    engine_op op = waiting_ask();
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_KEY_REFUSED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_KEY_REFUSED);
    engine_close(play.engine, op);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 0);
}

/* It may be refused to the next one, too. */
TEST(after_a_refused_key_the_next_tries_after_a_pause)
{
    engine_op a = waiting_ask(), b = waiting_ask();
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_KEY_REFUSED);
    ck_assert_int_eq(play_outcome(a), OUTCOME_KEY_REFUSED);
    play_advance(500);
    ck_assert_int_eq(waiting_attempts(), 1);
    int64_t until_us = play.now_us + play_settings.retry_delay_us;
    while (waiting_attempts() < 2 && play.now_us < until_us)
        play_advance(1000);
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_grant();
    ck_assert_int_eq(play_outcome(b), OUTCOME_GRANTED);
}

/* ---- clients that leave ---------------------------------------------------
 */

TEST(when_the_first_leaves_the_next_is_behind_its_release)
{
    engine_op a = waiting_ask(), b = waiting_ask();
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    int before = play.sent_count;
    ck_assert(!engine_abandon(play.engine, a));
    ck_assert_int_eq(play.sent[before].call.kind, CALL_RELEASE);
    ck_assert_int_eq(waiting_attempts(), 2);
    for (int i = 0; i < PLAY_NODES; i++) /* of the first attempt */
        if (i > 0)
            play_answer_held(CALL_ACQUIRE, i, WAITING_OTHERS);
    waiting_grant();
    ck_assert_int_eq(play_outcome(b), OUTCOME_GRANTED);
}

TEST(a_grant_of_a_client_that_left_goes_to_the_next)
{
    engine_op a = waiting_ask(), b = waiting_ask();
    waiting_grant();
    ck_assert(engine_abandon(play.engine, a));
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_grant();
    ck_assert_int_eq(play_outcome(b), OUTCOME_GRANTED);
}

TEST(who_leaves_in_the_middle_is_passed_over)
{
    engine_op a = waiting_ask(), b = waiting_ask(), c = waiting_ask();
    waiting_find_held();
    (void)engine_abandon(play.engine, b);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 2);
    (void)engine_abandon(play.engine, a);
    play_await_round(2 * PLAY_NODES);
    waiting_grant();
    ck_assert_int_eq(play_outcome(c), OUTCOME_GRANTED);
}

/* The same lock may have a client that does not wait. */
TEST(an_abandoned_acquire_wakes_those_that_wait)
{
    engine_op plain = play_acquire();
    engine_op op = waiting_ask();
    waiting_grant(); /* the plain one */
    waiting_find_held();
    ck_assert_int_eq(waiting_attempts(), 2);
    (void)engine_abandon(play.engine, plain);
    ck_assert_int_eq(waiting_attempts(), 3);
    waiting_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

/* ---- limits and the end ---------------------------------------------------
 */

TEST(a_queue_has_a_limit)
{
    for (int i = 0; i < 1000; i++)
        (void)waiting_ask();
    engine_op op = waiting_ask();
    ck_assert_int_eq(play_outcome(op), OUTCOME_TOO_MANY_WAITERS);
    engine_close(play.engine, op);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 1000);
    ck_assert_int_eq(
        play_outcome(waiting_ask_for(span_of("order:43"), WAITING_MS)),
        OUTCOME_PENDING);
}

TEST(whoever_waits_when_the_server_stops_is_told_at_once)
{
    engine_op a = waiting_ask(), b = waiting_ask();
    waiting_find_held();
    engine_stop_waiting(play.engine);
    ck_assert_int_eq(play_outcome(a), OUTCOME_STOPPED);
    ck_assert_int_eq(play_outcome(b), OUTCOME_STOPPED);
    engine_close(play.engine, a);
    engine_close(play.engine, b);
    engine_op late = waiting_ask();
    waiting_find_held();
    ck_assert_int_eq(play_outcome(late), OUTCOME_STOPPED);
    engine_op lucky = waiting_ask();
    waiting_grant();
    ck_assert_int_eq(play_outcome(lucky), OUTCOME_GRANTED);
}

/* It would have to queue up behind one that tries. */
TEST(whoever_queues_up_when_the_server_has_stopped_is_told_at_once)
{
    engine_stop_waiting(play.engine);
    engine_op first = waiting_ask();
    engine_op late = waiting_ask();
    ck_assert_int_eq(waiting_attempts(), 1);
    ck_assert_int_eq(play_outcome(late), OUTCOME_STOPPED);
    waiting_grant();
    ck_assert_int_eq(play_outcome(first), OUTCOME_GRANTED);
}

/* Whichever allocation fails: it is refused, or has its turn later. */
TEST(without_memory_none_is_forgotten)
{
    int late = 0;
    for (int n = 1;; n++) {
        play_begin_again(&play_settings);
        play_nodes_up();
        starve = (struct starve){.is_on = true, .left = n};
        engine_op op = engine_acquire(play.engine, &patient, NULL);
        starve.is_on = false;
        if (starve.left > 0)
            break;
        ck_assert_uint_eq(metrics_waiters(&play.metrics), op != 0);
        if (op == 0)
            continue;
        late += waiting_attempts() == 0;
        play_await_round(PLAY_NODES);
        waiting_grant();
        ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    }
    ck_assert_int_gt(late, 0);
}

/* ---- what operators see ---------------------------------------------------
 */

TEST(an_inspection_tells_how_many_wait)
{
    (void)waiting_ask();
    (void)waiting_ask();
    waiting_find_held();
    engine_op op = engine_inspect(play.engine, PLAY_RESOURCE, NULL);
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, WAITING_OTHERS);
    ck_assert_int_eq(play_outcome(op), OUTCOME_FOUND);
    ck_assert_int_eq(play_result(op)->waiters, 2);
    engine_close(play.engine, op);
}
