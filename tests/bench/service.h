/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_SERVICE_H
#define TESTS_BENCH_SERVICE_H

#include <stdint.h>

#include "http.h"

/* What load.c asks of a lock service over HTTP. Each program is linked with one
 * service: redlockd.c or peers/etcd.c. */

/* One client: it acquires a resource that nobody used before, releases it, and
 * so on. */
struct client {
    int number;
    uint64_t round;
    bool holds;
    int64_t start_us; /* of the cycle; when it was due, if it was late */
    char resource[64];
    char token[256]; /* what the grant gave for the release */
    char lease[32]; /* what acquires need besides, of services that want that */
};

/* How long the locks of redlockd last, ms. */
extern int service_ttl_ms;

/* Whether they are shared ones. */
extern bool service_is_shared;

/* How many clients may ask with one request. */
extern const int service_most;

/* What a client needs before its first cycle; the connection is open and waits
 * for answers. Ends the process if that fails. */
void service_greet(struct client *client, struct http *http);

/* Asks for what these clients want next: those that hold a lock, its release;
 * the others, a lock. NULL, or why it could not be sent. */
const char *service_ask(struct http *http, struct client *const *clients,
                        int count);

/* Takes the answers for all of these clients out of what came for them; for one
 * alone, that is the whole. NULL, or why that is not possible. */
const char *service_split(const struct http_answer *all,
                          struct client *const *clients, int count,
                          struct http_answer *each);

/* NULL, or why what was asked is not granted, not released; a grant fills
 * `token`. */
const char *service_answered(struct client *client,
                             const struct http_answer *answer);

#endif
