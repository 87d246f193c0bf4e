/* SPDX-License-Identifier: MIT */
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
#define BOTH span_of("order:1\norder:2")

SUITE(waits_several, .set_up = play_begin, .tear_down = play_end);

static const char *const queue_stories[] = {
    /* a release of any of them lets it try */
    "a@1+2 held free@2 tries=2 for@1+2 held free@1 tries=3 held "
    "free@1+2 tries=4 " /* once, not twice */
    "grant tries=4",
    /* a release of several wakes those that wait for one */
    "a@1 held b@2 held free@1+2 tries=4 grant grant "
    "a=granted b=granted",
    /* it holds up nobody who can go */
    "b@2 held c@1+2 tries=1 a@1 tries=2 for@1 grant a=granted "
    "c=pending",
    /* when it is its turn it waits for an attempt under way */
    "b@2 held c@1+2 a@1 b- free@2 tries=2 " /* a tries */
    "held tries=3 for@1+2 grant c=granted",
    /* when the server stops all are told once */
    "a@1+2 b@1 c@1+2 d@1 held stop answers=4 waits=0",
};

TEST_EACH(each_resource_has_a_queue, queue_stories)
{
    waiting_play(queue_stories[_i]);
}

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
    waiting_play("a@1+2 tries=1 for@1+2");
    ck_assert_int_eq(play.sent[0].call.buckets[0], fence_bucket(A));
    ck_assert_int_eq(play.sent[0].call.buckets[1], fence_bucket(B));
    waiting_play("grant a=granted");
    ck_assert_uint_eq(play_result(waiting_op('a'))->resource.len, BOTH.len);
    waiting_play("a. waits=0");
}

/* Nor a reader, who may wait or not, and have a key or none. */
TEST_RANGE(it_holds_up_no_reader_who_can_go, 0, 4)
{
    static const char *const stories[] = {"a@1,r,k,0", "a@1,r,0", "a@1,r,k",
                                          "a@1,r"};
    waiting_play("b@2 held c@1+2");
    waiting_play(stories[_i]);
    const struct call *call = &play.sent[play.sent_count - 1].call;
    ck_assert_int_eq(call->kind, _i % 2 == 0 ? CALL_REPEAT : CALL_ACQUIRE);
    ck_assert_uint_eq(call->resource.len, A.len);
    ck_assert_int_eq(call->readers_max, play_settings.readers_max);
    play_answer_range(call->kind, 0, 3, VOTE_GRANTED);
    waiting_play("a=granted c=pending");
}

/* The first one leaves, or is granted: so the second one may go, and the third
 * one no longer. Then the fourth one may, in whose queue nothing happened. */
TEST_RANGE(who_may_go_as_another_gives_way_goes, 0, 2)
{
    waiting_play("a@1 held b@1+2 c@2+3 held d@3 tries=2");
    waiting_play(_i == 0 ? "a-" : "free@1 grant");
    int attempts = waiting_attempts();
    waiting_play("pass:1000 for@3");
    ck_assert_int_eq(waiting_attempts(), attempts + 1);
}

/* The tick finds it, and nobody was there to take notice of the release. */
TEST(who_may_go_after_more_have_left_than_can_be_inspected_tries_soon)
{
    waiting_play("a@3 held b@2 held "
                 "news@3 held news@2 held " /* no more attempts for seconds */
                 "c@1+2 d@2+3 e@2 b-");
    int attempts = waiting_attempts();
    play.engine->waits.queues.checks = 0;
    waiting_play("c- free@2");
    ck_assert_int_eq(waiting_attempts(), attempts);
    waiting_play("pass:20000 for@2");
    ck_assert_int_eq(waiting_attempts(), attempts + 1);
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
TEST(a_tick_inspections_at_no_queue_but_those_of_contenders)
{
    waiting_play("a@1+2 b@2+3,9000 held");
    ck_assert_int_eq(listened(), 2);
    waiting_play("a-");
    ck_assert_int_eq(listened(), 3);
    waiting_play("b- pass:3000000");
    ck_assert_int_eq(listened(), 0);
    ck_assert(TAILQ_EMPTY(&play.engine->waits.queues.list));
}

TEST(its_grant_is_known_in_each_queue)
{
    waiting_play("c@1+2 a@1,1 b@2,1 grant");
    play_advance(1000 - WAITING_ROUND_TRIP_US);
    waiting_play("tries=1 a=held b=held");
    ck_assert(play_result(waiting_op('a'))->has_holder);
    ck_assert(play_result(waiting_op('b'))->has_holder);
    ck_assert_int_gt(play_result(waiting_op('b'))->number, 0);
}

TEST(its_time_ends_in_all_queues)
{
    waiting_play("b@2 held c@1+2,500 pass:500000 c=held");
    ck_assert_uint_eq(play_result(waiting_op('c'))->resource.len, BOTH.len);
    waiting_play("c. waits=1");
}

/* What came to one of its resources says nothing of the other. */
TEST(it_takes_any_announcement)
{
    waiting_play("a@1+2 held news@1 tries=1 " /* of 2 nothing is announced */
                 "news@2 tries=2 held");
    for (int i = 0; i < 3; i++)
        engine_on_announced(play.engine, i, B, 1);
    waiting_play("tries=3");
}
