/* SPDX-License-Identifier: MIT */
/*
 * Permits: how a free slot is found.
 */
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "waiting.h"

SUITE(permits, .set_up = play_begin, .tear_down = play_end);

/* Digits of 3 nodes are a query's answer: 0 is free, 2 has its key. */
static const char *const stories[] = {
    /* each gets another slot at the first try, as the others are known */
    "a#1,0 slots=0 grant a=granted queries=0",
    /* a query is only a hint: the first that is there gets it */
    "a#3,0 held told3:110 slots=2 held told3:111 a=held tries=2 queries=2",
    /* its holder died, or released it through another server */
    "full#2 a#2,0 tries=2 told3:10 slots=1 grant a=granted",
    /* all or none */
    "full#1 a#3,0,n3 told3:100 a=held tries=1",
    /* others had a node, and one was slow: its own slot seemed lost */
    "a#4,k,0 tries=0 told3:0021 slots=2 held told3:0021 slots=2 a=pending",
    "a#4,o,0 told3:0001 a=held tries=0",
    "a#4,o,0 told3:0021 slots=2 held tries=1 a=held",
    /* what few nodes have, after a loss, is left from a lost try */
    ("a#4,k,0 told:1121 held told2:1120 from2:1110 from3:1110 tries=1 "
     "from4:1110 tries=2 slots=3 a-"),
    /* and no permit that counts: one that may only repeat gets nothing */
    ("a#4,o,0 told2:0021 from2:0001 from3:0001 a=pending from4:0001 a=held "
     "tries=0"),
    /* several permits are one lock of several slots */
    "a#4,0,n4 slots=0+1+2+3 grant a=granted",
};

TEST_EACH(tries_follow_queries_until_there_is_no_free_slot, stories)
{
    waiting_play(stories[_i]);
}

/* ---- without waiting ---------------------------------------------------- */

TEST(a_permit_is_a_lock_on_a_slot)
{
    waiting_play("a#10,0 tries=1 queries=0 grant a=granted");
    const struct engine_result *result = play_result(waiting_op('a'));
    ck_assert(strncmp(waiting_tried(), SLOT(), 5) == 0);
    ck_assert(span_is(result->resource, waiting_tried()));
    ck_assert(span_is(result->owner, "web-3"));
    ck_assert_int_gt(result->validity_ms, 29000);
    waiting_play("a.");
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_GRANTED], 1);
    ck_assert_uint_eq(play.metrics.permit_grants, 1);
}

/* What was granted here is known to be taken: no try is lost. */
TEST(each_gets_another_slot_at_the_first_try)
{
    bool is_taken[10] = {false};
    for (int i = 0; i < 10; i++) {
        int slot = waiting_win(10)[5] - '0';
        ck_assert(slot >= 0 && slot < 10 && !is_taken[slot]);
        is_taken[slot] = true;
    }
    waiting_play("tries=10 queries=0");
}

/* Two clients that ask at once must not meet. */
TEST(those_under_way_try_different_slots)
{
    waiting_play("a#2,0");
    const char *first = textf("%s", waiting_tried());
    waiting_play("b#2,0");
    ck_assert_str_ne(first, waiting_tried());
}

TEST(a_full_pool_is_refused_after_a_query)
{
    waiting_play("full#2 a#2,0 tries=2 queries=1 a=pending told3:11 a=held");
    const struct engine_result *result = play_result(waiting_op('a'));
    ck_assert(span_is(result->resource, "pool"));
    ck_assert_int_eq(result->remaining_ms, 5000);
    waiting_play("a.");
    ck_assert_uint_eq(play.metrics.permit_refusals, 1);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_HELD], 1);
}

/* Of those after a query it says nothing. */
TEST(who_loses_most_first_tries_asks_first)
{
    int lost = 0;
    waiting_play("a#1,0");
    while (play_count(CALL_ACQUIRE) == PLAY_NODES) {
        ck_assert_int_lt(lost++, 20);
        waiting_play("held told:0 grant free#0");
        play_answer_range(CALL_RELEASE, 0, PLAY_NODES, VOTE_DELETED);
        play.sent_count = 0;
        waiting_play("a#1,0");
    }
    ck_assert_int_gt(lost, 1);
    waiting_play("queries=1");
}

/* Without answers, or without nodes. */
TEST_RANGE(without_answers_there_is_no_quorum, 0, 2)
{
    waiting_play(_i == 1 ? "full#1 down:3 a#1,0" : "full#1 a#1,0");
    if (_i == 0) {
        waiting_play("told2:0");
        play_advance(play_settings.node_timeout_us + 1000);
        ck_assert_int_eq(play_result(waiting_op('a'))->votes[4].vote,
                         VOTE_UNANSWERED);
    }
    waiting_play("a=no_quorum");
    ck_assert(span_is(play_result(waiting_op('a'))->resource, "pool"));
    waiting_play("a.");
}

