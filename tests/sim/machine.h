/* SPDX-License-Identifier: MIT */
/*
 * A machine with one Redis server: its clock, its data, and the part of it
 * that is on disk. It has several lives, each with another run_id.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "../lib/node/simnode.h"

enum { SIM_RUN_ID_LEN = 16 };

/* What is on disk after a kill. */
enum persistence {
    PERSISTS_NOTHING,
    PERSISTS_EVERY_SECOND, /* the state of up to a second ago */
    PERSISTS_ALWAYS,       /* everything; such a node is durable */
};

/* A copy of a memory. */
struct simcopy {
    int64_t at_us; /* has everything promised until then; 0: there is none */
    struct simmemory memory;
};

enum machine_state { MACHINE_UP, MACHINE_PAUSED, MACHINE_DOWN };

struct machine {
    enum machine_state state;
    enum persistence usual;       /* according to its configuration file */
    enum persistence persistence; /* in this life */
    char run_id[SIM_RUN_ID_LEN];
    uint64_t life;
    struct simprocess process;
    enum node_state condition; /* what is wrong with it; STATE_NONE: nothing */
    /* the clock showed clock_us at set_us, and runs ppm parts per million fast
     */
    int64_t set_us;
    int64_t clock_us;
    int64_t fell_us; /* by how much it stepped back in all */
    int64_t ppm;
    struct simmemory memory;
    struct simcopy disk;   /* what the next life begins with */
    struct simcopy backup; /* of this or an earlier life */
    int64_t disk_due_us;   /* the disk does not change before then */
    int64_t written_us;    /* when the data last changed */
    int64_t
        state_us; /* when its permission or quarantine record last changed */
    int64_t promised_us; /* its last promise */
    int64_t complete_us; /* may lack later promises; 0: lacks none */
    int64_t resumed_us;  /* the end of its last pause */
    int64_t healed_us;   /* since then no call is answered with an error */
    int64_t promoted_us; /* when it was last a replica, in this life … */
    int64_t reset_us;    /* … and when its statistics were last reset */
    int64_t evicted_us[SIM_RESOURCES]; /* not noticed by a probe; 0: not */
    /* for how long in all each lock was there until noted_us */
    int64_t exclusive_us[SIM_RESOURCES];
    int64_t shared_us[SIM_RESOURCES];
    int64_t noted_us;
    bool is_unseen; /* and never will be: another life has begun since */
};

/* An empty machine, not yet started. */
void machine_init(struct machine *machine, enum persistence usual,
                  int64_t now_us, int64_t clock_us);

int64_t machine_clock(const struct machine *machine, int64_t now_us);

/* Notes for how long each lock was there until now. */
void machine_note(struct machine *machine, int64_t now_us);

/* It runs, with an admission of this data. */
bool machine_is_admitted(const struct machine *machine);

/* Changes the speed of its clock, or steps it. */
void machine_drift(struct machine *machine, int64_t now_us, int64_t ppm);
void machine_step(struct machine *machine, int64_t now_us, int64_t step_us);

/*
 * Why a handshake refuses it although it executes calls; STATE_NONE: it does
 * not. All other conditions are errors in place of all replies.
 */
enum node_state machine_unfitness(const struct machine *machine);

/*
 * Executes the call; lag_us: how far the disk lags behind from now on, if it
 * does; listeners get what is announced.
 */
void machine_execute(struct machine *machine, const struct simcall *call,
                     int64_t now_us, int64_t lag_us,
                     struct simlisteners listeners, struct simreply *answer);

/*
 * Ends its life, and begins another with what is on disk; life must be unique.
 */
void machine_kill(struct machine *machine, int64_t now_us);
void machine_start(struct machine *machine, enum persistence persistence,
                   uint64_t life);

void machine_flush(struct machine *machine, int64_t now_us);

/* Evicts some locks, one bit each. */
void machine_evict(struct machine *machine, unsigned resources, int64_t now_us);

/* A copy of its data. */
struct simcopy machine_copy(const struct machine *machine, int64_t now_us);

/*
 * Its replication ID changes, and nothing else: its first replica is attached,
 * or it frees its backlog; replid must be unique. Or its statistics are reset.
 * Not both happen within a moment after it was a replica: it would probe as if
 * it had been none.
 */
void machine_attach(struct machine *machine, uint64_t replid, int64_t now_us);
void machine_reset(struct machine *machine, int64_t now_us);

/*
 * Makes it a replica for a moment, so that it gets another memory; replid must
 * be unique.
 */
void machine_replace(struct machine *machine, const struct simcopy *copy,
                     uint64_t replid, int64_t now_us);

#endif
