/*
 * A machine with one Redis server on it: its clock, its memory, and what of it
 * lies on the disk. It lives again and again, each time under another run_id.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "../lib/node/simnode.h"

enum { SIM_RUN_ID_LEN = 16 };

/* What a kill leaves on the disk. */
enum persistence {
    PERSISTS_NOTHING,
    PERSISTS_EVERY_SECOND, /* what was there up to a second ago */
    PERSISTS_ALWAYS,       /* all; such a node is durable */
};

/* A memory that is kept somewhere. */
struct simcopy {
    int64_t at_us; /* has all that was promised until then; 0: is none */
    struct simmemory memory;
};

enum machine_state { MACHINE_UP, MACHINE_PAUSED, MACHINE_DOWN };

struct machine {
    enum machine_state state;
    enum persistence usual;       /* as its configuration file says */
    enum persistence persistence; /* in this life */
    char run_id[SIM_RUN_ID_LEN];
    uint64_t life;
    struct simprocess process;
    enum node_state
        condition; /* what is wrong with it; STATE_VOTING: nothing */
    /* the clock showed clock_us when it was set_us; parts per million fast */
    int64_t set_us;
    int64_t clock_us;
    int64_t ppm;
    struct simmemory memory;
    struct simcopy disk;   /* what the next life begins with */
    struct simcopy backup; /* of this or an earlier life */
    int64_t disk_due_us;   /* the disk stays as it is until then */
    int64_t written_us;    /* the memory was changed */
    int64_t state_us;      /* its permission or its mark was changed */
    int64_t promised_us;   /* its last promise */
    int64_t complete_us;   /* may lack what was promised since; 0: lacks none */
    int64_t evicted_us[SIM_RESOURCES]; /* and no look has seen it; 0: not */
    bool is_unseen; /* nor will: another life has begun since */
};

/* An empty one, not yet started. */
void machine_init(struct machine *machine, enum persistence usual,
                  int64_t now_us, int64_t clock_us);

int64_t machine_clock(const struct machine *machine, int64_t now_us);

/* Its clock runs at another speed from now on, or shows another time. */
void machine_drift(struct machine *machine, int64_t now_us, int64_t ppm);
void machine_step(struct machine *machine, int64_t now_us, int64_t step_us);

/*
 * Why a handshake refuses it though it executes calls; STATE_VOTING: it does
 * not. All other conditions are errors instead of all replies.
 */
enum node_state machine_unfitness(const struct machine *machine);

/* Executes the call; lag_us: how old the disk becomes from now on, if it does.
 */
void machine_execute(struct machine *machine, const struct simcall *call,
                     int64_t now_us, int64_t lag_us, struct simreply *answer);

/*
 * Ends its life, and begins another one with what is on the disk; life: as no
 * other has it.
 */
void machine_kill(struct machine *machine, int64_t now_us);
void machine_start(struct machine *machine, enum persistence persistence,
                   uint64_t life);

void machine_flush(struct machine *machine, int64_t now_us);

/* Some locks, a bit each, go for lack of memory. */
void machine_evict(struct machine *machine, unsigned resources, int64_t now_us);

/* A copy of its memory. */
struct simcopy machine_copy(const struct machine *machine, int64_t now_us);

/*
 * It becomes a replica for a moment, and so gets another memory; replid: as no
 * other has it.
 */
void machine_replace(struct machine *machine, const struct simcopy *copy,
                     uint64_t replid, int64_t now_us);

#endif
