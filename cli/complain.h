/* SPDX-License-Identifier: MIT */
/*
 * Errors: a line on stderr, and an exit status; texts from other clients, as a
 * terminal may show them.
 */
#ifndef REDLOCKCTL_COMPLAIN_H
#define REDLOCKCTL_COMPLAIN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* Prints "redlockctl: " and the message to stderr, as one line. Always false.
 */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends such a line: writes the message to stderr, and escapes it, as the
 * service puts names from other clients in it. */
void complain_end(const char *format, va_list args)
    __attribute__((format(printf, 1, 0)));

enum { SHOWN_URL_SIZE = 240 };

/*
 * Writes a text. Characters that the terminal would obey are escaped, as in
 * \u009B. The caller checks ferror(out) once, at the end.
 */
void shown_put(const char *text, FILE *out);

/* Copies a URL without the user and the password in it; cuts a long one. */
void shown_url(const char *url, char out[SHOWN_URL_SIZE]);

#endif
