/* SPDX-License-Identifier: MIT */
/*
 * Backups: redis-cli --rdb attaches to a node as a replica. Redis then makes a
 * new replication ID, and again when it frees its replication backlog; but the
 * node forgets nothing.
 */
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"

enum {
    N = 5,
    HELD_MS = 60000,
    SYNC_MS = 20000,
    PROBES = 30,
};

static char ids[N][64]; /* the replication IDs */

SUITE(backups, .timeout_s = 120, .tags = "slow");

static void read_id(int node, char id[64])
{
    const char *info = node_text(&world.nodes[node], "INFO replication");
    snprintf(id, 41, "%s", strstr(info, "master_replid:") + 14);
}

static bool has_other_id(int node)
{
    char id[64];
    read_id(node, id);
    return strcmp(id, ids[node]) != 0;
}

static bool have_other_ids(void)
{
    for (int i = 0; i < N; i++)
        if (!has_other_id(i))
            return false;
    return true;
}

static void note_ids(void)
{
    for (int i = 0; i < N; i++)
        read_id(i, ids[i]);
}

/* Through each server that runs: no request fails. */
static void cycle(int servers)
{
    struct lock lock;
    for (int i = 0; i < servers; i++) {
        lock_take(&world.servers[i], "cycled", 5000, &lock);
        lock_drop(&world.servers[i], &lock);
    }
}

static void expect_kept(int servers, struct lock *held)
{
    for (int i = 0; i < PROBES; i++) {
        cycle(servers);
        pause_ms(50);
    }
    for (int i = 0; i < servers; i++) {
        expect_ok(lock_extend(&world.servers[i], held, HELD_MS));
        ck_assert_int_eq(rival_count_voting(i), N);
    }
}

static void back_up_all(pid_t pids[N])
{
    for (int i = 0; i < N; i++) {
        const char *port = textf("%d", world.nodes[i].port);
        const char *file = textf("%s/backup.rdb", world.nodes[i].dir);
        node_do(&world.nodes[i], "CONFIG SET repl-diskless-sync-delay 0");
        pids[i] = harness_spawn((char *[]){"redis-cli", "-p", (char *)port,
                                           "--rdb", (char *)file, NULL},
                                NULL, "/dev/null");
    }
}

/* All nodes at once, by two servers, one of which does nothing else. */
TEST(story_74_backups_of_all_nodes_cost_no_request)
{
    struct lock held;
    pid_t pids[N];
    world_start_nodes(N);
    for (int i = 0; i < N; i++) /* not durable: it could not be readmitted */
        node_do(&world.nodes[i], "CONFIG SET appendfsync everysec");
    world_start_server(0, "--first-start yes");
    world_start_server(1, "--first-start yes");
    for (int i = 0; i < 2; i++) {
        world_wait_ready(i);
        rival_await_count(i, N);
    }
    lock_take(here, "held", HELD_MS, &held);
    for (int i = 0; i < 2; i++)
        rival_await_looks(i);
    note_ids();
    back_up_all(pids);
    AWHILE((cycle(2), have_other_ids()));
    expect_kept(2, &held);
    note_ids();
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(harness_reap(pids[i], SYNC_MS), 0);
        node_do(&world.nodes[i], "CONFIG SET repl-backlog-ttl 1");
    }
    AWHILE((cycle(2), have_other_ids()));
    expect_kept(2, &held);
    world_stop();
}
