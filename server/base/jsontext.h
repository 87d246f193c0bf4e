/*
 * How a text stands in a JSON string (RFC 8259 §7). Pure.
 */
#ifndef REDLOCKD_JSONTEXT_H
#define REDLOCKD_JSONTEXT_H

#include "types.h"

enum { JSONTEXT_ESCAPE_MAX = 6 }; /* bytes that one may become: \u001F */

/*
 * How many bytes at the beginning stand in a string as they are. At the end of
 * them the text is over, or a byte follows that needs an escape, or one that
 * begins no character of UTF-8.
 */
size_t jsontext_plain_len(struct span text);

/* Writes a byte of ASCII with a backslash; returns the length. */
size_t jsontext_escape(char at[JSONTEXT_ESCAPE_MAX], unsigned char byte);

#endif
