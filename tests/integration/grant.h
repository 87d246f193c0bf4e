/*
 * Acquires in the client's own words: of several resources, or with a key; and
 * what can be done with what they are granted.
 */
#ifndef REDLOCKD_TEST_GRANT_H
#define REDLOCKD_TEST_GRANT_H

#include "http.h"

struct grant {
    char path[6000]; /* /locks/<id> */
    char token[256];
    json_int_t number;
    json_int_t validity_ms;
};

/*
 * POST /locks with this body and, unless it is NULL, this Idempotency-Key;
 * grant is filled on 200 and 201, if it is not NULL.
 */
const struct answer *grant_ask(const struct server *server, const char *json,
                               const char *key, struct grant *grant);

const struct answer *grant_extend(const struct server *server,
                                  const struct grant *grant, int ttl_ms);
const struct answer *grant_release(const struct server *server,
                                   const struct grant *grant);
const struct answer *grant_inspect(const struct server *server,
                                   const struct grant *grant);

/* The same as bytes, for a connection of its own; key may be NULL. */
int grant_send(const struct server *server, const char *json, const char *key);

/* What the answer there, with this status and within ms, has granted. */
struct grant grant_read(int fd, int status, int ms);

#endif
