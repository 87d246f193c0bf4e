#include "world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients.h"

enum {
    SILENCE_US = 1000000,
    EXECUTION_SLACK_US = 30000, /* doubt about a node's clock: a round trip */
    EPOCH_US_LOW = 795221641,   /* nodes' clocks begin in 2026 */
};

static const int64_t node_epoch_us = (1000000000LL + EPOCH_US_LOW) * 1000000;

int64_t world_random(struct world *world, int64_t below)
{
    /* splitmix64 */
    uint64_t z = (world->random += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)below);
}

bool world_chance(struct world *world, int percent)
{
    return world_random(world, 100) < percent;
}

void world_at(struct world *world, int64_t delay_us, struct event event)
{
    assert(delay_us >= 0); /* time must not run backwards */
    event.at_us = world->now_us + delay_us;
    heap_push(&world->heap, event);
}

/* ---- connections -------------------------------------------------------- */

static struct simlink *link_of(struct world *world, int server, int node)
{
    return &world->servers[server].links[node];
}

/* One direction of a connection: random delay, order kept. */
static int64_t next_arrival(struct world *world, const struct simlink *link,
                            int64_t last_us)
{
    int64_t at_us = world->now_us + 50 + world_random(world, link->delay_us);
    return at_us > last_us ? at_us : last_us;
}

static void break_link(struct world *world, int server, int node)
{
    struct simlink *link = link_of(world, server, node);
    if (!link->is_up)
        return;
    link->is_up = false;
    bool loses_all = world_chance(world, 50);
    struct message *message;
    while ((message = TAILQ_FIRST(&link->pending)) != NULL) {
        TAILQ_REMOVE(&link->pending, message, link);
        message->is_lost = loses_all;
        struct script_reply gone = {.vote = VOTE_UNREACHABLE};
        engine_on_reply(world->servers[server].engine, node, message->tag,
                        &gone, message->sent_us, world->now_us);
    }
    engine_on_node_down(world->servers[server].engine, node, VOTE_UNREACHABLE,
                        "broken");
    int64_t away_us = world_chance(world, 50) ? 20000 : 500000;
    world_at(world, 5000 + world_random(world, away_us),
             (struct event){.kind = EVENT_LINK_UP, .a = server, .b = node});
}

static void raise_link(struct world *world, int server, int node)
{
    struct simlink *link = link_of(world, server, node);
    const struct simnode *peer = &world->nodes[node];
    if (peer->is_paused) {
        world_at(world, 100000,
                 (struct event){.kind = EVENT_LINK_UP, .a = server, .b = node});
        return;
    }
    link->is_up = true;
    link->connection++;
    link->arrives_us = link->replies_us = 0;
    link->delay_us =
        100 + world_random(world, world_chance(world, 10) ? 20000 : 500);
    engine_on_node_up(world->servers[server].engine, node,
                      &(struct engine_node_facts){
                          .run_id = "sim",
                          .node_now_us = simnode_clock(peer, world->now_us),
                          .sent_us = world->now_us - link->delay_us,
                          .received_us = world->now_us,
                      });
}

static void execute(struct world *world, struct message *message)
{
    struct simlink *link = link_of(world, message->server, message->node);
    message->reply = simnode_execute(&world->nodes[message->node],
                                     &message->call, world->now_us);
    if (message->reply.vote == VOTE_GRANTED &&
        world->now_us - message->sent_us >
            SIM_NODE_TIMEOUT_US + EXECUTION_SLACK_US)
        world->late_executions++;
    message->reply.value.len = span_copy(message->value, message->reply.value);
    message->reply.value.ptr = message->value;
    int64_t at_us = next_arrival(world, link, link->replies_us);
    link->replies_us = at_us;
    world_at(world, at_us - world->now_us,
             (struct event){.kind = EVENT_REPLY, .object = message});
}

static void deliver(struct world *world, struct message *message)
{
    if (message->is_lost)
        free(message);
    else if (world->nodes[message->node].is_paused)
        TAILQ_INSERT_TAIL(&world->backlog[message->node], message, waiting);
    else
        execute(world, message);
}

