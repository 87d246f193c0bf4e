/*
 * What a simulated node remembers, and the semantics of server/scripts/ on it
 * in plain C. differ.c holds it against a real redis-server.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "../../server/script.h"

enum { SIM_RESOURCES = 6, SIM_TOKEN_MAX = 96 };

/* A call with storage of its own; resources are numbered. */
struct simcall {
    struct script_call call;
    int resource;
    char token[SIM_TOKEN_MAX];
    char admit[SCRIPT_STATE_MAX];
    char nonce[SCRIPT_NONCE_LEN];
    char found[SCRIPT_STATE_MAX];
};

/* A reply likewise. */
struct simreply {
    struct script_reply reply;
    char value[SIM_TOKEN_MAX];
    char admit[SCRIPT_STATE_MAX];
    char mark[SCRIPT_STATE_MAX];
};

struct simkey {
    bool is_set;
    int64_t expires_ms; /* in the node's clock */
    size_t token_len;
    char token[SIM_TOKEN_MAX];
};

/* The locks, and the state hash; a field that is empty or 0 is not there. */
struct simmemory {
    struct simkey keys[SIM_RESOURCES];
    int64_t highest[SIM_RESOURCES]; /* slots, each by its first resource */
    int64_t max_ttl_ms;
    int64_t beat_us;
    char durable; /* '0', '1' */
    char admit[SCRIPT_STATE_MAX + 1];
    char mark[SCRIPT_STATE_MAX + 1];
};

/* The name of a numbered resource, and back. Two of them share a slot. */
const char *simnode_resource(int number);
int simnode_resource_number(struct span name);

/* Copies what the spans of call borrow. */
void simcall_copy(struct simcall *copy, const struct script_call *call);

/* A copy of a copy. */
void simcall_repeat(struct simcall *copy, const struct simcall *from);

/* Copies what the spans of the reply borrow to its own storage. */
void simreply_keep(struct simreply *answer);

/* The key if it is there when the node's clock shows clock_us, else NULL. */
const struct simkey *simnode_key(const struct simmemory *memory, int resource,
                                 int64_t clock_us);

/* Deletes what is over, as a node does by and by. */
void simnode_expire(struct simmemory *memory, int64_t clock_us);

/* True if there is a state hash. */
bool simnode_has_state(const struct simmemory *memory);

/* Executes the call when the node's clock shows clock_us. */
void simnode_execute(struct simmemory *memory, const struct simcall *call,
                     int64_t clock_us, struct simreply *answer);

#endif
