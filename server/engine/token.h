/*
 * The token of a holder, the value of its lock on the nodes:
 *
 *   <fencing number, 16 digits>.<40 hex digits>[+<22 base64url>][.<owner>]
 *
 * The part after '+' is reserved for idempotency keys. Clients treat tokens as
 * opaque; extend and release compare them as bytes. The parts of a token can be
 * trusted only after it matched on the nodes, or was read there.
 *
 * Nothing else is ever compared with a value on the nodes: a client that sent
 * "1" could delete a foreign key with this value.
 */
#ifndef REDLOCKD_TOKEN_H
#define REDLOCKD_TOKEN_H

#include "../base/types.h"

enum { TOKEN_RANDOM_BYTES = 20 };

/*
 * Writes the token without a NUL and returns its length. number above 0,
 * at most 16 digits; owner at most OWNER_MAX bytes, may be empty.
 */
size_t token_make(char token[TOKEN_MAX], int64_t number,
                  const unsigned char random[TOKEN_RANDOM_BYTES],
                  struct span owner);

struct token_parts {
    int64_t number;
    struct span owner; /* within the parsed text; empty: none */
};

/* Whether it may be an owner: 1 to OWNER_MAX of A–Z a–z 0–9 . _ : @ / - */
bool token_is_owner(struct span text);

/* False if the text has not the form of our tokens: it is a foreign value. */
bool token_parse(struct span text, struct token_parts *parts);

/* The same, without the parts. */
bool token_is_ours(struct span text);

#endif
