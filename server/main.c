/*
 * The composition root: the only file that sees both the engine and the HTTP
 * side. It makes loop, links, engine and front, connects them, and takes them
 * down again.
 *
 *   client ─HTTP─→ front ─→ engine ─port─→ link ─RESP─→ node     (five of them)
 *                    ↑         │  ↑          │
 *                    └─answer──┘  └──reply───┘
 */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../api/front.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/loop.h"
#include "base/process.h"
#include "base/random.h"
#include "base/timers.h"
#include "engine/engine.h"
#include "engine/port.h"
#include "healthcheck.h"
#include "node/link.h"
#include "node/subscription.h"

enum {
    IN_FLIGHT_MOST_US = 8000000, /* for requests in flight after the drain */
    DRAIN_LOOK_US = 50000,
    SILENCE_US = 1000000,    /* a node may owe a reply at least this long */
    HEARTBEATS_US = 5000000, /* … and a heartbeat, which comes each second */
    DESCRIPTOR_RESERVE = 64, /* for nodes, log, listener, loop */
    CONNECTIONS_MIN = 16,    /* fewer are a mistake … */
    CONNECTIONS_FEW = 1000,  /* … and fewer than this may be one */
    CONNECTIONS_MAX = 20000,
};

static_assert((int)CONNECTIONS_MAX >= 2 * (int)WAITERS_MAX,
              "those who wait leave room for those they wait for");

struct server {
    struct config config;
    struct metrics metrics;
    struct loop *loop;
    struct engine *engine;
    struct front *front;
    struct link *links[NODES_MAX];
    struct subscription *subscriptions[NODES_MAX];
    int64_t connections_max;
    struct timers *timers; /* of the engine */
    struct loop_timer *drain_timer;
    int64_t drained_us; /* when it may end; 0: not draining */
};

/* ---- the engine's port -------------------------------------------------- */

static enum vote port_send(void *ctx, int node, const struct call *call,
                           uint64_t tag)
{
    struct server *server = ctx;
    return link_send(server->links[node], call, tag);
}

static int64_t port_now(void *ctx)
{
    (void)ctx;
    return clock_now_us();
}

static void port_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    random_fill(buf, len);
}

static void on_timer(void *arg, uint32_t slot)
{
    struct server *server = arg;
    engine_on_timer(server->engine, slot);
}

static bool port_timer(void *ctx, uint32_t slot, int64_t at_us)
{
    const struct server *server = ctx;
    return timers_set(server->timers, slot, at_us);
}

static void port_answer(void *ctx, void *client)
{
    (void)ctx;
    front_on_answer(client);
}

static void port_listen(void *ctx, bool is_on)
{
    struct server *server = ctx;
    for (int i = 0; i < server->config.nodes_count; i++)
        if (is_on)
            subscription_open(server->subscriptions[i]);
        else
            subscription_close(server->subscriptions[i]);
}

static void port_subscribe(void *ctx, int node, struct span resource,
                           bool is_on)
{
    struct server *server = ctx;
    subscription_set(server->subscriptions[node], resource, is_on);
}

/* ---- the links' events -------------------------------------------------- */

static void on_up(void *ctx, int node, const struct node_facts *facts)
{
    struct server *server = ctx;
    engine_on_node_up(server->engine, node, facts);
}

static void on_confirmed(void *ctx, int node, const struct node_facts *facts)
{
    struct server *server = ctx;
    engine_on_node_confirmed(server->engine, node, facts);
}

static void on_down(void *ctx, int node, enum node_state reason,
                    const char *detail)
{
    struct server *server = ctx;
    engine_on_node_down(server->engine, node, reason, detail);
}

static void on_reply(void *ctx, int node, uint64_t tag,
                     const struct call_reply *reply, int64_t sent_us,
                     int64_t received_us)
{
    struct server *server = ctx;
    engine_on_reply(server->engine, node, tag, reply, sent_us, received_us);
}

/* ---- the subscriptions' events ------------------------------------------ */

static void on_listener_up(void *ctx, int node)
{
    struct server *server = ctx;
    engine_on_listener_up(server->engine, node);
}

static void on_listener_down(void *ctx, int node)
{
    struct server *server = ctx;
    engine_on_listener_down(server->engine, node);
}

static void on_subscribed(void *ctx, int node, struct span resource)
{
    struct server *server = ctx;
    engine_on_subscribed(server->engine, node, resource);
}

static void on_announced(void *ctx, int node, struct span resource,
                         int64_t number)
{
    struct server *server = ctx;
    engine_on_announced(server->engine, node, resource, number);
}

/* ---- the stages of a turn ----------------------------------------------- */

static void serve(void *arg)
{
    struct server *server = arg;
    front_serve(server->front);
}

static void flush(void *arg)
{
    struct server *server = arg;
    for (int i = 0; i < server->config.nodes_count; i++) {
        link_flush(server->links[i]);
        subscription_flush(server->subscriptions[i]);
    }
}

/* ---- the end ------------------------------------------------------------ */

