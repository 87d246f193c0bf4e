/*
 * Texts in JSON strings (RFC 8259 §7). Pure.
 */
#ifndef REDLOCKD_JSONTEXT_H
#define REDLOCKD_JSONTEXT_H

#include "types.h"

enum { JSONTEXT_ESCAPE_MAX = 6 }; /* bytes of a character: \u001F */

/*
 * The length of the beginning that needs no escape. After it the text ends, or
 * a byte follows that needs an escape or begins no character of UTF-8.
 */
size_t jsontext_plain_len(struct span text);

/* Writes the character of this number with a backslash; returns the length.
 * code is at most U+FFFF. */
size_t jsontext_escape(char at[JSONTEXT_ESCAPE_MAX], uint32_t code);

#endif
