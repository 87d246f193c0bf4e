/*
 * Old memory that comes back: an earlier copy of the same node, under the same
 * life or another one. Nobody may get a lock that the node had granted
 * meanwhile.
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

static struct node *const victim = &world.nodes[0]; /* its memory is old */
static struct holder holder;

SUITE(memory_old, .timeout_s = 120, .tags = "slow");

TEST(story_41_old_copy_comes_back_under_the_same_run_id)
{
    struct node copy;

    rival_start(N, 2, LIMIT);
    node_start_copy(&copy, victim);
    rival_hold(0, LIMIT_MS, &holder);
    node_bring_back(victim, &copy);
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    node_kill(&copy);
    world_stop();
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

    rival_start(N, 1, LIMIT);
    harness_make_dir(backup.dir);
    node_copy_files(&backup, victim);
    rival_hold(0, LIMIT_MS, &holder);
    pause_ms(1500); /* a heartbeat: the server knows a later state */
    node_kill(victim);
    SOON(!rival_is_voting(0, 0));
    node_copy_files(victim, &backup);
    node_start(victim);
    SOON(has_judged(0));
    ck_assert(!rival_is_voting(0, 0));
    world_kill_server(0);
    rival_start_fresh(1, LIMIT);
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}
