/* SPDX-License-Identifier: MIT */
/*
 * Errors as application/problem+json (RFC 9457); and what is wrong with a
 * request's input, member by member, until it is told.
 */
#ifndef REDLOCKD_PROBLEM_H
#define REDLOCKD_PROBLEM_H

#include "http.h"

enum problem_code {
    PROBLEM_INVALID_REQUEST,
    PROBLEM_BAD_REQUEST,
    PROBLEM_UNAUTHORIZED,
    PROBLEM_FORBIDDEN,
    PROBLEM_FOREIGN_ORIGIN,
    PROBLEM_KEY_REFUSED,
    PROBLEM_NOT_FOUND,
    PROBLEM_LOCK_NOT_FOUND,
    PROBLEM_CURSOR_EXPIRED,
    PROBLEM_METHOD_NOT_ALLOWED,
    PROBLEM_BODY_TOO_LARGE,
    PROBLEM_UNSUPPORTED_MEDIA_TYPE,
    PROBLEM_EXPECTATION_FAILED,
    PROBLEM_HOST_NOT_ALLOWED,
    PROBLEM_HEAD_TOO_LARGE,
    PROBLEM_LOCK_HELD,
    PROBLEM_TOO_MANY_READERS,
    PROBLEM_NOT_OWNER,
    PROBLEM_MAX_HOLD_REACHED,
    PROBLEM_UPGRADE_REFUSED,
    PROBLEM_TOO_MANY_WAITERS,
    PROBLEM_RATE_LIMITED,
    PROBLEM_LOCK_QUOTA_EXCEEDED,
    PROBLEM_NO_QUORUM,
    PROBLEM_VALIDITY_EXHAUSTED,
    PROBLEM_OVERLOADED,
    PROBLEM_AUDIT_UNAVAILABLE,
    PROBLEM_SHUTTING_DOWN,
    PROBLEM_CODES
};

enum {
    FAULTS_MAX = 8,
    FAULT_POINTER_MAX = 80,
    FAULT_DETAIL_MAX = 240,
};

/* What is wrong with one member of a body, one query parameter or one header
 * field; pointer as in RFC 6901. */
struct fault {
    char pointer[FAULT_POINTER_MAX + 1];
    char detail[FAULT_DETAIL_MAX + 1];
};

/* Of one part of a request. */
struct faults {
    const char *in; /* "body", "query" or "header"; static; NULL: "body" */
    int item;       /* of a batch, from 1: all are about it; 0: of none */
    int count;
    struct fault list[FAULTS_MAX];
};

/* Adds one, formatted, with the item in front of the pointer; those beyond the
 * limit are left out. */
__attribute__((format(printf, 3, 4))) void
faults_add(struct faults *errors, const char *pointer, const char *format, ...);

enum { PROBLEM_DETAIL_MAX = FAULT_DETAIL_MAX + 1 }; /* with its NUL */

struct render_nodes;

/* All borrowed; members that do not apply are 0. */
struct problem {
    enum problem_code code;
    const char *detail;
    struct span resource; /* whose lock it is about */
    int64_t retry_after_ms;
    const int64_t *waited_ms; /* NULL: it was not asked to wait */
    const struct faults *errors;
    const struct engine_result *held_by; /* whose holder is reported */
    const struct engine_result *votes;   /* whose votes are reported, by node */
    const struct engine *engine;         /* what it says of the nodes */
    const struct render_nodes *states;   /* nodes and their states */
};

/* Of each code. */
extern const struct problem_kind {
    int status;
    const char *name; /* the stable one */
    const char *title;
} problem_kinds[PROBLEM_CODES];

/* Fills status, code, body and retry_after_ms of the call's response. Without
 * memory: overloaded. */
void problem_respond(const struct http_call *call,
                     const struct problem *problem);

/* The same with only a code and a detail · and RETRY_MAX_MS to wait at most. */
void problem_respond_plain(const struct http_call *call, enum problem_code code,
                           const char *detail);
void problem_respond_busy(const struct http_call *call, enum problem_code code,
                          const char *detail);

/* 400: an input that is refused, with what is wrong · the same of a body, or
 * overloaded if nothing is wrong with it · 415. */
void problem_respond_faults(const struct http_call *call,
                            const struct faults *errors);
void problem_respond_body(const struct http_call *call,
                          const struct faults *errors);
void problem_respond_not_json(const struct http_call *call);

/*
 * 503 overloaded; detail says what was done. It takes a single allocation. If
 * there is no memory even for that, body is NULL, and the connection must end.
 */
void problem_respond_overloaded(const struct http_call *call,
                                const char *detail);

/* ---- when to try again -------------------------------------------------- */

enum { RETRY_MAX_MS = 1000 }; /* no client has to wait longer */

/* 1 to range_ms or RETRY_MAX_MS, each as likely: clients that were refused
 * together must not come back together. */
int64_t retry_within_ms(int64_t range_ms);

/*
 * After a lock was found held. A lock that has been held for long will be held
 * for long, unless its TTL ends. held_ms, remaining_ms: -1 unknown.
 */
int64_t retry_held_ms(int64_t held_ms, int64_t remaining_ms);

/*
 * After an extension of a lock with this TTL failed: there must be time for
 * several attempts in what is left of the validity, a third of the TTL behind
 * its renewal.
 */
int64_t retry_extend_ms(int64_t ttl_ms);

#endif
