/*
 * The engine's port as the service has it: a connection to each node for calls
 * and one for announcements, timers, the clock, random bytes. Their events go
 * to the engine.
 */
#ifndef REDLOCKD_WORLD_H
#define REDLOCKD_WORLD_H

#include "base/loop.h"
#include "engine/port/port.h"
#include "node/session.h"

struct world;

/* Without nodes. loop is borrowed until world_free. NULL: no memory. */
struct world *world_new(struct loop *loop);

/*
 * The engine's settings for this configuration, whose texts are borrowed; no
 * acquire may wait.
 */
void world_settings(const struct config *config,
                    struct engine_settings *settings);

/*
 * Call it once: the engine behind this port, which the caller frees. answer: as
 * of the port; NULL: nobody asks it. NULL: no memory.
 */
struct engine *world_engine(struct world *world,
                            const struct engine_settings *settings,
                            struct metrics *metrics,
                            void (*answer)(void *ctx, void *client));

/*
 * Call it once, then. Connects to the nodes in the next turn. config is
 * borrowed until world_free. False: error says which file of TLS cannot be
 * used, or is as it was: no memory.
 */
bool world_connect(struct world *world, const struct config *config,
                   char error[TRUST_TEXT_MAX]);

/* After engine_free, before loop_free; NULL is ignored. */
void world_free(struct world *world);

/* At the end of each turn: writes what is queued. */
void world_flush(struct world *world);

/* The same for calls alone. */
void world_flush_calls(struct world *world);

/*
 * Reads the files of TLS again, for connections that begin from now on. If they
 * are bad, the old ones stay. Logs both.
 */
void world_reload(struct world *world);

#endif