TEST_RANGE(a_key_that_an_acl_denies_is_told, 0, 2)
{
    waiting_play(_i == 0 ? "a#1,0" : "a#1");
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_KEY_REFUSED);
    waiting_play("a=refused");
}

/* ---- whose query is next ------------------------------------------------ */

/* With a key, so that a query is needed. */
static engine_op ask_as(int asker, const char *pool, int limit)
{
    static int keys;
    return waiting_acquire((struct engine_acquire){
        .resource = span_of(pool),
        .key_hash = span_of(textf("%02d%020d", asker, ++keys)),
        .limit = limit,
        .permits = 1,
        .asker = asker});
}

/* Each for a large pool of its own. */
static void ask_for_many(int asker, int count, engine_op ops[])
{
    for (int i = 0; i < count; i++) {
        ops[i] = ask_as(asker, textf("large:%d:%d", asker, i), POOL_SLOTS_MAX);
    }
}

/* The pool that the newest query asks about. */
static const struct play_call *newest_query(void)
{
    const struct play_call *it = &play.sent[play.sent_count - 1];
    ck_assert_int_eq(it->call.kind, CALL_SLOTS);
    return it;
}

/* All nodes answer the oldest query that is open: no slot is free. */
#define FULL "told:1*1000 "

/* Of each server, whoever causes them: they take the nodes' time. */
TEST(queries_of_many_large_pools_take_turns)
{
    engine_op ops[6];
    ask_for_many(0, 6, ops);
    waiting_play("queries=1 " FULL "pass:1 queries=2 " FULL "pass:1 queries=3 "
                 /* one after the other */
                 FULL "pass:1 queries=3 pass:11000 queries=4 "
                 "pass:11000 queries=4 " /* the nodes are slow */
                 FULL "pass:1 queries=5 " FULL "pass:11000 " FULL "answers=6 "
                 "pass:1000000 queries=6"); /* nothing is left to do */
}

/* The query of a pool that nobody uses any more ends, too. */
TEST(a_query_without_answers_holds_up_no_other_for_long)
{
    engine_op ops[2];
    ask_for_many(1, 2, ops);
    (void)engine_abandon(play.engine, ops[0]);
    waiting_play("queries=1");
    play_advance(play_settings.node_timeout_us + 1000);
    waiting_play("queries=2 answers=0");
}

TEST(an_identity_that_asks_for_much_holds_up_no_other)
{
    engine_op ops[10];
    ask_for_many(1, 10, ops);
    waiting_play("queries=1");
    (void)ask_as(2, "small", 3);
    waiting_play("queries=2");
    (void)ask_as(3, "large", POOL_SLOTS_MAX);
    waiting_play("queries=3");
    ck_assert_str_eq(newest_query()->resource, "large" NAMES_SLOT);
}

/* Each has half as many as if it were alone. */
TEST(identities_share_the_nodes_time)
{
    engine_op ops[20];
    int queries[2] = {0, 0};
    ask_for_many(1, 10, ops);
    ask_for_many(2, 10, ops + 10);
    for (int ms = 0; ms < 100; ms++) {
        while (play_find(CALL_SLOTS, 0) != NULL) {
            queries[play_find(CALL_SLOTS, 0)->resource[6] - '1']++;
            waiting_play(FULL);
        }
        play.sent_count = 0;
        play_advance(1000);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_ge(queries[i], 6);
        ck_assert_int_le(queries[i], 8);
    }
}

/* It pays for the query, which asks for its key. */
TEST(an_identity_that_asks_for_much_holds_up_no_other_in_its_pool)
{
    engine_op ops[10];
    ask_for_many(1, 10, ops);
    (void)ask_as(1, "large:1:9", POOL_SLOTS_MAX);
    waiting_play("queries=1");
    (void)ask_as(2, "large:1:9", POOL_SLOTS_MAX);
    waiting_play("queries=2");
    ck_assert_str_eq(newest_query()->resource, "large:1:9" NAMES_SLOT);
    ck_assert_int_eq(newest_query()->call.key_hash.ptr[1], '2');
}

/* In the order in which they came; those that left cost nobody a turn. */
TEST(a_pool_whose_clients_left_loses_its_turn)
{
    engine_op ops[4];
    ask_for_many(1, 4, ops);
    for (int i = 1; i < 3; i++)
        (void)engine_abandon(play.engine, ops[i]);
    waiting_play(FULL "pass:1 queries=2");
    ck_assert_str_eq(newest_query()->resource, "large:1:3" NAMES_SLOT);
}

