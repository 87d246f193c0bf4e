/*
 * Permits that clients wait for.
 */

#include "../../lib/suite/suite.h"
#include "pooling.h"
#include "waiting.h"

SUITE(permits_waits, .set_up = play_begin, .tear_down = play_end);

static engine_op wait_for(int limit, int permits)
{
    return pooling_ask(limit, permits, POOLING_WAIT_MS);
}

/* The pool is full, and so many clients wait. */
static void fill(int limit, int waiting, engine_op ops[])
{
    for (int i = 0; i < limit; i++)
        (void)pooling_win(limit);
    for (int i = 0; i < waiting; i++)
        ops[i] = wait_for(limit, 1);
    pooling_tell(5, textf("%.*s", limit, "1111111111"));
}

/* The same with one slot and one client; nodes announce releases, and were
 * asked after they began to: 5 s are left of the TTL. */
static engine_op watch_full(void)
{
    engine_op ops[1];
    fill(1, 1, ops);
    waiting_begin_to_announce(span_of(SLOT()), 3);
    play_advance(25000); /* a release may have been missed */
    ck_assert_int_eq(pooling_queries(), 2);
    pooling_tell(5, "1");
    return ops[0];
}

/* A query finds a slot free: it is tried, and granted. */
static void check_granted_after_query(engine_op op)
{
    pooling_tell(3, "0");
    pooling_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

static void check_pending(engine_op op)
{
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
}

TEST(a_free_slot_is_granted_at_once)
{
    engine_op op = wait_for(2, 1);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 1);
    pooling_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert_int_eq(play_result(op)->waited_ms, 0);
    ck_assert(!play.is_listening);
    engine_close(play.engine, op);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 0);
}

TEST(one_query_is_enough_for_all_that_wait)
{
    engine_op ops[5];
    fill(3, 5, ops);
    ck_assert_int_eq(pooling_queries(), 1);
    ck_assert_int_eq(pooling_tries(), 3);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 5);
    ck_assert(play.is_listening);
    for (int i = 0; i < 5; i++)
        check_pending(ops[i]);
}

TEST(a_released_slot_goes_to_the_first_in_the_same_batch)
{
    engine_op ops[2];
    fill(3, 2, ops);
    int before = play.sent_count;
    pooling_release(SLOT(1), 7);
    for (int i = 0; i < PLAY_NODES; i++) {
        ck_assert_int_eq(play.sent[before + i].call.kind, CALL_RELEASE);
        ck_assert_int_eq(play.sent[before + PLAY_NODES + i].call.kind,
                         CALL_ACQUIRE);
    }
    ck_assert_str_eq(pooling_tried(), SLOT(1));
    pooling_grant();
    ck_assert_int_eq(play_outcome(ops[0]), OUTCOME_GRANTED);
    check_pending(ops[1]);
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_RELEASE], 1);
}

TEST(each_of_several_released_slots_goes_to_another)
{
    engine_op ops[3];
    fill(3, 3, ops);
    for (int i = 0; i < 3; i++) {
        const char *name = textf("pool" NAMES_SLOT "%d", i);
        pooling_release(name, 7);
        ck_assert_str_eq(pooling_tried(), name);
    }
    ck_assert_int_eq(pooling_tries(), 6);
    for (int i = 0; i < 3; i++)
        pooling_grant();
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(play_outcome(ops[i]), OUTCOME_GRANTED);
}

/* With another token, or none: the slot is held as before. */
TEST(a_release_that_frees_nothing_costs_nobody_his_place)
{
    engine_op ops[2];
    fill(2, 2, ops);
    pooling_release(SLOT(0), 7);
    pooling_hold();
    ck_assert_int_eq(pooling_queries(), 2);
    pooling_tell(5, "11");
    pooling_release(SLOT(1), 7);
    pooling_grant();
    ck_assert_int_eq(play_outcome(ops[0]), OUTCOME_GRANTED);
    check_pending(ops[1]);
}

TEST(one_that_wants_many_is_not_overtaken)
{
    engine_op ops[1];
    fill(3, 1, ops);
    engine_op wide = wait_for(3, 2), last = wait_for(3, 1);
    pooling_release(SLOT(0), 7);
    pooling_grant();
    ck_assert_int_eq(play_outcome(ops[0]), OUTCOME_GRANTED);
    pooling_release(SLOT(1), 7);
    ck_assert_int_eq(pooling_tries(), 4); /* kept for the wide one */
    pooling_release(SLOT(2), 7);
    ck_assert_str_eq(pooling_tried(), SLOT(1) "\n" SLOT(2));
    pooling_grant();
    ck_assert_int_eq(play_outcome(wide), OUTCOME_GRANTED);
    check_pending(last);
}

