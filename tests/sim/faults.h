/*
 * What goes wrong. Each seed switches a random subset of the kinds on, so that
 * runs differ in kind and not only in their dice.
 *
 * What is assumed, and so never done unless a world is wild:
 *
 *   - no two nodes' clocks step within a few seconds but for a minority, and
 *     each stays for a while where it stepped to
 *   - only a minority's clocks are far from right at any time
 *   - a clock that is set right is noticed first by a server that knew how it
 *     was: who sees the node for the first time, or was not there when it was
 *     admitted, cannot
 *   - clocks drift apart by at most 0.4%
 *   - where a durable node gets an older memory, q - 1 others have it in
 *     writing that there was a later one, or a server that saw it is about to
 *     tell them, and nothing new goes wrong for 5 s; else the node stays away
 *     until all that is lacking is over (copies.c)
 *   - not all nodes are empty at once where that is a first start, unless a
 *     server watches that has seen them vote, and lives for 6 s more
 *   - what a node grants between an eviction and the next look, or the end of
 *     the evicted lock if it restarts before, excludes nobody whose lock it
 *     evicted (ledger.c)
 *   - while a name leads to two machines, neither is lost, nothing new goes
 *     wrong in the first 6 s, and no new configuration begins
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "world.h"

enum fault {
    FAULT_SLOW,      /* a connection is slow */
    FAULT_BREAK,     /* a connection breaks */
    FAULT_BLOCK,     /* nothing gets through between some and some */
    FAULT_DOUBLE,    /* requests and commands come twice */
    FAULT_PAUSE,     /* a machine is paused */
    FAULT_ERROR,     /* a machine answers errors, or is not fit */
    FAULT_UNCONFIRM, /* nobody gets fresh connections */
    FAULT_RESTART,   /* a machine dies and starts again */
    FAULT_FLUSH,     /* FLUSHALL */
    FAULT_INTERLUDE, /* a life without persistence, then the old disk */
    FAULT_UNDURABLE, /* it writes no file for a while, then it restarts */
    FAULT_RESTORE,   /* a life with an old memory */
    FAULT_ROLLBACK,  /* an old memory under the same run_id */
    FAULT_REPLACE,   /* another one's memory */
    FAULT_PROMOTE,   /* a replica, a moment behind, takes the name */
    FAULT_EVICT,     /* locks go for lack of memory */
    FAULT_MOVE,      /* a name moves to an empty machine */
    FAULT_TWIN,      /* a name leads to another one's machine */
    FAULT_SPLIT,     /* a name leads to two machines */
    FAULT_LOSE_ALL,  /* all machines lose everything at once */
    FAULT_SLEEP,     /* everything is off for a while */
    FAULT_STEP,      /* a clock steps */
    FAULT_TINY_STEP, /* … so little that nobody sees it */
    FAULT_DRIFT,     /* clocks run fast and slow */
    FAULT_SERVER_PAUSE,
    FAULT_SERVER_RESTART,
    FAULT_TARGET,  /* what the admission sends is lost, late, overtaken */
    FAULT_NEXT,    /* a new configuration takes over */
    FAULT_FOREIGN, /* another configuration of the same epoch */
    FAULTS
};

struct faults {
    struct simconfig configs[CONFIGURATIONS];
    enum configuration configuration; /* of servers that start now */
    uint32_t enabled;                 /* bit per kind */
    bool is_calm;
    bool is_wild;       /* clocks step as they like, but nothing is forgotten */
    bool goes_far;      /* clocks step by up to a minute */
    int64_t longest_ms; /* no TTL is greater in this world */
    int64_t honest_us;  /* how far clocks are off that nobody complains of */
    int rate;           /* percent of the usual intervals */
    int64_t tiny_us;    /* all clocks stepped a little */
    int64_t held_us;    /* no new fault until then */
    int64_t moment_us;  /* when a new configuration comes */
    uint64_t count[FAULTS];
};

struct message;

void faults_on_event(struct world *world, const struct event *event);

/* A server sends this; what happens to it may be special. */
void faults_on_send(struct world *world, struct message *message);

/* A quarantine is over then, if nothing goes wrong, and all that it is for. */
int64_t faults_quarantine_us(const struct world *world);

/* No new fault for so long. */
void faults_hold(struct world *world, int64_t us);

/* One fault more: the machine stands still for so long. */
void faults_pause(struct world *world, int machine, int64_t us);

/* All servers die but this one (-1: all), and come back by and by. */
void faults_restart_servers(struct world *world, int but, int64_t most_us);

/* No faults from now on, and what is broken heals. */
void faults_calm(struct world *world);

/* All clocks are set right. */
void faults_set_clocks(struct world *world);

#endif
