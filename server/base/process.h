/*
 * What a process is given when it starts, and what it makes of it.
 */
#ifndef REDLOCKD_PROCESS_H
#define REDLOCKD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Opens those of the descriptors 0, 1 and 2 that are closed, so that no socket
 * gets the number that log lines go to. Before anything else is opened. False:
 * errno says why it cannot.
 */
bool process_fill_descriptors(void);

/* Raises the limit of open files as far as it may be; the limit. */
int64_t process_raise_descriptors(void);

/*
 * Writes out what was printed on stdout. False: some of it could not be, and
 * stderr says why.
 */
bool process_end_output(void);

#endif
