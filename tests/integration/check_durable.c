/*
 * Nodes that restart with their memory, or with what was their memory once.
 *
 * A node that forgot stays away until what the others have promised has ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"

#define SMALL "--max-ttl-ms 6000 --node-timeout-ms 300 "

enum { HELD_MS = 6000, AWHILE_MS = 30000, SOON_MS = 8000 };

SUITE(durable, .timeout_s = 120, .tags = "slow");

/*
 * A node lives for a while without its append-only file, and is admitted; then
 * the old file comes back, with the old permission and without what was
 * granted meanwhile. Likewise a backup. The generation in it is too old.
 */
TEST(story_29_a_life_without_the_file_costs_the_vote)
{
    struct node *node = &world.nodes[0];
    rival_start(3, 1, SMALL);
    node_kill(node);
    node->is_durable = false;
    node_start(node);
    SOON(node_integer(node, "HEXISTS redlockd:state admit") == 1);
    SOON(rival_is_voting(0, 0));
    struct lock lock;
    int64_t promised_ms = harness_now_ms();
    lock_take(here, "meanwhile", HELD_MS, &lock);
    node_kill(node);
    node->is_durable = true;
    node_start(node);
    rival_await_state(0, 0, "quarantined");
    rival_await_state(0, 0, "voting");
    ck_assert_int_ge(harness_now_ms() - promised_ms, HELD_MS);
    world_stop();
}
