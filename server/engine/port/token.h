/*
 * The token of a holder, the value of its lock on the nodes:
 *
 *   <fencing number, 16 digits>.<40 hex digits>[+<key hash>][.<owner>]
 *
 * In that of a shared lock the first dot is "~". So each token has two forms; a
 * downgrade from exclusive to shared changes nothing else.
 *
 * The key hash is that of the client's idempotency key, 22 base64url digits.
 * Clients treat tokens as opaque; extend and release compare them as bytes. The
 * parts of a token can be trusted only after it matched on the nodes, or was
 * read there.
 *
 * Of a shared lock with a key hash, the tokens that one request tries begin
 * alike behind the number, with TOKEN_NONCE_BYTES.
 *
 * Nothing else is ever compared with a value on the nodes: a client that sent
 * "1" could delete a foreign key with this value.
 */
#ifndef REDLOCKD_TOKEN_H
#define REDLOCKD_TOKEN_H

#include "../../base/types.h"
#include "../../lock/lock.h"

enum {
    TOKEN_NUMBER_LEN = 16,
    TOKEN_RANDOM_BYTES = 20,
    TOKEN_NONCE_BYTES = 10, /* the first of them, see share.lua */
    TOKEN_SHARED = '~'      /* behind the number */
};

struct token_parts {
    int64_t number; /* above 0, at most 16 digits */
    bool is_shared;
    struct span key_hash; /* KEY_HASH_LEN digits; empty: none */
    struct span owner;    /* at most OWNER_MAX bytes; empty: none */
};

/* Writes the token without a NUL and returns its length. */
size_t token_make(char token[TOKEN_MAX],
                  const unsigned char random[TOKEN_RANDOM_BYTES],
                  const struct token_parts *parts);

/* True for a valid owner: 1 to OWNER_MAX of A–Z a–z 0–9 . _ : @ / - */
bool token_is_owner(struct span text);

/*
 * False if the text has not the form of our tokens: it is a foreign value. The
 * parts lie in the text.
 */
bool token_parse(struct span text, struct token_parts *parts);

/* The same, without the parts. */
bool token_is_ours(struct span text);

/* Whether a token has the shared form. False for what is no token. */
static inline bool token_is_shared(struct span token)
{
    return token.len > TOKEN_NUMBER_LEN &&
           token.ptr[TOKEN_NUMBER_LEN] == TOKEN_SHARED;
}

/* Whether two tokens are the same, whatever their forms. */
static inline bool token_is_same(struct span a, struct span b)
{
    return a.len == b.len && a.len > TOKEN_NUMBER_LEN &&
           memcmp(a.ptr, b.ptr, TOKEN_NUMBER_LEN) == 0 &&
           memcmp(a.ptr + TOKEN_NUMBER_LEN + 1, b.ptr + TOKEN_NUMBER_LEN + 1,
                  a.len - TOKEN_NUMBER_LEN - 1) == 0;
}

/* Gives a token its shared form. */
static inline void token_share(char *token)
{
    token[TOKEN_NUMBER_LEN] = TOKEN_SHARED;
}

#endif