/* The first cannot use it, so it holds up nobody. */
TEST(a_slot_above_its_limit_goes_to_another)
{
    engine_op ops[1];
    fill(2, 1, ops);
    engine_op op = wait_for(3, 1);
    ck_assert_str_eq(pooling_tried(), SLOT(2));
    pooling_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    check_pending(ops[0]);
}

TEST(one_that_does_not_wait_stands_behind_those_that_do)
{
    engine_op ops[1];
    fill(1, 1, ops);
    engine_op op = pooling_ask(1, 1, 0);
    ck_assert_int_eq(pooling_queries(), 2);
    pooling_tell(3, "0");
    pooling_grant();
    ck_assert_int_eq(play_outcome(ops[0]), OUTCOME_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
}

/* Whoever is refused stands in no queue, and has no say in that. */
TEST_RANGE(a_query_follows_when_a_ttl_has_ended, 0, 2)
{
    if (_i == 1)
        waiting_begin_limited(1);
    engine_op op = watch_full();
    if (_i == 1)
        ck_assert_int_eq(play_outcome(wait_for(1, 1)),
                         OUTCOME_TOO_MANY_WAITERS);
    waiting_heartbeats(4900000);
    ck_assert_int_eq(pooling_queries(), 2);
    waiting_heartbeats(130000);
    ck_assert_int_eq(pooling_queries(), 3);
    check_granted_after_query(op);
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_EXPIRY], 1);
}

TEST(without_announcements_it_asks_again_and_again)
{
    engine_op ops[1];
    fill(1, 1, ops);
    for (int round = 2; round < 6; round++) {
        int64_t until_us = play.now_us + play_settings.retry_delay_us;
        while (pooling_queries() < round && play.now_us < until_us)
            play_advance(1000);
        ck_assert_int_eq(pooling_queries(), round);
        pooling_tell(5, "1");
    }
    check_pending(ops[0]);
}

static void announce(int node, const char *name, int64_t number)
{
    engine_on_announced(play.engine, node, span_of(name), number);
}

TEST(a_quorum_of_announcements_leads_to_a_try)
{
    engine_op ops[1];
    fill(2, 1, ops);
    int64_t number = PLAY_EPOCH_US * 2;
    announce(0, SLOT(1), number);
    announce(1, SLOT(1), number);
    ck_assert_int_eq(pooling_tries(), 2);
    announce(2, SLOT(1), number);
    ck_assert_int_eq(pooling_tries(), 3);
    ck_assert_str_eq(pooling_tried(), SLOT(1));
    announce(3, SLOT(1), number);
    pooling_grant();
    announce(4, SLOT(1), number);
    ck_assert_int_eq(pooling_tries(), 3);
    ck_assert_int_eq(play_outcome(ops[0]), OUTCOME_GRANTED);
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_ANNOUNCEMENT], 1);
}

TEST(few_announcements_lead_to_a_try_after_a_while)
{
    engine_op ops[1];
    fill(2, 1, ops);
    announce(4, SLOT(0), PLAY_EPOCH_US * 2);
    play_advance(4000);
    ck_assert_int_eq(pooling_tries(), 2);
    play_advance(2000);
    ck_assert_int_eq(pooling_tries(), 3);
    ck_assert_str_eq(pooling_tried(), SLOT(0));
}

/* The nodes tell everybody of a release that was handed over here. */
TEST(the_echo_of_a_hand_over_leads_to_nothing)
{
    engine_op ops[2];
    fill(1, 2, ops);
    pooling_release(SLOT(0), 7);
    for (int i = 0; i < 2; i++)
        announce(i, SLOT(0), 7);
    pooling_grant();
    for (int i = 2; i < 5; i++)
        announce(i, SLOT(0), 7);
    play_advance(10000);
    ck_assert_int_eq(pooling_tries(), 2);
    check_pending(ops[1]);
}

/* Other servers hand their slots over, too. */
TEST(after_a_wrong_announcement_it_asks_first)
{
    engine_op ops[1];
    fill(2, 1, ops);
    for (int i = 0; i < 3; i++)
        announce(i, SLOT(0), PLAY_EPOCH_US * 2);
    pooling_hold();
    pooling_tell(5, "11");
    ck_assert_int_eq(pooling_tries(), 3);
    int queries = pooling_queries();
    for (int i = 0; i < 3; i++)
        announce(i, SLOT(0), PLAY_EPOCH_US * 2 + 1);
    play_advance(3000);
    ck_assert_int_eq(pooling_tries(), 3);
    ck_assert_int_eq(pooling_queries(), queries + 1);
    pooling_tell(5, "01");
    ck_assert_str_eq(pooling_tried(), SLOT(0));
    pooling_grant();
    ck_assert_int_eq(play_outcome(ops[0]), OUTCOME_GRANTED);
}

