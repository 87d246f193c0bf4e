/*
 * What is asked for, on its way from the facade to the attempts. An operation
 * keeps its own copy.
 */
#ifndef REDLOCKD_REQUEST_H
#define REDLOCKD_REQUEST_H

#include "../../base/types.h"
#include "../../lock/lock.h"

/* Who asks, and learns the outcome. */
enum request_owner {
    OWNER_CLIENT, /* port.answer */
    OWNER_WAITER,
    OWNER_LOOK, /* a waiter's inspection */
    OWNER_LISTING,
    OWNERS
};

struct request {
    enum lock_call call;
    bool only_looks; /* extend: checks the token, does not lengthen */
    struct span resource;
    struct span token; /* extend, release */
    struct span owner;
    struct span key_hash;
    int64_t ttl_ms;
    int64_t number;   /* force: of the lock */
    int64_t asked_us; /* time of the request by the nodes' clocks; 0: unknown */
    uint16_t heard;   /* bit per node: no verdict before its answer */
    enum request_owner owned_by;
    void *client;
};

#endif
