/*
 * Bytes as text: base64url without padding (RFC 4648 §5), of which only the one
 * text that is written for some bytes is read; percent-encoding (RFC 3986
 * §2.1). Pure.
 */
#ifndef REDLOCKD_ENCODING_H
#define REDLOCKD_ENCODING_H

#include "types.h"

/* The characters of so many bytes. */
#define BASE64URL_LEN(bytes) (((bytes)*4 + 2) / 3)

/* Writes BASE64URL_LEN characters, without a NUL, and returns how many. */
size_t base64url_encode(char *out, struct span bytes);

/*
 * Writes the bytes and returns true; out must have room for as many as have
 * such a text. False: a foreign character, a length that no text has, or bits
 * that are left over.
 */
bool base64url_decode(struct span text, char *out, size_t *len);

/* Of a digit of either case; -1: it is none. */
int hex_value(char c);

/* Decodes into out, which has room for size bytes. False: not a code, or too
 * long. */
bool percent_decode(struct span text, char *out, size_t size, size_t *len);

#endif
