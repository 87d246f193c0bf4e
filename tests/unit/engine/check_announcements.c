/* SPDX-License-Identifier: MIT */

#include "../../lib/suite/suite.h"
#include "waiting.h"

SUITE(announcements, .set_up = play_begin, .tear_down = play_end);

/* ---- announcements ------------------------------------------------------ */

TEST(a_quorum_of_announcements_wakes_at_once)
{
    (void)waiting_for_news();
    waiting_announce(0);
    waiting_announce(1);
    waiting_play("tries=2");
    waiting_announce(2);
    waiting_play("tries=3 grant");
    ck_assert_uint_eq(play.metrics.handovers[HANDOVER_ANNOUNCEMENT], 1);
}

TEST(one_announcement_wakes_after_five_milliseconds)
{
    (void)waiting_for_news();
    waiting_announce(4);
    waiting_announce(4);
    waiting_announce(4); /* counts once */
    waiting_play("pass:4999 tries=2 pass:1 tries=3");
}

TEST(announcements_of_an_earlier_lock_wake_nobody)
{
    engine_op a = waiting_ask(), b = waiting_ask();
    waiting_grant();
    waiting_begin_to_announce(PLAY_RESOURCE, 3);
    waiting_find_held(); /* once more, as a quorum announces now */
    engine_close(play.engine, a);
    int before = waiting_attempts();
    for (int i = 0; i < PLAY_NODES; i++)
        engine_on_announced(play.engine, i, PLAY_RESOURCE, 0); /* unknown */
    ck_assert_int_eq(waiting_attempts(), before + 1);
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, PLAY_TOKEN_OF(5));
    play_advance(10000); /* its own next try, as two more had announced it */
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, PLAY_TOKEN_OF(5));
    play_advance(330000); /* past the doubt */
    before = waiting_attempts();
    for (int i = 0; i < PLAY_NODES; i++)
        engine_on_announced(play.engine, i, PLAY_RESOURCE, 4);
    play_advance(10000);
    ck_assert_int_eq(waiting_attempts(), before);
    waiting_check(b);
}

/* Somebody else may publish what he likes, as often as he likes. */
TEST(false_announcements_cost_less_and_less)
{
    engine_op op = waiting_for_news();
    int tries = 0;
    for (int ms = 0; ms < 4000; ms++) {
        for (int i = 0; i < PLAY_NODES; i++) {
            waiting_announce(i);
            engine_on_announced(play.engine, i, span_of(""), 0);
        }
        if (play_find(CALL_ACQUIRE, 0) != NULL) {
            waiting_find_held();
            tries++;
        }
        play.sent_count = 0;
        play_advance(1000);
    }
    waiting_check(op);
    ck_assert_int_ge(tries, 20); /* one may be true */
    ck_assert_int_le(tries, 40);
}

/* A node that misses the lock announces what our own attempts leave there. */
TEST(echoes_of_its_own_attempts_cost_less_and_less)
{
    engine_op op = waiting_ask();
    int tries = 0;
    for (int ms = 0; ms < 4000; ms++) {
        if (play_find(CALL_ACQUIRE, 0) != NULL) {
            waiting_find_held();
            tries++;
            play.sent_count = 0;
            waiting_announce(0);
        }
        play_advance(1000);
    }
    waiting_check(op);
    ck_assert_int_ge(tries, 40); /* by the delay alone */
    ck_assert_int_le(tries, 90);
}

TEST(it_tries_once_more_when_a_quorum_begins_to_announce)
{
    (void)waiting_ask();
    waiting_find_held();
    ck_assert(play.is_listening);
    ck_assert_int_eq(play_count(CALL_LISTEN), PLAY_NODES);
    waiting_begin_to_announce(PLAY_RESOURCE, 2);
    ck_assert_int_eq(waiting_attempts(), 1);
    engine_on_listener_up(play.engine, 4);
    engine_on_announced(play.engine, 4, span_of(""), 0);
    ck_assert_int_eq(waiting_attempts(), 1); /* not yet for this resource */
    engine_on_subscribed(play.engine, 4, PLAY_RESOURCE);
    ck_assert_int_eq(waiting_attempts(), 2);
}

TEST(a_node_without_heartbeats_does_not_announce)
{
    (void)waiting_ask();
    waiting_find_held();
    for (int i = 0; i < PLAY_NODES; i++) {
        engine_on_listener_up(play.engine, i);
        engine_on_subscribed(play.engine, i, PLAY_RESOURCE);
    }
    play_await_round(2 * PLAY_NODES); /* by the short delay */
    waiting_find_held();
    play_await_round(3 * PLAY_NODES);
}

