#include "waiting.h"

#include <check.h>

/* ---- clients ------------------------------------------------------------ */

engine_op waiting_acquire(struct engine_acquire acquire)
{
    acquire.ttl_ms = 30000;
    engine_op op = engine_acquire(play.engine, &acquire, NULL);
    ck_assert(op != 0);
    return op;
}

void waiting_begin_limited(int most)
{
    struct engine_settings settings = play_settings;
    settings.waiters_max = most;
    play_begin_again(&settings);
    play_nodes_up();
}

engine_op waiting_ask_for(struct span resource, int64_t wait_ms)
{
    return waiting_acquire((struct engine_acquire){
        .resource = resource, .owner = span_of("web-3"), .wait_ms = wait_ms});
}

engine_op waiting_ask(void)
{
    return waiting_ask_for(PLAY_RESOURCE, WAITING_MS);
}

void waiting_check(engine_op op)
{
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
}

/* ---- nodes -------------------------------------------------------------- */

/* The oldest attempt that is under way. */
void waiting_find_held(void)
{
    play.now_us += WAITING_ROUND_TRIP_US;
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, WAITING_OTHERS);
}

void waiting_grant(void)
{
    play.now_us += WAITING_ROUND_TRIP_US;
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_GRANTED);
}

int waiting_attempts(void)
{
    return play_count(CALL_ACQUIRE) / PLAY_NODES;
}

/* Answers the listen calls, and the nodes announce from now on. */
void waiting_begin_to_announce(struct span resource, int nodes)
{
    for (int i = 0; i < nodes; i++) {
        engine_on_listener_up(play.engine, i);
        engine_on_subscribed(play.engine, i, span_of(""));
        engine_on_subscribed(play.engine, i, resource);
        engine_on_announced(play.engine, i, span_of(""), 0);
    }
}

/* One client waits, a quorum announces, and nothing is under way. */
engine_op waiting_for_news(void)
{
    engine_op op = waiting_ask();
    waiting_find_held();
    waiting_begin_to_announce(PLAY_RESOURCE, 3);
    ck_assert_int_eq(waiting_attempts(),
                     2); /* a release may have been missed */
    waiting_find_held();
    return op;
}

void waiting_announce(int node)
{
    engine_on_announced(play.engine, node, PLAY_RESOURCE, 1);
}

void waiting_heartbeats(int64_t us)
{
    for (int64_t passed_us = 0; passed_us < us; passed_us += 1000000) {
        for (int i = 0; i < 3; i++)
            engine_on_announced(play.engine, i, span_of(""), 0);
        play_advance(us - passed_us < 1000000 ? us - passed_us : 1000000);
    }
}
