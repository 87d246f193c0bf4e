/*
 * What the handlers of requests share.
 */
#ifndef REDLOCKD_SERVICE_H
#define REDLOCKD_SERVICE_H

#include "../server/base/config.h"
#include "../server/base/metrics.h"
#include "../server/engine/engine.h"

/* All borrowed. */
struct service {
    struct engine *engine;
    const struct config *config;
    struct metrics *metrics;
    const char *node_names[NODES_MAX];
    bool is_draining; /* not ready, but it serves */
    bool is_drained;  /* grants no new locks either */
    bool is_stopping; /* nothing begins any more */
};

#endif
