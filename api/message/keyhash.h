/*
 * What is kept of an Idempotency-Key in a lock's token: a hash of the key, of
 * who sent it and of what is locked, so that the same key of another identity,
 * or with other resources, is another lock.
 * GnuTLS lives here.
 */
#ifndef REDLOCKD_KEYHASH_H
#define REDLOCKD_KEYHASH_H

#include "../../server/base/types.h"
#include "../../server/lock/lock.h"

enum { KEYHASH_KEY_MIN = 16, KEYHASH_KEY_MAX = 64 };

/* Whether it may be a key: KEYHASH_KEY_MIN to _MAX of A–Z a–z 0–9 _ - */
bool keyhash_is_key(struct span key);

/*
 * Writes the first 16 bytes of SHA-256 over key, U+000A and names, in
 * base64url; unless identity is empty, it and a colon come first. names as
 * names_join leaves them. False: the library refuses to hash.
 */
bool keyhash_make(char hash[KEY_HASH_LEN], struct span identity,
                  struct span key, struct span names);

#endif
