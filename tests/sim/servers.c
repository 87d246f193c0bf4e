/* SPDX-License-Identifier: MIT */
#include "servers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../server/engine/port/port.h"
#include "clients.h"
#include "faults.h"
#include "messages.h"
#include "names.h"
#include "plan.h"
#include "world.h"

enum {
    MISTAKEN_PERCENT = 30,
    FORGOTTEN_PERCENT = 40,  /* with the word for an earlier change */
    TOO_HIGH = 19,           /* too much for the next epoch */
    DRAIN_MOST_US = 2000000, /* --drain-ms */
    DRAIN_PROBE_US = 50000,
    DRAIN_PROBES_MOST = 160, /* as main.c grants what is in flight … */
    DRAIN_PROBES = 200,      /* … but requests are answered by then */
};

static const char *const names[SIM_NAMES] = {"n1", "n2", "n3", "n4",
                                             "n5", "n6", "n7"};

int64_t server_clock(const struct simserver *server)
{
    int64_t now_us = server->world->now_us;
    return server->offset_us + now_us + now_us * server->ppm / 1000000;
}

const struct simconfig *servers_config(const struct world *world,
                                       enum configuration configuration)
{
    return &world->faults->configs[configuration];
}

int server_nodes(const struct world *world, int number)
{
    return servers_config(world, world->servers[number].configuration)->nodes;
}

bool servers_has_name(const struct world *world,
                      enum configuration configuration, int name)
{
    const struct simconfig *config = servers_config(world, configuration);
    for (int i = 0; i < config->nodes; i++)
        if (config->name[i] == name)
            return true;
    return false;
}

const char *servers_name_hash(int name)
{
    static char hashes[SIM_NAMES][FINGERPRINT_LEN + 1];
    if (hashes[name][0] == '\0')
        fingerprint_of_name(hashes[name], names[name]);
    return hashes[name];
}

bool servers_has_admitted(const struct world *world,
                          enum configuration configuration, int name)
{
    const struct simconfig *config = servers_config(world, configuration);
    char ours[CALL_STATE_MAX];
    int len = snprintf(ours, sizeof ours, "%d:%s:", config->epoch,
                       config->fingerprint);
    return strncmp(world->machines[world->home[name]].memory.admit, ours,
                   (size_t)len) == 0;
}

/* ---- the port ----------------------------------------------------------- */

/* Whether something is wrong when a round begins. */
static bool is_impaired(struct world *world, const struct simserver *server)
{
    int nodes = server_nodes(world, server->number);
    for (int i = 0; i < nodes; i++) {
        const struct simlink *link = &server->links[i];
        const struct machine *machine = &world->machines[link->met.machine];
        if (link->state != LINK_UP || link->is_cut ||
            machine->state != MACHINE_UP || machine->condition != STATE_NONE ||
            machine->process.is_full ||
            simlink_delay_us(world, link) >
                server->options.node_timeout_us / 4 ||
            link->blocked_us > world->now_us)
            return true;
    }
    return engine_voting(server->engine) < nodes;
}

static void count_round(struct simserver *server, uint64_t tag)
{
    if (tag == server->round_tag)
        return;
    server->round_tag = tag;
    server->rounds_sent++;
    server->rounds_impaired += is_impaired(server->world, server);
}

static enum vote port_send(void *ctx, int node, const struct call *call,
                           uint64_t tag)
{
    struct simserver *server = ctx;
    if (tag_kind_of(tag) == TAG_OPERATION)
        count_round(server, tag);
    return message_send(server->world, server->number, node, call, tag);
}

static int64_t port_now(void *ctx)
{
    return server_clock(ctx);
}

static void port_random(void *ctx, void *buf, size_t len)
{
    struct simserver *server = ctx;
    unsigned char *bytes = buf;
    uint64_t bits = 0;
    for (size_t i = 0; i < len; i++, bits >>= 8) {
        if (i % 7 == 0)
            bits = (uint64_t)world_random(server->world, INT64_C(1) << 56);
        bytes[i] = (unsigned char)bits;
    }
}

/* How long until its clock shows at_us, at the earliest. */
static int64_t delay_until(const struct simserver *server, int64_t at_us)
{
    int64_t left_us = at_us - server_clock(server);
    if (left_us <= 0)
        return 0;
    return left_us - left_us * server->ppm / (1000000 + server->ppm) + 1;
}

