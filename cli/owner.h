/*
 * Who holds a lock, if --owner does not say so.
 */
#ifndef REDLOCKCTL_OWNER_H
#define REDLOCKCTL_OWNER_H

#include <sys/types.h>

/*
 * USER@HOST:PID of this process, or of another one; what an owner may not
 * contain is "-", and what is too long is cut. Static.
 */
const char *owner_default(pid_t pid);

#endif
