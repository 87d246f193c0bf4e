/* SPDX-License-Identifier: MIT */
/*
 * The engine as the service has it, and its port: a connection to each node for
 * calls and one for announcements, timers, the clock, random bytes. Their
 * events go to the engine.
 */
#ifndef REDLOCKD_WORLD_H
#define REDLOCKD_WORLD_H

#include "base/loop.h"
#include "engine/port/port.h"
#include "node/session.h"

struct world;

/* What it borrows until world_free. */
struct world_setup {
    struct loop *loop; /* whose flush stage writes what is queued */
    const struct config *config;
    struct metrics *metrics;
    int waiters_max;                         /* clients that may wait at once */
    void (*answer)(void *ctx, void *client); /* of the port; NULL: of nobody, as
                                                the engine only observes */
};

/* Connects to the nodes in the next turn. NULL: error says which file of TLS
 * cannot be used, or is as it was: no memory. */
struct world *world_new(const struct world_setup *setup,
                        char error[TRUST_TEXT_MAX]);

/* Before loop_free; NULL is ignored. */
void world_free(struct world *world);

struct engine *world_engine(const struct world *world);

/* Writes queued calls before the end of the turn. */
void world_flush_calls(struct world *world);

/* Reads the files of TLS again, for connections that begin from now on. If they
 * are bad, the old ones stay. Logs both. */
void world_reload(struct world *world);

#endif
