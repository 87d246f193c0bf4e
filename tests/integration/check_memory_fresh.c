/*
 * A fresh server, beside one that knows more of the nodes. Nobody may get a
 * lock that a node had granted before it lost its memory.
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

SUITE(memory_fresh, .timeout_s = 120, .tags = "slow");

/*
 * The server that knows how old the memory is looks a moment too late: a fresh
 * one has looked before it.
 */
TEST(story_42_fresh_server_looks_first_at_an_old_copy)
{
    struct node copy;

    rival_start(N, 1, LIMIT);
    node_start_copy(&copy, victim);
    rival_hold(0, LIMIT_MS, &holder);
    server_pause(here);
    node_bring_back(victim, &copy);
    rival_start_fresh(1, LIMIT);
    server_resume(here);
    pause_ms(1500); /* it has looked as well, and found nothing */
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    node_kill(&copy);
    world_stop();
}

/* Returns when the server has just looked at all nodes. */
static void wait_for_looks(void)
{
    int before[N];

    for (int i = 0; i < N; i++)
        before[i] = node_count(&world.nodes[i], "evalsha");
    for (int i = 0; i < N; i++)
        SOON(node_count(&world.nodes[i], "evalsha") > before[i]);
}

/*
 * The first server is one that has watched the nodes, and sees it with its next
 * heartbeat. The fresh one must not have called it a first start by then.
 */
TEST(story_46_all_nodes_are_flushed_beside_a_fresh_server)
{
    static const char options[] = LIMIT " --node-timeout-ms 50";

    rival_start(N, 1, options);
    rival_hold(0, LIMIT_MS, &holder);
    wait_for_looks();
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], "FLUSHALL");
    world_start_server(1, options);
    world_await(1, "/livez");
    /* nobody asks the first one, which would look: until its heartbeat */
    pause_ms(700);
    rival_expect_refused(&holder);
    AWHILE(rival_all_vote_everywhere());
    world_stop();
}
