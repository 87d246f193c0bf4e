/* SPDX-License-Identifier: MIT */
/*
 * What a simulated node remembers, and the semantics of server/node/scripts/ on
 * it in plain C. The simulator plays on it; tests/differ/ holds it against a
 * real redis-server.
 */
#ifndef REDLOCKD_TEST_SIMNODE_H
#define REDLOCKD_TEST_SIMNODE_H

#include "../../../server/node/script.h"

enum {
    SIM_PLAIN = 6, /* resources that are no slots of the pool */
    SIM_SLOTS = 3, /* of the pool, behind them */
    SIM_RESOURCES = SIM_PLAIN + SIM_SLOTS,
    SIM_POOL = SIM_RESOURCES, /* stands for the pool, where it is announced */
    SIM_NAMES_MAX = SIM_RESOURCES * 16, /* bytes of all names, joined */
    SIM_TOKEN_MAX = 96,
    SIM_NUMBER_LEN = 16, /* digits at the beginning of a token */
    SIM_REPLID_LEN = 40,
    SIM_TRACE_US = 5000000, /* a trace counts for so long */
    SIM_WITNESSES = 16,     /* numbers of other nodes, on one */
    SIM_HOLDERS = 256,      /* of all shared locks of a node */
    SIM_NAMES_TOLD = CALL_TOKENS_REPORTED * (SIM_TOKEN_MAX + 4),
    SIM_TOMBSTONES = 256,
    SIM_REPEATS = 256, /* of readers with different keys, on a node */
};

/* A call with storage of its own; resources are numbered. */
struct simcall {
    struct call call;
    int names;    /* how many resources it is about */
    int resource; /* the first; -1: none */
    int resources[SIM_RESOURCES];
    char resource_names[SIM_NAMES_MAX];
    char token[SIM_TOKEN_MAX];
    char admit[CALL_STATE_MAX];
    char nonce[CALL_NONCE_MAX];
    char found[CALL_STATE_MAX];
    char quarantine[CALL_STATE_MAX];
    char dead[CALL_STATE_MAX];
    char latest[INCARNATION_LEN];
    char witnesses[CALL_WITNESSES_MAX];
    char trace[CALL_TRACE_MAX];
    char key_hash[KEY_HASH_LEN];
};

/* A reply likewise. */
struct simreply {
    struct call_reply reply;
    char value[SIM_TOKEN_MAX];
    char slots[SIM_SLOTS + 2];
    char names[SIM_NAMES_TOLD];
    char admit[CALL_STATE_MAX];
    char quarantine[CALL_STATE_MAX];
    char taken[CALL_STATE_MAX];
    char passed[CALL_STATE_MAX];
    char witnesses[CALL_WITNESSES_MAX];
    char trace[CALL_TRACE_MAX + 1];
};

#define SIM_ENDLESS INT64_MAX

struct simkey {
    bool is_set;
    bool is_shared;     /* it has holders, not a token */
    int64_t expires_ms; /* in the node's clock; SIM_ENDLESS: it does not */
    size_t token_len;
    char token[SIM_TOKEN_MAX];
};

/* One of those who share a lock; or was, if the key is not shared any more. */
struct simholder {
    int64_t ends_ms;   /* the last moment, in the node's clock */
    uint8_t resource;  /* whose key it is */
    uint8_t token_len; /* 0: it is nobody */
    char token[SIM_TOKEN_MAX];
};

/* The latest reader of a lock with the key hash that its token has. */
struct simrepeat {
    int64_t until_ms; /* the last moment, in the node's clock: that of all
                         with this key hash */
    uint8_t resource;
    uint8_t token_len; /* 0: there is none */
    char token[SIM_TOKEN_MAX];
};

/* The numbers that readers recorded for a slot: its own, and a writer's. */
struct simwriters {
    int64_t of; /* 0: none are there */
    int64_t number;
};

/* That a replication of a token has set something, or it was released by force.
 */
struct simtombstone {
    int64_t until_ms; /* the last moment, in the node's clock */
    uint64_t token;   /* a hash of it, whatever its form */
};

/* What was told of another node: its greatest generation, or its latest
 * incarnation. */
struct simwitness {
    char name[CALL_NAME_LEN + 2];     /* "": none */
    char digits[INCARNATION_LEN + 1]; /* "": none */
};

/* A field of the state hash that may be 0. */
struct simnumber {
    bool is_there;
    int64_t it;
};

