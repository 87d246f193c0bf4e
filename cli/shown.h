/*
 * Texts of others on somebody's terminal: what it would obey instead of showing
 * it is escaped, as in \u009B.
 */
#ifndef REDLOCKCTL_SHOWN_H
#define REDLOCKCTL_SHOWN_H

#include <stdio.h>

/* Errors of out are for the caller, which checks ferror once, at the end. */
void shown_put(const char *text, FILE *out);

#endif
