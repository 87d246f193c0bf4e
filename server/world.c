/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "node/link.h"
#include "node/subscription.h"

enum {
    SILENCE_US = 1000000,    /* a node may owe a reply at least this long */
    HEARTBEATS_US = 5000000, /* the same for heartbeats, one each second */
    TIMERS_GROWTH = 64,
};

/* Of the engine. */
struct world_timer {
    struct world *world;
    uint32_t id;
    struct loop_timer *timer;
};

struct world {
    struct loop *loop;
    struct engine *engine;
    struct world_timer **timers; /* by id; NULL: never set yet */
    uint32_t timers_count;
    struct trust *trust; /* NULL: no node speaks TLS */
    int nodes;
    struct link *links[NODES_MAX];
    struct subscription *subscriptions[NODES_MAX];
};

/* The texts are the configuration's. */
static void world_set(struct engine_settings *settings,
                      const struct world_setup *setup)
{
    const struct config *config = setup->config;
    *settings = (struct engine_settings){
        .nodes = config->nodes_count,
        .node_timeout_us = config->node_timeout_ms * 1000,
        .max_ttl_ms = config->max_ttl_ms,
        .max_hold_ms = config->max_hold_ms,
        .readers_max = (int)config->max_readers,
        .retry_delay_us = config->retry_delay_ms * 1000,
        .retry_count = (int)config->retry_count,
        .waiters_max = setup->waiters_max,
        .drift_factor = config->drift_factor,
        .config_epoch = (int)config->config_epoch,
        .first_start = (enum first_start)config->first_start,
        .ask = (enum ask_mode)config->ask,
        .has_take_over = config->take_over != 0,
        .is_guard_off = !config->restart_guard,
        .is_observer = setup->answer == NULL,
    };
    for (int i = 0; i < config->nodes_count; i++) {
        settings->node_names[i] = config->nodes[i].name;
        settings->node_addresses[i] = config->nodes[i].address;
    }
    fingerprint_make(settings->fingerprint, settings->node_names,
                     config->nodes_count, quorum_of(config->nodes_count));
}

/* ---- what the engine asks for ------------------------------------------- */

static enum vote send_call(void *ctx, int node, const struct call *call,
                           uint64_t tag)
{
    const struct world *world = ctx;
    assert(node >= 0 && node < world->nodes);
    return link_send(world->links[node], call, tag);
}

static int64_t read_clock(void *ctx)
{
    (void)ctx;
    return clock_now_us();
}

static void fill_with_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    random_bytes(buf, len);
}

static void run_engine_timer(void *arg)
{
    const struct world_timer *it = arg;
    engine_on_timer(it->world->engine, it->id);
}

/* The slots are small and dense. */
static bool make_room(struct world *world, uint32_t id)
{
    uint32_t count = (id / TIMERS_GROWTH + 1) * TIMERS_GROWTH;
    struct world_timer **timers =
        realloc(world->timers, count * sizeof(struct world_timer *));
    if (timers == NULL)
        return false;
    for (; world->timers_count < count; world->timers_count++)
        timers[world->timers_count] = NULL;
    world->timers = timers;
    return true;
}

/* NULL: no memory. */
static struct world_timer *make_timer(struct world *world, uint32_t id)
{
    struct world_timer *it = malloc(sizeof *it);
    if (it == NULL)
        return NULL;
    *it = (struct world_timer){world, id, NULL};
    it->timer = loop_timer_new(world->loop, run_engine_timer, it);
    if (it->timer != NULL)
        return it;
    free(it);
    return NULL;
}

static bool world_set_timer(void *ctx, uint32_t id, int64_t at_us)
{
    struct world *world = ctx;
    if (id >= world->timers_count && !make_room(world, id))
        return false;
    if (world->timers[id] == NULL)
        world->timers[id] = make_timer(world, id);
    const struct world_timer *it = world->timers[id];
    if (it == NULL)
        return false;
    if (at_us != 0)
        loop_timer_set(it->timer, at_us);
    else
        loop_timer_stop(it->timer);
    return true;
}

static void free_timers(struct world *world)
{
    for (uint32_t i = 0; i < world->timers_count; i++) {
        if (world->timers[i] != NULL)
            loop_timer_free(world->timers[i]->timer);
        free(world->timers[i]);
    }
    free(world->timers);
}

