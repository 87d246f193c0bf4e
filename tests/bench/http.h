#ifndef TESTS_BENCH_HTTP_H
#define TESTS_BENCH_HTTP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/* One keep-alive connection to redlockd, with one request at a time. Written by
 * hand because a load generator on the same two cores takes from the server
 * what it burns itself: libcurl needs more CPU time for a request than
 * redlockd. */
struct http {
    int fd;
    struct sockaddr_in server;
    char request[1024], response[4096];
    size_t received;
};

/* What the answer is. */
struct http_answer {
    const char *error; /* why there is none; NULL: there is one */
    int status;
    const char *body; /* in `response` */
};

/* Connects; ends the process if that fails. */
void http_open(struct http *http, const struct sockaddr_in *server);

/* Forgets the connection and whatever was asked; the descriptor changes. */
void http_reopen(struct http *http);

/* HOST:PORT; ends the process if it is none. */
struct sockaddr_in http_address(const char *text);

/* NULL, or why it could not be sent. */
const char *http_post(struct http *http, const char *path, const char *body);
const char *http_delete(struct http *http, const char *path, const char *token);

/* To be called when the connection is readable; false: the rest of the answer
 * is not there yet. */
bool http_read(struct http *http, struct http_answer *answer);

/* Copies the token of an acquire's answer; false if there is none. */
bool http_token(const struct http_answer *answer, char token[256]);

#endif
