/* SPDX-License-Identifier: MIT */
/*
 * A front with a port of its own, over the played engine; and its clients, who
 * send what the test says.
 */
#ifndef REDLOCKD_TEST_SERVED_H
#define REDLOCKD_TEST_SERVED_H

#include "../../../api/front.h"
#include "../play.h"
#include "../turns.h"

enum { SERVED_CONNECTIONS = 3 };

#define SERVED_GET(target) "GET " target " HTTP/1.1\r\nHost: x\r\n\r\n"
/* A head; the body has as many bytes as it announces. */
#define SERVED_POST(length)                                                    \
    "POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"    \
    "Content-Length: " #length "\r\n\r\n"
#define SERVED_ACQUIRE SERVED_POST(16) "{\"resource\":\"a\"}"

extern struct served {
    struct loop *loop;
    struct front *front; /* NULL: the test has freed it */
    struct config config;
    int port;
    int turns; /* of the loop */
} served;

/* Five nodes that vote; room for SERVED_CONNECTIONS. */
void served_begin(void);
void served_end(void);

/* What another front in the same loop is made of. */
struct front_setup served_setup(void);

/* A client: a descriptor that blocks. */
int served_connect(void);
void served_send(int fd, const char *text);

/* It connects, and sends this. */
int served_ask(const char *text);

/*
 * Turns until the client was sent something that contains this; NULL: until
 * the front has closed. Returns all of it, until the next call.
 */
const char *served_read(int fd, const char *until);

/* Reads an answer, which must have this part. */
void served_expect(int fd, const char *part);

/* The front closes behind it, having sent nothing more if part is NULL; so
 * does the client. */
void served_expect_last(int fd, const char *part);

/* Turns until no client is connected. */
void served_await_leave(void);

/* Turns until so many operations have asked the nodes for acquires. */
void served_await_acquires(int count);

/* Lets a few turns pass: what has been sent is read. */
void served_pass(void);

/* Three nodes grant the oldest acquire. */
void served_grant(void);

#endif