static void look_whether_drained(void *arg)
{
    struct server *server = arg;
    int64_t now_us = clock_now_us();
    int64_t over_us = now_us - server->drained_us;
    bool is_idle = front_in_flight(server->front) == 0;
    if (over_us >= 0)
        front_end_drain(server->front);
    if (over_us >= IN_FLIGHT_MOST_US || (over_us >= 0 && is_idle))
        loop_stop(server->loop);
    else
        loop_timer_set(server->drain_timer, now_us + DRAIN_LOOK_US);
}

/* Serves for drain_ms, then ends when nothing is in flight. */
static void drain(struct server *server, int64_t drain_ms)
{
    if (server->drained_us != 0) {
        loop_stop(server->loop); /* the second signal: stop at once */
        return;
    }
    log_write(LOG_INFO, "draining",
              (struct log_field[]){LOG_N("drain_ms", drain_ms), LOG_END});
    server->drained_us = clock_now_us() + drain_ms * 1000;
    front_begin_drain(server->front);
    look_whether_drained(server);
}

static void on_terminate(void *arg)
{
    struct server *server = arg;
    drain(server, server->config.drain_ms);
}

/* A person waits at a terminal, and no balancer needs to notice. */
static void on_interrupt(void *arg)
{
    drain(arg, 0);
}

/* ---- the beginning ------------------------------------------------------ */

/* False: error says that there are too few descriptors. */
static bool count_connections(struct server *server,
                              char error[FRONT_ERROR_MAX])
{
    int64_t descriptors = process_raise_descriptors();
    server->connections_max = descriptors - DESCRIPTOR_RESERVE;
    if (server->connections_max > CONNECTIONS_MAX)
        server->connections_max = CONNECTIONS_MAX;
    if (server->connections_max >= CONNECTIONS_MIN)
        return true;
    snprintf(error, FRONT_ERROR_MAX,
             "the limit of open files (ulimit -n) is %" PRId64
             "; at least %d are needed",
             descriptors, DESCRIPTOR_RESERVE + CONNECTIONS_MIN);
    return false;
}

/*
 * Those who wait get half of the connections at most: whoever holds a lock must
 * be able to connect and release it.
 */
static int count_waiters(const struct server *server)
{
    int64_t half = server->connections_max / 2;
    return half < WAITERS_MAX ? (int)half : WAITERS_MAX;
}

static bool start_engine(struct server *server)
{
    const struct config *config = &server->config;
    struct engine_settings settings = {
        .nodes = config->nodes_count,
        .node_timeout_us = config->node_timeout_ms * 1000,
        .max_ttl_ms = config->max_ttl_ms,
        .max_hold_ms = config->max_hold_ms,
        .retry_delay_us = config->retry_delay_ms * 1000,
        .retry_count = (int)config->retry_count,
        .waiters_max = count_waiters(server),
        .drift_factor = config->drift_factor,
        .config_epoch = (int)config->config_epoch,
        .first_start = (enum first_start)config->first_start,
        .has_take_over = config->take_over,
        .is_guard_off = !config->restart_guard,
    };
    for (int i = 0; i < config->nodes_count; i++) {
        settings.node_names[i] = config->nodes[i].name;
        server->metrics.node_names[i] = config->nodes[i].name;
    }
    server->metrics.nodes = config->nodes_count;
    server->metrics.quorum = config_quorum(config);
    fingerprint_make(settings.fingerprint, settings.node_names,
                     config->nodes_count, config_quorum(config),
                     config->max_ttl_ms);
    struct engine_port port = {server,      port_send,     port_now,
                               port_random, port_timer,    port_answer,
                               port_listen, port_subscribe};
    server->engine = engine_new(&settings, &port, &server->metrics);
    return server->engine != NULL;
}

static bool start_links(struct server *server)
{
    const struct config *config = &server->config;
    struct link_events events = {on_up, on_confirmed, on_down, on_reply,
                                 server};
    int64_t silence_us = config->node_timeout_ms * 2000;
    if (silence_us < SILENCE_US)
        silence_us = SILENCE_US;
    for (int i = 0; i < config->nodes_count; i++) {
        server->links[i] = link_new(server->loop, i, &config->nodes[i],
                                    config->key_prefix, silence_us, &events);
        if (server->links[i] == NULL)
            return false;
    }
    return true;
}

static bool start_subscriptions(struct server *server)
{
    const struct config *config = &server->config;
    struct subscription_events events = {on_listener_up, on_listener_down,
                                         on_subscribed, on_announced, server};
    for (int i = 0; i < config->nodes_count; i++) {
        server->subscriptions[i] =
            subscription_new(server->loop, i, &config->nodes[i],
                             config->key_prefix, HEARTBEATS_US, &events);
        if (server->subscriptions[i] == NULL)
            return false;
    }
    return true;
}

