/*
 * Texts of others on somebody's terminal: what it would obey instead of showing
 * it is escaped, as in \u009B.
 */
#ifndef REDLOCKCTL_SHOWN_H
#define REDLOCKCTL_SHOWN_H

#include <stdio.h>

enum { SHOWN_URL_SIZE = 240 };

/* Errors of out are for the caller, which checks ferror once, at the end. */
void shown_put(const char *text, FILE *out);

/* The same for several, with commas between. */
void shown_put_all(char *const *texts, int count, FILE *out);

/* Copies a URL without the user and the password in it; cuts a long one. */
void shown_url(const char *url, char out[SHOWN_URL_SIZE]);

#endif
