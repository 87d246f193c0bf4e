/*
 * A command and all that it has started: they are killed and waited for.
 *
 * Who calls this must be a child subreaper (prctl): what the command leaves
 * behind becomes its child, whatever session or group it has gone to. So
 * only own children are killed, whose numbers nobody else can get before they
 * are waited for.
 */
#ifndef REDLOCKCTL_FAMILY_H
#define REDLOCKCTL_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether a child of ours is in this process group, or has ended in it. */
bool family_has_group(pid_t group);

/* Whether there are children at all. */
bool family_has_children(void);

/* Sends the signal to the group, if family_has_group. */
void family_signal(pid_t group, int signal);

/*
 * SIGKILL to the group (0: to none), and to every child if children is true.
 * What these had started comes to us when they end: call it again until nobody
 * is left.
 */
void family_kill(pid_t group, bool children);

#endif
