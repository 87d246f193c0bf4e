/* SPDX-License-Identifier: MIT */
/*
 * Bytes as text: base64url without padding (RFC 4648 §5), of which only the one
 * text that is written for some bytes is read; percent-encoding (RFC 3986
 * §2.1); characters of UTF-8 (RFC 3629); texts in JSON strings (RFC 8259 §7).
 * Pure.
 */
#ifndef REDLOCKD_ENCODING_H
#define REDLOCKD_ENCODING_H

#include "types.h"

/* ---- base64url, percent-encoding ----------------------------------------- */

/* The characters of so many bytes. */
#define BASE64URL_LEN(bytes) (((bytes)*4 + 2) / 3)

/* Writes BASE64URL_LEN characters, without a NUL, and returns how many. */
size_t base64url_encode(char *out, struct span bytes);

/* out must have room for as many bytes as have such a text. False: a
 * character outside of the alphabet, a length that no text has, or bits that
 * are left over. */
bool base64url_decode(struct span text, char *out, size_t *len);

/* Of a digit of either case; -1: it is none. */
int hex_value(char c);

/* False: not a code, or too long. */
bool percent_decode(struct span text, char *out, size_t size, size_t *len);

/* ---- UTF-8 --------------------------------------------------------------- */

/* Bytes of the first character of text; 0: there is none, or it is none. */
size_t utf8_len(struct span text);

/* Its number, where utf8_len is len. */
uint32_t utf8_code(struct span text, size_t len);

/* Whether the first character of text is a control character: of Unicode's
 * category Cc, U+0000 to U+001F and U+007F to U+009F. */
bool utf8_is_control(struct span text);

/*
 * Whether terminals and editors may obey it instead of showing it: a control
 * character, one that separates lines (U+2028, U+2029), one that changes the
 * direction of writing (Unicode Standard Annex #9), or none at all.
 */
bool utf8_is_obeyed(struct span text);

/* ---- JSON strings -------------------------------------------------------- */

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