static bool port_timer(void *ctx, uint32_t id, int64_t at_us)
{
    struct simserver *server = ctx;
    assert(id < SIM_TIMERS);
    server->timers[id] = at_us;
    if (at_us == 0)
        return true;
    world_at(server->world, delay_until(server, at_us),
             (struct event){.kind = EVENT_TIMER,
                            .a = server->number,
                            .b = (int)id,
                            .tag = (uint64_t)at_us});
    return true;
}

static void port_answer(void *ctx, void *client)
{
    clients_on_answer(((struct simserver *)ctx)->world, client);
}

static void port_listen(void *ctx, bool is_on)
{
    const struct simserver *server = ctx;
    news_listen(server->world, server->number, is_on);
}

static void port_subscribe(void *ctx, int node, struct span resource,
                           bool is_on)
{
    const struct simserver *server = ctx;
    news_subscribe(server->world, server->number, node, resource, is_on);
}

void server_on_timer(struct world *world, const struct event *event)
{
    struct simserver *server = &world->servers[event->a];
    if (server->timers[event->b] != (int64_t)event->tag)
        return; /* replaced since, or from an earlier life */
    server->timers[event->b] = 0;
    engine_on_timer(server->engine, (uint32_t)event->b);
    if (server->voted_us == 0 && engine_voting(server->engine) > 0)
        server->voted_us = world->now_us;
}

/* ---- begin and end ------------------------------------------------------ */

static struct simoptions usual_options(const struct world *world,
                                       enum configuration configuration)
{
    return (struct simoptions){
        .node_timeout_us = world->node_timeout_us,
        .max_ttl_ms = servers_config(world, configuration)->max_ttl_ms,
        .epoch = servers_config(world, configuration)->epoch,
        .has_word = world->faults->are_old_stopped ||
                    servers_config(world, configuration)->word_epoch ==
                        servers_config(world, configuration)->epoch,
    };
}

bool server_has_usual_options(const struct world *world, int number)
{
    const struct simserver *server = &world->servers[number];
    struct simoptions usual = usual_options(world, server->configuration);
    return server->options.node_timeout_us == usual.node_timeout_us &&
           server->options.max_ttl_ms == usual.max_ttl_ms &&
           server->options.epoch == usual.epoch &&
           server->options.has_word == usual.has_word;
}

/* The highest epoch on nodes, but for those of this configuration. */
static int highest_epoch(const struct world *world, const char *but)
{
    int highest = 1;
    for (int i = 0; i < SIM_NAMES; i++) {
        const struct simmemory *memory =
            &world->machines[world->home[i]].memory;
        const char *found[] = {memory->admit, memory->quarantine,
                               memory->taken};
        for (int k = 0; k < 3; k++) {
            const char *colon = strchr(found[k], ':');
            int epoch = (int)strtol(found[k], NULL, 10);
            if (epoch > highest && colon != NULL &&
                strncmp(colon + 1, but, strlen(but)) != 0)
                highest = epoch;
        }
    }
    return highest;
}

void servers_choose_next(struct world *world)
{
    struct simconfig *next = &world->faults->configs[CONFIGURATION_NEXT];
    int highest = highest_epoch(world, next->fingerprint);
    if (next->epoch <= highest)
        next->epoch = highest + 1;
    world->faults->configuration = CONFIGURATION_NEXT;
}

/*
 * All may have been lost, and no majority carries the configuration: so there
 * may be a first start. Or servers of other names may quarantine nodes that are
 * unused, and these quarantine records bind: only the next epoch replaces them.
 */
static bool may_begin_anew(const struct world *world)
{
    const struct simconfig *config = faults_config(world);
    int count = 0;
    for (int i = 0; i < config->nodes; i++) {
        int machine = faults_home(world, i);
        const char *colon = strchr(world->machines[machine].memory.admit, ':');
        count += colon != NULL && strncmp(colon + 1, config->fingerprint,
                                          strlen(config->fingerprint)) == 0;
    }
    return count <= config->nodes / 2 &&
           (plan_is_on(world, FAULT_LOSE_ALL) ||
            plan_is_on(world, FAULT_SLEEP) || plan_is_on(world, FAULT_FOREIGN));
}

