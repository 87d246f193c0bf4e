/* Apart from server/main.c, which alone includes it and wires all parts. */
/* SPDX-License-Identifier: MIT */
/*
 * The HTTP side of the process: libmicrohttpd in our own loop.
 */
#ifndef REDLOCKD_FRONT_H
#define REDLOCKD_FRONT_H

#include "../server/base/loop.h"
#include "../server/config/config.h"
#include "../server/engine/engine.h"
#include "../server/lock/metrics.h"

enum { FRONT_ERROR_MAX = 400 };

struct front;

/* All borrowed until front_free. */
struct front_setup {
    struct loop *loop;
    struct engine *engine;
    const struct config *config;
    struct metrics *metrics;
    int connections_max;
};

/*
 * Listens where config says. NULL: error holds one line for people, e.g.
 * "listen 127.0.0.1:8080: address already in use".
 */
struct front *front_new(const struct front_setup *setup,
                        char error[FRONT_ERROR_MAX]);

/*
 * Whether the files that config names are good, apart from the audit log.
 * False: error holds one line for people.
 */
bool front_check(const struct config *config, char error[FRONT_ERROR_MAX]);

/* Serves what clients have sent; the LOOP_SERVE stage of each turn. */
void front_serve(struct front *front);

/*
 * Not ready from now on, so that load balancers notice. Until they do, all
 * requests are served: another server can extend a lock that is granted now.
 * Only nobody waits any more: who waits is told at once to ask another server.
 * With --reuse-port, this process takes no new connections: others share the
 * port.
 */
void front_begin_drain(struct front *front);

/*
 * New locks are refused from now on, with 503 shutting_down; extends, releases
 * and inspections are still served.
 */
void front_end_drain(struct front *front);

/*
 * Reads again what may change while it serves: certificates, and who may ask
 * what; and opens the audit log anew.
 */
void front_reload(struct front *front);

/* Requests whose head was read and whose answer is not written yet. */
int front_in_flight(const struct front *front);

/*
 * Answers the requests in flight with 503 shutting_down, abandons their
 * operations (flush the links afterwards), closes all connections, and frees
 * front. NULL is ignored. The engine and the loop must still exist.
 */
void front_free(struct front *front);

#endif