static void reply(struct world *world, struct message *message)
{
    struct simlink *link = link_of(world, message->server, message->node);
    if (link->is_up && link->connection == message->connection) {
        TAILQ_REMOVE(&link->pending, message, link);
        engine_on_reply(world->servers[message->server].engine, message->node,
                        message->tag, &message->reply, message->sent_us,
                        world->now_us);
    }
    free(message);
}

/* ---- the port ----------------------------------------------------------- */

static enum vote port_send(void *ctx, int node, const struct script_call *call,
                           uint64_t tag)
{
    struct simserver *server = ctx;
    struct world *world = server->world;
    struct simlink *link = &server->links[node];
    if (!link->is_up)
        return VOTE_UNREACHABLE; /* it is just breaking */
    struct message *message = calloc(1, sizeof *message);
    assert(message != NULL);
    *message = (struct message){
        .server = (int)(server - world->servers),
        .node = node,
        .connection = link->connection,
        .tag = tag,
        .sent_us = world->now_us,
        /* cppcheck-suppress unknownEvaluationOrder; two members of one name */
        .call = {.call = *call},
    };
    struct simcall *copy = &message->call;
    if (call->resource.len > 0)
        copy->resource = simnode_resource_number(call->resource);
    copy->call.token.len = span_copy(copy->token, call->token);
    copy->call.token.ptr = copy->token;
    (void)span_copy(copy->admit, call->admit);
    TAILQ_INSERT_TAIL(&link->pending, message, link);
    link->arrives_us = next_arrival(world, link, link->arrives_us);
    world_at(world, link->arrives_us - world->now_us,
             (struct event){.kind = EVENT_DELIVER, .object = message});
    return VOTE_PENDING;
}

static int64_t port_now(void *ctx)
{
    return ((struct simserver *)ctx)->world->now_us;
}

static void port_random(void *ctx, void *buf, size_t len)
{
    unsigned char *bytes = buf;
    for (size_t i = 0; i < len; i++)
        bytes[i] =
            (unsigned char)world_random(((struct simserver *)ctx)->world, 256);
}

static bool port_timer(void *ctx, uint32_t slot, int64_t at_us)
{
    struct simserver *server = ctx;
    struct world *world = server->world;
    assert(slot < SIM_TIMERS);
    server->timers[slot] = at_us;
    if (at_us == 0)
        return true;
    int64_t delay_us = at_us > world->now_us ? at_us - world->now_us : 0;
    world_at(world, delay_us,
             (struct event){.kind = EVENT_TIMER,
                            .a = (int)(server - world->servers),
                            .b = (int)slot,
                            .tag = (uint64_t)at_us});
    return true;
}

static void port_answer(void *ctx, void *client)
{
    clients_on_answer(((struct simserver *)ctx)->world, client);
}

/* ---- faults ------------------------------------------------------------- */

static void pause_node(struct world *world, int node)
{
    if (world->nodes[node].is_paused)
        return;
    world->nodes[node].is_paused = true;
    int64_t us = world_chance(world, 70) ? 200000 : 3000000;
    world_at(world, 1000 + world_random(world, us),
             (struct event){.kind = EVENT_RESUME, .b = node});
    for (int i = 0; i < SIM_SERVERS; i++)
        world_at(world, SILENCE_US,
                 (struct event){.kind = EVENT_SILENCE,
                                .a = i,
                                .b = node,
                                .tag = link_of(world, i, node)->connection});
}

static void resume_node(struct world *world, int node)
{
    world->nodes[node].is_paused = false;
    struct message *message;
    while ((message = TAILQ_FIRST(&world->backlog[node])) != NULL) {
        TAILQ_REMOVE(&world->backlog[node], message, waiting);
        deliver(world, message);
    }
}

static void make_fault(struct world *world)
{
    int node = (int)world_random(world, SIM_NODES);
    int server = (int)world_random(world, SIM_SERVERS);
    if (!world->has_faults)
        return;
    world->faults++;
    switch (world_random(world, 5)) {
    case 0:
        pause_node(world, node);
        break;
    case 1:
    case 2:
        break_link(world, server, node);
        break;
    default: /* slow for a while, until it breaks or is drawn again */
        link_of(world, server, node)->delay_us =
            100 + world_random(world, world_chance(world, 50) ? 80000 : 500);
    }
    world_at(world, 1000 + world_random(world, 300000),
             (struct event){.kind = EVENT_FAULT});
}

