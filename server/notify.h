/* Apart from main.c: only notify.c sees the library of systemd. */
/* SPDX-License-Identifier: MIT */
/*
 * What the log and the service manager (sd_notify(3)) are told of the life of
 * the process. Only notify.c includes <systemd/sd-daemon.h>.
 *
 * Without NOTIFY_SOCKET in the environment there is no service manager. A
 * message that cannot be sent is logged; the process goes on.
 */
#ifndef REDLOCKD_NOTIFY_H
#define REDLOCKD_NOTIFY_H

#include <stdint.h>

#include "config/config.h"

/* To the log: it has started, and likely mistakes in its configuration.
 * connections: how many it can serve. */
void notify_start(const struct config *config, int64_t connections);

/* To the service manager: it serves; again after each reload. */
void notify_ready(const struct config *config);

/* To the service manager: it reads its files again, up to notify_ready. */
void notify_reloading(void);

/*
 * To both: it drains for drain_ms, and has ended after most_us at the latest:
 * the manager is asked to wait as long, even if its own limit
 * (TimeoutStopSec=) is shorter.
 */
void notify_draining(int64_t drain_ms, int64_t most_us);

#endif
