/*
 * Acquires in the client's own words: of several resources, or with a key; and
 * what can be done with what they are granted.
 */
#ifndef REDLOCKD_TEST_GRANT_H
#define REDLOCKD_TEST_GRANT_H

#include "http.h"

/*
 * POST /locks with this body and, unless it is NULL, this Idempotency-Key;
 * lock is filled on 200 and 201, if it is not NULL.
 */
const struct answer *grant_ask(const struct server *server, const char *json,
                               const char *key, struct lock *lock);

/* The same, which must be granted, and not be a repeat. */
const struct answer *grant_take(const struct server *server, const char *json,
                                const char *key, struct lock *lock);

/* An extend whose body has these members, and the token. */
const struct answer *grant_extend(const struct server *server,
                                  const struct lock *lock, const char *members);
const struct answer *grant_inspect(const struct server *server,
                                   const struct lock *lock);

/* The same as bytes, for a connection of its own; key may be NULL. */
int grant_send(const struct server *server, const char *json, const char *key);

/* What the answer there, with this status and within ms, has granted; of one
 * that grants nothing, the fencing token. */
struct lock grant_read(int fd, int status, int ms);

#endif
