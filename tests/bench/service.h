#ifndef TESTS_BENCH_SERVICE_H
#define TESTS_BENCH_SERVICE_H

#include <stdint.h>

#include "http.h"

/* What load.c asks of a lock service over HTTP. Each program is linked with one
 * service: redlockd.c or peers/etcd.c. */

/* One client: it acquires a resource that nobody used before, releases it, and
 * so on. */
struct client {
    struct http http;
    int number;
    uint64_t round;
    bool busy, holds;
    int64_t start_us; /* of the cycle; when it was due, if it was late */
    char resource[64];
    char token[256]; /* what the grant gave for the release */
    char lease[32]; /* what acquires need besides, of services that want that */
};

/* How long the locks of redlockd last, ms. */
extern int service_ttl_ms;

/* Whether they are shared ones. */
extern bool service_is_shared;

/* What a client needs before its first cycle; its connection is open and waits
 * for answers. Ends the process if that fails. */
void service_greet(struct client *client);

/* NULL, or why it could not be sent. */
const char *service_acquire(struct client *client);
const char *service_release(struct client *client);

/* NULL, or why it is not granted, not released; a grant fills `token`. */
const char *service_granted(struct client *client,
                            const struct http_answer *answer);
const char *service_released(const struct http_answer *answer);

#endif
