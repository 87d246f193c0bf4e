/*
 * How a text stands in a JSON string (RFC 8259 §7). Pure.
 */
#ifndef REDLOCKD_JSONTEXT_H
#define REDLOCKD_JSONTEXT_H

#include "types.h"

enum { JSONTEXT_ESCAPE_MAX = 6 }; /* bytes of a character: \u001F */

/*
 * How many bytes at the beginning stand in a string as they are. At the end of
 * them the text is over, or a byte follows that needs an escape, or one that
 * begins no character of UTF-8.
 */
size_t jsontext_plain_len(struct span text);

/* Writes the character of this number with a backslash; returns the length.
 * code is at most U+FFFF. */
size_t jsontext_escape(char at[JSONTEXT_ESCAPE_MAX], uint32_t code);

#endif