/* In the order of their names, not of their numbers. */
TEST(the_names_of_slots_are_sorted)
{
    waiting_play("a#11,0,n11");
    ck_assert_str_eq(
        waiting_tried(),
        SLOT(0) "\n" SLOT(1) "\n" SLOT(10) "\n" SLOT(2) "\n" SLOT(3) "\n" SLOT(
            4) "\n" SLOT(5) "\n" SLOT(6) "\n" SLOT(7) "\n" SLOT(8) "\n" SLOT(9));
}

/* ---- a repeat ----------------------------------------------------------- */

/* Also one that gets no other. */
TEST_RANGE(a_repeat_gets_the_slot_that_it_has, 0, 2)
{
    waiting_play(_i == 0 ? "a#4,k,0 tries=0" : "a#4,o,0 tries=0");
    ck_assert(span_is(play_find(CALL_SLOTS, 0)->call.key_hash, PLAY_KEY));
    waiting_play("told3:0021 slots=2 own repeat a=repeated");
    ck_assert(span_is(play_result(waiting_op('a'))->resource, SLOT(2)));
}

/* So that two at the same moment meet, and one of them repeats. */
TEST(the_same_key_tries_the_same_slot)
{
    waiting_play("a#100,k,0 told3:0*100 tries=1");
    const char *first = textf("%s", waiting_tried());
    waiting_play("a- a#100,k,0 told3:0*100 tries=2");
    ck_assert_str_eq(waiting_tried(), first);
}

TEST(what_it_would_repeat_has_just_expired)
{
    waiting_play("a#4,o,0 told3:0021 grant a=held");
    ck_assert_int_gt(play_count(CALL_RELEASE), 0);
    ck_assert(span_is(play_result(waiting_op('a'))->resource, "pool"));
    waiting_play("a.");
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_GRANTED], 0);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_HELD], 1);
    ck_assert_uint_eq(play.metrics.permit_refusals, 1);
    (void)waiting_win(4);
}

/* ---- without memory ------------------------------------------------------ */

/* It is refused at once, or answered; nothing is left behind. */
TEST(without_memory_nothing_is_begun)
{
    for (int64_t wait_ms = 0; wait_ms <= 1000; wait_ms += 1000)
        for (int n = 1;; n++) {
            play_begin_again(&play_settings);
            play_nodes_up();
            const struct engine_acquire acquire = {.resource = span_of("pool"),
                                                   .ttl_ms = 30000,
                                                   .wait_ms = wait_ms,
                                                   .limit = 3,
                                                   .permits = 2};
            starve = (struct starve){.is_on = true, .left = n};
            engine_op op = engine_acquire(play.engine, &acquire, NULL);
            starve.is_on = false;
            if (starve.left > 0)
                break;
            ck_assert_uint_eq(metrics_waiters(&play.metrics),
                              op != 0 && wait_ms > 0);
            if (op == 0)
                continue;
            if (wait_ms > 0) {
                play_await_round(PLAY_NODES);
                waiting_grant();
                ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
            } else {
                ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
            }
            engine_close(play.engine, op);
        }
}

/* ---- the end ------------------------------------------------------------ */

/* While it is tried, or when it is granted. */
TEST_RANGE(a_client_that_left_gives_its_slot_back, 0, 2)
{
    waiting_play(_i == 0 ? "a#1,0" : "a#1,0 grant");
    ck_assert(engine_abandon(play.engine, waiting_op('a')) == (_i == 1));
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    waiting_play(_i == 0 ? "grant b#1,0 slots=0 grant b=granted"
                         : "b#1,0 slots=0 grant b=granted");
}

TEST(a_grant_that_is_taken_too_late_is_none)
{
    waiting_play("a#1,0 grant pass:31000000");
    ck_assert_int_eq(play_outcome(waiting_op('a')), OUTCOME_VALIDITY_EXHAUSTED);
    ck_assert(span_is(play_result(waiting_op('a'))->resource, "pool"));
    waiting_play("a.");
}

/* Nobody is left in its pool when the nodes answer: it is idle, and once. What
 * they tell is told to the next, too. */
TEST(story_63_a_query_outlives_the_last_that_asked)
{
    for (int i = 1; i <= 3; i++)
        waiting_play(textf("a#3,k,0 a- told3:110 queries=%d", i));
    waiting_play("a#3,0 slots=2");
}

/* Both lists use the same link. A pool that is in the idle list twice stays
 * there when a client waits for it: the next idle pool joins the wrong list. */
TEST(story_63_a_pool_that_is_used_again_is_not_idle)
{
    waiting_play("a#3,k,0 a- told3:110 a#3");
    engine_op other = waiting_acquire((struct engine_acquire){
        .resource = span_of("other"), .limit = 1, .permits = 1});
    ck_assert(!engine_abandon(play.engine, other));
    waiting_play("pass:100000 " /* examines all pools that are waited for */
                 "a=pending waits=1");
}
