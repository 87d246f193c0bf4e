#include "keyhash.h"

#include <assert.h>
#include <gnutls/crypto.h>

#include "encoding.h"
#include "http.h"

enum { SHA256_BYTES = 32, KEPT_BYTES = 16 };

static_assert(BASE64URL_LEN(KEPT_BYTES) == (int)KEY_HASH_LEN, "");

bool keyhash_is_key(struct span key)
{
    return key.len >= KEYHASH_KEY_MIN && key.len <= KEYHASH_KEY_MAX &&
           base64url_is_alphabet(key);
}

/* A colon is in no key: no two of these texts are the same by chance. */
bool keyhash_make(char hash[KEY_HASH_LEN], struct span identity,
                  struct span key, struct span names)
{
    char text[HTTP_IDENTITY_MAX + 1 + KEYHASH_KEY_MAX + 1 + NAMES_LEN_MAX];
    char digest[SHA256_BYTES];
    assert(key.len <= KEYHASH_KEY_MAX && names.len <= NAMES_LEN_MAX);
    assert(identity.len <= HTTP_IDENTITY_MAX);
    size_t len = span_copy(text, identity);
    if (len > 0)
        text[len++] = ':';
    len += span_copy(text + len, key);
    text[len++] = '\n';
    len += span_copy(text + len, names);
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, len, digest) < 0)
        return false;
    (void)base64url_encode(hash, (struct span){digest, KEPT_BYTES});
    return true;
}
