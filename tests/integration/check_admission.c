/* SPDX-License-Identifier: MIT */
/*
 * Nodes that forgot, servers that disagree: who may vote, and when again.
 *
 * A node that forgot stays away until what the others have promised has ended;
 * where too few others can be asked, for 14 s: 4 windows of 2 s, 5 s for
 * servers whose name leads elsewhere, and 1 s. That a node stays away for so
 * long is what the tests measure; how much longer, is not.
 */

#include "http.h"
#include "node.h"
#include "rival.h"

#define SMALL "--max-ttl-ms 1000 --node-timeout-ms 300 "
#define LONGER "--max-ttl-ms 6000 --node-timeout-ms 300 "

enum {
    HELD_MS = 6000,
    QUARANTINE_MS = 14000,
    AWHILE_MS = 30000,
};

static void lose_memory(struct node *node)
{
    node_kill(node);
    node_start(node);
}

SUITE(admission, .timeout_s = 120, .tags = "slow");

/*
 * One node restarts empty (story 5), another is flushed under a living
 * connection and keeps its run_id (6, 25): neither votes, on no server, not
 * even on one that was started afterwards.
 */
TEST(story_05_and_06_a_node_that_forgot_does_not_vote)
{
    struct lock held;
    world_start_forgetful_nodes(5);
    world_serve_all(2, LONGER "--first-start yes");
    int64_t promised_ms = harness_now_ms();
    lock_take(here, "held", HELD_MS, &held);
    lose_memory(&world.nodes[0]);
    node_do(&world.nodes[1], "FLUSHALL");
    world_start_server(2, LONGER "--first-start yes");
    world_await(2, "/livez");
    for (int i = 0; i < 3; i++) {
        rival_await_state(i, 0, "quarantined");
        rival_await_state(i, 1, "quarantined");
        rival_await_count(i, 3);
        rival_cycle(&world.servers[i], "third");
    }
    const char *detail = rival_told(0, 0, "detail");
    ck_assert_has(detail, "votes again in");
    (void)rival_lock_without(0, 2, AWHILE_MS);
    ck_assert_int_ge(harness_now_ms() - promised_ms, HELD_MS);
    for (int i = 0; i < 3; i++)
        rival_await_count(i, 5);
    world_stop();
}

/* One of them starts the nodes; what the others say meanwhile is true. */
TEST(servers_that_start_together_promise_no_quarantine)
{
    world_start_nodes(5);
    world_serve_all(3, "--first-start yes");
    for (int i = 0; i < 3; i++) {
        const struct server *it = &world.servers[i];
        ck_assert_int_eq(server_count_log(it, "has lost its data"), 0);
        ck_assert_int_eq(server_count_log(it, "votes again in"), 0);
        ck_assert_int_eq(server_count_log(it, "level=error"), 0);
    }
    world_stop();
}

/* They look like a first start; a server's word is not enough. */
TEST(story_28_five_nodes_that_forgot_are_no_first_start)
{
    struct lock lock;
    world_start_forgetful_nodes(5);
    int64_t began_ms = harness_now_ms();
    world_start_server(0, SMALL);
    world_await(0, "/livez");
    for (int i = 0; i < 5; i++)
        rival_await_state(0, i, "quarantined");
    const struct answer *refused = answer_expect(
        lock_acquire(here, "early", 900, &lock), 503, "no_quorum");
    ck_assert_has(answer_text(refused, "detail"), "a quorum is expected in");
    ck_assert_has(refused->body, "has lost its data; votes in");
    /* too late for the operator's word: the nodes carry marks */
    world_start_server(1, SMALL "--first-start yes");
    world_await(1, "/livez");
    rival_await_state(1, 4, "quarantined");
    for (int i = 0; i < 2; i++)
        world_wait_ready(i);
    ck_assert_int_ge(harness_now_ms() - began_ms, QUARANTINE_MS);
    rival_cycle(here, "late");

    /* a server that has seen them vote takes them for what they are */
    world_kill_nodes(0, 5);
    world_restart_nodes(0, 5);
    for (int i = 0; i < 5; i++)
        rival_await_state(1, i, "quarantined");
    world_stop();
}
