#include "digest.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "../message/encoding.h"

enum { HEX_DIGITS = 2 * DIGEST_BYTES };

bool digest_make(struct digest *digest, struct span text)
{
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text.ptr, text.len,
                            digest->words) >= 0;
}

bool digest_is_same_text(struct span a, struct span b)
{
    return a.len == b.len && gnutls_memcmp(a.ptr, b.ptr, a.len) == 0;
}

bool digest_read(struct digest *digest, struct span text)
{
    unsigned char bytes[DIGEST_BYTES];
    if (text.len != HEX_DIGITS)
        return false;
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        int high = hex_value(text.ptr[i * 2]);
        int low = hex_value(text.ptr[i * 2 + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    memcpy(digest->words, bytes, sizeof bytes);
    return true;
}
