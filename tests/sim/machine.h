/*
 * A machine with one Redis server on it: its clock, its memory, and what of it
 * lies on the disk. It lives again and again, each time under another run_id.
 */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "simnode.h"

enum { SIM_RUN_ID_LEN = 16 };

/* What a kill leaves on the disk. */
enum persistence {
    PERSISTS_NOTHING,
    PERSISTS_EVERY_SECOND, /* what was there up to a second ago */
    PERSISTS_ALWAYS,       /* all; such a node is durable */
};

enum machine_state { MACHINE_UP, MACHINE_PAUSED, MACHINE_DOWN };

struct machine {
    enum machine_state state;
    enum persistence usual;       /* as its configuration file says */
    enum persistence persistence; /* in this life */
    char run_id[SIM_RUN_ID_LEN];
    uint64_t life;
    enum vote condition; /* what is wrong with it; VOTE_DONE: nothing */
    /* the clock showed clock_us when it was set_us; parts per million fast */
    int64_t set_us;
    int64_t clock_us;
    int64_t ppm;
    struct simmemory memory;
    struct simmemory disk;   /* what the next life begins with */
    struct simmemory backup; /* older, of this or an earlier life */
    int64_t disk_due_us;     /* the disk stays as it is until then */
    int64_t written_us;      /* the memory was changed */
    int64_t backup_us;       /* 0: there is none */
    int64_t state_us;        /* its permission or its mark was changed */
};

/* An empty one, not yet started. */
void machine_init(struct machine *machine, enum persistence usual,
                  int64_t now_us, int64_t clock_us);

int64_t machine_clock(const struct machine *machine, int64_t now_us);

/* Its clock runs at another speed from now on, or shows another time. */
void machine_drift(struct machine *machine, int64_t now_us, int64_t ppm);
void machine_step(struct machine *machine, int64_t now_us, int64_t step_us);

/*
 * Why a handshake refuses it though it executes calls; VOTE_DONE: it does not.
 * All other conditions are errors instead of all replies.
 */
enum vote machine_unfitness(const struct machine *machine);

/* Executes the call; lag_us: how old the disk becomes from now on, if it does.
 */
void machine_execute(struct machine *machine, const struct simcall *call,
                     int64_t now_us, int64_t lag_us, struct simreply *answer);

/* Ends its life, and begins another one with what is on the disk. */
void machine_kill(struct machine *machine, int64_t now_us);
void machine_start(struct machine *machine, enum persistence persistence,
                   uint64_t life);

void machine_flush(struct machine *machine, int64_t now_us);

/* Keeps a copy; puts it in the place of the disk, or of the memory. */
void machine_back_up(struct machine *machine, int64_t now_us);
void machine_restore(struct machine *machine);
void machine_roll_back(struct machine *machine, int64_t now_us);

#endif
