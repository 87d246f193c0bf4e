/* SPDX-License-Identifier: MIT */
/*
 * Clients that wait for a lock, each on a connection of its own.
 */
#ifndef REDLOCKD_TEST_WAITER_H
#define REDLOCKD_TEST_WAITER_H

#include "http.h"

/* Asks for the lock, and reads nothing yet. Returns the connection. */
int waiter_send(const struct server *server, const char *resource, int ttl_ms,
                int wait_ms);

/* Until exactly so many wait at the server, for any lock. */
void waiter_expect_count(const struct server *server, int count);

struct verdict {
    int status;
    int waited_ms;
    int elapsed_ms;
    char code[64];    /* of a problem */
    struct lock lock; /* of a grant */
};

/* Reads the answer, which must come within ms, and closes the connection. */
struct verdict waiter_read(int fd, int ms);

/* The same for an answer that must be a grant of the resource. */
struct verdict waiter_expect_grant(int fd, const char *resource, int ms);

/* Until so many servers hear each node's announcements for the resource. */
void waiter_expect_listeners(const char *resource, int servers);

/* How many locks clients that waited got for this cause. */
int waiter_handovers(const struct server *server, const char *cause);

#endif