static bool start_loop(struct server *server)
{
    server->loop = loop_new();
    if (server->loop == NULL)
        return false;
    loop_set_stage(server->loop, LOOP_SERVE, serve, server);
    loop_set_stage(server->loop, LOOP_FLUSH, flush, server);
    server->timers = timers_new(server->loop, on_timer, server);
    server->drain_timer =
        loop_timer_new(server->loop, look_whether_drained, server);
    return server->timers != NULL && server->drain_timer != NULL &&
           loop_on_signal(server->loop, SIGTERM, on_terminate, server) &&
           loop_on_signal(server->loop, SIGINT, on_interrupt, server);
}

static bool start_front(struct server *server, char error[FRONT_ERROR_MAX])
{
    const struct front_setup setup = {
        .loop = server->loop,
        .engine = server->engine,
        .config = &server->config,
        .metrics = &server->metrics,
        .connections_max = (int)server->connections_max,
    };
    server->front = front_new(&setup, error);
    return server->front != NULL;
}

static bool start(struct server *server, char error[FRONT_ERROR_MAX])
{
    if (!count_connections(server, error))
        return false;
    snprintf(error, FRONT_ERROR_MAX, "no memory or no descriptors");
    /* the listener last: a client that connects finds everything running */
    return start_loop(server) && start_engine(server) && start_links(server) &&
           start_subscriptions(server) && start_front(server, error);
}

/* Answers every client, and releases what that abandons. */
static void stop_serving(struct server *server)
{
    front_free(server->front);
    server->front = NULL;
    for (int i = 0; i < server->config.nodes_count; i++)
        if (server->links[i] != NULL)
            link_flush(server->links[i]);
}

static void stop(struct server *server)
{
    stop_serving(server);
    for (int i = 0; i < server->config.nodes_count; i++) {
        link_free(server->links[i]);
        subscription_free(server->subscriptions[i]);
    }
    engine_free(server->engine);
    loop_free(server->loop);
    timers_free(server->timers);
}

static void warn(const struct server *server)
{
    const struct config *config = &server->config;
    if (server->connections_max < CONNECTIONS_FEW)
        log_write(
            LOG_WARN, "few_connections",
            (struct log_field[]){
                LOG_N("connections", server->connections_max),
                LOG_S("detail",
                      "to serve more clients, raise the limit of open files "
                      "(ulimit -n)"),
                LOG_END});
    if (config->nodes_count % 2 == 0)
        log_write(LOG_WARN, "even_number_of_nodes",
                  (struct log_field[]){
                      LOG_N("nodes", config->nodes_count),
                      LOG_S("detail", "one node fewer would survive as many "
                                      "failures"),
                      LOG_END});
    if (!config->restart_guard)
        log_write(LOG_WARN, "restart_guard_off",
                  (struct log_field[]){
                      LOG_S("detail",
                            "nodes that lost their memory vote at once: a lock "
                            "may have two holders"),
                      LOG_END});
}

/*
 * The result of a write shows that a node or client is gone. A terminal that
 * hangs up, or an operator who expects a reload, must not stop the locks.
 */
static void ignore_signals(void)
{
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        signal(SIGHUP, SIG_IGN) == SIG_ERR)
        perror("redlockd: signals");
}

static int run(struct server *server)
{
    char error[FRONT_ERROR_MAX];
    log_set_level((enum log_level)server->config.log_level);
    ignore_signals();
    if (!start(server, error)) {
        fprintf(stderr, "redlockd: %s\n", error);
        stop(server);
        return EXIT_FAILURE;
    }
    log_write(LOG_INFO, "start",
              (struct log_field[]){
                  LOG_S("version", REDLOCKD_VERSION),
                  LOG_S("host", server->config.listen_host),
                  LOG_N("port", server->config.listen_port),
                  LOG_N("nodes", server->config.nodes_count),
                  LOG_N("quorum", config_quorum(&server->config)),
                  LOG_N("connections", server->connections_max), LOG_END});
    warn(server);
    loop_run(server->loop);
    bool is_resolving = loop_is_resolving(server->loop);
    stop_serving(server);
    log_write(LOG_INFO, "stop", NULL);
    if (is_resolving)
        _exit(EXIT_SUCCESS); /* without waiting for a name server that hangs */
    stop(server);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv, char **envp)
{
    static struct server server;
    char error[CONFIG_ERROR_MAX];
    if (!process_fill_descriptors()) {
        perror("redlockd: /dev/null"); /* unless stderr is what is closed */
        return EXIT_FAILURE;
    }
    if (!config_load(&server.config, argc, argv, envp, error)) {
        fprintf(stderr, "redlockd: %s\n", error);
        return EXIT_FAILURE;
    }
    switch (server.config.action) {
    case CONFIG_SERVE:
        return run(&server);
    case CONFIG_HEALTHCHECK:
        return healthcheck_run(server.config.listen_host,
                               server.config.listen_port);
    case CONFIG_CHECK:
        puts("configuration ok");
        break;
    case CONFIG_PRINT:
        config_print(&server.config, stdout);
        break;
    case CONFIG_HELP:
        config_print_help(stdout);
        break;
    case CONFIG_VERSION:
        puts("redlockd " REDLOCKD_VERSION);
        break;
    }
    return process_end_output() ? EXIT_SUCCESS : EXIT_FAILURE;
}
