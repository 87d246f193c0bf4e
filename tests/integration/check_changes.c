/*
 * Changes and mistakes while clients work: a name gets another address, a
 * server is started with a wrong configuration. Clients try the next replica
 * after 503: no acquire fails, and a lock that is extended in time is kept.
 */
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"

enum {
    NODES = 5, /* of the configuration; the others are spare */
    REPLICAS = 3,
    TTL_MS = 5000,
    MISTAKE_MS = 2000,
    BACK_MS = 20000,
};

static struct world world;
static struct lock kept; /* extended all the time */

SUITE(changes, .timeout_s = 240, .tags = "slow");

/* These nodes, by number, under the names a to e; before: other options. */
static const char *options_with(const char *before, const int nodes[NODES])
{
    static char options[400];
    int len = snprintf(options, sizeof options, "%s --nodes ", before);
    for (int i = 0; i < NODES; i++)
        len += snprintf(options + len, sizeof options - (size_t)len,
                        "%s%c=127.0.0.1:%d", i > 0 ? "," : "", 'a' + i,
                        world.nodes[nodes[i]].port);
    return options;
}

static const int all[NODES] = {0, 1, 2, 3, 4};

/* The next replica that runs. */
static const struct server *next_replica(void)
{
    static int at;
    do
        at = (at + 1) % REPLICAS;
    while (world.servers[at].pid == 0);
    return &world.servers[at];
}

static void work_once(void)
{
    struct lock lock;
    if (lock_acquire(next_replica(), "work", 2000, &lock)->status == 503)
        answer_expect(lock_acquire(next_replica(), "work", 2000, &lock), 201,
                      NULL);
    (void)lock_release(next_replica(), &lock);
    const struct answer *extended = lock_extend(next_replica(), &kept, TTL_MS);
    if (extended->status == 503)
        extended = lock_extend(next_replica(), &kept, TTL_MS);
    answer_expect(extended, 200, NULL);
}

static void work(int64_t ms)
{
    int64_t until_ms = harness_now_ms() + ms;
    while (harness_now_ms() < until_ms) {
        work_once();
        harness_pause_ms(20);
    }
}

static bool all_vote(void)
{
    for (int i = 0; i < REPLICAS; i++)
        if (rival_count_voting(&world, i) != NODES)
            return false;
    return true;
}

static void wait_ready(int server)
{
    WAIT_UNTIL(BACK_MS, http_probe(&world.servers[server], "/readyz") == 200);
}

static void begin(int nodes)
{
    world_start_nodes(&world, nodes);
    for (int i = 0; i < REPLICAS; i++)
        world_start_server(&world, i, options_with("", all));
    for (int i = 0; i < REPLICAS; i++)
        wait_ready(i);
    WAIT_UNTIL(BACK_MS, all_vote());
    answer_expect(lock_acquire(&world.servers[0], "kept", TTL_MS, &kept), 201,
                  NULL);
}

static void work_until_all_vote(int64_t ms)
{
    int64_t until_ms = harness_now_ms() + ms;
    while (!all_vote()) {
        ck_assert_int_lt(harness_now_ms(), until_ms);
        work_once();
        harness_pause_ms(100);
    }
}

static void restart_all(const int nodes[NODES])
{
    for (int i = 0; i < REPLICAS; i++) {
        world_stop_server(&world, i);
        work(300);
        world_start_server(&world, i, options_with("", nodes));
        wait_ready(i);
        work(300);
    }
}

/* ---- machines ------------------------------------------------------------ */

/* One that is alive, one that is dead, two of which one is dead. */
TEST_RANGE(a_name_moves_to_another_machine, 0, 3)
{
    static const int after[][NODES] = {
        {0, 1, 2, 3, 5}, {0, 1, 2, 3, 5}, {0, 1, 2, 6, 5}};
    begin(7);
    if (_i > 0)
        node_kill(&world.nodes[4]);
    work(500);
    restart_all(after[_i]);
    work_until_all_vote(60000);
    work(500);
    ck_assert_str_eq(rival_told(&world, 0, 4, "node"), "e");
    /* the new ones vote: without two of the others there is a quorum */
    node_kill(&world.nodes[0]);
    node_kill(&world.nodes[1]);
    work(1500);
    world_stop(&world);
}

/* Back to the machine that the name had: it is marked again once the other one
 * is silent. */
TEST(a_move_is_taken_back)
{
    static const int after[] = {0, 1, 2, 3, 5};
    begin(6);
    restart_all(after);
    work_until_all_vote(60000);
    restart_all(all);
    work_until_all_vote(60000);
    world_stop(&world);
}

/* ---- mistakes ------------------------------------------------------------ */

enum mistake { EPOCH, WRONG_ONE, WRONG_THREE, SWAPPED, OTHERS, MISTAKES };

static const int wrong[MISTAKES][NODES] = {
    [EPOCH] = {0, 1, 2, 3, 4},       [WRONG_ONE] = {0, 1, 2, 3, 5},
    [WRONG_THREE] = {0, 1, 5, 6, 7}, [SWAPPED] = {1, 0, 2, 3, 4},
    [OTHERS] = {0, 1, 5, 6, 7},
};

/* A server over three spare nodes, which are its own from then on. */
static void admit_others(void)
{
    char options[200];
    snprintf(options, sizeof options,
             "--nodes x=127.0.0.1:%d,y=127.0.0.1:%d,z=127.0.0.1:%d",
             world.nodes[5].port, world.nodes[6].port, world.nodes[7].port);
    world_start_server(&world, REPLICAS, options);
    wait_ready(REPLICAS);
    world_stop_server(&world, REPLICAS);
}

TEST_RANGE(story_60_a_mistaken_server_disturbs_nobody, 0, MISTAKES)
{
    begin(8);
    if (_i == OTHERS)
        admit_others();
    world_start_server(
        &world, REPLICAS,
        options_with(_i == EPOCH ? "--config-epoch 20" : "", wrong[_i]));
    WAIT_UNTIL(BACK_MS, http_probe(&world.servers[REPLICAS], "/livez") == 200);
    work(MISTAKE_MS);
    for (int i = 0; i < REPLICAS; i++)
        for (int node = 0; node < NODES; node++)
            ck_assert_msg(rival_is_voting(&world, i, node), "%d %d: %s", i,
                          node, rival_told(&world, i, node, "detail"));
    world_stop_server(&world, REPLICAS);
    work_until_all_vote(BACK_MS);
    work(500);
    ck_assert_int_eq(server_count_log(&world.servers[0], "superseded"), 0);
    world_stop(&world);
}

/* The nodes carry epoch 1, and go on so. */
TEST(a_higher_epoch_for_the_same_nodes_changes_nothing)
{
    begin(NODES);
    world_start_server(&world, REPLICAS, options_with("--config-epoch 2", all));
    wait_ready(REPLICAS);
    WAIT_UNTIL(BACK_MS, rival_count_voting(&world, REPLICAS) == NODES);
    ck_assert_int_eq(
        server_count_log(&world.servers[REPLICAS], "event=config_epoch"), 1);
    rival_cycle(&world.servers[REPLICAS], "cycled");
    work(500);
    world_stop(&world);
}
