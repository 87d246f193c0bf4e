/* SPDX-License-Identifier: MIT */
/*
 * Nodes whose clocks step: how often they pay for it, and what a holder was
 * promised meanwhile.
 *
 * With a greatest TTL of 3 s a quarantine lasts 10.4 s.
 */

#include "http.h"
#include "node.h"
#include "rival.h"
#include "ways.h"

#define LIMIT "--max-ttl-ms 3000"

enum {
    N = 5,
    LIMIT_MS = 3000,
    ONE_QUARANTINE_MS = 17000, /* and what comes before and behind it */
    LIFE_MS = 4000,            /* of a server, between two restarts */
    HOUR_MS = 3600000,
};

static struct node *const node = &world.nodes[0]; /* whose clock it is */
static struct holder holder;

static void start_nodes(int64_t ahead_ms)
{
    world_start_nodes(N);
    node_kill(node);
    node->has_clock = true;
    node_set_clock(node, ahead_ms);
    node_start(node);
}

SUITE(memory_clocks, .timeout_s = 120, .tags = "slow");

/* Each server has seen the node in the wrong time, and only one may pay. */
TEST(story_48_clock_an_hour_ahead_is_set_right)
{
    start_nodes(HOUR_MS);
    for (int i = 0; i < 3; i++)
        world_start_server(i, LIMIT);
    for (int i = 0; i < 3; i++)
        world_await(i, "/readyz");
    STAYS(LIMIT_MS, !rival_is_voting_anywhere(0));
    node_set_clock(node, 0);
    AWHILE(rival_all_vote_everywhere());
    lock_take(here, "right", LIMIT_MS, &holder.lock);
    world_stop();
}

static void restart_server(int i)
{
    world_kill_server(i);
    world_start_server(i, LIMIT);
    world_await(i, "/livez");
}

/* Two servers, restarted in turns: none lives as long as a quarantine. */
TEST(story_48_servers_that_are_restarted_end_a_quarantine)
{
    world_start_nodes(N);
    for (int i = 0; i < 2; i++)
        world_start_server(i, LIMIT);
    for (int i = 0; i < 2; i++)
        world_wait_ready(i);
    rival_hold(0, LIMIT_MS, &holder);
    node_do(node, "FLUSHALL");
    int64_t lost_ms = harness_now_ms();
    WAIT_UNTIL(LIMIT_MS, !rival_is_voting_anywhere(0));
    for (int restarts = 0; !rival_is_voting_anywhere(0);) {
        int64_t passed_ms = harness_now_ms() - lost_ms;
        ck_assert_msg(passed_ms < ONE_QUARANTINE_MS,
                      "a quarantine begins anew with each restart");
        if (passed_ms >= (int64_t)restarts * LIFE_MS)
            restart_server(restarts++ % 2);
        pause_ms(50);
    }
    world_stop();
}

/*
 * The server sends, and hears 150 ms later: a clock that steps by 120 ms in
 * between looks like one that does not. The lock ends on it all the same.
 */
TEST(story_49_step_that_hides_behind_a_slow_reply)
{
    start_nodes(0);
    ways_slow(here, 0, 1, 150);
    world_serve(0, LIMIT);
    rival_hold(0, 1000, &holder);
    ck_assert_int_eq(node_integer(node, "EXISTS contended"), 1);
    node_set_clock(node, 120);
    int64_t left_ms = 0;
    while ((left_ms = holder.ends_ms - harness_now_ms()) > 0) {
        bool is_there = node_integer(node, "EXISTS contended");
        ck_assert_msg(is_there || harness_now_ms() >= holder.ends_ms,
                      "the key is gone %lld ms before its validity ends",
                      (long long)left_ms);
    }
    world_stop();
}
