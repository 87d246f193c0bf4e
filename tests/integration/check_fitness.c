/*
 * Nodes that are up and yet no good for locks: named in /nodes, and the others
 * go on without them.
 */
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "node.h"

static struct world world;
static const struct server *const server = &world.servers[0];

static void cycle(const char *resource)
{
    struct lock lock;

    lock_take(server, resource, 9000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
}

static bool node_2_has(const char *member, const char *text)
{
    char path[32];
    const struct answer *a = HTTP(server, .method = "GET", .path = "/nodes");

    snprintf(path, sizeof path, "nodes.2.%s", member);
    return strstr(answer_text(a, path), text);
}

static const struct {
    const char *damage, *fix, *state, *detail;
} unfit[] = {
    {"CONFIG SET maxmemory 100mb maxmemory-policy allkeys-lru",
     "CONFIG SET maxmemory-policy noeviction", "evicts", "allkeys-lru"},
    {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "read_only", "127.0.0.1:1"},
};

SUITE(fitness, .timeout_s = 90);

TEST_EACH(unfit_node_is_named, unfit)
{
    world_start_nodes(&world, 3);
    node_do(&world.nodes[2], unfit[_i].damage);
    world_start_server(&world, 0, AT_SIGHT);
    WAIT_UNTIL(20000, http_probe(server, "/readyz") == 200);
    WAIT_UNTIL(10000, node_2_has("state", unfit[_i].state));
    ck_assert(node_2_has("detail", unfit[_i].detail));
    cycle("unfit");
    node_do(&world.nodes[2], unfit[_i].fix);
    world_wait_ready(&world, 0);
    WAIT_UNTIL(10000, node_2_has("state", "voting"));
    world_stop(&world);
}

TEST_EACH(node_that_becomes_unfit_is_named, unfit)
{
    world_start(&world, 3, "");
    node_do(&world.nodes[2], unfit[_i].damage);
    WAIT_UNTIL(10000, node_2_has("state", unfit[_i].state));
    WAIT_UNTIL(10000, node_2_has("detail", unfit[_i].detail));
    cycle("unfit");
    node_do(&world.nodes[2], unfit[_i].fix);
    WAIT_UNTIL(10000, node_2_has("state", "voting"));
    world_stop(&world);
}

TEST(node_of_a_cluster_is_named)
{
    world_start_nodes(&world, 3);
    node_kill(&world.nodes[2]);
    world.nodes[2].is_cluster = true;
    node_start(&world.nodes[2]);
    world_start_server(&world, 0, AT_SIGHT);
    WAIT_UNTIL(20000, http_probe(server, "/readyz") == 200);
    WAIT_UNTIL(10000, node_2_has("state", "cluster"));
    cycle("unfit");
    world_stop(&world);
}
