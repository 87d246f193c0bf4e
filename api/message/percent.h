/*
 * Percent-encoding (RFC 3986 §2.1). Pure.
 */
#ifndef REDLOCKD_PERCENT_H
#define REDLOCKD_PERCENT_H

#include "../../server/base/types.h"

/* Decodes into out, which has room for size bytes. False: not a code, or too
 * long. */
bool percent_decode(struct span text, char *out, size_t size, size_t *len);

#endif
