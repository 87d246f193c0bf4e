/*
 * A simulated node: the semantics of server/scripts/ in plain C.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "../../server/script.h"

enum { SIM_RESOURCES = 4 };

/* A call with storage of its own; resources are numbered. */
struct simcall {
    struct script_call call;
    int resource;
    char token[TOKEN_MAX];
    char admit[128];
};

struct simkey {
    bool is_set;
    int64_t expires_us; /* in the node's clock */
    size_t token_len;
    char token[TOKEN_MAX];
};

struct simnode {
    int64_t lead_us; /* node's clock minus the simulation's */
    double rate;     /* 1.0 plus its drift */
    bool is_paused;
    char admit[128];
    struct simkey keys[SIM_RESOURCES];
    int64_t highest[FENCE_SLOTS];
};

/* The name of a numbered resource, and back. */
const char *simnode_resource(int number);
int simnode_resource_number(struct span name);

int64_t simnode_clock(const struct simnode *node, int64_t now_us);

/* The key if it is there at now_us, else NULL. */
const struct simkey *simnode_key(const struct simnode *node, int resource,
                                 int64_t now_us);

/*
 * Executes the call at now_us of the simulation. The reply's value is borrowed
 * from the node.
 */
struct script_reply simnode_execute(struct simnode *node,
                                    const struct simcall *call, int64_t now_us);

#endif
