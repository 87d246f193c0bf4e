/* SPDX-License-Identifier: MIT */
/*
 * One HTTP request at a time. libcurl and jansson live here.
 */
#ifndef REDLOCKCTL_FETCH_H
#define REDLOCKCTL_FETCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "wake.h"

enum {
    FETCH_ERROR_SIZE = 256,
    FETCH_TYPE_SIZE = 64,
    FETCH_LINE_SIZE = 80,
    FETCH_LOCATION_SIZE = 240,
};

enum {
    HTTP_OK = 200,
    HTTP_UNAUTHORIZED = 401,
    HTTP_FORBIDDEN = 403,
    HTTP_TOO_MANY = 429,
    HTTP_NO_SERVICE = 503,
};

struct fetch;

/*
 * For https://: the CAs to trust, and our certificate. PEM files, read at each
 * connection, so that they may be replaced.
 */
struct fetch_trust {
    const char *ca_file;   /* NULL: what the system trusts */
    const char *cert_file; /* NULL: none */
    const char *key_file;  /* NULL: it is in cert_file */
};

struct fetch_request {
    const char *method;
    const char *base;   /* http://host:port */
    const char *path;   /* begins with a slash */
    const char *header; /* "Name: value"; NULL: none */
    const char *bearer; /* a token; "": none */
    const char *body;   /* JSON; NULL: none */
    int64_t timeout_ms; /* of the whole call; at least 1 */
    /* It has no secret, and shows no certificate of ours; over loopback, it
     * takes any of theirs, which need not name an address of that kind. */
    bool is_probe;
};

struct fetch_answer {
    long status;            /* 0: there is no answer */
    bool is_unsent;         /* no answer: nothing was asked */
    bool is_stopped;        /* no answer: wake said to stop */
    bool is_untrusted;      /* no answer: our certificate or theirs is wrong */
    bool is_closed;         /* no answer: they closed the connection */
    bool is_no_tls;         /* no answer: for https:// they speak no TLS */
    bool is_no_http;        /* no answer: what came is no HTTP */
    bool is_endless;        /* no answer: its body was cut, as too long */
    bool is_starved;        /* no answer: no memory; it may have been asked */
    int64_t retry_after_ms; /* of the body, or of the header; 0: none */
    json_t *body;           /* NULL: it is no JSON object */
    int64_t sent_us;        /* clock_now_us() before the request was sent */
    char error[FETCH_ERROR_SIZE]; /* why there is no answer */
    /* What came, for people, if it is not what was expected. It is cut, may
     * hold any characters, and is empty rather than to repeat a secret of ours.
     */
    size_t len; /* of the body */
    char type[FETCH_TYPE_SIZE];
    char line[FETCH_LINE_SIZE];         /* the first one */
    char location[FETCH_LOCATION_SIZE]; /* a redirection: where to */
};

/*
 * NULL: no memory. Starts no thread before the first request. wake and trust
 * must outlive it.
 */
struct fetch *fetch_new(const struct wake *wake,
                        const struct fetch_trust *trust);
void fetch_free(struct fetch *fetch); /* NULL is ignored */

/* Fills answer; fetch_answer_free frees what is in it. */
void fetch_call(struct fetch *fetch, const struct fetch_request *request,
                struct fetch_answer *answer);
void fetch_answer_free(struct fetch_answer *answer);

/* A member of an answer; "" and 0 if there is none. */
const char *fetch_text(const json_t *object, const char *name);
int64_t fetch_number(const json_t *object, const char *name);

/* The text escaped for a query; free() it. NULL: no memory. */
char *fetch_escape(const char *text);

#endif
