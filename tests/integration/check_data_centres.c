/*
 * All five names move to other machines, one after the other, while clients
 * work; each old machine ends when the new one votes.
 */
#include "node.h"
#include "rolling.h"

SUITE(data_centres, .timeout_s = 240, .tags = "slow");

TEST_RANGE(all_names_move_one_after_the_other, 0, 2)
{
    int nodes[ROLLING_NAMES] = {0, 1, 2, 3, 4};
    if (_i == 0)
        rolling_begin(2 * ROLLING_NAMES, rolling_ttls_ms(), "");
    else
        rolling_begin_dns(2 * ROLLING_NAMES, rolling_ttls_ms());
    for (int i = 0; i < ROLLING_NAMES; i++) {
        nodes[i] = ROLLING_NAMES + i;
        rolling_move(nodes, "");
        node_kill(&world.nodes[i]);
    }
    pause_ms(1000); /* the kept locks are extended */
    node_kill(&world.nodes[nodes[0]]);
    node_kill(&world.nodes[nodes[1]]);
    pause_ms(1500);
    rolling_end();
}
