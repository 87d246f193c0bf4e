/*
 * Memory that is replaced under a node's name, or lost in part: by that of
 * another node, by that of a replica, by eviction. Nobody may get a lock that
 * the node had granted.
 *
 * With a greatest TTL of 8 s a quarantine lasts 14.5 s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"

#define LIMIT "--max-ttl-ms 8000"

enum { N = 5, LIMIT_MS = 8000, RETURN_MS = 40000, HEARTBEAT_MS = 1500 };

static struct world world;
static struct holder holder;

static void start(int servers)
{
    world_start_nodes(&world, N);
    for (int i = 0; i < servers; i++)
        world_start_server(&world, i, LIMIT);
    for (int i = 0; i < servers; i++)
        world_wait_ready(&world, i);
}

SUITE(memory, .timeout_s = 120, .tags = "slow");

/*
 * The first node becomes a replica of the fourth, which has not the lock, and
 * a master again: with its old run_id and the other's permission to vote.
 */
TEST(story_37_replica_of_another_node_for_a_moment)
{
    start(2);
    rival_hold(&world, 0, LIMIT_MS, &holder);
    node_replicate(&world.nodes[0], &world.nodes[3]);
    node_do(&world.nodes[0], "REPLICAOF NO ONE");
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    world_stop(&world);
}

TEST(story_38_node_is_rebuilt_from_the_files_of_another)
{
    start(2);
    rival_hold(&world, 0, LIMIT_MS, &holder);
    node_kill(&world.nodes[0]);
    /* longer than a heartbeat: the other's permission is the younger one */
    harness_pause_ms(1500);
    node_copy_files(&world.nodes[0], &world.nodes[3]);
    node_start(&world.nodes[0]);
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    world_stop(&world);
}

/*
 * The replica was cut off before the lock was granted. It takes over the port
 * of its master, as others take over an address.
 */
TEST(story_39_replica_that_was_cut_off_takes_its_masters_address)
{
    struct node replica = {.is_durable = true};
    struct node *master = &world.nodes[0];

    start(2);
    replica.port = harness_free_port();
    harness_make_dir(replica.dir);
    node_start(&replica);
    node_replicate(&replica, master);
    harness_pause_ms(HEARTBEAT_MS); /* it may cost the master its vote … */
    WAIT_UNTIL(RETURN_MS,
               rival_all_vote_everywhere(&world)); /* … for a while */
    node_do(&replica, "REPLICAOF NO ONE");
    rival_hold(&world, 0, LIMIT_MS, &holder);
    node_kill(master);
    node_do(&replica, "CONFIG SET port %d", master->port);
    replica.port = master->port;
    *master = replica;
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    world_stop(&world);
}

/*
 * Keys with a TTL are evicted, the node's state has none; and nobody evicts any
 * more when the next look comes. Until then, for a heartbeat, the node votes.
 */
TEST(story_40_locks_are_evicted_between_two_looks)
{
    struct node *node = &world.nodes[0];

    start(2);
    rival_hold(&world, 0, LIMIT_MS, &holder);
    node_do(node, "CONFIG SET maxmemory 1 maxmemory-policy volatile-lru");
    WAIT_UNTIL(5000, node_integer(node, "EXISTS contended") == 0);
    node_do(node, "CONFIG SET maxmemory 0 maxmemory-policy noeviction");
    ck_assert_int_eq(node_integer(node, "EXISTS redlockd:state"), 1);
    harness_pause_ms(HEARTBEAT_MS);
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    world_stop(&world);
}

static void restart_without(struct node *node, const char *command)
{
    node_kill(node);
    node->lacks = command;
    node_start(node);
}

static bool has_durable_node(void)
{
    const struct answer *answer =
        HTTP(&world.servers[0], .method = "GET", .path = "/nodes");

    return strstr(answer->body, "\"durable\":true") != NULL;
}

/*
 * Redis loads its append-only file as the user default, and silently drops what
 * a script wrote if that user may not do it: here each extension. Its lock ends
 * when the TTL of before the extension does.
 */
TEST(story_52_append_only_file_is_loaded_without_the_rights_to_it)
{
    struct node *node = &world.nodes[0];

    start(1);
    rival_hold(&world, 0, 3000, &holder);
    rival_extend(&world, 0, LIMIT_MS, &holder);
    restart_without(node, "-pexpireat");
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    world_stop(&world);
}

/* All of them, and the servers too: nobody knows better. */
TEST(story_52_all_append_only_files_are_loaded_without_the_rights)
{
    world_start_nodes(&world, N);
    for (int i = 0; i < N; i++)
        restart_without(&world.nodes[i], "-pexpireat");
    world_start_server(&world, 0, LIMIT " --first-start yes");
    world_wait_ready(&world, 0);
    ck_assert(!has_durable_node());
    rival_hold(&world, 0, 3000, &holder);
    rival_extend(&world, 0, LIMIT_MS, &holder);
    world_kill_server(&world, 0);
    for (int i = 0; i < N; i++)
        node_kill(&world.nodes[i]);
    for (int i = 0; i < N; i++)
        node_start(&world.nodes[i]);
    world_start_server(&world, 0, LIMIT);
    WAIT_UNTIL(RETURN_MS, http_probe(&world.servers[0], "/livez") == 200);
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    world_stop(&world);
}
