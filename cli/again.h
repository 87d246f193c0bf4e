/*
 * redlockctl run --again: the command is started anew when the lock was lost or
 * the command failed. For that, redlockctl replaces itself by exec: the process
 * keeps its number, and nothing of what was is left.
 */
#ifndef REDLOCKCTL_AGAIN_H
#define REDLOCKCTL_AGAIN_H

#include <stdint.h>

#include "options.h"

/*
 * Before a run: waits if the one before was short: a second at most, after the
 * next short one twice as long, up to half a minute. A signal ends the process.
 */
void again_wait(void);

/*
 * Starts anew, after a run in which the command lived for so long. Signals must
 * be as they were at the beginning. Returns only if that fails; errno says why.
 */
void again_start(const struct options *options, int64_t lived_us);

#endif
