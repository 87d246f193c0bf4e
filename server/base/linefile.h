/* Apart from audit.c, its only user: so full disks and pipes can be tested. */
/* SPDX-License-Identifier: MIT */
/*
 * A file, pipe or terminal that whole lines are appended to, whether or not it
 * takes them now. The rest is kept for later, up to a limit. The caller never
 * waits, unless a disk hangs.
 */
#ifndef REDLOCKD_LINEFILE_H
#define REDLOCKD_LINEFILE_H

#include "types.h"

struct linefile;

/*
 * Opens path to append to it, "-" is stdout; a file that is not there is made
 * with mode 0640, less the umask. A FIFO need not have a reader. Up to kept
 * bytes are kept. NULL: *reason is static text, or that of strerror(3).
 */
struct linefile *linefile_open(const char *path, size_t kept,
                               const char **reason);

/* Lines that are not written yet are lost. NULL is ignored. */
void linefile_free(struct linefile *file);

/* Takes a line, which ends with a newline. False: it is lost. */
bool linefile_add(struct linefile *file, struct span line);

/* Writes what was taken, as far as that goes now. 0: all of it; else why not,
 * an errno. */
int linefile_flush(struct linefile *file);

/*
 * Opens the path again: the file was moved away. Lines that are not written yet
 * go into the new one, also the whole of a line that was written in part.
 * False: it goes on with the old one, *reason as above. Stdout stays open.
 */
bool linefile_reopen(struct linefile *file, const char **reason);

/* Lines that are taken and not written. */
int64_t linefile_pending(const struct linefile *file);

#endif
