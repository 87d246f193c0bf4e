/*
 * Memory that is lost in part: nobody may get a lock that the node had granted.
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

static struct holder holder;

SUITE(memory_evicted, .timeout_s = 120, .tags = "slow");

/*
 * Keys with a TTL are evicted, the node's state has none; and nobody evicts any
 * more when the next look comes. Until then, for a heartbeat, the node votes.
 */
TEST(story_40_locks_are_evicted_between_two_looks)
{
    struct node *node = &world.nodes[0];

    rival_start(N, 2, LIMIT);
    rival_hold(0, LIMIT_MS, &holder);
    node_do(node, "CONFIG SET maxmemory 1 maxmemory-policy volatile-lru");
    WAIT_UNTIL(5000, node_integer(node, "EXISTS contended") == 0);
    node_do(node, "CONFIG SET maxmemory 0 maxmemory-policy noeviction");
    ck_assert_int_eq(node_integer(node, "EXISTS redlockd:state"), 1);
    pause_ms(HEARTBEAT_MS);
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}
