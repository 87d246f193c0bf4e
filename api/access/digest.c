/* SPDX-License-Identifier: MIT */
#include "digest.h"

#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "../../server/base/encoding.h"
#include "../message/http.h"

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

/* ---- idempotency keys --------------------------------------------------- */

enum { KEPT_BYTES = 16 }; /* of the hash of a key */

static_assert(BASE64URL_LEN(KEPT_BYTES) == (int)KEY_HASH_LEN, "");

size_t digest_wrong_byte(struct span key)
{
    size_t place = 0;
    while (place < key.len &&
           span_has_only((struct span){key.ptr + place, 1}, "_-"))
        place++;
    return place;
}

bool digest_is_key(struct span key)
{
    return key.len >= DIGEST_KEY_MIN && key.len <= DIGEST_KEY_MAX &&
           digest_wrong_byte(key) == key.len;
}

/* A colon is in no key: no two of these texts are the same by chance. */
bool digest_key(char hash[KEY_HASH_LEN], struct span identity, struct span key,
                struct span names)
{
    char text[HTTP_IDENTITY_MAX + 1 + DIGEST_KEY_MAX + 1 + NAMES_LEN_MAX];
    struct digest digest;
    assert(key.len <= DIGEST_KEY_MAX && names.len <= NAMES_LEN_MAX);
    assert(identity.len <= HTTP_IDENTITY_MAX);
    size_t len = span_copy(text, identity);
    if (len > 0)
        text[len++] = ':';
    len += span_copy(text + len, key);
    text[len++] = '\n';
    len += span_copy(text + len, names);
    if (!digest_make(&digest, (struct span){text, len}))
        return false;
    (void)base64url_encode(
        hash, (struct span){(const char *)digest.words, KEPT_BYTES});
    return true;
}
