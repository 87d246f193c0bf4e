/* SPDX-License-Identifier: MIT */
/*
 * What a process has of the kernel: random bytes, descriptors, limits, its
 * stdout, and files that it reads whole.
 */
#ifndef REDLOCKD_PROCESS_H
#define REDLOCKD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Fills buf with len bytes of getrandom(2), through a small buffer. */
void random_bytes(void *buf, size_t len);

/*
 * Opens those of the descriptors 0, 1 and 2 that are closed, so that no socket
 * gets the number that log lines go to. Call it before anything else is opened.
 * False: errno says why it failed.
 */
bool process_fill_descriptors(void);

/* Raises the limit of open files as far as allowed; returns the limit. */
int64_t process_raise_descriptors(void);

/* Flushes stdout. False: some could not be written; stderr says why. */
bool process_end_output(void);

/*
 * All of a file of at most so many bytes, and a NUL; to be freed. flags:
 * additional O_…, or 0; mode: of the file, 0: it could not be opened. NULL:
 * errno says why; EFBIG: it is larger.
 */
char *process_read_file(const char *path, int flags, size_t most, size_t *len,
                        mode_t *mode);

#endif
