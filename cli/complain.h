/*
 * Errors: a line on stderr, and an exit status.
 */
#ifndef REDLOCKCTL_COMPLAIN_H
#define REDLOCKCTL_COMPLAIN_H

#include "options.h"
#include "verdict.h"

/* Prints "redlockctl: " and the message to stderr, as one line. Always false.
 */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, with the resources in front of the message. */
void complain_of_lock(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The exit status after a call. */
int complain_status(const struct options *options, enum verdict verdict);

/* Says why an acquire has failed. */
void complain_of_acquire(const struct options *options, enum verdict verdict,
                         const char *detail);

#endif
