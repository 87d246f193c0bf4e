/*
 * redlockctl run: a command under a lock.
 */
#ifndef REDLOCKCTL_RUN_H
#define REDLOCKCTL_RUN_H

#include "credentials.h"
#include "options.h"

/* Returns the exit status. joined: the resources, joined as in names.h. */
int run_command(const struct options *options, const char *joined,
                struct credentials *credentials);

#endif
