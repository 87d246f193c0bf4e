/* SPDX-License-Identifier: MIT */
#include "news.h"

#include <stdlib.h>

#include "clients.h"
#include "world.h"

enum {
    LATE_US = 400000,
    PROMPT_US = 1000,
    RETRY_US = 100000,
    HEARTBEAT = SIM_POOL + 1, /* in place of a resource */
};

static struct listener *listener_of(struct world *world, int server, int node)
{
    return &world->servers[server].listeners[node];
}

static int64_t travel_us(struct world *world)
{
    return 50 +
           world_random(world, world_chance(world, 3) ? LATE_US : PROMPT_US);
}

static void send(struct world *world, enum event_kind kind, int server,
                 int node, int what, int64_t number)
{
    const struct listener *it = listener_of(world, server, node);
    world_at(world, travel_us(world),
             (struct event){.kind = (int)kind,
                            .a = server,
                            .b = node * (HEARTBEAT + 1) + what,
                            .tag = it->generation,
                            .number = number});
}

/* ---- connections -------------------------------------------------------- */

static void forget(struct listener *it)
{
    uint64_t generation = it->generation + 1;
    *it = (struct listener){.generation = generation};
}

static void connect_later(struct world *world, int server, int node,
                          int64_t delay_us)
{
    world_at(
        world, delay_us,
        (struct event){.kind = EVENT_LISTENER,
                       .a = server,
                       .b = node * (HEARTBEAT + 1),
                       .tag = listener_of(world, server, node)->generation});
}

void news_listen(struct world *world, int server, bool is_on)
{
    for (int i = 0; i < SIM_NODES; i++) {
        forget(listener_of(world, server, i));
        if (is_on && i < server_nodes(world, server))
            connect_later(world, server, i, travel_us(world));
    }
}

static void connect(struct world *world, int server, int node)
{
    struct simserver *it = &world->servers[server];
    struct listener *listener = listener_of(world, server, node);
    int name = servers_config(world, it->configuration)->name[node];
    int machine = world->leads[server][name];
    if (world->machines[machine].state != MACHINE_UP) {
        connect_later(world, server, node, RETRY_US);
        return;
    }
    listener->is_up = true;
    listener->machine = machine;
    listener->life = world->machines[machine].life;
    send(world, EVENT_SUBSCRIBED, server, node, HEARTBEAT, 0);
    engine_on_listener_up(it->engine, node);
}

static void break_off(struct world *world, int server, int node)
{
    forget(listener_of(world, server, node));
    connect_later(world, server, node, RETRY_US);
    engine_on_listener_down(world->servers[server].engine, node);
}

void news_subscribe(struct world *world, int server, int node,
                    struct span resource, bool is_on)
{
    struct listener *it = listener_of(world, server, node);
    if (!it->is_up || clients_is_denied(resource))
        return;
    int number = simnode_resource_number(resource);
    it->is_subscribed[number] = is_on;
    if (is_on)
        send(world, EVENT_SUBSCRIBED, server, node, number, 0);
}

/* ---- announcements ------------------------------------------------------ */

/* To those subscribed to one; returns how many connections are told. */
static int announce(struct world *world, int machine, int to, int what,
                    int64_t number)
{
    int told = 0;
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < SIM_NODES; j++) {
            const struct listener *it = listener_of(world, i, j);
            if (!it->is_up || it->machine != machine ||
                it->life != world->machines[machine].life ||
                (to != HEARTBEAT && !it->is_subscribed[to]))
                continue;
            told++;
            if (!world->is_mute && world_chance(world, 95))
                send(world, EVENT_ANNOUNCED, i, j, what, number);
        }
    return told;
}

static int on_announced(void *ctx, int resource, struct span message)
{
    const struct news *news = ctx;
    struct world *world = news->world;
    if (resource >= 0) {
        char *end;
        int64_t number = strtoll(message.ptr, &end, 10);
        int slot = resource == SIM_POOL ? atoi(end + 1) : 0;
        return announce(world, news->machine, resource,
                        resource == SIM_POOL ? SIM_PLAIN + slot : resource,
                        number);
    }
    (void)announce(world, news->machine, HEARTBEAT, HEARTBEAT, 0);
    if (world_chance(world, 2)) { /* a false one */
        int what = (int)world_random(world, world_resources(world));
        (void)announce(world, news->machine, what < SIM_PLAIN ? what : SIM_POOL,
                       what, 0);
    }
    return 0;
}

struct simlisteners news_listeners(struct news *news)
{
    return (struct simlisteners){on_announced, news};
}

void news_on_event(struct world *world, const struct event *event)
{
    int node = event->b / (HEARTBEAT + 1), what = event->b % (HEARTBEAT + 1);
    struct engine *engine = world->servers[event->a].engine;
    const struct listener *it = listener_of(world, event->a, node);
    struct span resource =
        span_of(what == HEARTBEAT ? "" : simnode_resource(what));
    if (engine == NULL || it->generation != event->tag)
        return;
    if (event->kind == EVENT_LISTENER)
        connect(world, event->a, node);
    else if (it->life != world->machines[it->machine].life ||
             world->machines[it->machine].state == MACHINE_DOWN)
        break_off(world, event->a, node);
    else if (event->kind == EVENT_SUBSCRIBED)
        engine_on_subscribed(engine, node, resource);
    else
        engine_on_announced(engine, node, resource, event->number);
}