static struct simoptions choose_options(struct world *world, int number,
                                        enum configuration configuration)
{
    static const int64_t timeouts_us[] = {20000, 50000, 250000, 1000000,
                                          1000000};
    const int64_t limits_ms[] = {1000, 2000, world->faults->longest_ms};
    const struct simconfig *config = servers_config(world, configuration);
    struct simoptions options = usual_options(world, configuration);
    if (world->faults->is_calm)
        return options;
    if (plan_is_on(world, FAULT_EPOCH) &&
        configuration != CONFIGURATION_FOREIGN && !may_begin_anew(world) &&
        names_are_right(world, number) && world_chance(world, MISTAKEN_PERCENT))
        options.epoch += TOO_HIGH;
    if (plan_is_on(world, FAULT_LISTS) && config->word_epoch != 0 &&
        world_chance(world, FORGOTTEN_PERCENT)) {
        options.epoch = config->word_epoch; /* as it was started before */
        options.has_word = true;
    }
    if (!plan_is_on(world, FAULT_OPTIONS))
        return options;
    options.node_timeout_us = timeouts_us[world_random(world, 5)];
    options.max_ttl_ms = limits_ms[world_random(world, 3)];
    return options;
}

void server_start(struct world *world, int number,
                  enum configuration configuration, bool is_trusting)
{
    struct simserver *server = &world->servers[number];
    const struct simconfig *config = servers_config(world, configuration);
    server->options = choose_options(world, number, configuration);
    server->max_hold_ms = number % 2 == 0 ? world->faults->longest_ms : 0;
    /* the nodes of a list may be unused */
    bool is_beginning =
        plan_is_on(world, FAULT_LISTS) && server->options.has_word;
    struct engine_settings settings = {
        .nodes = config->nodes,
        .node_timeout_us = server->options.node_timeout_us,
        .max_ttl_ms = server->options.max_ttl_ms,
        .max_hold_ms = server->max_hold_ms,
        .readers_max = world->readers_max,
        .retry_delay_us = 200000,
        .retry_count = 3,
        .waiters_max = WAITERS_MAX,
        .drift_factor = 0.01,
        .config_epoch = server->options.epoch,
        .has_take_over = server->options.has_word,
        .first_start =
            is_trusting || is_beginning ? FIRST_START_YES : FIRST_START_AUTO,
        .ask = world_chance(world, 70) ? ASK_QUORUM : ASK_ALL,
    };
    assert(server->engine == NULL);
    for (int i = 0; i < config->nodes; i++)
        settings.node_names[i] = names[config->name[i]];
    snprintf(settings.fingerprint, sizeof settings.fingerprint, "%s",
             config->fingerprint);
    world_trace(world, "server %d starts, epoch %d of %s%s", number,
                server->options.epoch, config->fingerprint,
                server->options.has_word ? ", with the word" : "");
    server->configuration = configuration;
    server->is_trusting = is_trusting;
    server->voted_us = 0;
    server->is_paused = server->is_closed = false;
    server->drains_us = 0;
    server->resumed_us = world->now_us;
    struct engine_port port = {server,      port_send,     port_now,
                               port_random, port_timer,    port_answer,
                               port_listen, port_subscribe};
    server->engine = engine_new(&settings, &port, &server->metrics);
    assert(server->engine != NULL);
    simlinks_start(world, number);
}

/* Drops the events that a paused server would have handled. */
static void drop_deferred(struct world *world, struct simserver *server)
{
    for (size_t i = 0; i < server->deferred_count; i++)
        if (server->deferred[i].kind == EVENT_REPLY)
            message_forget(world, server->deferred[i].object);
    server->deferred_count = 0;
}

void server_kill(struct world *world, int number)
{
    struct simserver *server = &world->servers[number];
    if (server->engine == NULL)
        return;
    world_trace(world, "server %d dies", number);
    simlinks_abandon(world, number);
    drop_deferred(world, server);
    clients_on_server_death(world, number);
    news_listen(world, number, false);
    engine_free(server->engine);
    server->engine = NULL;
    server->is_paused = false;
    memset(server->timers, 0, sizeof server->timers);
}

