/*
 * Prints texts from other clients to a terminal. Characters that the terminal
 * would obey are escaped, as in \u009B.
 */
#ifndef REDLOCKCTL_SHOWN_H
#define REDLOCKCTL_SHOWN_H

#include <stdio.h>

enum { SHOWN_URL_SIZE = 240 };

/* The caller checks ferror(out) once, at the end. */
void shown_put(const char *text, FILE *out);

/* Copies a URL without the user and the password in it; cuts a long one. */
void shown_url(const char *url, char out[SHOWN_URL_SIZE]);

#endif
