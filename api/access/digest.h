/* SPDX-License-Identifier: MIT */
/*
 * SHA-256 of texts that clients send. GnuTLS lives here.
 */
#ifndef REDLOCKD_DIGEST_H
#define REDLOCKD_DIGEST_H

#include "../../server/base/types.h"
#include "../../server/lock/lock.h"

enum { DIGEST_BYTES = 32, DIGEST_WORDS = DIGEST_BYTES / 8 };

/* As words, so that two of them are compared without a branch. */
struct digest {
    uint64_t words[DIGEST_WORDS];
};

/* False: the library refuses to hash. */
bool digest_make(struct digest *digest, struct span text);

/* Reads 64 hex digits. False: the text is something else. */
bool digest_read(struct digest *digest, struct span text);

/*
 * All bits set if they are the same, none if not. It takes the same time
 * wherever they differ.
 */
static inline uint64_t digest_same(const struct digest *a,
                                   const struct digest *b)
{
    uint64_t difference = 0;
    for (int i = 0; i < DIGEST_WORDS; i++)
        difference |= a->words[i] ^ b->words[i];
    return ((difference | (0 - difference)) >> 63) - 1;
}

/* Whether the texts are the same; in the same time wherever they differ. */
bool digest_is_same_text(struct span a, struct span b);

/* ---- idempotency keys --------------------------------------------------- */

enum { DIGEST_KEY_MIN = 16, DIGEST_KEY_MAX = 64 };

/* Whether it may be a key: DIGEST_KEY_MIN to _MAX of A–Z a–z 0–9 _ - */
bool digest_is_key(struct span key);

/* The place of the first byte that no key may have, from 0; key.len: none. */
size_t digest_wrong_byte(struct span key);

/*
 * What is kept of an Idempotency-Key in a lock's token: a hash of the key, of
 * who sent it and of what is locked, so that the same key of another identity,
 * or with other resources, is another lock.
 *
 * Writes the first 16 bytes of SHA-256 over key, U+000A and names, in
 * base64url; unless identity is empty, it and a colon come first. names as
 * names_join leaves them. False: the library refuses to hash.
 */
bool digest_key(char hash[KEY_HASH_LEN], struct span identity, struct span key,
                struct span names);

#endif