static void drain_later(struct world *world, int number, int64_t probes)
{
    world_at(world, DRAIN_PROBE_US,
             (struct event){.kind = EVENT_DRAIN,
                            .a = number,
                            .tag = (uint64_t)world->servers[number].drains_us,
                            .number = probes});
}

void server_terminate(struct world *world, int number)
{
    struct simserver *server = &world->servers[number];
    if (server->engine == NULL || server->drains_us != 0)
        return;
    world_trace(world, "server %d drains", number);
    server->drains_us = world->now_us;
    server->ends_us = world->now_us + world_random(world, DRAIN_MOST_US);
    engine_stop_waiting(server->engine);
    drain_later(world, number, 0);
}

void server_on_drain(struct world *world, const struct event *event)
{
    struct simserver *server = &world->servers[event->a];
    if (server->engine == NULL || server->drains_us != (int64_t)event->tag)
        return;
    server->is_closed = world->now_us >= server->ends_us;
    bool may_end = server->is_closed && !clients_are_served(world, event->a) &&
                   (event->number >= DRAIN_PROBES_MOST ||
                    !engine_is_releasing(server->engine));
    if (event->number > DRAIN_PROBES)
        ledger_violated(world, "alive", -1, -1);
    if (!may_end) {
        drain_later(world, event->a, event->number + server->is_closed);
        return;
    }
    engine_stop(server->engine);
    faults_end_later(world, 0, FAULT_TERM, event->a);
}

void servers_init(struct world *world)
{
    for (int i = 0; i < SIM_SERVERS; i++) {
        struct simserver *server = &world->servers[i];
        server->world = world;
        server->number = i;
        server->offset_us = world_random(world, 1000000000) + 1000000;
        for (int j = 0; j < SIM_NODES; j++)
            TAILQ_INIT(&server->links[j].pending);
    }
}

void servers_fini(struct world *world)
{
    for (int i = 0; i < SIM_SERVERS; i++) {
        server_kill(world, i);
        free(world->servers[i].deferred);
    }
}

void servers_trace(const struct world *world)
{
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < server_nodes(world, i); j++) {
            const struct simserver *server = &world->servers[i];
            struct engine_node_view view;
            if (server->engine == NULL || !world->is_tracing)
                continue;
            engine_view_node(server->engine, j, &view);
            world_trace(world, "server %d node %d %s: %s", i, j, view.state,
                        view.detail);
        }
    for (int i = 0; i < SIM_NAMES; i++)
        world_trace(world, "name %d: admit %s quarantine record %s", i,
                    world->machines[world->home[i]].memory.admit,
                    world->machines[world->home[i]].memory.quarantine);
}

/* ---- pauses ------------------------------------------------------------- */

void server_pause(struct world *world, int number, int64_t us)
{
    struct simserver *server = &world->servers[number];
    if (server->engine == NULL || server->is_paused)
        return;
    world_trace(world, "server %d pauses", number);
    server->is_paused = true;
    world_at(world, us,
             (struct event){.kind = EVENT_RESUME_SERVER, .a = number});
}

static void defer(struct simserver *server, const struct event *event)
{
    if (server->deferred_count == server->deferred_room) {
        server->deferred_room = 2 * server->deferred_room + 64;
        server->deferred = realloc(
            server->deferred, server->deferred_room * sizeof *server->deferred);
        if (server->deferred == NULL)
            abort();
    }
    server->deferred[server->deferred_count++] = *event;
}

bool server_defer(struct world *world, int number, const struct event *event)
{
    struct simserver *server = &world->servers[number];
    if (!server->is_paused)
        return false;
    if (!message_drops(world, event))
        defer(server, event);
    return true;
}

/* Handles what has arrived; sometimes its timers run first. */
void server_resume(struct world *world, int number)
{
    struct simserver *server = &world->servers[number];
    if (!server->is_paused)
        return;
    world_trace(world, "server %d goes on", number);
    server->is_paused = false;
    server->resumed_us = world->now_us;
    bool timers_first = world_chance(world, 50);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < server->deferred_count; i++) {
            bool is_first =
                server->deferred[i].kind == EVENT_TIMER || !timers_first;
            if (is_first == (pass == 0))
                world_handle(world, &server->deferred[i]);
        }
    server->deferred_count = 0;
}
