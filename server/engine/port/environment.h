/*
 * Shared by all parts of the engine: settings, port, metrics.
 */
#ifndef REDLOCKD_ENVIRONMENT_H
#define REDLOCKD_ENVIRONMENT_H

#include "port.h"

struct environment {
    struct engine_settings settings;
    struct engine_port port;
    struct metrics *metrics; /* borrowed */
};

/* CLOCK_BOOTTIME in µs, fresh. */
static inline int64_t environment_now(const struct environment *environment)
{
    return environment->port.now(environment->port.ctx);
}

/* An unpredictable number. */
static inline uint64_t environment_random(const struct environment *environment)
{
    uint64_t random;
    environment->port.random(environment->port.ctx, &random, sizeof random);
    return random;
}

#endif
