/*
 * A command and everything that it has started: signals for them, and the
 * terminal.
 *
 * The caller must be a child subreaper (prctl): what the command leaves behind
 * becomes its child, even in another session or group. So it kills only its own
 * children. Nobody else can get their process ids before it waits for them.
 */
#ifndef REDLOCKCTL_FAMILY_H
#define REDLOCKCTL_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a child of ours is in this process group, or has ended in it. */
bool family_has_group(pid_t group);

/* Whether there are children at all. */
bool family_has_children(void);

/* Sends the signal to the group, if it has a child of ours. */
void family_signal(pid_t group, int signal);

/*
 * SIGKILL to the group (0: to none), and to every child if children is true.
 * When these end, what they have started becomes ours: call it again until
 * nobody is left.
 */
void family_kill(pid_t group, bool children);

/* Moves the terminal from one process group, if that has it, to another. */
void family_give_terminal(pid_t from, pid_t to);

#endif
