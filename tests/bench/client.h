#ifndef TESTS_BENCH_CLIENT_H
#define TESTS_BENCH_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "http.h"

/* What all clients acquire; NULL: as they do. */
extern const char *client_resource;

/* One client of a lock service: it acquires a resource that nobody used before,
 * releases it, and so on. */
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

enum client_event {
    CLIENT_WAITS, /* for the rest of a response */
    CLIENT_DONE,  /* with a cycle, and idle */
    CLIENT_FAILED /* told on stderr; the client is connected anew and idle */
};

/* Connects; ends the process if that fails. */
void client_open(struct client *client, int number,
                 const struct sockaddr_in *server);

/* Waits until the server answers; ends the process if it does not. The client
 * must be idle. */
void client_greet(struct client *client);

/* Begins a cycle that was due at `start_us`; the client must be idle. */
enum client_event client_begin(struct client *client, int64_t start_us);

/* To be called when the connection is readable. */
enum client_event client_read(struct client *client);

#endif
