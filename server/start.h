/*
 * Reports that a server has started: to the log, with warnings of likely
 * mistakes in its configuration, and to the service manager.
 */
#ifndef REDLOCKD_START_H
#define REDLOCKD_START_H

#include <stdint.h>

#include "config/config.h"

/* The line "start", and warnings. connections: how many it can serve. */
void start_log(const struct config *config, int64_t connections);

/* Tells the service manager that it serves; again after each reload. */
void start_tell(const struct config *config);

#endif
