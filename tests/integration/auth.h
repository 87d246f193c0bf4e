/* SPDX-License-Identifier: MIT */
/*
 * Auth files, and calls of those who are in them.
 */
#ifndef REDLOCKD_TEST_AUTH_H
#define REDLOCKD_TEST_AUTH_H

#include "http.h"

/* Credentials of the tokens "red", "green" and "blue", for auth files. */
#define AUTH_RED                                                               \
    "sha256:b1f51a511f1da0cd348b8f8598db32e61cb963e5fc69e2b41485bf99590ed75a"
#define AUTH_GREEN                                                             \
    "sha256:ba4788b226aa8dc2e6dc74248bb9f618cfa8c959e0c26c147be48f6839a0b088"
#define AUTH_BLUE                                                              \
    "sha256:16477688c0e00699c6cfa4497a3612d7e83c532062b64b250fed8908128ed548"

/* A new auth file with this text, which only its owner may read. */
void auth_make(char path[PATH_SIZE], const char *text);

/* Three identities with tokens, and one with a certificate. */
extern const char auth_standard[];

/* Another text for the file, at once, and SIGHUP; waits until the server has
 * read it, or refused it. */
void auth_reload(const struct server *server, const char *path,
                 const char *text);

/* A call with this token; NULL: none. */
const struct answer *auth_call(const struct server *server, const char *token,
                               const struct request *request);
#define AUTH(server, token, ...)                                               \
    auth_call(server, token, &(struct request){__VA_ARGS__})

/* POST /locks with this body; lock, unless NULL, is filled on 201 and 200. */
const struct answer *auth_acquire(const struct server *server,
                                  const char *token, const char *json,
                                  struct lock *lock);
const struct answer *auth_release(const struct server *server,
                                  const char *token, const struct lock *lock);

/* As http_metric, with this token. */
double auth_metric(const struct server *server, const char *token,
                   const char *sample);

#endif