TEST(when_the_announcing_quorum_is_lost_it_tries_by_itself_again)
{
    (void)waiting_for_news();
    engine_on_listener_down(play.engine, 1);
    waiting_play("round:3");
}

TEST(when_heartbeats_end_it_tries_by_itself_again)
{
    (void)waiting_for_news();
    play_advance(3300000);
    ck_assert_int_gt(waiting_attempts(), 2);
}

TEST(a_connection_that_comes_back_is_subscribed_again)
{
    (void)waiting_for_news();
    int before = play.subscriptions[1];
    engine_on_listener_down(play.engine, 1);
    engine_on_listener_up(play.engine, 1);
    ck_assert_int_eq(play.subscriptions[1], before + 1);
}

TEST(listening_ends_a_while_after_the_last_waiter)
{
    engine_op op = waiting_for_news();
    int listens = play_count(CALL_LISTEN);
    waiting_heartbeats(3000000);
    ck_assert_int_ge(play_count(CALL_LISTEN), listens + 2 * PLAY_NODES);
    (void)engine_abandon(play.engine, op);
    waiting_heartbeats(1000000);
    ck_assert(play.is_listening);
    waiting_heartbeats(8000000);
    ck_assert(!play.is_listening);
    ck_assert_int_eq(play.subscriptions[4], 0);
}

/* ---- several servers ------------------------------------------------------
 */

static void release_heard_by(const char *token, int64_t listeners)
{
    (void)play_release(span_of(token));
    for (int i = 0; i < PLAY_NODES; i++)
        PLAY_REPLY(CALL_RELEASE, i, .vote = VOTE_DELETED,
                   .listeners = listeners);
}

/* Passes the lock on so many times; two wait all the time. */
static void pass_on(int times, int64_t listeners)
{
    (void)waiting_ask();
    (void)waiting_ask();
    waiting_grant();
    for (int i = 0; i < times; i++) {
        (void)waiting_ask();
        play.sent_count = 0;
        release_heard_by(PLAY_TOKEN, listeners);
        ck_assert_int_eq(waiting_attempts(), 1);
        waiting_grant();
    }
    play.sent_count = 0;
}

static void announce_all(int64_t number)
{
    for (int i = 0; i < PLAY_NODES; i++)
        engine_on_announced(play.engine, i, PLAY_RESOURCE, number);
}

/* A number above all that this server was granted. */
static int64_t later_number(void)
{
    return PLAY_EPOCH_US + play.now_us + 60000000;
}

TEST(others_get_their_turn_when_all_that_waited_had_theirs)
{
    pass_on(1, 2);
    release_heard_by(PLAY_TOKEN, 2);
    waiting_play("tries=0");
    announce_all(0);
    waiting_play("pass:4999 tries=0 pass:50000 tries=1"); /* nobody took it */
}

TEST(when_another_server_had_the_lock_it_tries_at_once)
{
    pass_on(1, 2);
    release_heard_by(PLAY_TOKEN, 2);
    waiting_play("tries=0");
    announce_all(later_number());
    waiting_play("tries=1");
}

/* What a client does that asks again and again. */
TEST(whoever_asks_again_lets_others_go_first_too)
{
    waiting_play("a@ grant");
    release_heard_by(PLAY_TOKEN, 2); /* now it knows of others */
    release_heard_by(PLAY_TOKEN, 2);
    play.sent_count = 0;
    waiting_play("b@ c@,1 tries=0 pass:50000 tries=1 grant b=granted c=held");
}

TEST(whoever_has_no_time_for_it_tries_at_once)
{
    waiting_play("a@ grant");
    release_heard_by(PLAY_TOKEN, 2);
    release_heard_by(PLAY_TOKEN, 2);
    play.sent_count = 0;
    waiting_play("b@,1 tries=1");
}

/* It does not sleep for up to --retry-delay-ms. */
TEST(after_split_votes_an_announcement_wakes_it)
{
    play.random_byte = 0xff;
    (void)waiting_for_news();
    announce_all(later_number());
    play_split_votes();
    int before = waiting_attempts();
    announce_all(later_number() + 1);
    play_advance(5000);
    ck_assert_int_eq(waiting_attempts(), before + 1);
}

TEST(alone_it_need_not_let_others_go_first)
{
    pass_on(40, 1);
    release_heard_by(PLAY_TOKEN, 1);
    ck_assert_int_eq(waiting_attempts(), 1);
}
