/* SPDX-License-Identifier: MIT */
/*
 * Permits: what the nodes are asked, and what the client is told.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "ask.h"

#define BODY "{'resource':'pool','limit':1}"

SUITE(locks_permits, .set_up = ask_begin, .tear_down = ask_end);

TEST(a_full_pool_is_held)
{
    ck_assert(!ask_send("POST", "/locks", BODY));
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, PLAY_TOKEN_OF(1) ".me");
    for (int i = 0; i < 3; i++)
        PLAY_REPLY(CALL_SLOTS, i, .vote = VOTE_DONE, .pttl_ms = 500,
                   .slots = span_of("1"));
    ask_expect_now(409, "lock_held");
    ask_expect_members("id=pool resource=pool -held_by");
    ask_expect_retry(500);
    ask_expect_closed();
}

TEST(without_a_quorum_the_pool_is_told)
{
    play_nodes_down(3);
    ck_assert(!ask_send("POST", "/locks", BODY));
    ask_expect_now(503, "no_quorum");
    ck_assert_str_eq(ask_text("id"), "pool");
}

/* ---- the slots of a pool ------------------------------------------------- */

static bool send_look(const char *id, const char *limit)
{
    static char target[64]; /* the request borrows from it */
    snprintf(target, sizeof target, "/pools/%s", id);
    query_add(&ask.request.query, span_of("limit"), span_of(limit));
    return ask_send("GET", target, NULL);
}

static void look(const char *id, const char *limit)
{
    ck_assert(!send_look(id, limit));
    ck_assert_int_eq(ask.request.counted_as, METRICS_LIST);
}

TEST(the_slots_of_a_pool_are_told)
{
    look("pool", "3");
    for (int i = 0; i < PLAY_NODES; i++) {
        play_answer(CALL_INSPECT, i, VOTE_FREE);
        play_answer_held(CALL_INSPECT, i, PLAY_TOKEN_OF(7) ".me");
        play_answer(CALL_INSPECT, i, VOTE_FREE);
    }
    ask_expect_now(200, NULL);
    ask_expect_members(
        "id=pool limit=3 waiters=0 slots=#1 slots.0.slot=1 "
        "slots.0.fencing_token=7 slots.0.owner=me free=#2 free.0=0 free.1=2");
}

TEST(clients_that_wait_for_a_pool_are_counted)
{
    const struct engine_acquire acquire = {.resource = span_of("pool"),
                                           .ttl_ms = 30000,
                                           .wait_ms = 1000,
                                           .limit = 1,
                                           .permits = 1};
    for (int i = 0; i < 2; i++)
        ck_assert(engine_acquire(play.engine, &acquire, NULL) != 0);
    look("pool", "1");
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
    ask_answer(play.now_us);
    ck_assert_int_eq(ask_number("waiters"), 2);
}

TEST(without_answers_the_slots_are_unknown)
{
    play_nodes_down(3);
    look("pool", "1");
    ask_expect_now(503, "no_quorum");
}

static const struct {
    const char *id, *limit;
} bad[] = {
    {"pool", "0"},   {"pool", "1001"},   {"pool", ""},
    {"pool", "a"},   {"~cG9vbB8w", "1"}, /* a slot */
    {"~~YQpi", "1"},                     /* a and b */
};

TEST_EACH(what_is_no_pool_is_refused, bad)
{
    ck_assert(send_look(bad[_i].id, bad[_i].limit));
    ask_expect(400, "invalid_request");
    ck_assert_int_eq(play.sent_count, 0);
}
