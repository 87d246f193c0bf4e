/*
 * Old memory that comes back: an earlier copy of the same node, under the same
 * life or another one, and servers that know less than the one before them.
 * Nobody may get a lock that the node had granted meanwhile.
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

static struct world world;
static struct node *const victim = &world.nodes[0]; /* its memory is old */
static struct holder holder;

static void start(int servers)
{
    world_start_nodes(&world, N);
    for (int i = 0; i < servers; i++)
        world_start_server(&world, i, LIMIT);
    for (int i = 0; i < servers; i++)
        world_wait_ready(&world, i);
}

/* A server of its own with the memory that the node has now. */
static void start_copy(struct node *copy)
{
    *copy = (struct node){.is_durable = true, .port = harness_free_port()};
    harness_make_dir(copy->dir);
    node_copy_files(copy, victim);
    node_start(copy);
}

/* A fresh server, which has looked at the nodes when this returns. */
static void start_fresh(int server)
{
    world_start_server(&world, server, LIMIT);
    WAIT_UNTIL(SOON_MS, http_probe(&world.servers[server], "/livez") == 200);
    harness_pause_ms(1000);
}

/* Made master for a moment: the node keeps its run_id. */
static void bring_back(struct node *copy)
{
    node_replicate(victim, copy);
    node_do(victim, "REPLICAOF NO ONE");
}

SUITE(memory_old, .timeout_s = 120, .tags = "slow");

TEST(story_41_old_copy_comes_back_under_the_same_run_id)
{
    struct node copy;

    start(2);
    start_copy(&copy);
    rival_hold(&world, 0, LIMIT_MS, &holder);
    bring_back(&copy);
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    node_kill(&copy);
    world_stop(&world);
}

/*
 * The server that knows how old the memory is looks a moment too late: a fresh
 * one has looked before it.
 */
TEST(story_42_fresh_server_looks_first_at_an_old_copy)
{
    struct node copy;

    start(1);
    start_copy(&copy);
    rival_hold(&world, 0, LIMIT_MS, &holder);
    world_pause_server(&world, 0);
    bring_back(&copy);
    start_fresh(1);
    world_resume_server(&world, 0);
    harness_pause_ms(1500); /* it has looked as well, and found nothing */
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    node_kill(&copy);
    world_stop(&world);
}

/* Whether the server has come to know the node again, and what it holds. */
static bool has_judged(int server)
{
    static const char *const early[] = {"unreachable", "connecting", "silent",
                                        "loading", "admitting"};
    const struct answer *answer =
        HTTP(&world.servers[server], .method = "GET", .path = "/nodes");
    const char *state = answer_text(answer, "nodes.0.state");

    for (size_t i = 0; i < sizeof early / sizeof *early; i++)
        if (strcmp(state, early[i]) == 0)
            return false;
    return true;
}

/* A backup from just before the lock. */
TEST(story_43_refused_backup_and_a_restarted_server)
{
    struct node backup = {.pid = 0};

    start(1);
    harness_make_dir(backup.dir);
    node_copy_files(&backup, victim);
    rival_hold(&world, 0, LIMIT_MS, &holder);
    harness_pause_ms(1500); /* a heartbeat: the server knows a later state */
    node_kill(victim);
    WAIT_UNTIL(SOON_MS, !rival_is_voting(&world, 0, 0));
    node_copy_files(victim, &backup);
    node_start(victim);
    WAIT_UNTIL(SOON_MS, has_judged(0));
    ck_assert(!rival_is_voting(&world, 0, 0));
    world_kill_server(&world, 0);
    start_fresh(1);
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    world_stop(&world);
}

/*
 * The lock is in the node's memory only, and so is what the server wrote of
 * that. Node and server share a machine, which loses its power.
 */
TEST(story_44_append_only_file_is_switched_off_at_run_time)
{
    start(1);
    node_do(victim, "CONFIG SET appendonly no");
    harness_pause_ms(3000); /* the server has confirmed the node since */
    rival_hold(&world, 0, LIMIT_MS, &holder);
    world_kill_server(&world, 0);
    node_kill(victim);
    node_start(victim);
    start_fresh(0);
    rival_expect_refused_without(&world, &holder, 0, RETURN_MS);
    world_stop(&world);
}
