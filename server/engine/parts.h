/*
 * The engine's parts, for the two files of the facade: engine.c, what clients
 * and operators ask, and events.c, what the nodes and the loop tell.
 */
#ifndef REDLOCKD_PARTS_H
#define REDLOCKD_PARTS_H

#include <assert.h>

#include "listing.h"
#include "permits/permits.h"
#include "port/port.h"
#include "rounds/operation.h"
#include "rounds/releases.h"
#include "rounds/spreads.h"
#include "voting/nodes.h"
#include "waiting/watches.h"

struct engine {
    struct environment env;
    struct nodes nodes;
    struct spreads spreads;
    struct releases releases;
    struct operations operations;
    struct tickets tickets;
    struct waits waits;
    struct permits permits;
    struct watches watches;
    struct listings listings;
};

static inline void assert_node(const struct engine *engine, int node)
{
    assert(node >= 0 && node < engine->env.settings.nodes);
}

/* Sets the timer of the next tick. False: no memory for it. */
bool engine_set_tick(struct engine *engine);

/* A release of the resource was just sent to the nodes. */
void engine_tell_release(struct engine *engine, struct span resource);

#endif
