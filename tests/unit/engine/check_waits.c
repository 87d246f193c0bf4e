/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "waiting.h"

static const struct engine_acquire patient = {
    .resource = {"order:42", 8}, .ttl_ms = 30000, .wait_ms = WAITING_MS};

SUITE(waits, .set_up = play_begin, .tear_down = play_end);

static const char *const stories[] = {
    /* only the first of a queue tries */
    "a@ b@ c@ tries=1 held waits=3 round:2 grant "
    "a=granted b=pending c=pending answers=1",
    /* another resource has a queue of its own */
    "a@ b@1 tries=2",
    /* a release during an attempt causes another at once */
    "a@ free@ tries=1 held tries=2 grant a=granted",
    /* whoever is first then tries soon */
    "a@,1 b@ pass:2000 held answers=1 round:2 grant b=granted",
    /* a grant that comes a little late counts: what is under way when the time
       is up is waited for */
    "a@,1 pass:2000 a=pending grant a=granted",
    /* who leaves in the middle is passed over */
    "a@ b@ c@ held b- waits=2 a- round:2 grant c=granted",
    /* whoever waits when the server stops is told at once */
    "a@ b@ held stop a=stopped b=stopped a. b. "
    "c@ held c=stopped d@ grant d=granted",
    /* whoever queues up when the server has stopped is told at once: it would
       have to queue up behind one that tries */
    "stop a@ b@ tries=1 b=stopped grant a=granted",
};

TEST_EACH(clients_have_one_queue, stories)
{
    waiting_play(stories[_i]);
}

/* ---- granted ------------------------------------------------------------ */

TEST(a_free_lock_is_granted_at_once)
{
    waiting_play("a@ grant a=granted");
    ck_assert_int_eq(play_result(waiting_op('a'))->waited_ms, 0);
    ck_assert(!play.is_listening);
    waiting_play("a. waits=0");
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_GRANTED], 1);
}

/* For the audit, whether it was granted or refused. */
TEST(an_outcome_may_be_inspected_before_it_is_taken)
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

TEST(it_tries_when_the_ttl_has_ended)
{
    (void)waiting_for_news();
    waiting_heartbeats(4900000);
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_heartbeats(102000); /* 5 s were left */
    waiting_play("tries=3 grant");
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_EXPIRY], 1);
}

TEST(without_announcements_it_tries_after_a_random_delay)
{
    waiting_play("a@ tries=1 held round:2 held round:3 held round:4 held "
                 "round:5 held round:6 held round:7 grant");
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
    waiting_play("a@,1000 b@,500 held news@ held");
    play_advance(500000 - 2 * WAITING_ROUND_TRIP_US - 1);
    waiting_play("b=pending pass:1");
    const struct engine_result *result = play_result(waiting_op('b'));
    ck_assert_int_eq(result->outcome, OUTCOME_HELD);
    ck_assert_int_eq(result->waited_ms, 500);
    ck_assert(result->has_holder);
    ck_assert_int_eq(result->number, 1);
    ck_assert_int_eq(result->remaining_ms, 5000 - 499);
    ck_assert_uint_eq(result->resource.len, PLAY_RESOURCE.len);
    waiting_play("a=pending pass:500000 a=held a. b. tries=2");
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_HELD], 2);
    ck_assert_uint_eq(play.metrics.wait_duration.count, 2);
}

TEST(when_its_time_is_up_without_a_quorum_it_is_told_so)
{
    waiting_play("down:3 a@,1000 answers=0 pass:1001000 a=no_quorum");
    ck_assert_int_eq(play_result(waiting_op('a'))->votes[0].vote, VOTE_UNFIT);
}

TEST(it_waits_for_a_quorum_as_well)
{
    waiting_play("down:3 a@ pass:1000000 a=pending");
    play_node_up(1);
    play_await_round(3); /* of three nodes */
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_ACQUIRE, i) != NULL)
            play_answer(CALL_ACQUIRE, i, VOTE_GRANTED);
    waiting_play("a=granted");
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
    waiting_play("a@");
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_KEY_REFUSED);
    waiting_play("a=refused a. waits=0");
}

/* It may be refused to the next one, too. */
TEST(after_a_refused_key_the_next_tries_after_a_pause)
{
    waiting_play("a@ b@");
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_KEY_REFUSED);
    waiting_play("a=refused pass:500 tries=1 round:2 grant b=granted");
}

/* ---- clients that leave ---------------------------------------------------
 */

TEST(when_the_first_leaves_the_next_is_behind_its_release)
{
    waiting_play("a@ b@");
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    int before = play.sent_count;
    waiting_play("a- tries=2");
    ck_assert_int_eq(play.sent[before].call.kind, CALL_RELEASE);
    play_hold_range(CALL_ACQUIRE, 1, PLAY_NODES, WAITING_OTHERS); /* a's */
    waiting_play("grant b=granted");
}

TEST(a_grant_of_a_client_that_left_goes_to_the_next)
{
    waiting_play("a@ b@ grant");
    ck_assert(engine_abandon(play.engine, waiting_op('a')));
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    waiting_play("tries=2 grant b=granted");
}

/* The same lock may have a client that does not wait. */
TEST(an_abandoned_acquire_wakes_those_that_wait)
{
    engine_op plain = play_acquire();
    waiting_play("a@ grant held tries=2"); /* the plain one is granted */
    (void)engine_abandon(play.engine, plain);
    waiting_play("tries=3 grant a=granted");
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
    waiting_play("a@ b@ held");
    engine_op op = engine_inspect(play.engine, PLAY_RESOURCE, NULL);
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, WAITING_OTHERS);
    ck_assert_int_eq(play_outcome(op), OUTCOME_FOUND);
    ck_assert_int_eq(play_result(op)->waiters, 2);
    engine_close(play.engine, op);
}
