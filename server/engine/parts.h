/*
 * The engine's parts: for engine.c, and for tests that look into them.
 */
#ifndef REDLOCKD_PARTS_H
#define REDLOCKD_PARTS_H

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
    bool is_resting; /* the next tick comes when a look at a node is due */
};

#endif
