/* SPDX-License-Identifier: MIT */
/*
 * All five names move to other machines, one after the other, while clients
 * work; each old machine ends when the new one votes.
 */
#include "node.h"
#include "rolling.h"
#include "workers.h"

SUITE(data_centres, .timeout_s = 240, .tags = "slow");

TEST(all_names_move_one_after_the_other)
{
    int nodes[ROLLING_NAMES] = {0, 1, 2, 3, 4};
    rolling_begin_dns(2 * ROLLING_NAMES, rolling_ttls_ms());
    for (int i = 0; i < ROLLING_NAMES; i++) {
        nodes[i] = ROLLING_NAMES + i;
        rolling_move(nodes, "");
        node_kill(&world.nodes[i]);
    }
    for (int i = 2; i < ROLLING_NAMES; i++)
        WAIT_UNTIL(60000, workers_are_kept_at(&world.nodes[nodes[i]]));
    node_kill(&world.nodes[nodes[0]]);
    node_kill(&world.nodes[nodes[1]]);
    workers_let_work();
    rolling_end();
}