static void listen_to_all(void *ctx, bool is_on)
{
    const struct world *world = ctx;
    for (int i = 0; i < world->nodes; i++)
        if (is_on)
            subscription_open(world->subscriptions[i]);
        else
            subscription_close(world->subscriptions[i]);
}

static void world_subscribe(void *ctx, int node, struct span resource,
                            bool is_on)
{
    const struct world *world = ctx;
    assert(node >= 0 && node < world->nodes);
    subscription_set(world->subscriptions[node], resource, is_on);
}

/* ---- at the end of a turn ----------------------------------------------- */

void world_flush_calls(struct world *world)
{
    for (int i = 0; i < world->nodes; i++)
        link_flush(world->links[i]);
}

static void world_flush(void *arg)
{
    struct world *world = arg;
    world_flush_calls(world);
    for (int i = 0; i < world->nodes; i++)
        subscription_flush(world->subscriptions[i]);
}

/* ---- TLS ---------------------------------------------------------------- */

static void warn_of_certificate(const struct world *world)
{
    const char *warning =
        world->trust == NULL
            ? NULL
            : trust_warning(world->trust, clock_wall_us() / US_PER_S);
    if (warning != NULL)
        log_detail(LOG_WARN, "node_tls_certificate", warning);
}

void world_reload(struct world *world)
{
    char error[TRUST_TEXT_MAX];
    if (world->trust == NULL)
        return;
    if (trust_reload(world->trust, error)) {
        log_write(LOG_INFO, "node_tls_reloaded", NULL);
        warn_of_certificate(world);
    } else {
        log_detail(LOG_WARN, "node_tls_not_reloaded", error);
    }
}

/* ---- begin and end ------------------------------------------------------ */

/* False: no memory. */
static bool world_add_node(struct world *world, const struct config *config)
{
    const struct node_events events = {
        world->engine,           engine_on_node_up,    engine_on_node_confirmed,
        engine_on_node_down,     engine_on_reply,      engine_on_listener_up,
        engine_on_listener_down, engine_on_subscribed, engine_on_announced};
    int node = world->nodes;
    struct line_setup setup = {
        .loop = world->loop,
        .trust = world->trust,
        .config = &config->nodes[node],
        .silence_us = at_least(config->node_timeout_ms * 2000, SILENCE_US),
        .prefix = config->key_prefix,
    };
    world->links[node] = link_new(node, &setup, &events);
    if (world->links[node] == NULL)
        return false;
    world->nodes++;
    setup.silence_us = HEARTBEATS_US;
    world->subscriptions[node] = subscription_new(node, &setup, &events);
    return world->subscriptions[node] != NULL;
}

static bool world_start(struct world *world, const struct world_setup *setup,
                        char error[TRUST_TEXT_MAX])
{
    const struct engine_port port = {.ctx = world,
                                     .send = send_call,
                                     .now = read_clock,
                                     .random = fill_with_random,
                                     .timer = world_set_timer,
                                     .answer = setup->answer,
                                     .listen = listen_to_all,
                                     .subscribe = world_subscribe};
    world->loop = setup->loop;
    loop_set_stage(world->loop, LOOP_FLUSH, world_flush, world);
    struct engine_settings settings;
    world_set(&settings, setup);
    world->engine = engine_new(&settings, &port, setup->metrics);
    if (world->engine == NULL ||
        !trust_make(&world->trust, setup->config, error))
        return false;
    while (world->nodes < setup->config->nodes_count)
        if (!world_add_node(world, setup->config))
            return false;
    warn_of_certificate(world);
    return true;
}

struct world *world_new(const struct world_setup *setup,
                        char error[TRUST_TEXT_MAX])
{
    struct world *world = calloc(1, sizeof *world);
    if (world == NULL || world_start(world, setup, error))
        return world;
    world_free(world);
    return NULL;
}

struct engine *world_engine(const struct world *world)
{
    return world->engine;
}

void world_free(struct world *world)
{
    if (world == NULL)
        return;
    engine_free(world->engine);
    for (int i = 0; i < world->nodes; i++) {
        link_free(world->links[i]);
        subscription_free(world->subscriptions[i]);
    }
    trust_free(world->trust);
    free_timers(world);
    loop_set_stage(world->loop, LOOP_FLUSH, NULL, NULL);
    free(world);
}
