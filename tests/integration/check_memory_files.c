/*
 * Append-only files of another node, or without what came last: nobody may get
 * a lock that the node had granted.
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

enum { N = 5, LIMIT_MS = 8000, SOON_MS = 10000, RETURN_MS = 40000 };

static struct node *const victim = &world.nodes[0]; /* its memory is another */
static struct holder holder;

SUITE(memory_files, .timeout_s = 120, .tags = "slow");

TEST(story_38_node_is_rebuilt_from_the_files_of_another)
{
    rival_start(N, 2, LIMIT);
    rival_hold(0, LIMIT_MS, &holder);
    node_kill(&world.nodes[0]);
    /* longer than a heartbeat: the other's permission is the younger one */
    pause_ms(1500);
    node_copy_files(&world.nodes[0], &world.nodes[3]);
    node_start(&world.nodes[0]);
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}

/*
 * The lock is in the node's memory only, and so is what the server wrote of
 * that. Node and server share a machine, which loses its power.
 */
TEST(story_44_append_only_file_is_switched_off_at_run_time)
{
    rival_start(N, 1, LIMIT);
    node_do(victim, "CONFIG SET appendonly no");
    pause_ms(3000); /* the server has confirmed the node since */
    rival_hold(0, LIMIT_MS, &holder);
    world_kill_server(0);
    node_kill(victim);
    node_start(victim);
    rival_start_fresh(0, LIMIT);
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}
