/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <stdio.h>
#include <string.h>

enum {
    FLUSHED_EVERY_US = 1000000,
    TRACE_MORE_US = SIM_TRACE_US + 1000000, /* whatever clocks do */
};

void machine_init(struct machine *machine, enum persistence usual,
                  int64_t now_us, int64_t clock_us)
{
    *machine = (struct machine){
        .state = MACHINE_DOWN,
        .usual = usual,
        .condition = STATE_NONE,
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
    if (step_us < 0)
        machine->fell_us -= step_us;
    simnode_expire(&machine->memory, machine->clock_us);
}

/* ---- the data --------------------------------------------------------- */

struct simcopy machine_copy(const struct machine *machine, int64_t now_us)
{
    return (struct simcopy){
        .at_us = machine->complete_us != 0 ? machine->complete_us : now_us,
        .memory = machine->memory,
    };
}

/* The disk lags behind the data: it gets the state before a write. */
static void sync_disk(struct machine *machine, int64_t now_us, int64_t lag_us)
{
    if (machine->persistence != PERSISTS_EVERY_SECOND ||
        now_us < machine->disk_due_us)
        return;
    machine->disk = machine_copy(machine, now_us);
    machine->disk_due_us = now_us + lag_us;
}

static bool has_changed_state(enum call_kind kind,
                              const struct call_reply *reply)
{
    if (kind == CALL_PROBE)
        return reply->probe.word == PROBE_FRESH ||
               reply->probe.word == PROBE_CREATED;
    return kind <= CALL_REVOKE && reply->vote == VOTE_DONE;
}

enum node_state machine_unfitness(const struct machine *machine)
{
    switch (machine->condition) {
    case STATE_CLUSTER:
    case STATE_EVICTS:
    case STATE_TOO_OLD:
        return machine->condition;
    default:
        return STATE_NONE;
    }
}

bool machine_is_admitted(const struct machine *machine)
{
    const char *replid = strrchr(machine->memory.admit, ':');
    return machine->state == MACHINE_UP && replid != NULL &&
           strcmp(replid + 1, machine->process.replid) == 0;
}

void machine_note(struct machine *machine, int64_t now_us)
{
    int64_t clock_us = machine_clock(machine, now_us);
    int64_t passed_us = now_us - machine->noted_us;
    machine->noted_us = now_us;
    for (int i = 0; i < SIM_RESOURCES; i++) {
        const struct simkey *key = &machine->memory.keys[i];
        if (!key->is_set)
            continue;
        int64_t over_us = 0;
        if (key->expires_ms != SIM_ENDLESS)
            over_us = at_least(clock_us - key->expires_ms * 1000, 0);
        int64_t us = at_least(passed_us - over_us, 0);
        *(key->is_shared ? &machine->shared_us[i]
                         : &machine->exclusive_us[i]) += us;
    }
}

void machine_execute(struct machine *machine, const struct simcall *call,
                     int64_t now_us, int64_t lag_us,
                     struct simlisteners listeners, struct simreply *answer)
{
    if (machine->condition != STATE_NONE &&
        machine_unfitness(machine) == STATE_NONE) {
        answer->reply = (struct call_reply){.vote = VOTE_UNFIT,
                                            .state = machine->condition};
        if (machine->condition == STATE_GARBAGE)
            answer->reply = (struct call_reply){.vote = VOTE_UNREADABLE};
        return;
    }
    machine_note(machine, now_us);
    sync_disk(machine, now_us, lag_us);
    struct simbatch batch = {
        .memory = &machine->memory,
        .process = &machine->process,
        .clock_us = machine_clock(machine, now_us),
        .listeners = listeners,
    };
    simnode_execute(&batch, call, answer);
    machine->written_us = now_us;
    if (has_changed_state(call->call.kind, &answer->reply))
        machine->state_us = now_us;
    enum call_kind kind = call->call.kind;
    enum vote vote = answer->reply.vote;
    if (((kind == CALL_ACQUIRE || kind == CALL_REPEAT) &&
         vote == VOTE_GRANTED) ||
        vote == VOTE_EXTENDED)
        machine->promised_us = now_us; /* a replication does not count yet */
    bool is_admitted =
        vote == VOTE_DONE && (kind == CALL_ADMIT || kind == CALL_READMIT);
    if (is_admitted || machine->memory.admit[0] == '\0')
        machine->complete_us = 0; /* what it may lack no longer matters */
}

void machine_kill(struct machine *machine, int64_t now_us)
{
    machine->state = MACHINE_DOWN;
    machine->condition = STATE_NONE;
    if (machine->persistence == PERSISTS_ALWAYS ||
        (machine->persistence == PERSISTS_EVERY_SECOND &&
         now_us - machine->written_us > FLUSHED_EVERY_US))
        machine->disk = machine_copy(machine, now_us);
    machine->is_unseen = true;
}

static void take_memory(struct machine *machine, const struct simcopy *copy)
{
    machine->memory = copy->memory;
    machine->complete_us = machine->promised_us > copy->at_us ? copy->at_us : 0;
}

/* Every other memory has another replication ID. */
static void write_replid(struct machine *machine, uint64_t number)
{
    snprintf(machine->process.replid, sizeof machine->process.replid, "%llx",
             (unsigned long long)number);
}

void machine_start(struct machine *machine, enum persistence persistence,
                   uint64_t life)
{
    const struct simcopy none = {0};
    machine->state = MACHINE_UP;
    machine->persistence = persistence;
    machine->life = life;
    snprintf(machine->run_id, sizeof machine->run_id, "%llu",
             (unsigned long long)life);
    machine->process = (struct simprocess){0};
    machine->promoted_us = machine->reset_us = -TRACE_MORE_US;
    write_replid(machine, life);
    take_memory(machine,
                persistence == PERSISTS_NOTHING ? &none : &machine->disk);
}

void machine_flush(struct machine *machine, int64_t now_us)
{
    machine->memory = (struct simmemory){0};
    machine->complete_us = 0;
    if (machine->persistence != PERSISTS_NOTHING)
        machine->disk = machine_copy(machine, now_us);
    machine->written_us = now_us;
}

void machine_evict(struct machine *machine, unsigned resources, int64_t now_us)
{
    for (int i = 0; i < SIM_RESOURCES; i++) {
        struct simkey *key = &machine->memory.keys[i];
        if (!(resources & 1u << i) || !key->is_set)
            continue;
        key->is_set = false;
        machine->process.evicted++;
        machine->evicted_us[i] = now_us;
        memset(machine->memory.tombstones, 0,
               sizeof machine->memory.tombstones);
    }
    machine->is_unseen = false;
    machine->written_us = now_us;
}

static bool was_replica_lately(const struct machine *machine, int64_t now_us)
{
    return now_us - machine->promoted_us < TRACE_MORE_US;
}

void machine_attach(struct machine *machine, uint64_t replid, int64_t now_us)
{
    if (machine->process.was_replica && was_replica_lately(machine, now_us) &&
        machine->reset_us >= machine->promoted_us)
        return;
    write_replid(machine, replid);
    machine->process.was_replica = false;
}

void machine_reset(struct machine *machine, int64_t now_us)
{
    if (!machine->process.was_replica && was_replica_lately(machine, now_us))
        return;
    machine->process.read = 0;
    machine->reset_us = now_us;
}

void machine_replace(struct machine *machine, const struct simcopy *copy,
                     uint64_t replid, int64_t now_us)
{
    enum { READ = 1000 };
    write_replid(machine, replid);
    machine->process.was_replica = true;
    machine->process.read += READ;
    machine->promoted_us = now_us;
    take_memory(machine, copy);
    machine->written_us = now_us;
    simnode_expire(&machine->memory, machine_clock(machine, now_us));
}
