/*
 * Nodes that forgot, servers that disagree: who may vote, and when again.
 *
 * With a greatest TTL of 1 s a quarantine lasts 10.3 s: 4 windows of 1 s, 5 s
 * for servers that have not noticed, the node timeout and 1 s. That a node
 * stays away for so long is what the tests measure; how much longer, is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"

#define SMALL "--max-ttl-ms 1000 --node-timeout-ms 300 "

enum { QUARANTINE_MS = 10300, AWHILE_MS = 30000, SOON_MS = 8000 };

static struct world world;

/* What the server tells of a node: "state" or "detail". */
static const char *told(int server, int node, const char *member)
{
    const struct answer *answer =
        HTTP(&world.servers[server], .method = "GET", .path = "/nodes");
    const json_t *list = json_object_get(answer->json, "nodes");
    const char *text = json_string_value(
        json_object_get(json_array_get(list, (size_t)node), member));

    ck_assert_ptr_nonnull(text);
    return text;
}

static bool is_in_state(int server, int node, const char *state)
{
    return strcmp(told(server, node, "state"), state) == 0;
}

static int voting(int server)
{
    return (int)answer_int(
        HTTP(&world.servers[server], .method = "GET", .path = "/nodes"),
        "voting");
}

static void cycle(int server, const char *resource)
{
    struct lock lock;
    const struct server *at = &world.servers[server];

    answer_expect(lock_acquire(at, resource, 900, &lock), 201, NULL);
    answer_expect(lock_release(at, &lock), 200, NULL);
}

static void start_servers(int count, const char *options)
{
    for (int i = 0; i < count; i++)
        world_start_server(&world, i, options);
    for (int i = 0; i < count; i++)
        world_wait_ready(&world, i);
}

static void lose_memory(struct node *node)
{
    node_kill(node);
    node_start(node);
}

/* Until all votes are back, locks are granted without the node's help. */
static int64_t lock_without(int node, int server)
{
    int64_t began_ms = harness_now_ms();

    while (!is_in_state(server, node, "voting")) {
        struct lock lock;
        answer_expect(
            lock_acquire(&world.servers[server], "without", 900, &lock), 201,
            NULL);
        bool was_away = !is_in_state(server, node, "voting");
        if (was_away)
            ck_assert_int_eq(node_integer(&world.nodes[node], "EXISTS without"),
                             0);
        answer_expect(lock_release(&world.servers[server], &lock), 200, NULL);
        ck_assert_int_lt(harness_now_ms() - began_ms, AWHILE_MS);
        harness_pause_ms(100);
    }
    return harness_now_ms() - began_ms;
}

SUITE(admission, .timeout_s = 120, .tags = "slow");

/*
 * One node restarts empty (story 5), another is flushed under a living
 * connection and keeps its run_id (6, 25): neither votes, on no server, not
 * even on one that was started afterwards.
 */
TEST(story_05_and_06_a_node_that_forgot_does_not_vote)
{
    world_start_forgetful_nodes(&world, 5);
    start_servers(2, SMALL "--first-start yes");
    int64_t promised_ms = harness_now_ms();
    cycle(0, "first");
    lose_memory(&world.nodes[0]);
    node_do(&world.nodes[1], "FLUSHALL");
    world_start_server(&world, 2, SMALL "--first-start yes");
    WAIT_UNTIL(SOON_MS, http_probe(&world.servers[2], "/livez") == 200);
    for (int i = 0; i < 3; i++) {
        WAIT_UNTIL(SOON_MS, is_in_state(i, 0, "quarantined"));
        WAIT_UNTIL(SOON_MS, is_in_state(i, 1, "quarantined"));
        WAIT_UNTIL(SOON_MS, voting(i) == 3);
        cycle(i, "third");
    }
    const char *detail = told(0, 0, "detail");
    ck_assert_msg(strstr(detail, "votes again in") != NULL, "%s", detail);
    (void)lock_without(0, 2);
    ck_assert_int_ge(harness_now_ms() - promised_ms, QUARANTINE_MS);
    for (int i = 0; i < 3; i++)
        WAIT_UNTIL(AWHILE_MS, voting(i) == 5);
    world_stop(&world);
}

