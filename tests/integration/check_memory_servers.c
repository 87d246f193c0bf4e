/* SPDX-License-Identifier: MIT */
/*
 * Servers that know different things of the same nodes: one of another
 * installation, one that a name leads elsewhere.
 */
#include <stdio.h>

#include "http.h"
#include "node.h"
#include "rival.h"

enum { N = 5 };

static struct holder holder;

/* True if nothing more is to be waited for: the server counts both machines. */
static bool counts_all_until(int server, int64_t until_ms)
{
    return rival_count_voting(server) == N || harness_now_ms() > until_ms;
}

SUITE(memory_servers, .timeout_s = 120, .tags = "slow");

/*
 * The first node's name leads the second server to another machine, for longer
 * than a quarantine (10.4 s here). Both know the node by the same name, and
 * neither must count it for a lock of the other.
 */
TEST(story_45_one_name_leads_two_servers_to_two_machines)
{
    static const char options[] = "--max-ttl-ms 4000";
    struct node other = {.is_durable = true};
    struct server *second = there;

    rival_start(N, 1, options);
    other.port = harness_free_port();
    harness_make_dir(other.dir);
    node_start(&other);
    PRINT_TO(second->ports, "%d=%d", world.nodes[0].port, other.port);
    world_start_server(1, options);
    SOON(http_probe(second, "/readyz") == 200);
    int64_t until_ms = harness_now_ms() + 14000;
    AWHILE(counts_all_until(1, until_ms));
    rival_hold(0, 4000, &holder);
    rival_expect_refused(&holder);

    /* the name is mended */
    world_stop_server(1);
    second->ports[0] = '\0';
    world_start_server(1, options);
    SOON(http_probe(second, "/readyz") == 200);
    AWHILE(rival_all_vote_everywhere());
    node_kill(&other);
    world_stop();
}

/* A server of a higher epoch over nodes of its own and one of ours. */
static void start_staging(struct node own[2])
{
    for (int i = 0; i < 2; i++) {
        own[i] = (struct node){.is_durable = true};
        own[i].port = harness_free_port();
        harness_make_dir(own[i].dir);
        node_start(&own[i]);
    }
    world_start_server(3,
                       textf("--nodes 127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d "
                             "--max-ttl-ms 1000 --config-epoch 2",
                             own[0].port, own[1].port, world.nodes[0].port));
    world_await(3, "/livez");
}

/* Production goes on with its other four, on old servers and on new ones. */
TEST(story_47_staging_server_has_one_node_of_production_in_its_list)
{
    /* a slow disk must not look like a production that stops */
    static const char options[] = "--node-timeout-ms 1000";
    struct node own[2];

    rival_start(N, 2, options);
    start_staging(own);
    int64_t until_ms = harness_now_ms() + 6000;
    while (harness_now_ms() < until_ms)
        for (int i = 0; i < 2; i++)
            lock_expect_cycle(&world.servers[i], "production");
    world_stop_server(1);
    world_start_server(1, options);
    world_await(1, "/readyz");
    for (int i = 0; i < 2; i++)
        lock_expect_cycle(&world.servers[i], "production");
    for (int i = 0; i < 2; i++)
        node_kill(&own[i]);
    world_stop();
}