static void on_silence(struct world *world, const struct event *event)
{
    const struct simlink *link = link_of(world, event->a, event->b);
    if (world->nodes[event->b].is_paused && link->connection == event->tag)
        break_link(world, event->a, event->b);
}

void world_calm(struct world *world)
{
    world->has_faults = false;
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < SIM_NODES; j++)
            link_of(world, i, j)->delay_us = 500;
}

/* ---- time --------------------------------------------------------------- */

static void on_timer(struct world *world, const struct event *event)
{
    struct simserver *server = &world->servers[event->a];
    if (server->timers[event->b] != (int64_t)event->tag)
        return; /* set anew since */
    server->timers[event->b] = 0;
    engine_on_timer(server->engine, (uint32_t)event->b);
}

static void dispatch(struct world *world, const struct event *event)
{
    switch ((enum event_kind)event->kind) {
    case EVENT_DELIVER:
        deliver(world, event->object);
        break;
    case EVENT_REPLY:
        reply(world, event->object);
        break;
    case EVENT_LINK_UP:
        raise_link(world, event->a, event->b);
        break;
    case EVENT_SILENCE:
        on_silence(world, event);
        break;
    case EVENT_RESUME:
        resume_node(world, event->b);
        break;
    case EVENT_FAULT:
        make_fault(world);
        break;
    case EVENT_TIMER:
        on_timer(world, event);
        break;
    case EVENT_CLIENT:
        clients_on_event(world, event);
        break;
    }
}

void world_run(struct world *world, int64_t us)
{
    int64_t until_us = world->now_us + us;
    while (world->heap.count > 0 && world->heap.events[0].at_us <= until_us) {
        struct event event = heap_pop(&world->heap);
        world->now_us = event.at_us;
        dispatch(world, &event);
        clients_check(world);
    }
    world->now_us = until_us;
}

/* ---- begin and end ------------------------------------------------------ */

static void start_server(struct world *world, int number)
{
    static const struct engine_settings settings = {
        .nodes = SIM_NODES,
        .node_names = {"n1", "n2", "n3", "n4", "n5"},
        .node_timeout_us = SIM_NODE_TIMEOUT_US,
        .max_ttl_ms = SIM_MAX_TTL_MS,
        .max_hold_ms = 3600000,
        .retry_delay_us = 200000,
        .retry_count = 3,
        .drift_factor = 0.01,
        .fingerprint = "sim",
    };
    struct simserver *server = &world->servers[number];
    server->world = world;
    struct engine_port port = {server,      port_send,  port_now,
                               port_random, port_timer, port_answer};
    server->engine = engine_new(&settings, &port, &server->metrics);
    assert(server->engine != NULL);
    for (int i = 0; i < SIM_NODES; i++) {
        TAILQ_INIT(&server->links[i].pending);
        world_at(world, world_random(world, 20000),
                 (struct event){.kind = EVENT_LINK_UP, .a = number, .b = i});
    }
}

void world_init(struct world *world, uint64_t seed, struct clients *clients)
{
    *world = (struct world){
        .random = seed,
        .now_us = 1000000,
        .has_faults = true,
        .clients = clients,
    };
    for (int i = 0; i < SIM_NODES; i++) {
        TAILQ_INIT(&world->backlog[i]);
        world->nodes[i].lead_us =
            node_epoch_us + world_random(world, 200000) - 100000;
        world->nodes[i].rate =
            1.0 + (double)(world_random(world, 2001) - 1000) * 1e-6;
    }
    for (int i = 0; i < SIM_SERVERS; i++)
        start_server(world, i);
    world_at(world, 500000, (struct event){.kind = EVENT_FAULT});
}

void world_fini(struct world *world)
{
    while (world->heap.count > 0) {
        struct event event = heap_pop(&world->heap);
        if (event.kind == EVENT_DELIVER || event.kind == EVENT_REPLY)
            free(event.object);
    }
    free(world->heap.events);
    for (int i = 0; i < SIM_NODES; i++) {
        struct message *message;
        while ((message = TAILQ_FIRST(&world->backlog[i])) != NULL) {
            TAILQ_REMOVE(&world->backlog[i], message, waiting);
            free(message);
        }
    }
    for (int i = 0; i < SIM_SERVERS; i++)
        engine_free(world->servers[i].engine);
}
