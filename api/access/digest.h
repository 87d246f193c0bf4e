/*
 * SHA-256 of texts that clients send. GnuTLS lives here.
 */
#ifndef REDLOCKD_DIGEST_H
#define REDLOCKD_DIGEST_H

#include "../../server/base/types.h"

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

#endif