/* They look like a first start; a server's word is not enough. */
TEST(story_28_five_nodes_that_forgot_are_no_first_start)
{
    struct lock lock;
    world_start_forgetful_nodes(&world, 5);
    int64_t began_ms = harness_now_ms();
    world_start_server(&world, 0, SMALL);
    WAIT_UNTIL(SOON_MS, http_probe(&world.servers[0], "/livez") == 200);
    for (int i = 0; i < 5; i++)
        WAIT_UNTIL(SOON_MS, is_in_state(0, i, "quarantined"));
    const struct answer *refused =
        lock_acquire(&world.servers[0], "early", 900, &lock);
    answer_expect(refused, 503, "no_quorum");
    ck_assert_ptr_nonnull(
        strstr(answer_text(refused, "detail"), "a quorum is expected in"));
    ck_assert_ptr_nonnull(strstr(refused->body, "votes again in"));
    /* too late for the operator's word: the nodes carry marks */
    world_start_server(&world, 1, SMALL "--first-start yes");
    WAIT_UNTIL(SOON_MS, http_probe(&world.servers[1], "/livez") == 200);
    WAIT_UNTIL(SOON_MS, is_in_state(1, 4, "quarantined"));
    for (int i = 0; i < 2; i++)
        world_wait_ready(&world, i);
    ck_assert_int_ge(harness_now_ms() - began_ms, QUARANTINE_MS);
    cycle(0, "late");

    /* a server that has seen them vote takes them for what they are */
    for (int i = 0; i < 5; i++)
        node_kill(&world.nodes[i]);
    for (int i = 0; i < 5; i++)
        node_start(&world.nodes[i]);
    for (int i = 0; i < 5; i++)
        WAIT_UNTIL(SOON_MS, is_in_state(1, i, "quarantined"));
    world_stop(&world);
}

TEST(first_start_yes_admits_nodes_that_are_not_durable_at_once)
{
    world_start_forgetful_nodes(&world, 5);
    int64_t began_ms = harness_now_ms();
    start_servers(1, SMALL "--first-start yes");
    /* as long as nobody's machine is ten times too slow */
    ck_assert_int_lt(harness_now_ms() - began_ms, QUARANTINE_MS);
    cycle(0, "first");
    world_stop(&world);
}

TEST(a_durable_node_votes_again_once_it_has_loaded)
{
    struct lock lock;
    world_start(&world, 5, "");
    answer_expect(lock_acquire(&world.servers[0], "kept", 60000, &lock), 201,
                  NULL);
    WAIT_UNTIL(SOON_MS, node_integer(&world.nodes[0], "EXISTS kept") == 1);
    lose_memory(&world.nodes[0]); /* which it has not */
    /* a quarantine would last 67 s */
    WAIT_UNTIL(AWHILE_MS, voting(0) == 5);
    ck_assert_int_eq(node_integer(&world.nodes[0], "EXISTS kept"), 1);
    world_stop(&world);
}

/*
 * A node lives for a while without its append-only file, and is admitted; then
 * the old file comes back, with the old permission and without what was
 * granted meanwhile. Likewise a backup. The beat in it is too old.
 */
TEST(story_29_a_life_without_the_file_costs_the_vote)
{
    struct node *node = &world.nodes[0];
    world_start_nodes(&world, 3);
    start_servers(1, SMALL);
    node_kill(node);
    node->is_durable = false;
    node_start(node);
    WAIT_UNTIL(SOON_MS, is_in_state(0, 0, "quarantined"));
    (void)lock_without(0, 0);
    int64_t promised_ms = harness_now_ms();
    cycle(0, "meanwhile");
    node_kill(node);
    node->is_durable = true;
    node_start(node);
    WAIT_UNTIL(SOON_MS, is_in_state(0, 0, "quarantined"));
    WAIT_UNTIL(AWHILE_MS, is_in_state(0, 0, "voting"));
    ck_assert_int_ge(harness_now_ms() - promised_ms, QUARANTINE_MS);
    world_stop(&world);
}

