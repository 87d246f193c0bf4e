/* SPDX-License-Identifier: MIT */
/*
 * HTTP calls, answers and what every answer must look like; and raw sockets
 * for what no HTTP library would send.
 */
#ifndef REDLOCKD_TEST_HTTP_H
#define REDLOCKD_TEST_HTTP_H

#include <jansson.h>

#include "harness.h"

enum { HTTP_HEADERS = 4, ANSWER_BODY = 256 * 1024, ANSWER_HEAD = 8 * 1024 };

struct request {
    const char *method;
    const char *path;
    const char *json;  /* body with Content-Type application/json, or NULL */
    const char *token; /* X-Lock-Token, or NULL */
    const char *headers[HTTP_HEADERS]; /* "Name: value", more of them */
    size_t body_len;                   /* 0: strlen(json) */
    bool is_fresh;                     /* on a connection of its own */
};

struct answer {
    int status;
    char head[ANSWER_HEAD]; /* status line and header fields */
    char body[ANSWER_BODY];
    size_t body_len;
    json_t *json; /* NULL: no JSON object */
};

/*
 * One call; connections are kept alive between calls. The answer stays until
 * the next one. No answer, or one that breaks what docs/api.md says of all
 * answers (request id, no-store, newline, problem+json), fails the test.
 */
const struct answer *http_call(const struct server *server,
                               const struct request *request);
#define HTTP(server, ...) http_call(server, &(struct request){__VA_ARGS__})

/* The same on a new connection; NULL: it was closed without an answer. */
const struct answer *http_try(const struct server *server,
                              const struct request *request);

/*
 * From now on a call that is refused, or closed without an answer, returns one
 * with status 0 instead: for clients that have another server to try.
 */
void http_allow_silence(void);

/* GET on a new connection: the status, 0 if there is no answer. */
int http_probe(const struct server *server, const char *path);

/* Closes the kept connections. */
void http_disconnect(void);

/* A header field's value, good for three more calls; NULL: not there. */
const char *answer_header(const struct answer *answer, const char *name);

/* Members of the JSON body, nested ones as "nodes.granted"; must exist. */
json_int_t answer_int(const struct answer *answer, const char *path);
const char *answer_text(const struct answer *answer, const char *path);
bool answer_has(const struct answer *answer, const char *path);

/* It is this problem. NULL code: a success of this status. Returns it.
 * expect_ok: it is a success with 200. */
const struct answer *answer_expect(const struct answer *answer, int status,
                                   const char *code);
const struct answer *expect_ok(const struct answer *answer);

/* It shows a lock that is free, or one that is held. Returns it. */
const struct answer *answer_expect_free(const struct answer *answer);
const struct answer *answer_expect_held(const struct answer *answer);

/* Samples of GET /metrics: the value behind name{labels}; -1: none. */
double http_metric(const struct server *server, const char *sample);

/* Requests that the server has taken and not yet ended, but this one. */
double http_open_requests(const struct server *server);

/* ---- locks -------------------------------------------------------------- */

/* Well formed, and never granted. */
#define MADE_UP_TOKEN                                                          \
    "1795221641865000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"

struct lock {
    char resource[1024];
    char path[6000]; /* /locks/<id>, which may be one of several resources */
    char token[256];
    json_int_t number;
    json_int_t validity_ms;
};

/* What the answer has granted. */
void lock_read(struct lock *lock, json_t *body);

/* POST /locks {"resource", "ttl_ms"}: the answer; lock is filled on 201. */
const struct answer *lock_acquire(const struct server *server,
                                  const char *resource, int ttl_ms,
                                  struct lock *lock);

/* The same, which must be granted; lock may be NULL. */
const struct answer *lock_take(const struct server *server,
                               const char *resource, int ttl_ms,
                               struct lock *lock);
const struct answer *lock_extend(const struct server *server,
                                 const struct lock *lock, int ttl_ms);
const struct answer *lock_release(const struct server *server,
                                  const struct lock *lock);

/* The same, which must be done. */
const struct answer *lock_drop(const struct server *server,
                               const struct lock *lock);
const struct answer *lock_inspect(const struct server *server,
                                  const char *resource);

/* Acquires and releases: the server works. */
void lock_expect_cycle(const struct server *server, const char *resource);

/* ---- locks, in the client's own words -------------------------------------
 */

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

/* ---- raw sockets -------------------------------------------------------- */

int raw_connect(const struct server *server);
void raw_send(int fd, const char *text, size_t len);

/* Only what can be sent without waiting; false: nothing. */
bool raw_send_now(int fd, const char *text, size_t len);

/*
 * Reads until the peer closes or, if until is not NULL, the text has it.
 * Returns the bytes read; the test fails after ms.
 */
size_t raw_read(int fd, char *out, size_t size, const char *until, int ms);

/* A request, on a new connection, which is returned; nothing is read yet. */
int raw_ask(const struct server *server, const char *text);

/* POST /locks with further lines of its head, each with its CRLF. */
const char *raw_post_text(const char *json, const char *fields);
int raw_post(const struct server *server, const char *json, const char *fields);

#define RAW_LIVEZ "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
#define RAW_NODES "GET /nodes HTTP/1.1\r\nHost: x\r\n\r\n"

/* Reads an answer, which comes soon and has this part; "": none comes. */
void raw_expect(int fd, const char *part);

/* Nothing comes there for ms. */
void raw_stays(int fd, int ms);

/* Closes with a reset instead of a FIN. */
void raw_reset(int fd);
void raw_close(int fd); /* as close */

#endif