/* The locks, and the state hash; a text that is empty is not there. */
enum {
    SIM_PASSED_MAX = 1000,                /* more than any run has */
    SIM_PASSED_TOLD = CALL_STATE_MAX - 25 /* so that one more can be told */
};

struct simmemory {
    struct simkey keys[SIM_RESOURCES];
    struct simholder holders[SIM_HOLDERS];
    int64_t highest[SIM_RESOURCES]; /* slots, each by its first resource;
                                       0: not there */
    struct simwriters writers[SIM_RESOURCES]; /* likewise */
    struct simtombstone tombstones[SIM_TOMBSTONES];
    struct simrepeat repeats[SIM_REPEATS];
    struct simnumber max_token; /* of all slots */
    struct simnumber min_token, until_us;
    struct simnumber max_ttl_ms, generation, evicted;
    struct simnumber listened_until_us;
    char durable; /* '0', '1'; 0: not there */
    char admit[CALL_STATE_MAX + 1];
    char quarantine[CALL_STATE_MAX + 1];
    char taken[CALL_STATE_MAX + 1];
    char passed[SIM_PASSED_MAX + 1];
    char dead[CALL_STATE_MAX + 1];
    struct simwitness witnesses[SIM_WITNESSES];
};

/* What the script asks the server for: no part of its data. */
struct simprocess {
    char replid[SIM_REPLID_LEN + 1];
    int64_t evicted;  /* keys that it has thrown away */
    bool is_full;     /* above maxmemory */
    int64_t read;     /* bytes, from a master */
    bool was_replica; /* its second replication ID tells so */
};

static inline struct simnumber simnumber(int64_t number)
{
    return (struct simnumber){.is_there = true, .it = number};
}

/*
 * Where a node's announcements go. announce is called for each release that is
 * announced, with the lock's number, once more for the pool with NAMES_SLOT
 * and its slot behind that, and with resource -1 for a heartbeat; it
 * returns how many connections are subscribed to it. It must not touch the
 * node. NULL: nobody is subscribed.
 */
struct simlisteners {
    int (*announce)(void *ctx, int resource, struct span message);
    void *ctx;
};

/* A batch of calls on its way through a node. */
struct simbatch {
    struct simmemory *memory;
    const struct simprocess *process;
    int64_t clock_us;   /* the node's */
    int64_t generation; /* that is answered */
    struct simlisteners listeners;
    bool is_known; /* whether it is admitted */
    bool is_admitted;
};

#define SIM_POOL_NAME "pool"

/* The name of a numbered resource, and back. Two of them share a slot. That of
 * SIM_POOL has NAMES_SLOT at its end. */
const char *simnode_resource(int number);
int simnode_resource_number(struct span name);

/* The numbers of several that are joined; returns how many. */
int simnode_resource_numbers(struct span all, int numbers[SIM_RESOURCES]);

/* Joins count different ones, as names_join does; returns the length. */
size_t simnode_join(char text[SIM_NAMES_MAX], const int *numbers, int count);

/* The kind's name ("acquire"). Static. */
const char *simcall_name(enum call_kind kind);

/* What the script says for it ("ADMITTED"). Static. */
const char *simcall_probe_word(enum call_probe_word word);

/* Copies what the spans of call borrow. */
void simcall_copy(struct simcall *copy, const struct call *call);

/* Copies what the spans of the reply borrow to its own storage. */
void simreply_keep(struct simreply *answer);

/* The key if it is there when the node's clock shows clock_us, else NULL. */
const struct simkey *simnode_key(const struct simmemory *memory, int resource,
                                 int64_t clock_us);

/* The latest reader of the lock with this key hash; NULL: none is known then.
 */
const struct simrepeat *simnode_with_key(const struct simmemory *memory,
                                         struct span key_hash, int resource,
                                         int64_t clock_us);

/* Whether a lock has this token then, maybe beside others. */
bool simnode_has(const struct simmemory *memory, int resource,
                 struct span token, int64_t clock_us);

/* Deletes what is over, as a node does by and by. */
void simnode_expire(struct simmemory *memory, int64_t clock_us);

/*
 * Executes the next call of a batch, of which memory, process, clock_us and, if
 * there are any, listeners are set; all else was 0 before the first one. What
 * it answers as its generation is known when the last one was executed.
 */
void simnode_execute(struct simbatch *batch, const struct simcall *call,
                     struct simreply *answer);

#endif
