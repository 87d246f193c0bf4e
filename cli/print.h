/*
 * What commands print of locks to stdout. main looks for errors.
 */
#ifndef REDLOCKCTL_PRINT_H
#define REDLOCKCTL_PRINT_H

#include <stdbool.h>

#include "http.h"

/* An answer as it is, on a line. */
void print_json(const json_t *body);

/* Whether something is missing on stdout: it has an error, or there was no
 * memory. */
bool print_is_cut(void);

/* One line. with_time: for how long it is still held, too. */
void print_holder(const json_t *lock, bool with_time);

void print_free(const char *resource);

#endif
