/* SPDX-License-Identifier: MIT */
/*
 * What tells one grant of a lock from another: its fencing token, its token,
 * and the version that clients see of it.
 */
#ifndef REDLOCKD_TOKEN_H
#define REDLOCKD_TOKEN_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "call.h"

/* ---- fencing tokens ----------------------------------------------------- */

/*
 * Every grant of a resource carries a higher number than every earlier grant.
 *
 * A number is the median of the nodes' clocks in microseconds, raised above the
 * last one issued here. A node accepts only rising numbers in a bucket, and two
 * majorities share a node: so numbers rise whichever server issues them.
 */

/* The highest number: exact in Lua and in JSON, 16 digits. */
#define FENCE_MAX ((INT64_C(1) << 53) - 1)

/* Bucket of a resource: CRC-16/XMODEM mod 16384, as in Redis Cluster. */
int fence_bucket(struct span resource);

/* The bucket of each name that names has. */
void fence_buckets(struct span names, uint16_t buckets[NAMES_MAX]);

/* A call about a lock, with the buckets of its names. Borrows both texts. */
struct call fence_call(enum call_kind kind, struct span resource,
                       struct span token);

/*
 * A number, µs: time_us, raised above the number above; 0: above none. Never
 * higher than FENCE_MAX: a number written into a bucket by hand must not stop
 * the server. No node grants in such a bucket.
 */
int64_t fence_next(int64_t time_us, int64_t above);

/* W: how far a number may be from a node's clock, µs. */
enum { FENCE_WINDOW_US = 2000000 };

/* ---- tokens -------------------------------------------------------------- */

/*
 * The token of a holder, the value of its lock on the nodes:
 *
 *   <fencing token, 16 digits>.<40 hex digits>[+<key hash>][.<owner>]
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
 * "1" could delete a key of another library with this value.
 */

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

/* True for 1 to OWNER_MAX of A–Z a–z 0–9 . _ : @ / - */
bool token_is_owner(struct span text);

/* False for a value of another library, without the form of our tokens. The
 * parts lie in the text. */
bool token_parse(struct span text, struct token_parts *parts);
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

/* ---- versions ------------------------------------------------------------ */

/*
 * The version of a lock: a short text by which a client that watches the lock
 * tells one state from another. It follows from the state alone, so every
 * server tells the same one:
 *
 *   free           nobody holds the lock
 *   <digits>       its holder's fencing token; never comes back
 *   shared         readers hold it, whoever and however many they are
 *   foreign-<hash> a value that is no token of ours; the hash is the value's
 *   foreign        values that are none, and none of them is known to be common
 *   split          the nodes disagree, so that nobody could acquire the lock
 *
 * Clients treat versions as opaque and compare them as bytes.
 */

enum {
    VERSION_SIZE = 25, /* of those that are made, with a NUL */
    VERSION_MAX = 64,  /* of those that are taken, without one */
};

/* Empty: it is not known. */
struct version {
    char text[VERSION_SIZE];
};

extern const struct version version_free, version_shared, version_foreign,
    version_split;

struct version version_of_number(int64_t number);

/* Of a value that is no token; empty: one that is not known. */
struct version version_of_value(struct span value);

/* True if a passing state may have this version, while a lock changes hands. */
bool version_may_pass(const struct version *version);

bool version_is(const struct version *version, struct span text);

/* True for 1 to VERSION_MAX of a–z 0–9 -: what clients may send. */
bool version_is_wellformed(struct span text);

#endif
