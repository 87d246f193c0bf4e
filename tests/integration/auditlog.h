/*
 * Servers that write an audit log.
 */
#ifndef REDLOCKD_TEST_AUDITLOG_H
#define REDLOCKD_TEST_AUDITLOG_H

#include "harness.h"

/* A new directory, and the path of a log in it that is not there yet. */
void auditlog_name(char dir[PATH_SIZE], char path[PATH_SIZE]);

/* As world_start; its server writes the audit log at path. */
void auditlog_start(int nodes, const char *path, const char *options);

#endif
