/*
 * Two servers over five simulated nodes, with calls that come late or never,
 * nodes that lose their memory, servers that stop or begin anew.
 */
#ifndef REDLOCKD_TEST_RIVALS_H
#define REDLOCKD_TEST_RIVALS_H

#include "nodestate.h"

enum {
    RIVALS = 2,
    RIVALS_NODES = 5,
    RIVALS_CALLS_MAX = 256,
    RIVALS_FAULTS_END_US = 40000000,
};

struct rivals_call {
    bool is_open;
    bool is_reply;
    int server, node;
    int connection, life;
    int64_t sent_us, at_us; /* left; arrives there or comes back */
    struct guard_action action;
    struct nodestate_call call;
    struct nodestate_reply reply;
};

struct rivals_connection {
    int number;
    bool is_up;
    int64_t up_us;      /* when it is tried again */
    int64_t waiting_us; /* since when a reply is owed; 0: none is */
};

struct rival {
    struct guard guard;
    struct rivals_connection to[RIVALS_NODES];
    int64_t wakes_us; /* does nothing before */
    int64_t tick_us;
};

struct rivals_node {
    struct nodestate state;
    int life;
    int64_t granted_us; /* was last admitted then; 0: never */
    int64_t forgot_us;  /* what it had granted; 0: never */
    bool has_stepped;   /* its clock, and it was not revoked yet */
};

extern struct rivals {
    unsigned seed;
    uint64_t random;
    int64_t now_us;
    int witness; /* the node that keeps its memory once it was admitted */
    int epochs[RIVALS];
    int admissions;
    struct rival server[RIVALS];
    struct rivals_node node[RIVALS_NODES];
    struct rivals_call call[RIVALS_CALLS_MAX];
} rivals;

/* The first server has epoch 1, the other this one; nothing has happened. */
void rivals_begin(unsigned seed, int other_epoch);

/* Most of the faults come while a first start may be under way. */
void rivals_play_faults(void);

void rivals_run_until(int64_t until_us);

#endif
