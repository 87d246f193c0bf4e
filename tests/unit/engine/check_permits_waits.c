/* SPDX-License-Identifier: MIT */
/*
 * Permits that clients wait for.
 */

#include "../../lib/suite/suite.h"
#include "waiting.h"

SUITE(permits_waits, .set_up = play_begin, .tear_down = play_end);

/* ---- who is next -------------------------------------------------------- */

static const char *const queues[] = {
    /* each of several released slots goes to another */
    "full#3 a#3 b#3 c#3 told:111 free#0 slots=0 free#1 slots=1 free#2 slots=2 "
    "tries=6 grant grant grant a=granted b=granted c=granted",
    /* a release that frees nothing costs nobody his place: with another token,
       or none, the slot is held as before */
    "full#2 a#2 b#2 told:11 free#0 held queries=2 told:11 free#1 grant "
    "a=granted b=pending",
    /* one that wants many is not overtaken: a slot is kept for it */
    "full#3 a#3 told:111 b#3,n2 c#3 free#0 grant a=granted free#1 tries=4 "
    "free#2 slots=1+2 grant b=granted c=pending",
    /* a slot above the limit of the first goes to another */
    "full#2 a#2 told:11 b#3 slots=2 grant b=granted a=pending",
    /* one that does not wait stands behind those that do */
    "full#1 a#1 told:1 b#1,0 queries=2 told3:0 grant a=granted b=held",
    /* one that leaves, also while it tries, makes room for the next */
    "full#1 a#1 b#1 told:1 a- waits=1 free#0 b- waits=0",
    /* few announcements lead to a try after a while */
    "full#2 a#2 told:11 said4#0 pass:4000 tries=2 pass:2000 tries=3 slots=0",
    /* a lost quorum is waited for */
    "down:3 a#1,1000 pass:500000 a=pending pass:501000 a=no_quorum a.",
};

TEST_EACH(permits_have_one_queue, queues)
{
    waiting_play(queues[_i]);
}

TEST(a_free_slot_is_granted_at_once)
{
    waiting_play("a#2 waits=1 grant a=granted");
    ck_assert_int_eq(play_result(waiting_op('a'))->waited_ms, 0);
    ck_assert(!play.is_listening);
    waiting_play("a. waits=0");
}

TEST(one_query_is_enough_for_all_that_wait)
{
    waiting_play("full#3 a#3 b#3 c#3 d#3 e#3 told:111 queries=1 tries=3 "
                 "waits=5 answers=3");
    ck_assert(play.is_listening);
}

TEST(a_released_slot_goes_to_the_first_in_the_same_batch)
{
    waiting_play("full#3 a#3 b#3 told:111");
    int before = play.sent_count;
    waiting_play("free#1");
    for (int i = 0; i < PLAY_NODES; i++) {
        ck_assert_int_eq(play.sent[before + i].call.kind, CALL_RELEASE);
        ck_assert_int_eq(play.sent[before + PLAY_NODES + i].call.kind,
                         CALL_ACQUIRE);
    }
    waiting_play("slots=1 grant a=granted b=pending");
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_RELEASE], 1);
}

/* ---- what wakes them ---------------------------------------------------- */

/* One waits for the only slot; nodes announce releases, and were asked after
 * they began to: 5 s are left of the TTL. */
static void watch_full(void)
{
    waiting_play("full#1 a#1 told:1 news# pass:25000 queries=2 told:1");
}

/* Whoever is refused stands in no queue, and has no say in that. */
TEST_RANGE(a_query_follows_when_a_ttl_has_ended, 0, 2)
{
    if (_i == 1)
        waiting_begin_limited(1);
    watch_full();
    if (_i == 1)
        waiting_play("b#1 b=full");
    waiting_heartbeats(4900000);
    waiting_play("queries=2");
    waiting_heartbeats(130000);
    waiting_play("queries=3 told3:0 grant a=granted");
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_EXPIRY], 1);
}

TEST(without_announcements_it_asks_again_and_again)
{
    waiting_play("full#1 a#1 told:1");
    for (int round = 2; round < 6; round++) {
        int64_t until_us = play.now_us + play_settings.retry_delay_us;
        while (waiting_queries() < round && play.now_us < until_us)
            play_advance(1000);
        ck_assert_int_eq(waiting_queries(), round);
        waiting_play("told:1");
    }
    waiting_play("a=pending");
}

TEST(a_quorum_of_announcements_leads_to_a_try)
{
    waiting_play("full#2 a#2 told:11 said0#1 said1#1 tries=2 said2#1 tries=3 "
                 "slots=1 said3#1 grant said4#1 tries=3 a=granted");
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_ANNOUNCEMENT], 1);
}

static void announce(int from, int to, int64_t number)
{
    for (int i = from; i < to; i++)
        engine_on_announced(play.engine, i, span_of(SLOT(0)), number);
}

/* The nodes tell everybody of a release that was handed over here. */
TEST(the_echo_of_a_hand_over_leads_to_nothing)
{
    waiting_play("full#1 a#1 b#1 told:1 free#0");
    announce(0, 2, 7);
    waiting_play("grant");
    announce(2, 5, 7);
    waiting_play("pass:10000 tries=2 b=pending");
}

/* Other servers hand their slots over, too. */
TEST(after_a_wrong_announcement_it_asks_first)
{
    waiting_play("full#2 a#2 told:11 said0#0 said1#0 said2#0 held told:11 "
                 "tries=3 queries=2");
    announce(0, 3, PLAY_EPOCH_US * 2 + 1);
    waiting_play("pass:3000 tries=3 queries=3 told:01 slots=0 grant a=granted");
}

/* Clients of other servers wait, too. */
TEST(after_many_hand_overs_others_get_their_turn)
{
    enum { TURNS = 17 };
    engine_op ops[TURNS + 1];
    (void)waiting_win(1);
    for (int i = 0; i <= TURNS; i++)
        ops[i] =
            waiting_acquire((struct engine_acquire){.resource = span_of("pool"),
                                                    .wait_ms = WAITING_MS,
                                                    .limit = 1,
                                                    .permits = 1});
    waiting_play("told:1");
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
        waiting_grant();
        engine_close(play.engine, ops[i]);
        play.sent_count = 0;
    }
    waiting_play("pass:6000 tries=1"); /* nobody took it */
}

/* ---- the end of waiting ------------------------------------------------- */

TEST(when_its_time_is_up_it_is_refused)
{
    watch_full();
    waiting_play("b#1,300 pass:301000 b=held a=pending");
    ck_assert_int_eq(play_result(waiting_op('b'))->waited_ms, 300);
    ck_assert_int_eq(play_result(waiting_op('b'))->remaining_ms, 4700);
}

TEST(a_grant_that_its_client_does_not_take_goes_to_the_next)
{
    waiting_play("full#1 a#1 b#1 told:1 free#0 grant tries=2");
    ck_assert(engine_abandon(play.engine, waiting_op('a')));
    waiting_play("tries=3 grant b=granted");
}

/* A client that has left, which nothing tells. */
TEST_RANGE(story_75_who_asks_again_without_a_wait_waits_no_more, 1, 3)
{
    waiting_play(textf("full#2 a#2 b#2,k,n%d c#2,K,n%d told:11 d#2,k,0,n%d "
                       "b=held a=pending c=pending b.",
                       _i, _i, _i));
}

TEST(story_75_the_permit_that_it_tries_is_released)
{
    waiting_play("a#2,k told:00 tries=1 b#2,k,0 a=held");
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    waiting_play("a.");
}