/* Two servers that disagree about the same nodes at the same epoch. */
TEST(story_10_another_configuration_is_named_and_never_admitted)
{
    struct lock lock;
    world_start_nodes(&world, 3);
    start_servers(1, SMALL);
    world_start_server(&world, 1, "--max-ttl-ms 2000");
    WAIT_UNTIL(SOON_MS, http_probe(&world.servers[1], "/livez") == 200);
    for (int i = 0; i < 3; i++)
        WAIT_UNTIL(SOON_MS, is_in_state(1, i, "other_configuration"));
    ck_assert_ptr_nonnull(strstr(told(1, 0, "detail"), "--config-epoch 2"));
    answer_expect(lock_acquire(&world.servers[1], "other", 900, &lock), 503,
                  "no_quorum");
    ck_assert_int_eq(voting(0), 3);
    cycle(0, "other");
    world_stop(&world);
}

static bool is_any_granted(const char *resource)
{
    bool is_granted = false;
    for (int i = 0; i < WORLD_SERVERS; i++)
        is_granted |=
            lock_acquire(&world.servers[i], resource, 900, NULL)->status == 201;
    return is_granted;
}

/*
 * The limits change under two old and two new servers. A lock that an old one
 * granted for 4 s is respected by the new ones, whose greatest TTL is 1 s; the
 * old ones stand down (32); the greatest TTL governs the timers until what was
 * granted under it has ended (33).
 */
TEST(story_32_and_33_limits_change_under_running_servers)
{
    struct lock lock;
    world_start_nodes(&world, 5);
    start_servers(2, "--max-ttl-ms 4000 --node-timeout-ms 300");
    answer_expect(lock_acquire(&world.servers[0], "long", 4000, &lock), 201,
                  NULL);
    int64_t valid_until_ms = harness_now_ms() + lock.validity_ms;
    int64_t began_ms = harness_now_ms();
    for (int i = 2; i < 4; i++)
        world_start_server(&world, i, SMALL "--config-epoch 2");
    for (int i = 2; i < 4; i++)
        WAIT_UNTIL(SOON_MS, http_probe(&world.servers[i], "/livez") == 200);
    while (harness_now_ms() < valid_until_ms - 500)
        ck_assert(!is_any_granted("long") ||
                  harness_now_ms() >= valid_until_ms);
    for (int i = 0; i < 2; i++) {
        WAIT_UNTIL(SOON_MS, is_in_state(i, 0, "superseded"));
        ck_assert_ptr_nonnull(
            strstr(told(i, 0, "detail"), "carries configuration epoch"));
        answer_expect(lock_acquire(&world.servers[i], "old", 900, &lock), 503,
                      "no_quorum");
    }
    for (int i = 2; i < 4; i++)
        world_wait_ready(&world, i);
    ck_assert_int_ge(harness_now_ms() - began_ms, QUARANTINE_MS);
    cycle(2, "long");
    ck_assert_str_eq(node_text(&world.nodes[0], "HGET redlockd:state max_ttl"),
                     "1000");
    world_stop(&world);
}

TEST(story_23_the_same_server_twice_has_no_vote)
{
    char options[200];
    world_start_nodes(&world, 3);
    snprintf(options, sizeof options,
             SMALL "--nodes 127.0.0.1:%d,localhost:%d,127.0.0.1:%d",
             world.nodes[0].port, world.nodes[0].port, world.nodes[1].port);
    world_start_server(&world, 0, options);
    WAIT_UNTIL(SOON_MS, http_probe(&world.servers[0], "/livez") == 200);
    for (int i = 0; i < 2; i++)
        WAIT_UNTIL(AWHILE_MS, is_in_state(0, i, "duplicate"));
    ck_assert_int_eq(http_probe(&world.servers[0], "/readyz"), 503);
    world_stop(&world);
}

TEST(restart_guard_off_admits_at_sight_and_says_so)
{
    world_start_forgetful_nodes(&world, 3);
    start_servers(1, SMALL "--restart-guard off");
    lose_memory(&world.nodes[0]);
    lose_memory(&world.nodes[1]);
    int64_t began_ms = harness_now_ms();
    WAIT_UNTIL(SOON_MS, voting(0) == 3);
    ck_assert_int_lt(harness_now_ms() - began_ms, QUARANTINE_MS);
    char *log = harness_read_file(world.servers[0].log);
    ck_assert_ptr_nonnull(strstr(log, "restart_guard_off"));
    free(log);
    world_stop(&world);
}
