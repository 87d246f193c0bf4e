/* SPDX-License-Identifier: MIT */
/*
 * The id of a lock in URLs, made from its resources and nothing else:
 *
 *   the resource itself   of A–Z a–z 0–9 . _ : - only, and not "." or ".."
 *   ~ and base64url       of every other resource, and of a slot's name
 *   ~~ and base64url      of several, joined as in names.h: of resources, or of
 *                         slots of one pool
 *
 * Only this one form is an id. But where no "~" begins it, a path may have any
 * resource in place of its id, percent-encoded.
 */
#ifndef REDLOCKD_ID_H
#define REDLOCKD_ID_H

#include "../../server/base/encoding.h"
#include "../../server/base/types.h"
#include "../../server/lock/lock.h"

enum { ID_MAX = 2 + BASE64URL_LEN(NAMES_LEN_MAX) };

/*
 * Writes the id without a NUL and returns its length. names: one that a lock
 * may have, or several of them, joined by names_join.
 */
size_t id_encode(char id[ID_MAX], struct span names);

/* The names of an id, their length in *len. False: not an id of ours. */
bool id_decode(struct span id, char names[NAMES_LEN_MAX], size_t *len);

/*
 * The names that a text stands for, written to names: an id of ours, or a
 * resource in place of its id (not "." or "..", which clients and proxies take
 * for steps in a path). Empty: it names no lock.
 */
struct span id_find_names(struct span text, char names[NAMES_LEN_MAX]);

/*
 * NULL if a lock may have this resource, else why not: 1 to RESOURCE_CHARS
 * characters of UTF-8, no control characters, no RESERVED_NAME.
 */
const char *id_check_resource(struct span resource);

/* NULL if a pool may have this name: a resource whose slots' names are not
 * longer than a resource may be. Else why not. */
const char *id_check_pool(struct span name);

/* Whether a lock may have this name: a resource, or a slot of a pool. */
bool id_is_name(struct span name);

#endif
