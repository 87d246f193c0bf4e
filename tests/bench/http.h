/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_HTTP_H
#define TESTS_BENCH_HTTP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* One keep-alive connection to a lock service, with one request at a time.
 * Written by hand because a load generator on the same two cores takes from the
 * server what it burns itself: libcurl needs more CPU time for a request than
 * redlockd. And small, as there are ten thousand of them: all share one buffer,
 * and an answer that comes in pieces is kept until it is whole. */
struct http {
    int fd;
    struct gnutls_session_int *tls; /* NULL: plain */
    struct sockaddr_in server;
    char *kept; /* the pieces; NULL: none */
    size_t received;
    const char *response; /* until the next call for any connection */
};

/* What the answer is. */
struct http_answer {
    const char *error; /* why there is none; NULL: there is one */
    int status;
    char *body; /* in `response`, and ends with a zero */
};

/* From now on connections speak TLS, and verify nothing. */
void http_use_tls(void);

/* Connects; ends the process if that fails. */
void http_open(struct http *http, const struct sockaddr_in *server);

/* Forgets the connection and whatever was asked; the descriptor changes. */
void http_reopen(struct http *http);

/* HOST:PORT; ends the process if it is none. */
struct sockaddr_in http_address(const char *text);

/* A bearer token that all requests carry from now on; borrowed. */
void http_set_token(const char *token);

/* NULL, or why it could not be sent. */
const char *http_get(struct http *http, const char *path);
const char *http_post(struct http *http, const char *path, const char *body);
const char *http_delete(struct http *http, const char *path, const char *token);

/* To be called when the connection is readable; false: the rest of the answer
 * is not there yet. */
bool http_read(struct http *http, struct http_answer *answer);

/* Copies a text of the answer's JSON; false if there is none of that name. */
bool http_text(const struct http_answer *answer, const char *name,
               char text[256]);

#endif
