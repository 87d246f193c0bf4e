/*
 * The command: how it is started.
 */
#ifndef REDLOCKCTL_CHILD_H
#define REDLOCKCTL_CHILD_H

#include "guard.h"

/*
 * Starts the command in a process group of its own, which gets the terminal if
 * redlockctl has it. It gets SIGKILL when the caller ends. -1: errno says why
 * it could not be forked; if it cannot be executed, it exits with 126 or 127.
 */
pid_t child_start(const struct guard_setup *setup);

/* Moves the terminal from one process group, if that has it, to another. */
void child_give_terminal(pid_t from, pid_t to);

#endif
