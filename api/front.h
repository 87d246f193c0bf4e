/*
 * The HTTP side of the process: libmicrohttpd in our own loop.
 * <microhttpd.h> is included by front.c alone.
 */
#ifndef REDLOCKD_FRONT_H
#define REDLOCKD_FRONT_H

#include "../server/base/config.h"
#include "../server/base/loop.h"
#include "../server/base/metrics.h"
#include "../server/engine/engine.h"

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

/* Serves all that has come in; the LOOP_SERVE stage of each turn. */
void front_serve(struct front *front);

/*
 * The engine's port.answer: the operation of this client has its outcome. May
 * be called from within engine_acquire…, and never after the operation was
 * closed or abandoned.
 */
void front_on_answer(void *client);

/*
 * From now on not ready, so that balancers notice; everything is served until
 * they have: a lock that is granted now can be extended at another server.
 */
void front_begin_drain(struct front *front);

/*
 * From now on new locks are refused with 503 shutting_down; extends, releases
 * and inspections go on.
 */
void front_end_drain(struct front *front);

/* Requests whose head was read and whose answer is not out yet. */
int front_in_flight(const struct front *front);

/*
 * Answers what is still in flight with 503 shutting_down, abandons its
 * operations (so flush the links after it), closes all connections, and frees
 * front. NULL is ignored. The engine and the loop must still be there.
 */
void front_free(struct front *front);

#endif
