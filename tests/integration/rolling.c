/* SPDX-License-Identifier: MIT */
#include "rolling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"
#include "workers.h"

enum { TTL_MS = 2000, MOVE_MS = 90000 };

const int rolling_first[ROLLING_NAMES] = {0, 1, 2, 3, 4};

const int *rolling_ttls_ms(void)
{
    static int ttls_ms[2] = {TTL_MS, TTL_MS};
    const char *other = getenv("ROLLING_TTL_MS");
    if (other)
        ttls_ms[1] = atoi(other);
    return ttls_ms;
}

const char *rolling_options(const char *others, const int nodes[ROLLING_NAMES])
{
    return world_name_nodes(others, "abcde", nodes);
}

static bool all_vote(void)
{
    for (int i = 0; i < ROLLING_SERVERS; i++)
        if (rival_count_voting(i) != ROLLING_NAMES)
            return false;
    return true;
}

void rolling_wait_votes(int ms)
{
    WAIT_UNTIL(ms, all_vote());
}

/* No server sees half of the file. */
void rolling_point_dns(int server, const int nodes[ROLLING_NAMES])
{
    const char *path = world.servers[server].names;
    const char *other = textf("%s.new", path);
    FILE *file = fopen(other, "we");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < ROLLING_NAMES; i++)
        fprintf(file, "%c %d\n", 'a' + i, world.nodes[nodes[i]].port);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(other, path), 0);
}

static void start_servers(const int ttl_ms[2], const char *options)
{
    for (int i = 0; i < ROLLING_SERVERS; i++)
        world_start_server(i, options);
    for (int i = 0; i < ROLLING_SERVERS; i++)
        world_await(i, "/readyz");
    rolling_wait_votes(ROLLING_BACK_MS);
    workers_start(ROLLING_SERVERS, ttl_ms);
}

void rolling_begin(int nodes, const int ttl_ms[2], const char *options)
{
    world_start_nodes(nodes);
    start_servers(ttl_ms, rolling_options(options, rolling_first));
}

void rolling_begin_dns(int nodes, const int ttl_ms[2])
{
    char dir[PATH_SIZE];
    world_start_nodes(nodes);
    harness_make_dir(dir);
    for (int i = 0; i < ROLLING_SERVERS; i++) {
        PRINT_TO(world.servers[i].names, "%.200s/names%d", dir, i);
        rolling_point_dns(i, rolling_first);
    }
    start_servers(ttl_ms, "--nodes a:1,b:1,c:1,d:1,e:1");
}

void rolling_end(void)
{
    workers_stop();
    world_stop();
}

void rolling_restart(const char *options)
{
    for (int i = 0; i < ROLLING_SERVERS; i++) {
        world_stop_server(i);
        world_start_server(i, options);
        world_await(i, "/readyz");
        workers_let_work();
    }
}

static bool are_admitted(const int nodes[ROLLING_NAMES])
{
    for (int i = 0; i < ROLLING_NAMES; i++)
        if (!node_integer(&world.nodes[nodes[i]],
                          "HEXISTS redlockd:state admit"))
            return false;
    return true;
}

void rolling_move(const int nodes[ROLLING_NAMES], const char *options)
{
    int64_t began_ms = harness_now_ms();
    for (int i = 0; i < ROLLING_SERVERS && *world.servers[i].names; i++)
        rolling_point_dns(i, nodes);
    if (*here->names == '\0')
        rolling_restart(rolling_options(options, nodes));
    WAIT_UNTIL(MOVE_MS, are_admitted(nodes));
    rolling_wait_votes(MOVE_MS);
    printf("rolling: all vote after %.1f s\n",
           (double)(harness_now_ms() - began_ms) / 1000);
}
