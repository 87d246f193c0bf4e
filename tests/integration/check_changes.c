/* SPDX-License-Identifier: MIT */
/*
 * Changes and mistakes while clients work: other limits, a server that is
 * started with a wrong configuration. No acquire fails after one retry, and a
 * lock that is extended in time is kept.
 */

#include "http.h"
#include "rival.h"
#include "rolling.h"

enum {
    NODES = ROLLING_NAMES,
    REPLICAS = ROLLING_SERVERS, /* the next server is the mistaken one */
    SOON_MS = 5000,
    MISTAKE_MS = 2000,
    BACK_MS = ROLLING_BACK_MS,
};

static const int ttls_ms[2] = {5000, 5000};

SUITE(changes, .timeout_s = 240, .tags = "slow");

/* ---- limits -------------------------------------------------------------- */

/* A lock that is longer than the servers allow again is kept to its end. */
TEST(max_ttl_is_raised_and_lowered)
{
    struct lock lock;
    rolling_begin(ROLLING_NAMES, ttls_ms, "");
    answer_expect(lock_acquire(here, "long", 120000, &lock), 400, NULL);
    rolling_restart(rolling_options("--max-ttl-ms 120000", rolling_first));
    lock_take(there, "long", 120000, &lock);
    rolling_restart(rolling_options("", rolling_first));
    for (int i = 0; i < ROLLING_SERVERS; i++) {
        answer_expect(lock_acquire(&world.servers[i], "long", 1000, NULL), 409,
                      "lock_held");
        answer_expect(lock_extend(&world.servers[i], &lock, 120000), 400, NULL);
    }
    lock_drop(&world.servers[2], &lock);
    rolling_wait_votes(SOON_MS);
    rolling_end();
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
    const char *options =
        textf("--nodes x=127.0.0.1:%d,y=127.0.0.1:%d,z=127.0.0.1:%d",
              world.nodes[5].port, world.nodes[6].port, world.nodes[7].port);
    world_start_server(REPLICAS, options);
    world_await(REPLICAS, "/readyz");
    world_stop_server(REPLICAS);
}

static bool are_undisturbed(void)
{
    for (int i = 0; i < REPLICAS; i++)
        if (rival_count_voting(i) != NODES)
            return false;
    return true;
}

TEST(story_60_a_mistaken_server_disturbs_nobody)
{
    rolling_begin(8, ttls_ms, "");
    for (int i = 0; i < MISTAKES; i++) {
        if (i == OTHERS)
            admit_others();
        world_start_server(
            REPLICAS,
            rolling_options(i == EPOCH ? "--config-epoch 20" : "", wrong[i]));
        world_await(REPLICAS, "/livez");
        STAYS(MISTAKE_MS, are_undisturbed());
        world_stop_server(REPLICAS);
    }
    rolling_wait_votes(BACK_MS);
    ck_assert_int_eq(server_count_log(here, "superseded"), 0);
    rolling_end();
}
