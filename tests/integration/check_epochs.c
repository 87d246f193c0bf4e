/*
 * Servers that disagree about the nodes, or about how long a lock may last.
 *
 * With a greatest TTL of 1 s, new configurations wait for 14 s.
 */
#include <stdio.h>
#include <stdlib.h>

#include "http.h"
#include "node.h"
#include "rival.h"

#define SMALL "--max-ttl-ms 1000 --node-timeout-ms 300 "

/* Of the same nodes under other names: a configuration of its own. */
#define RENAMED "--config-epoch 2 --nodes "

enum { SOON_MS = 8000 };

SUITE(epochs, .timeout_s = 120, .tags = "slow");

/* Two servers that disagree about the same nodes at the same epoch. */
TEST(story_10_another_configuration_is_named_and_never_admitted)
{
    struct lock lock;
    rival_start(3, 1, SMALL);
    const char *options = textf("--nodes 127.0.0.1:%d,127.0.0.1:%d",
                                world.nodes[0].port, world.nodes[1].port);
    world_start_server(1, options);
    world_await(1, "/livez");
    for (int i = 0; i < 2; i++)
        rival_await_state(1, i, "other_configuration");
    ck_assert_has(rival_told(1, 0, "detail"), "--config-epoch 2");
    answer_expect(lock_acquire(there, "other", 900, &lock), 503, "no_quorum");
    ck_assert_int_eq(rival_count_voting(0), 3);
    rival_cycle(here, "other");
    world_stop();
}

/*
 * Servers whose limits differ share the nodes. One with a lower limit respects
 * a lock that is longer than it would grant, even where a node forgets it.
 */
TEST(servers_with_other_limits_vote_and_wait_for_long_locks)
{
    struct lock lock;
    rival_start(5, 1, "--max-ttl-ms 8000");
    world_serve(1, SMALL);
    ck_assert_int_eq(rival_count_voting(1), 5);
    int64_t promised_ms = harness_now_ms();
    lock_take(here, "long", 8000, &lock);
    world_stop_server(0);
    for (int i = 0; i < 2; i++)
        node_do(&world.nodes[i], "FLUSHALL");
    for (int i = 0; i < 2; i++)
        rival_await_state(1, i, "quarantined");
    rival_await_count(1, 5);
    ck_assert_int_ge(harness_now_ms() - promised_ms, 8000);
    rival_cycle(there, "long");
    world_stop();
}

static bool is_any_granted(const char *resource)
{
    bool is_granted = false;
    for (int i = 0; i < WORLD_SERVERS; i++)
        is_granted |=
            lock_acquire(&world.servers[i], resource, 900, NULL)->status == 201;
    return is_granted;
}

/* The first of them, under their own names. */
static void list_nodes(char options[300], const char *before, int count)
{
    int len = snprintf(options, 300, "%s", before);
    for (int i = 0; i < count; i++)
        len += snprintf(options + len, 300 - (size_t)len, "%s127.0.0.1:%d",
                        i > 0 ? "," : "", world.nodes[i].port);
}

/*
 * Five nodes become three under two old and two new servers. A lock that an old
 * one granted for 4 s is respected by the new ones, whose greatest TTL is 1 s;
 * the old ones stand down (32); the greatest TTL governs the timers until what
 * was granted under it has ended (33).
 */
TEST(story_32_and_33_nodes_change_under_running_servers)
{
    struct lock lock;
    char options[300];
    rival_start(5, 2, "--max-ttl-ms 4000 --node-timeout-ms 300");
    list_nodes(options, SMALL RENAMED, 3);
    lock_take(here, "long", 4000, &lock);
    int64_t valid_until_ms = harness_now_ms() + lock.validity_ms;
    for (int i = 2; i < 4; i++)
        world_start_server(i, options);
    for (int i = 2; i < 4; i++)
        world_await(i, "/livez");
    while (harness_now_ms() < valid_until_ms - 500)
        ck_assert(!is_any_granted("long") ||
                  harness_now_ms() >= valid_until_ms);
    for (int i = 0; i < 2; i++) {
        rival_await_state(i, 0, "superseded");
        ck_assert_has(rival_told(i, 0, "detail"),
                      "carries configuration epoch");
        answer_expect(lock_acquire(&world.servers[i], "old", 900, &lock), 503,
                      "no_quorum");
    }
    for (int i = 2; i < 4; i++)
        rival_await_count(i, 3);
    ck_assert_int_ge(harness_now_ms(), valid_until_ms);
    rival_cycle(&world.servers[2], "long");
    ck_assert_str_eq(node_text(&world.nodes[0], "HGET redlockd:state max_ttl"),
                     "1000");
    world_stop();
}
