/* SPDX-License-Identifier: MIT */
/*
 * A server without work: it wakes up for its examines the nodes only, and is as
 * awake as any other when a client asks or a node changes.
 */
#include "../../../server/engine/port/port.h"
#include "../../../server/engine/voting/nodes.h"
#include "../../lib/suite/suite.h"
#include "../play.h"

enum { TICK_US = 20000, PROBE_US = 1000000, SPAN_US = 20 * PROBE_US };

/* How often its tick comes in this time; the nodes answer each probe. */
static int ticks_in(int64_t us)
{
    int count = 0;
    int64_t end_us = play.now_us + us;
    while (play.now_us < end_us) {
        int64_t due_us = play.timer_us[TIMER_TICK];
        if (due_us > end_us)
            due_us = end_us;
        else
            count++;
        play_advance(due_us - play.now_us);
        play_answer_all_probes();
        play.sent_count = 0;
    }
    return count;
}

static void await_rest(void)
{
    play_answer_all_probes();
    (void)ticks_in(3 * PROBE_US);
}

static int64_t next_tick_us(void)
{
    return play.timer_us[TIMER_TICK] - play.now_us;
}

SUITE(rest, .set_up = play_begin, .tear_down = play_end);

TEST(at_rest_there_is_a_tick_for_each_probe)
{
    await_rest();
    ck_assert_int_le(ticks_in(SPAN_US), 2 * SPAN_US / PROBE_US);
    ck_assert_int_ge(ticks_in(SPAN_US), SPAN_US / PROBE_US - 1);
}

TEST(an_operation_ends_the_rest_and_its_end_begins_it)
{
    await_rest();
    engine_op op = play_acquire();
    ck_assert_int_le(next_tick_us(), TICK_US);
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_GRANTED);
    ck_assert_int_ge(ticks_in(PROBE_US / 2), 20);
    ck_assert(engine_abandon(play.engine, op));
    play_answer_range(CALL_RELEASE, 0, PLAY_NODES, VOTE_DELETED);
    await_rest();
    ck_assert_int_le(ticks_in(SPAN_US), 2 * SPAN_US / PROBE_US);
}

/* The last tick may be long ago when a call comes. */
TEST(whether_nodes_may_vote_is_judged_before_a_call)
{
    await_rest();
    for (int i = 0; i < PLAY_NODES; i++)
        play.is_unconfirmed[i] = true;
    int64_t woken_us = play.now_us + CONFIRMED_US;
    /* as if the process had been stopped: time passes, no timer runs */
    play.timer_us[TIMER_TICK] = 0;
    play_advance(CONFIRMED_US + PROBE_US);
    ck_assert_int_ge(play.now_us, woken_us);
    engine_op op = play_acquire();
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 0);
    ck_assert_int_eq(play_result(op)->outcome, OUTCOME_NO_QUORUM);
    engine_close(play.engine, op);
}
