/* SPDX-License-Identifier: MIT */
/*
 * One connection, its request over the played engine, and its client at the
 * other end of a pair of sockets.
 */
#ifndef REDLOCKD_TEST_PAIR_H
#define REDLOCKD_TEST_PAIR_H

#include "../../../api/exchange.h"
#include "../play.h"
#include "../turns.h"

extern struct pair {
    struct loop *loop;
    struct service service;
    struct connections all;
    struct exchange *it;
    int fd;     /* its end */
    int client; /* the other one */
    int wakes;
    struct http_response response; /* the latest */
} pair;

/* Five nodes that vote, and no request yet. */
void pair_begin(void);

/* Each request must have ended: answered or abandoned. */
void pair_end(void);

/* The client closes, and that is seen · that it left is seen. */
void pair_leave(void);
void pair_await_leave(void);

/* The answer to the request is on its way; behind its head come so many bytes.
 */
enum { PAIR_ANSWER_LEN = 1000 };
void pair_answer(int64_t now_us);

/* The head of a request has come with these fields, as fields.h takes them ·
 * it is whole, or woken. */
enum exchange_step pair_ask(const char *fields);
enum exchange_step pair_go_on(void);

/* The step must be an answer with this status. */
void pair_expect(enum exchange_step step, int status);

/* The connection is closed · accepted again. */
void pair_close(void);
void pair_open(void);

#endif
