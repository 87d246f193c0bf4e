/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong. Each seed enables a random subset of the faults, so that
 * runs differ in kind and not only in their random numbers.
 *
 * These are assumptions, and never violated unless a world is wild:
 *
 *   - within a few seconds, only a minority of the nodes' clocks step, and each
 *     keeps its new time for a while
 *   - only a minority's clocks are far off at any time
 *   - a clock that is corrected is noticed first by a server that knew how it
 *     was: a server that sees the node for the first time, or was not running
 *     when it was admitted, cannot notice
 *   - clocks drift apart by at most 0.4%
 *   - when a durable node gets older data, q - 1 others have stored that
 *     there was a later one, or a server that saw it is about to report it, and
 *     no new fault begins for 5 s; otherwise the node stays down until all that
 *     it lacks has expired (copies.c)
 *   - the nodes are not all empty at once where that means a first start,
 *     unless a running server has seen them vote, and lives for 6 s more
 *   - what a node grants between an eviction and the next probe, or the end of
 *     the evicted lock if it restarts before, does not violate exclusion
 *     against the client whose lock it evicted (ledger.c)
 *   - a connection is slow in one direction by too little to hide a step
 *   - when the faults end, all servers get the same node timeout: with
 * different ones, a release may leave a key on a minority until its TTL ends
 *   - while a name leads to two machines, neither is lost, no new fault begins
 *     in the first 6 s, and no new configuration begins; unless the second
 *     machine is empty and each server that has its address is restarted
 *   - a node that was a replica does not free its backlog and get its
 * statistics reset within 6 s: it would probe as if it had been none
 *   - no server is started with too high an epoch at the first start where all
 *     nodes may be lost, as one that returns has that epoch when the others
 * have begun anew; nor one with wrong addresses as well
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "world.h"

enum fault {
    FAULT_SLOW,      /* a connection is slow */
    FAULT_BREAK,     /* a connection breaks */
    FAULT_BLOCK,     /* some machines and servers cannot reach each other */
    FAULT_DOUBLE,    /* requests and commands arrive twice */
    FAULT_PAUSE,     /* a machine is paused */
    FAULT_ERROR,     /* a machine answers errors, or is unfit */
    FAULT_UNCONFIRM, /* no new connections succeed */
    FAULT_RESTART,   /* a machine dies and starts again */
    FAULT_FLUSH,     /* FLUSHALL */
    FAULT_INTERLUDE, /* a life without persistence, then the old disk */
    FAULT_UNDURABLE, /* it writes no file for a while, then restarts */
    FAULT_RESTORE,   /* a life with old data */
    FAULT_ROLLBACK,  /* old data under the same run_id */
    FAULT_REPLACE,   /* another node's data */
    FAULT_PROMOTE,   /* a replica, slightly behind, takes the name */
    FAULT_EVICT,     /* locks are evicted for lack of memory */
    FAULT_MOVE,      /* a name moves to an empty machine */
    FAULT_TWIN,      /* a name leads to the machine of another one */
    FAULT_SPLIT,     /* a name leads to two machines */
    FAULT_LOSE_ALL,  /* all machines lose everything at once */
    FAULT_SLEEP,     /* everything is off for a while */
    FAULT_STEP,      /* a clock steps */
    FAULT_TINY_STEP, /* … by too little to be noticed */
    FAULT_DRIFT,     /* clocks run fast and slow */
    FAULT_SERVER_PAUSE,
    FAULT_SERVER_RESTART,
    FAULT_TARGET,  /* commands of the admission are lost, late, overtaken */
    FAULT_NEXT,    /* a new configuration takes over */
    FAULT_FOREIGN, /* another configuration of the same epoch */
    FAULT_LAG,     /* a server's connections are slow in one direction */
    FAULT_CUT,     /* a power cut: nodes lose the last they wrote, or all */
    FAULT_OPTIONS, /* servers have different limits and timeouts, which change
                    */
    FAULT_QUIET,   /* nobody asks while a node forgets; then many at once */
    /* only in some worlds: */
    FAULT_ROLL,   /* a name moves as one server after the other is restarted */
    FAULT_ASTRAY, /* a server has wrong or swapped addresses for a while */
    FAULT_EPOCH,  /* servers are started with too high an epoch */
    FAULT_STALL,  /* a server stands still for a moment, often */
    FAULT_TERM,   /* a server gets SIGTERM, and is started again */
    FAULT_APART,  /* servers reach different nodes: their times differ */
    FAULT_LISTS,  /* the list of names changes again and again: lists.h */
    FAULT_FULL,   /* machines, or all at once, are above maxmemory */
    FAULT_ATTACH, /* backups attach as replicas; statistics are reset */
    FAULTS
};

static inline uint64_t fault_bit(enum fault fault)
{
    return UINT64_C(1) << fault;
}

struct faults {
    struct simconfig configs[CONFIGURATIONS];
    enum configuration configuration; /* of servers that start now */
    uint64_t enabled;                 /* bit per kind */
    bool is_calm;
    bool are_old_stopped; /* servers are told so, and take over without proof */
    bool is_orderly; /* each list has a majority of the one before, and follows
                        when that votes */
    bool keeps_word; /* and the first one began by the word, which servers that
                        are forgotten still have */
    int64_t cut_us;  /* until then a name is cut off from the new servers */
    bool has_other;  /* another installation goes on */
    bool is_blind;   /* a server has quarantined nodes before it saw all */
    int word_epoch;  /* of the last change by the operator's word … */
    bool is_word_done;  /* … after which all nodes have voted */
    bool is_wild;       /* clocks step freely, but nothing is lost */
    bool goes_far;      /* clocks step by up to a minute */
    int64_t longest_ms; /* no TTL is greater in this world */
    int64_t honest_us;  /* how far off clocks may be that count as right */
    int rate;           /* percent of the usual intervals */
    int64_t tiny_us;    /* when all clocks stepped a little */
    int64_t held_us;    /* no new fault until then */
    uint64_t count[FAULTS];
};

/* Of the servers that start now. */
static inline const struct simconfig *faults_config(const struct world *world)
{
    return servers_config(world, world->faults->configuration);
}

/* The machine of the i-th of its names. */
static inline int faults_home(const struct world *world, int i)
{
    return world->home[faults_config(world)->name[i]];
}

struct message;

void faults_on_event(struct world *world, const struct event *event);

/* Called when a server sends this; may change what happens to it. */
void faults_on_send(struct world *world, struct message *message);

/* After this long a quarantine has ended, with all its conditions, if nothing
 * goes wrong. */
int64_t faults_quarantine_us(const struct world *world);

/*
 * For this long the server's connections are slow in one direction: its median
 * of the clocks may be off, and what others send later overtakes what it sends.
 */
void faults_lag(struct world *world, int server, int64_t us);

/* Kills the server; it starts again soon. No-op if it is not running. */
void faults_restart_server(struct world *world, int server);

/* Ends the fault after so long; of: a machine, a name or a server. */
void faults_end_later(struct world *world, int64_t us, enum fault fault,
                      int of);

/* Begins no new fault for this long. */
void faults_hold(struct world *world, int64_t us);

/* One extra fault: the machine is paused for this long. */
void faults_pause(struct world *world, int machine, int64_t us);

/* Kills all servers but this one (-1: all), and restarts them one by one. */
void faults_restart_servers(struct world *world, int but, int64_t most_us);

/* Ends all faults, and heals what is broken. */
void faults_calm(struct world *world);

/* Corrects all clocks. */
void faults_set_clocks(struct world *world);

#endif
