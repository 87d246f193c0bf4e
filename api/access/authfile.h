/*
 * Reads the file of --auth-file.
 */
#ifndef REDLOCKD_AUTHFILE_H
#define REDLOCKD_AUTHFILE_H

#include "identities.h"

enum { AUTHFILE_SIZE_MAX = 1024 * 1024, AUTHFILE_ERROR_MAX = 350 };

/*
 * NULL: error is one line for people; it repeats nothing of the file. Never
 * waits for a writer. Warns in the log if others may read or write the file.
 */
struct identities *authfile_load(const char *path,
                                 char error[AUTHFILE_ERROR_MAX]);

/* Writes "--auth-file: path: reason", or if it has a line, "path:line: …". */
void authfile_explain(const char *path, const char *reason,
                      char error[AUTHFILE_ERROR_MAX]);

#endif
