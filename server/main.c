/* SPDX-License-Identifier: MIT */
/*
 * The composition root: the only file that sees both the engine and the HTTP
 * side. It makes loop, world (with the engine) and front, connects them, and
 * takes them down again.
 *
 *   client ─HTTP─→ front ─→ engine ─port─→ world: link ─RESP─→ node, five times
 *                    ↑         │  ↑                 │
 *                    └─answer──┘  └─────reply───────┘
 */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "../api/exchange.h"
#include "../api/front.h"
#include "../api/service.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/process.h"
#include "config/config.h"
#include "engine/engine.h"
#include "node/session.h"
#include "notify.h"
#include "plan.h"
#include "world.h"

enum {
    IN_FLIGHT_MOST_US = 8000000, /* for what is in flight after the drain */
    DRAIN_LOOK_US = 50000,
    STOP_MOST_US = 5000000,  /* to answer the last clients and exit */
    DESCRIPTOR_RESERVE = 64, /* for nodes, log, listener, loop */
    CONNECTIONS_MIN = 16,    /* fewer are a mistake */
    CONNECTIONS_MAX = 20000,
};

static_assert((int)CONNECTIONS_MAX >= 2 * (int)WAITERS_MAX,
              "waiting clients leave room for the holders");
static_assert((int)TRUST_TEXT_MAX >= (int)FRONT_ERROR_MAX,
              "an error of either fits into the larger one");

struct server {
    struct config config;
    struct metrics metrics;
    struct loop *loop;
    struct world *world;
    struct front *front;
    int64_t connections_max;
    struct loop_timer *drain_timer;
    int64_t drained_us; /* when it may end; 0: not draining */
};

/* ---- the stages of a turn ----------------------------------------------- */

/* Of the engine's port. */
static void main_answer(void *ctx, void *client)
{
    (void)ctx;
    exchange_on_answer(client);
}

static void main_serve(void *arg)
{
    struct server *server = arg;
    front_serve(server->front);
}

/* ---- the end ------------------------------------------------------------ */

static void check_drained(void *arg)
{
    struct server *server = arg;
    int64_t now_us = clock_now_us();
    int64_t over_us = now_us - server->drained_us;
    bool is_idle = front_in_flight(server->front) == 0 &&
                   !engine_is_releasing(world_engine(server->world));
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
    notify_draining(drain_ms,
                    drain_ms * 1000 + IN_FLIGHT_MOST_US + STOP_MOST_US);
    server->drained_us = clock_now_us() + drain_ms * 1000;
    front_begin_drain(server->front);
    check_drained(server);
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

/* Reads again what may change while it serves. */
static void on_hangup(void *arg)
{
    struct server *server = arg;
    bool is_draining = server->drained_us != 0; /* which is told no more */
    if (!is_draining)
        notify_reloading();
    world_reload(server->world);
    front_reload(server->front);
    if (!is_draining)
        notify_ready(&server->config);
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

static bool start_world(struct server *server, char error[TRUST_TEXT_MAX])
{
    /* Holders get the other half: they must be able to connect and release. */
    int64_t half = server->connections_max / 2;
    const struct world_setup setup = {
        .loop = server->loop,
        .config = &server->config,
        .metrics = &server->metrics,
        .waiters_max = (int)at_most(half, WAITERS_MAX),
        .answer = main_answer,
    };
    server->world = world_new(&setup, error);
    return server->world != NULL;
}

static bool start_loop(struct server *server)
{
    server->loop = loop_new();
    if (server->loop == NULL)
        return false;
    loop_set_stage(server->loop, LOOP_SERVE, main_serve, server);
    server->drain_timer = loop_timer_new(server->loop, check_drained, server);
    return server->drain_timer != NULL &&
           loop_on_signal(server->loop, SIGTERM, on_terminate, server) &&
           loop_on_signal(server->loop, SIGINT, on_interrupt, server) &&
           loop_on_signal(server->loop, SIGHUP, on_hangup, server);
}

static bool main_start(struct server *server, char error[TRUST_TEXT_MAX])
{
    if (!count_connections(server, error))
        return false;
    server->metrics.started_us = clock_wall_us();
    server->metrics.connections_max = (uint64_t)server->connections_max;
    snprintf(error, FRONT_ERROR_MAX, "out of memory or file descriptors");
    /* the listener last: a client that connects finds everything running */
    if (!start_loop(server) || !start_world(server, error))
        return false;
    const struct front_setup setup = {
        .loop = server->loop,
        .engine = world_engine(server->world),
        .config = &server->config,
        .metrics = &server->metrics,
        .connections_max = (int)server->connections_max,
    };
    server->front = front_new(&setup, error);
    return server->front != NULL;
}

/* Answers every client, and releases what that abandons. */
static void stop_serving(struct server *server)
{
    front_free(server->front);
    server->front = NULL;
    if (server->world == NULL)
        return;
    engine_stop(world_engine(server->world));
    world_flush_calls(server->world);
}

static void stop(struct server *server)
{
    stop_serving(server);
    world_free(server->world);
    /* it ends well, even if it is told to end again */
    sigset_t ends;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &ends, NULL);
    loop_free(server->loop);
}

/*
 * The result of a write shows that a node or client is gone, or a file full. A
 * reload that comes before the loop runs must not stop the process.
 */
static void ignore_signals(void)
{
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        signal(SIGXFSZ, SIG_IGN) == SIG_ERR ||
        signal(SIGHUP, SIG_IGN) == SIG_ERR)
        perror("redlockd: signals");
}

static int main_run(struct server *server)
{
    char error[TRUST_TEXT_MAX];
    log_set_level((enum log_level)server->config.log_level);
    log_set_format((enum log_format)server->config.log_format);
    ignore_signals();
    if (!main_start(server, error)) {
        fprintf(stderr, "redlockd: %s\n", error);
        stop(server);
        return EXIT_FAILURE;
    }
    notify_start(&server->config, server->connections_max);
    notify_ready(&server->config);
    loop_run(server->loop);
    bool is_resolving = loop_is_resolving(server->loop);
    stop_serving(server);
    log_write(LOG_INFO, "stop", NULL);
    if (is_resolving)
        _exit(EXIT_SUCCESS); /* without waiting for a name server that hangs */
    stop(server);
    return EXIT_SUCCESS;
}

/* Reads the files that it names, too. */
static bool main_check(const struct config *config)
{
    char error[TRUST_TEXT_MAX];
    struct trust *trust = NULL;
    bool is_valid =
        trust_make(&trust, config, error) && front_check(config, error);
    if (!is_valid)
        fprintf(stderr, "redlockd: %s\n", error);
    trust_free(trust);
    return is_valid;
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
        return EX_CONFIG; /* to start it again would not help */
    }
    switch (server.config.action) {
    case CONFIG_SERVE:
        return main_run(&server);
    case CONFIG_CHECK:
        if (!main_check(&server.config))
            return EXIT_FAILURE;
        puts("configuration ok");
        break;
    case CONFIG_PLAN:
        ignore_signals();
        return (int)plan_run(&server.config);
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
