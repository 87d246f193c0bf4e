/*
 * The id of a lock in URLs, made from its resource and nothing else:
 *
 *   the resource itself   of A–Z a–z 0–9 . _ : - only, and not "." or ".."
 *   ~ and base64url       of every other resource (RFC 4648 §5, no padding)
 *
 * Only this one form of a resource is accepted.
 */
#ifndef REDLOCKD_ID_H
#define REDLOCKD_ID_H

#include "../server/base/types.h"

enum { ID_MAX = 1 + (RESOURCE_MAX * 4 + 2) / 3 };

/* Writes the id without a NUL and returns its length. */
size_t id_encode(char id[ID_MAX], struct span resource);

/* The resource of an id, its length in *len. False: not an id of ours. */
bool id_decode(struct span id, char resource[RESOURCE_MAX], size_t *len);

/*
 * NULL if a lock may have this resource, else why not: 1 to RESOURCE_CHARS
 * characters of UTF-8, no control characters, no RESERVED_NAME.
 */
const char *id_check_resource(struct span resource);

#endif
