/* SPDX-License-Identifier: MIT */
/*
 * Requests to the handlers, over the played engine, and their answers.
 */
#ifndef REDLOCKD_TEST_ASK_H
#define REDLOCKD_TEST_ASK_H

#include <jansson.h>

#include "../../../api/access/access.h"
#include "../../../api/service.h"
#include "../../../server/lock/lock.h"
#include "../play.h"

enum { ASK_DEFAULT_TTL_MS = 12000, ASK_MAX_TTL_MS = 60000 };

/* A token of a lock that was granted just now. */
#define ASK_TOKEN "1795221642000000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"

extern struct ask {
    struct config config;
    struct service service;
    struct caller caller;
    struct http_request request; /* what is set here is sent by ask_send */
    struct http_response response;
    const char *content;       /* what ask_read has found; NULL: none */
    const char *authorization; /* likewise */
    json_t *body; /* of the answer; NULL: it has none, or it is not JSON */
} ask;

/* Five nodes that vote. */
void ask_begin(void);
void ask_end(void);

/* Clears the request. */
void ask_anew(void);

/* True: the response is there; else ask_answer must follow. body NULL: none;
 * each ' in it is sent as a ". */
bool ask_send(const char *method, const char *target, const char *body);
void ask_answer(int64_t now_us);

/* Reads "METHOD target?name=value", fields and a body, as HTTP writes them, but
 * with LF alone · and sends it. */
void ask_read(const char *text);
bool ask_http(const char *text);

/* As ask_send and ask_answer; as many nodes as are needed give this vote. */
void ask_and_vote(const char *method, const char *target, const char *body,
                  enum call_kind kind, int ballot);

/*
 * Each call for order:42: acquire for 30 s, extend by 3 s, release with
 * ASK_TOKEN, inspect, force the number 7; and what the nodes are asked then.
 */
bool ask_call(int call);
void ask_call_and_vote(int call, int ballot);
extern const enum call_kind ask_kinds[LOCK_CALLS];

/* code NULL: it is no problem. */
void ask_expect(int status, const char *code);

/* ask_answer now, and that · its detail has this · its only error, or the first
 * of them, points there. */
void ask_expect_now(int status, const char *code);
void ask_expect_detail(const char *part);
void ask_expect_pointer(const char *in, const char *pointer);

/* It is about order:42 · its operation is closed · it is to be tried again, if
 * most_ms is not 0. */
void ask_expect_lock(void);
void ask_expect_closed(void);
void ask_expect_retry(int64_t most_ms);

/* This problem, and all three. */
void ask_expect_failed(int status, const char *code, int64_t retry_most_ms);

/* Members of the answer's body, as json_at finds them; they must be there. */
const char *ask_text(const char *member);
int64_t ask_number(const char *member);
const json_t *ask_member(const char *member); /* or NULL */

/* It has these, with a blank between: "ttl_ms=5 owner=me", "slots=#2" of two
 * elements, "held_by" whatever it is; and "-mode" has it not. */
void ask_expect_members(const char *list);

/* What look asks for ends with when a quorum is expected, as time passes. */
void ask_expect_countdown(void (*look)(void));

/* Three nodes come back empty: there is no quorum for a known time. */
void ask_quarantine(void);

#endif