/* Clients of other servers wait, too. */
TEST(after_many_hand_overs_others_get_their_turn)
{
    enum { TURNS = 17 };
    engine_op ops[TURNS + 1];
    (void)pooling_win(1);
    for (int i = 0; i <= TURNS; i++)
        ops[i] = wait_for(1, 1);
    pooling_tell(5, "1");
    play.sent_count = 0;
    for (int i = 0; i < TURNS; i++) {
        int tries = play_count(CALL_ACQUIRE);
        engine_op op = engine_release(play.engine, span_of(SLOT(0)),
                                      play_token(7 + i), NULL);
        for (int node = 0; node < PLAY_NODES; node++)
            PLAY_REPLY(CALL_RELEASE, node, .vote = VOTE_DELETED,
                       .listeners = 2);
        engine_close(play.engine, op);
        bool is_handed_over = play_count(CALL_ACQUIRE) > tries;
        ck_assert_int_eq(is_handed_over, i < TURNS - 1);
        if (!is_handed_over)
            break;
        pooling_grant();
        engine_close(play.engine, ops[i]);
        play.sent_count = 0;
    }
    play_advance(6000); /* nobody took it */
    ck_assert_int_eq(pooling_tries(), 1);
}

TEST(when_its_time_is_up_it_is_refused)
{
    engine_op first = watch_full();
    engine_op op = pooling_ask(1, 1, 300);
    play_advance(301000);
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    ck_assert_int_eq(play_result(op)->waited_ms, 300);
    ck_assert_int_eq(play_result(op)->remaining_ms, 4700);
    check_pending(first);
}

TEST(a_lost_quorum_is_waited_for)
{
    play_nodes_down(3);
    engine_op op = pooling_ask(1, 1, 1000);
    check_pending(op);
    play_advance(500000);
    check_pending(op);
    play_advance(501000);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    engine_close(play.engine, op);
}

TEST(one_that_leaves_makes_room_for_the_next)
{
    engine_op ops[2];
    fill(1, 2, ops);
    ck_assert(!engine_abandon(play.engine, ops[0]));
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 1);
    pooling_release(SLOT(0), 7);
    ck_assert(!engine_abandon(play.engine, ops[1])); /* while it tries */
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 0);
}

TEST(a_grant_that_its_client_does_not_take_goes_to_the_next)
{
    engine_op ops[2];
    fill(1, 2, ops);
    pooling_release(SLOT(0), 7);
    pooling_grant();
    int tries = pooling_tries();
    ck_assert(engine_abandon(play.engine, ops[0]));
    ck_assert_int_eq(pooling_tries(), tries + 1);
    pooling_grant();
    ck_assert_int_eq(play_outcome(ops[1]), OUTCOME_GRANTED);
}

/* ---- clients that have left, which nothing tells ------------------------- */

static engine_op wait_with(const char *key, int permits)
{
    return engine_acquire(play.engine,
                          &(struct engine_acquire){.resource = span_of("pool"),
                                                   .key_hash = span_of(key),
                                                   .ttl_ms = 30000,
                                                   .wait_ms = POOLING_WAIT_MS,
                                                   .limit = 2,
                                                   .permits = permits},
                          NULL);
}

TEST_RANGE(story_75_who_asks_again_without_a_wait_waits_no_more, 1, 3)
{
    engine_op first[1];
    fill(2, 1, first);
    engine_op ghost = wait_with(PLAY_KEY, _i);
    engine_op other = wait_with("-_0123456789abcdefghij", _i);
    pooling_tell(5, "11");
    (void)pooling_ask_with_key(2, _i, PLAY_KEY);
    ck_assert_int_eq(play_outcome(ghost), OUTCOME_HELD);
    check_pending(first[0]);
    check_pending(other);
    engine_close(play.engine, ghost);
}

TEST(story_75_the_permit_that_it_tries_is_released)
{
    engine_op ghost = wait_with(PLAY_KEY, 1);
    pooling_tell(5, "00");
    ck_assert_int_eq(pooling_tries(), 1);
    (void)pooling_ask_with_key(2, 1, PLAY_KEY);
    ck_assert_int_eq(play_outcome(ghost), OUTCOME_HELD);
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    engine_close(play.engine, ghost);
}
