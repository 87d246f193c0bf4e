/*
 * What the handlers of requests share.
 */
#ifndef REDLOCKD_SERVICE_H
#define REDLOCKD_SERVICE_H

#include "../server/config.h"
#include "../server/engine.h"
#include "../server/metrics.h"

/* All borrowed. */
struct service {
    struct engine *engine;
    const struct config *config;
    struct metrics *metrics;
    const char *node_names[NODES_MAX];
    bool is_draining; /* not ready, but it serves */
    bool is_drained;  /* no new locks, too */
};

#endif
