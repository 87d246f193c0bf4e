/* SPDX-License-Identifier: MIT */
/*
 * Names that move to other machines while clients work: by a rolling restart
 * with another address, or by DNS without one. No acquire fails after one
 * retry, and a lock that is extended in time is kept.
 */
#include "http.h"
#include "node.h"
#include "rival.h"
#include "rolling.h"
#include "workers.h"

enum { VOTE_MS = 60000 };

SUITE(machines, .timeout_s = 240, .tags = "slow");

static void begin(int nodes, bool by_dns)
{
    if (by_dns)
        rolling_begin_dns(nodes, rolling_ttls_ms());
    else
        rolling_begin(nodes, rolling_ttls_ms(), "");
}

/* There is a quorum without two of the nodes that did not move, once the others
 * have the kept locks. */
static void expect_new_votes(const int nodes[ROLLING_NAMES])
{
    for (int i = 2; i < ROLLING_NAMES; i++)
        WAIT_UNTIL(VOTE_MS, workers_are_kept_at(&world.nodes[nodes[i]]));
    world_kill_nodes(0, 2);
    workers_let_work();
}

static const struct {
    int after[ROLLING_NAMES];
    bool is_dead; /* the machine that e had */
    bool by_dns;
} moves[] = {
    {{0, 1, 2, 3, 5}, false, false},
    {{0, 1, 2, 6, 5}, true, true},
};

TEST_EACH(names_move_to_other_machines, moves)
{
    begin(7, moves[_i].by_dns);
    if (moves[_i].is_dead)
        node_kill(&world.nodes[4]);
    workers_let_work();
    rolling_move(moves[_i].after, "");
    ck_assert_str_eq(rival_told(0, 4, "node"), moves[_i].by_dns ? "e:1" : "e");
    expect_new_votes(moves[_i].after);
    rolling_end();
}

/* The DNS of one server is wrong for a while: it does without these votes, and
 * takes none from the others. */
TEST(story_60_a_wrong_name_server_disturbs_no_other_server)
{
    begin(8, true);
    rolling_point_dns(2, (int[]){0, 1, 5, 6, 7});
    rival_await_count(2, 2);
    STAYS(6000, rival_count_voting(0) == ROLLING_NAMES &&
                    rival_count_voting(1) == ROLLING_NAMES);
    rolling_point_dns(2, rolling_first);
    rolling_wait_votes(VOTE_MS);
    rolling_end();
}
