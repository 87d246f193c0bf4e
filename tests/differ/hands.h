/* SPDX-License-Identifier: MIT */
/*
 * A run of the differential test, and what other hands do to both nodes
 * between its batches.
 */
#ifndef DIFFER_HANDS_H
#define DIFFER_HANDS_H

#include "../lib/node/real.h"

#define HANDS_STATE_KEY REAL_PREFIX "redlockd:state"

struct run {
    uint64_t random;
    struct real *real;
    struct simmemory memory;
    struct simprocess process;
    int64_t clock_us;               /* the node's, when it last told */
    char trace[CALL_TRACE_MAX + 1]; /* of the last probe */
    bool is_heard[SIM_POOL + 2];    /* subscribed to; first the heartbeat, last
                                       the pool */
    char heard[REAL_HEARD_MAX];     /* of the simulated node, like real_hear */
    int batches;                    /* of a seed */
    uint64_t announced;
    uint64_t calls[CALL_KINDS];
    uint64_t done[CALL_ACQUIRE]; /* of those that change who votes */
    uint64_t votes[BALLOT_KINDS];
    uint64_t several[CALL_KINDS]; /* that did something to several names */
    uint64_t words[PROBE_WORDS];
    uint64_t shared[CALL_KINDS]; /* that did something with a shared token */
    uint64_t followed;           /* probes that found the data of a trace */
    uint64_t replaced, downgrades, other_forms, foreign;
    uint64_t undecided;
};

/* From 0 to below. */
int64_t hands_pick(struct run *run, int64_t below);

/* What callers expect, but for the replication ID; what clients have. */
const char *hands_admit(struct run *run);
const char *hands_token(struct run *run);

/* The key hashes that they have. */
enum { HANDS_KEYS = 2 };
extern const char *const hands_keys[HANDS_KEYS];

/* Of a lock that is shared, one of those who are there. */
struct span hands_holder(struct run *run, int resource);

/* Makes room for so many holders on both nodes. */
void hands_make_room(struct run *run, int holders);

/* One of a few incarnations, or mostly that which is known, if that is any. */
const char *hands_incarnation(struct run *run, const char *known);

/* An admission, in the form of before if so drawn. */
void hands_print_admission(struct run *run, char text[CALL_STATE_MAX + 1]);

/* A replication ID: mostly that of the node. */
const char *hands_replid(struct run *run);

/* Both nodes are as new. */
void hands_begin(struct run *run);

/* Both nodes are above maxmemory, or have memory again. */
void hands_fill(struct run *run, bool is_full);

/* Both nodes are empty; something else happens to both. */
void hands_forget(struct run *run);
void hands_interfere(struct run *run);

#endif
