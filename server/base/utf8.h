/*
 * What is a character of UTF-8 (RFC 3629). Pure.
 */
#ifndef REDLOCKD_UTF8_H
#define REDLOCKD_UTF8_H

#include "types.h"

/* Bytes of the first character of text; 0: there is none, or it is none. */
size_t utf8_len(struct span text);

#endif
