/* SPDX-License-Identifier: MIT */
/*
 * Limits of locks, the calls that clients make, and the quorum.
 */
#ifndef REDLOCKD_LOCK_H
#define REDLOCKD_LOCK_H

#include <stdint.h>

enum {
    NODES_MAX = 9,         /* masters of a service */
    RESOURCE_CHARS = 255,  /* characters of a resource, each up to 4 bytes */
    RESOURCE_MAX = 1020,   /* bytes of a resource */
    NAMES_MAX = 16,        /* resources of a lock */
    NAMES_LEN_MAX = 4096,  /* bytes of a lock's resources, joined */
    TOKEN_MAX = 145,       /* bytes of a token, with the longest owner */
    OWNER_MAX = 64,        /* bytes of an owner's name */
    KEY_HASH_LEN = 22,     /* of an idempotency key, in a token */
    POOL_SLOTS_MAX = 1000, /* of a pool: the most that may hold it at once */
    VALUE_MAX = 256,       /* bytes of a lock's value in a node's reply */
    READERS_MAX = 10000,   /* that may be allowed to share a lock */
    PREFIX_MAX = 64,       /* bytes in front of each key */
    NODE_DETAIL_MAX = 500, /* of a sentence about a node, with its NUL */
    FENCE_BUCKETS = 16384, /* fields for fencing tokens on a node */
    TTL_MIN_MS = 100,      /* the shortest TTL allowed */
};

/* Acquires that wait. */
enum {
    WAIT_MAX_MS = 45000,     /* each; some proxies give up after 50 s */
    WAITERS_EACH_MAX = 1000, /* at once, for one resource */
    WAITERS_MAX = 10000,     /* at once, on one server */
};

/* Identities, and 0 for all who are not known. */
enum { ASKERS_MAX = 1001 };

/* Names our own keys, after any prefix: no lock's key may contain it. */
#define RESERVED_NAME "redlockd:"

/* Up to this number all integers are exact in the nodes' Lua. */
#define EXACT_MAX (INT64_C(1) << 53)

/* Calls of clients. */
enum lock_call {
    LOCK_ACQUIRE,
    LOCK_EXTEND,
    LOCK_RELEASE,
    LOCK_INSPECT,
    LOCK_FORCE, /* a release by its fencing token */
};

enum { LOCK_CALLS = LOCK_FORCE + 1 };

/* The majority of the configured nodes, reachable or not. */
static inline int quorum_of(int nodes)
{
    return nodes / 2 + 1;
}

/* Sets of nodes: a bit each. */
static inline uint16_t nodeset_of(int node)
{
    return (uint16_t)(1u << node);
}

/* All of so many. */
static inline uint16_t nodeset_all(int nodes)
{
    return (uint16_t)((1u << nodes) - 1);
}

static inline int nodeset_count(uint16_t set)
{
    return __builtin_popcount(set);
}

/* R: how long a node stays confirmed as the server its name leads to, µs. */
enum { CONFIRMED_US = 5000000 };

/* Whether N nodes that were never used are admitted at once. */
enum first_start { FIRST_START_AUTO, FIRST_START_YES, FIRST_START_NO };

/* Which nodes an acquire asks at first; --ask. */
enum ask_mode { ASK_ALL, ASK_QUORUM };

#endif
