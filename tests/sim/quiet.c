/* SPDX-License-Identifier: MIT */
#include "quiet.h"

#include "clients.h"
#include "faults.h"
#include "losses.h"

enum {
    LEAST_US = 800000,
    MOST_US = 4000000,
    SOON_US = 60000,
    TRAVEL_US = 1000,
};

static bool can_spare_two(const struct world *world, int server)
{
    const struct engine *engine = world->servers[server].engine;
    return engine != NULL &&
           engine_voting(engine) == server_nodes(world, server);
}

/* The server does not reach two nodes: its locks are on a bare majority. */
static void cut_off(struct world *world, int server, int64_t us)
{
    int first = (int)world_random(world, SIM_NODES);
    for (int i = first; i < first + 2; i++)
        simlink_of(world, server, i % SIM_NODES)->blocked_us =
            world->now_us + us;
}

/* How well a server serves: of those that have all votes, one that waits long
 * for them. */
static int64_t patience_us(const struct world *world, int server)
{
    const struct simserver *it = &world->servers[server];
    if (it->engine == NULL)
        return -1;
    return can_spare_two(world, server) ? it->options.node_timeout_us : 0;
}

/* Mostly the most patient one. */
static int any_server(struct world *world)
{
    int server = world_any_server(world);
    bool is_patient = world_chance(world, 95);
    for (int i = 0; i < SIM_FOREIGN; i++) {
        int64_t best_us = patience_us(world, server);
        if (best_us < 0 || (is_patient && patience_us(world, i) > best_us))
            server = i;
    }
    return server;
}

/* Nobody waits for a lock, either. */
static void be_silent(struct world *world)
{
    for (int i = 0; i < SIM_ALL_CLIENTS; i++)
        if (world->clients->client[i].ask == ASK_ACQUIRE)
            client_leave(world, &world->clients->client[i]);
}

void quiet_make(struct world *world)
{
    struct clients *clients = world->clients;
    int64_t us = LEAST_US + world_random(world, MOST_US - LEAST_US);
    int server = any_server(world);
    if (world->now_us < clients->quiet_until_us ||
        world->servers[server].engine == NULL)
        return;
    world_trace(world, "quiet for %lld ms", (long long)us / 1000);
    clients->quiet_until_us = world->now_us + us;
    clients->is_silent = world_chance(world, 85);
    if (clients->is_silent)
        be_silent(world);
    if (can_spare_two(world, server) && world_chance(world, 80))
        cut_off(world, server, us);
    if (world_chance(world, 80))
        faults_lag(world, server, us);
    faults_end_later(world, us / 4 + world_random(world, us / 4), FAULT_QUIET,
                     server);
}

static bool is_free(const struct world *world, int resource)
{
    for (int i = 0; i < SIM_NAMES; i++) {
        const struct machine *it = &world->machines[world->home[i]];
        if (simnode_key(&it->memory, resource,
                        machine_clock(it, world->now_us)) != NULL)
            return false;
    }
    return true;
}

/* What the server sends now arrives late, but still in time; except at one node
 * (-1: nowhere). */
static void stall(struct world *world, int server, int except)
{
    const struct simoptions *options = &world->servers[server].options;
    int64_t ttl_us = options->max_ttl_ms * 1000;
    int64_t waits_us = options->node_timeout_us * 9 / 10;
    /* a validity gives the time of the round away twice */
    int64_t most_us = waits_us < ttl_us * 2 / 5 ? waits_us : ttl_us * 2 / 5;
    int64_t until_us =
        world->now_us + most_us / 2 + world_random(world, most_us / 2);
    for (int i = 0; i < SIM_NODES; i++) {
        struct simlink *link = simlink_of(world, server, i);
        if (i != except && link->blocked_us < until_us)
            link->blocked_us = until_us;
    }
}

/* Soon after it has got what the server sends now. */
static void lose_one(struct world *world, int server)
{
    int node = (int)world_random(world, SIM_NODES);
    for (int i = 0; i < SIM_NODES; i++)
        if (simlink_of(world, server, node)->blocked_us > world->now_us)
            node = (node + 1) % SIM_NODES;
    struct simlink *link = simlink_of(world, server, node);
    /* whether it gets it before the others */
    bool is_first = world_chance(world, 60);
    if (is_first)
        link->lag_us[0] = link->lag_us[1] = 0;
    if (world_chance(world, 80))
        stall(world, server, is_first ? node : -1);
    int64_t late_us = link->blocked_us - world->now_us;
    int64_t us = (late_us > 0 ? late_us : 0) + link->lag_us[0] + TRAVEL_US;
    faults_end_later(world, us + world_random(world, SOON_US),
                     world_chance(world, 10) ? FAULT_FLUSH : FAULT_CUT,
                     link->met.machine);
}

void quiet_ask(struct world *world, int server)
{
    int resource = (int)world_random(world, world_resources(world));
    for (int i = 0; i < world_resources(world) && !is_free(world, resource);
         i++)
        resource = (resource + 1) % world_resources(world);
    for (int i = 0; i < SIM_CLIENTS; i++) {
        struct client *client = &world->clients->client[i];
        if (client->state != CLIENT_IDLE)
            continue;
        client_choose(client, resource);
        client->ttl_ms = world->faults->longest_ms;
        client->wait_ms = 0;
        client_ask(world, client, ASK_ACQUIRE, server);
        world_trace(world, "client %d asks server %d alone", i, server);
        lose_one(world, server);
        return;
    }
}
