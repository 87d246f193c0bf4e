/* SPDX-License-Identifier: MIT */
/*
 * The limit of those that wait, whatever they wait for, and what it leaves
 * alone.
 */
#include "../../lib/suite/suite.h"
#include "waiting.h"

enum { MOST = 4 };

static void begin(void)
{
    play_begin();
    waiting_begin_limited(MOST);
}

SUITE(tickets, .set_up = begin, .tear_down = play_end);

static engine_op ask_permit(int64_t wait_ms)
{
    return waiting_acquire((struct engine_acquire){.resource = span_of("pool"),
                                                   .wait_ms = wait_ms,
                                                   .limit = 1,
                                                   .permits = 1});
}

/* What a client may wait for, in turn. */
static engine_op wait_for(int kind)
{
    switch (kind % 3) {
    case 0:
        return waiting_ask();
    case 1:
        return ask_permit(WAITING_MS);
    default:
        return engine_watch(play.engine, PLAY_RESOURCE, span_of("1"),
                            WAITING_MS, NULL);
    }
}

static void check_refused(engine_op op)
{
    ck_assert_int_eq(play_outcome(op), OUTCOME_TOO_MANY_WAITERS);
    engine_close(play.engine, op);
}

/* ---- the limit ---------------------------------------------------------- */

TEST(all_that_wait_have_one_limit)
{
    engine_op ops[MOST];
    for (int i = 0; i < MOST; i++) {
        ops[i] = wait_for(i);
        ck_assert_int_eq(play_outcome(ops[i]), OUTCOME_PENDING);
    }
    for (int kind = 0; kind < 3; kind++)
        check_refused(wait_for(kind));
    for (int kind = 0; kind < 3; kind++) {
        (void)engine_abandon(play.engine, ops[kind]);
        ops[kind] = wait_for(kind + 1); /* another takes its place */
        ck_assert_int_eq(play_outcome(ops[kind]), OUTCOME_PENDING);
        check_refused(wait_for(kind));
    }
}

/* A lock that nobody tries for is tried for once: see waits. */
TEST(a_server_that_stops_answers_all_that_wait)
{
    engine_op ops[MOST];
    for (int i = 0; i < MOST; i++)
        ops[i] = wait_for(i);
    waiting_play("held held stop");
    for (int i = 0; i < MOST; i++)
        ck_assert_int_eq(play_outcome(ops[i]), OUTCOME_STOPPED);
    ck_assert_int_eq(play.answers, MOST);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 0);
    for (int kind = 1; kind < 3; kind++)
        ck_assert_int_eq(play_outcome(wait_for(kind)), OUTCOME_STOPPED);
}

/* Permits that do not wait have rounds under way, like all acquires. */
TEST(what_does_not_wait_has_no_limit)
{
    for (int i = 0; i < MOST + 1; i++)
        ck_assert_int_eq(play_outcome(ask_permit(0)), OUTCOME_PENDING);
    for (int i = 0; i < MOST; i++)
        ck_assert_int_eq(play_outcome(wait_for(i)), OUTCOME_PENDING);
}

static engine_op ask_for_large(int number)
{
    return waiting_acquire(
        (struct engine_acquire){.resource = span_of(textf("large:%d", number)),
                                .key_hash = span_of(textf("%022d", number)),
                                .limit = POOL_SLOTS_MAX,
                                .permits = 1});
}

/* They do not wait for a permit, but for their turn. */
TEST(permits_that_stand_in_line_for_a_query_count)
{
    engine_op ops[1 + MOST];
    ops[0] = ask_for_large(0); /* at once */
    ck_assert_uint_eq(play.metrics.waiting[WAITING_PERMIT], 0);
    for (int i = 1; i <= MOST; i++)
        ops[i] = ask_for_large(i);
    ck_assert_uint_eq(play.metrics.waiting[WAITING_PERMIT], MOST);
    check_refused(ask_for_large(1 + MOST));
    check_refused(waiting_ask());
    play_advance(play_settings.node_timeout_us + 1000);
    ck_assert_int_eq(play_outcome(ops[0]), OUTCOME_NO_QUORUM);
    ck_assert_int_eq(waiting_queries(), 2);
    /* it has its turn, but counts to its end */
    ck_assert_uint_eq(play.metrics.waiting[WAITING_PERMIT], MOST);
    (void)engine_abandon(play.engine, ops[1]);
    (void)engine_abandon(play.engine, ops[2]);
    ck_assert_uint_eq(play.metrics.waiting[WAITING_PERMIT], MOST - 2);
    ck_assert_int_eq(play_outcome(wait_for(0)), OUTCOME_PENDING);
}

/* A query asks for one key at a time. */
TEST(permits_with_keys_of_one_pool_count_but_the_first)
{
    waiting_play("a#3,k,0 b#3,k,0 c#3,k,0 d#3,k,0 e#3,k,0 waits=4 f#3,k,0 "
                 "f=full f. stop waits=0");
}

/* ---- readers ------------------------------------------------------------ */

/* It is answered as an ordinary acquire is, and takes no place. */
TEST(a_reader_that_does_not_wait_is_not_one_too_many)
{
    waiting_play("a@ b@ c@ d@ held");
    for (int i = 0; i < 3; i++) {
        waiting_play("e@,r,0 e=held");
        ck_assert(play_result(waiting_op('e'))->has_holder);
        waiting_play("e.");
    }
    waiting_play("e@ e=full waits=4");
}

/* Without a writer it asks the nodes, whoever waits. */
TEST(readers_do_not_keep_out_a_reader)
{
    waiting_play("a@,r tries=1 b@,r,0 b=pending tries=2 a- " /* a writer does */
                 "c@ d@,r,0 tries=3 c- d- e@,r,0 e=pending tries=4");
}

TEST(readers_that_do_not_wait_take_no_place)
{
    waiting_play("a@");
    for (int i = 0; i < 2 * MOST; i++)
        waiting_play("b@,r,0");
    for (int i = 1; i < MOST; i++)
        ck_assert_int_eq(play_outcome(wait_for(i)), OUTCOME_PENDING);
    waiting_play("c@ c=full");
}
