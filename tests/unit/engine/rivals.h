/*
 * Two servers over five simulated nodes, with calls that come late or never,
 * nodes that lose their memory, servers that stop or begin anew. What a
 * majority has promised must not be forgotten by a node that votes again.
 */
#ifndef REDLOCKD_TEST_RIVALS_H
#define REDLOCKD_TEST_RIVALS_H

#include "../../../server/engine/voting/members.h"
#include "../../lib/node/simnode.h"
#include "promises.h"

enum {
    RIVALS = 2,
    RIVALS_NODES = 5,
    RIVALS_CALLS_MAX = 256,
    RIVALS_COPIES = 8,
    RIVALS_ROUNDS = 64, /* whose votes may still come in */
    RIVALS_FAULTS_END_US = 40000000,
};

struct rivals_call {
    bool is_open;
    bool is_reply;
    bool is_vote; /* for this promise */
    int promise;
    uint32_t voter; /* the node's life, as the server saw it */
    int server, node;
    int connection, life;
    int64_t sent_us, at_us; /* left; arrives there or comes back */
    struct member_action action;
    struct simcall call;
    struct simreply reply;
};

struct rivals_connection {
    int number;
    bool is_up;
    int64_t up_us;             /* when it is tried again */
    int64_t there_us, back_us; /* no call or reply overtakes those before it */
    int64_t waiting_us;        /* since when a reply is owed; 0: none is */
};

/* The votes that a server has for a promise. */
struct rivals_round {
    int promise;
    unsigned votes;
    uint32_t voter[RIVALS_NODES];
};

struct rival {
    struct members members;
    struct rivals_round round[RIVALS_ROUNDS];
    struct rivals_connection to[RIVALS_NODES];
    int64_t wakes_us; /* does nothing before */
    int64_t tick_us;
    int64_t round_us; /* when it asks for the next votes */
};

struct rivals_copy {
    int64_t at_us; /* 0: there is none */
    struct simmemory memory;
};

struct rivals_node {
    struct simmemory memory;
    int life, replid; /* as in run_id and replication ID */
    bool has_stepped; /* its clock, and it was not revoked yet */
    int64_t copied_us;
    int copies;
    struct rivals_copy copy[RIVALS_COPIES];
};

extern struct rivals {
    unsigned seed;
    uint64_t random;
    int64_t now_us;
    int witness; /* the node that keeps its memory once it was admitted */
    int victim;  /* the one that is put back to an older memory */
    int epochs[RIVALS]; /* as given */
    bool is_other; /* the second one has other nodes: a configuration of its own
                    */
    bool is_calm;  /* no call comes late */
    bool has_rollbacks;
    int admissions, readmissions, rollbacks;
    struct promises promises;
    struct rival server[RIVALS];
    struct rivals_node node[RIVALS_NODES];
    struct rivals_call call[RIVALS_CALLS_MAX];
} rivals;

/* The first server has epoch 1, the other this one; nothing has happened. */
void rivals_begin(unsigned seed, int other_epoch, bool is_other);

/* Most of the faults come while a first start may be under way, unless copies
 * are to be put back. */
void rivals_play_faults(void);

void rivals_run_until(int64_t until_us);

/* For rivals_faults.c: chance, and connections that are lost. */
int64_t rivals_draw(int64_t below);
bool rivals_chance(int percent);
void rivals_drop(int server, int node);
bool rivals_is_admitted(int node);

/* And for rivals.c: what may be put back later. */
void rivals_keep_copies(void);

/* Another process takes the server's place · every node is emptied at once. */
void rivals_restart_server(int server);
void rivals_flush_all(void);

/* It votes under other names, with epoch 1. */
void rivals_give_to_others(int node);

#endif
