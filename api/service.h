/* SPDX-License-Identifier: MIT */
/*
 * What the handlers of requests share.
 */
#ifndef REDLOCKD_SERVICE_H
#define REDLOCKD_SERVICE_H

#include "../server/config/config.h"
#include "../server/engine/engine.h"
#include "../server/lock/lock.h"
#include "../server/lock/metrics.h"

struct access;
struct audit;
struct requestid_source;
struct tls;

struct service {
    /* borrowed */
    struct engine *engine;
    const struct config *config;
    struct metrics *metrics;
    struct requestid_source *ids; /* of requests that bring none */

    /* made of the files that config names */
    struct access *access; /* NULL: anybody may ask anything */
    struct tls *tls;       /* NULL: plain HTTP */
    struct audit *audit;   /* NULL: there is no audit log */

    bool is_draining; /* not ready, but it serves */
    bool is_drained;  /* grants no new locks either */
    bool is_stopping; /* nothing begins any more */
};

#endif
