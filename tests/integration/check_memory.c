/*
 * Memory that is replaced under a node's name by that of another node, or of a
 * replica, or lost in part by eviction. Nobody may get a lock that the node had
 * granted.
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

SUITE(memory, .timeout_s = 120, .tags = "slow");

/*
 * The first node becomes a replica of the fourth, which has not the lock, and
 * a master again: with its old run_id and the other's permission to vote.
 */
TEST(story_37_replica_of_another_node_for_a_moment)
{
    rival_start(N, 2, LIMIT);
    rival_hold(0, LIMIT_MS, &holder);
    node_replicate(&world.nodes[0], &world.nodes[3]);
    node_do(&world.nodes[0], "REPLICAOF NO ONE");
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}

/*
 * The replica was cut off before the lock was granted. It takes over the port
 * of its master, as others take over an address.
 */
TEST(story_39_replica_that_was_cut_off_takes_its_masters_address)
{
    struct node replica = {.is_durable = true};
    struct node *master = &world.nodes[0];

    rival_start(N, 2, LIMIT);
    replica.port = harness_free_port();
    harness_make_dir(replica.dir);
    node_start(&replica);
    node_replicate(&replica, master);
    pause_ms(HEARTBEAT_MS); /* it may cost the master its vote … */
    AWHILE(rival_all_vote_everywhere()); /* … for a while */
    node_do(&replica, "REPLICAOF NO ONE");
    rival_hold(0, LIMIT_MS, &holder);
    node_kill(master);
    node_do(&replica, "CONFIG SET port %d", master->port);
    replica.port = master->port;
    *master = replica;
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}
