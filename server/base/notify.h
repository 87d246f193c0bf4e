/*
 * Messages to the service manager (sd_notify(3)): the process serves, reloads,
 * ends. Only notify.c includes <systemd/sd-daemon.h>.
 *
 * Without NOTIFY_SOCKET in the environment nothing happens. A message that
 * cannot be sent is logged; the process goes on.
 */
#ifndef REDLOCKD_NOTIFY_H
#define REDLOCKD_NOTIFY_H

#include <stdint.h>

/* It serves. status: one line for people, as `systemctl status` shows it. */
void notify_ready(const char *status);

/* It reads its files again; notify_ready says that this has ended. */
void notify_reloading(void);

/*
 * It drains, and has ended in most_us at the latest: the manager is asked to
 * wait as long, even if its own limit (TimeoutStopSec=) is shorter.
 */
void notify_stopping(int64_t most_us, const char *status);

#endif
