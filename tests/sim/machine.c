#include "machine.h"

#include <stdio.h>

enum { FLUSHED_EVERY_US = 1000000 };

void machine_init(struct machine *machine, enum persistence usual,
                  int64_t now_us, int64_t clock_us)
{
    *machine = (struct machine){
        .state = MACHINE_DOWN,
        .usual = usual,
        .condition = VOTE_DONE,
        .set_us = now_us,
        .clock_us = clock_us,
    };
}

/* ---- the clock ---------------------------------------------------------- */

int64_t machine_clock(const struct machine *machine, int64_t now_us)
{
    int64_t since_us = now_us - machine->set_us;
    return machine->clock_us + since_us + since_us * machine->ppm / 1000000;
}

void machine_drift(struct machine *machine, int64_t now_us, int64_t ppm)
{
    machine->clock_us = machine_clock(machine, now_us);
    machine->set_us = now_us;
    machine->ppm = ppm;
}

void machine_step(struct machine *machine, int64_t now_us, int64_t step_us)
{
    machine_drift(machine, now_us, machine->ppm);
    machine->clock_us += step_us;
    simnode_expire(&machine->memory, machine->clock_us);
}

/* ---- the memory --------------------------------------------------------- */

/* The disk lags behind the memory: it gets what was there before a write. */
static void sync_disk(struct machine *machine, int64_t now_us, int64_t lag_us)
{
    if (machine->persistence != PERSISTS_EVERY_SECOND ||
        now_us < machine->disk_due_us)
        return;
    machine->disk = machine->memory;
    machine->disk_due_us = now_us + lag_us;
}

static bool has_changed_state(enum script_kind kind,
                              const struct script_reply *reply)
{
    if (kind == SCRIPT_LOOK)
        return reply->look.word == LOOK_FRESH ||
               reply->look.word == LOOK_CREATED;
    return kind <= SCRIPT_REVOKE && reply->vote == VOTE_DONE;
}

enum vote machine_unfitness(const struct machine *machine)
{
    switch (machine->condition) {
    case VOTE_CLUSTER:
    case VOTE_EVICTS:
    case VOTE_TOO_OLD:
        return machine->condition;
    default:
        return VOTE_DONE;
    }
}

void machine_execute(struct machine *machine, const struct simcall *call,
                     int64_t now_us, int64_t lag_us, struct simreply *answer)
{
    if (machine->condition != VOTE_DONE &&
        machine_unfitness(machine) == VOTE_DONE) {
        answer->reply = (struct script_reply){.vote = machine->condition};
        return;
    }
    sync_disk(machine, now_us, lag_us);
    simnode_execute(&machine->memory, call, machine_clock(machine, now_us),
                    answer);
    machine->written_us = now_us;
    if (has_changed_state(call->call.kind, &answer->reply))
        machine->state_us = now_us;
}

void machine_kill(struct machine *machine, int64_t now_us)
{
    machine->state = MACHINE_DOWN;
    machine->condition = VOTE_DONE;
    if (machine->persistence == PERSISTS_ALWAYS ||
        (machine->persistence == PERSISTS_EVERY_SECOND &&
         now_us - machine->written_us > FLUSHED_EVERY_US))
        machine->disk = machine->memory;
}

void machine_start(struct machine *machine, enum persistence persistence,
                   uint64_t life)
{
    machine->state = MACHINE_UP;
    machine->persistence = persistence;
    machine->life = life;
    snprintf(machine->run_id, sizeof machine->run_id, "%llu",
             (unsigned long long)life);
    if (persistence == PERSISTS_NOTHING)
        machine->memory = (struct simmemory){0};
    else
        machine->memory = machine->disk;
}

void machine_flush(struct machine *machine, int64_t now_us)
{
    machine->memory = (struct simmemory){0};
    if (machine->persistence != PERSISTS_NOTHING)
        machine->disk = machine->memory;
    machine->written_us = now_us;
}

void machine_back_up(struct machine *machine, int64_t now_us)
{
    machine->backup = machine->memory;
    machine->backup_us = now_us;
}

void machine_restore(struct machine *machine)
{
    machine->disk = machine->backup;
}

void machine_roll_back(struct machine *machine, int64_t now_us)
{
    machine->memory = machine->backup;
    machine->written_us = now_us;
    simnode_expire(&machine->memory, machine_clock(machine, now_us));
}
