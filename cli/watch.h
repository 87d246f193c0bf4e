/*
 * Who holds a lock, and who holds it next.
 */
#ifndef REDLOCKCTL_WATCH_H
#define REDLOCKCTL_WATCH_H

#include "commands.h"

/* Prints a line whenever one of the locks changes hands, until it fails. */
int command_watch(struct command *command);

#endif
