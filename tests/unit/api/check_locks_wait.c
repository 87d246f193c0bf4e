/* SPDX-License-Identifier: MIT */
/* Acquires that may wait. */

#include "../../lib/suite/suite.h"
#include "ask.h"

enum { WAIT_MS = 1000 };

#define WAIT "{'resource':'order:42','ttl_ms':30000,'wait_ms':1000}"
#define OTHERS PLAY_TOKEN_OF(1) ".web-9"

static void ask_to_wait(void)
{
    ck_assert(!ask_send("POST", "/locks", WAIT));
}

/* Each node says so to the attempt that is under way, if one is. */
static void answer_attempt(int ballot)
{
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_ACQUIRE, i) == NULL)
            return;
        else if (ballot == VOTE_HELD)
            play_answer_held(CALL_ACQUIRE, i, OTHERS);
        else
            play_answer(CALL_ACQUIRE, i, ballot);
    play.sent_count = 0;
}

/* The nodes go on to say so until the operation has its outcome. */
static void wait_in_vain(int ballot)
{
    for (int ms = 0; play.answers == 0; ms++) {
        ck_assert_int_le(ms, WAIT_MS);
        answer_attempt(ballot);
        play_advance(1000);
    }
    ask_answer(play.now_us);
}

SUITE(locks_wait, .set_up = ask_begin, .tear_down = ask_end);

TEST(a_grant_tells_how_long_it_waited)
{
    int64_t begun_us = play.now_us;
    ask_to_wait();
    answer_attempt(VOTE_HELD);
    play_await_round(PLAY_NODES);
    answer_attempt(VOTE_GRANTED);
    int64_t waited_ms = (play.now_us - begun_us) / US_PER_MS;
    ask_answer(play.now_us + 100000);
    ask_expect(201, NULL);
    ck_assert_int_gt(waited_ms, 0);
    ck_assert_int_eq(ask_number("waited_ms"), waited_ms);
    ck_assert_int_eq(ask_number("elapsed_ms"), waited_ms + 100);
    ck_assert_int_eq(ask.request.call.waited_ms, waited_ms);
}

TEST(time_up_tells_the_holder_and_the_wait)
{
    ask_to_wait();
    wait_in_vain(VOTE_HELD);
    ask_expect_failed(409, "lock_held", 1000);
    ck_assert_int_eq(ask_number("waited_ms"), WAIT_MS);
    ck_assert_ptr_nonnull(ask_member("held_by"));
}

TEST(no_quorum_in_the_end_tells_the_wait)
{
    ask_to_wait();
    wait_in_vain(UNFIT(FAILED));
    ask_expect_failed(503, "no_quorum", 1000);
    ck_assert_int_eq(ask_number("waited_ms"), WAIT_MS);
    ck_assert_ptr_nonnull(ask_member("nodes"));
}

TEST(too_many_waiters_are_told_the_limit)
{
    const struct engine_acquire acquire = {
        .resource = PLAY_RESOURCE, .ttl_ms = 30000, .wait_ms = WAIT_MS};
    for (int i = 0; i < WAITERS_EACH_MAX; i++)
        ck_assert(engine_acquire(play.engine, &acquire, NULL) != 0);
    answer_attempt(VOTE_HELD);
    ask_to_wait();
    ask_answer(play.now_us);
    ask_expect_failed(429, "too_many_waiters", 1000);
    ck_assert_int_eq(ask_number("waited_ms"), 0);
    ask_expect_detail("1000 clients already wait");
    ck_assert_ptr_null(ask_member("nodes"));
    ck_assert_uint_eq(
        play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_TOO_MANY_WAITERS], 1);
}

TEST(a_server_that_stops_waits_no_longer)
{
    ask_to_wait();
    answer_attempt(VOTE_HELD);
    play.now_us += 1000;
    engine_stop_waiting(play.engine);
    ask_answer(play.now_us);
    ask_expect_failed(503, "shutting_down", 1000);
    ck_assert_int_eq(ask_number("waited_ms"), 1);
    ck_assert_ptr_null(ask_member("nodes"));
}

/* Before the engine is asked, there is no wait to tell of. */
TEST(what_is_refused_at_once_tells_no_wait)
{
    ask.service.is_drained = true;
    ck_assert(ask_send("POST", "/locks", WAIT));
    ask_expect(503, "shutting_down");
    ask_expect_retry(1000);
    ck_assert_int_eq(play.sent_count, 0);
    ck_assert_ptr_null(ask_member("waited_ms"));
}
