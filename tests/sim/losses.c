/* SPDX-License-Identifier: MIT */
#include "losses.h"

#include <stdlib.h>

#include "../lib/node/simstate.h"
#include "clients.h"
#include "copies.h"
#include "messages.h"
#include "names.h"
#include "plan.h"
#include "steps.h"

enum {
    WATCHED_US = 3000000,
    OBJECTS_US = 6000000, /* a server that watches notices a first start */
    LAG_US = 1000000,
    SHORT_LAG_US = 50000,
};

int losses_name_of(int machine)
{
    return machine % SIM_NAMES;
}

bool losses_is_home(const struct world *world, int machine)
{
    return world->home[losses_name_of(machine)] == machine;
}

int losses_any_name(struct world *world)
{
    const struct simconfig *config = faults_config(world);
    return config->name[world_random(world, config->nodes)];
}

int losses_any_machine(struct world *world)
{
    return world->home[losses_any_name(world)];
}

/* ---- what is allowed ---------------------------------------------------- */

/* Where there are quiet spells, one that votes again may be lost again. */
static bool is_lost_of_late(const struct world *world, int name)
{
    if (plan_is_on(world, FAULT_QUIET) &&
        machine_is_admitted(&world->machines[world->home[name]]))
        return false;
    return world->lost_us[name] != 0 &&
           world->now_us - world->lost_us[name] < faults_quarantine_us(world);
}

static int lost_of_late(const struct world *world)
{
    int lost = 0;
    for (int i = 0; i < SIM_NAMES; i++)
        lost += is_lost_of_late(world, i);
    return lost;
}

/* Whether a first start needs no word of the operator. */
static bool is_durable_world(const struct world *world)
{
    bool is_durable = false;
    int last = (int)world->faults->configuration;
    for (int i = CONFIGURATION_FIRST; i <= last; i++) {
        const struct simconfig *config =
            servers_config(world, (enum configuration)i);
        int durable = 0;
        for (int j = 0; j < config->nodes; j++)
            durable +=
                world->machines[config->name[j]].usual == PERSISTS_ALWAYS;
        is_durable |= durable == config->nodes;
    }
    return is_durable;
}

bool losses_may_lose(struct world *world, int machine)
{
    const struct simconfig *config = faults_config(world);
    int lost = lost_of_late(world);
    if (!names_lead_home(world, losses_name_of(machine)))
        return false;
    if (lost > 0 && world_chance(world, lost == 1 ? 40 : 93))
        return false;
    for (int i = 0; i < config->nodes; i++) {
        int other = faults_home(world, i);
        if (other != machine && world->machines[other].state == MACHINE_UP &&
            simstate_is_there(&world->machines[other].memory))
            return true;
    }
    return false;
}

void losses_note(struct world *world, int machine)
{
    world->lost_us[losses_name_of(machine)] = world->now_us;
}

/* ---- lives -------------------------------------------------------------- */

void losses_kill(struct world *world, int machine)
{
    world_trace(world, "machine %d dies", machine);
    machine_kill(&world->machines[machine], world->now_us);
    if (world->machines[machine].persistence != PERSISTS_ALWAYS)
        losses_note(world, machine);
    messages_clear_backlog(world, machine);
    simlinks_cut(world, machine, world_chance(world, 60));
}

void losses_start(struct world *world, int machine,
                  enum persistence persistence)
{
    struct machine *it = &world->machines[machine];
    if (it->state != MACHINE_DOWN || !losses_is_home(world, machine))
        return;
    if (persistence != PERSISTS_NOTHING &&
        !copies_may_have(world, machine, &it->disk, persistence)) {
        losses_start_later(world, machine, persistence);
        return;
    }
    machine_start(it, persistence, ++world->lives);
    world_trace(world,
                "machine %d lives as %s, persistence %d, generation %lld",
                machine, it->run_id, (int)persistence,
                (long long)it->memory.generation.it);
}

void losses_start_later(struct world *world, int machine,
                        enum persistence persistence)
{
    int64_t most_us = world_chance(world, 70) ? 500000 : 5000000;
    world_at(world, 5000 + world_random(world, most_us),
             (struct event){.kind = EVENT_START_MACHINE,
                            .a = machine,
                            .b = (int)persistence});
}

int losses_spare_machine(const struct world *world, int machine)
{
    int name = losses_name_of(machine);
    int to = (machine + SIM_NAMES) % SIM_MACHINES;
    bool is_free = world->machines[to].state == MACHINE_DOWN &&
                   names_lead_home(world, name) &&
                   losses_is_home(world, machine);
    return is_free ? to : -1;
}

void losses_make_spare(struct world *world, int machine)
{
    int from = (machine + SIM_NAMES) % SIM_MACHINES;
    steps_init_clock(world, machine, world->machines[from].usual,
                     steps_honest_offset_us(world));
}

void losses_move(struct world *world, int from, int to)
{
    int name = losses_name_of(from);
    losses_make_spare(world, to);
    world->home[name] = to;
    names_lead_all(world, name, to);
}

void losses_init(struct world *world)
{
    bool all_durable = world_chance(world, 40);
    bool far_clocks = world_chance(world, 40);
    world->faults->honest_us = world_chance(world, 50) ? 1500 : 20000;
    world->faults->goes_far = world_chance(world, 30);
    for (int i = 0; i < SIM_NAMES; i++) {
        enum persistence usual = all_durable
                                     ? PERSISTS_ALWAYS
                                     : (enum persistence)world_random(world, 3);
        int64_t most_us = far_clocks && world_chance(world, 50)
                              ? 480000
                              : world->faults->honest_us;
        steps_init_clock(world, i, usual,
                         world_random(world, 2 * most_us) - most_us);
        steps_init_clock(world, i + SIM_NAMES, usual, 0);
        world->home[i] = i;
        names_lead_all(world, i, i);
        losses_start(world, i, usual);
    }
}

void losses_write_late(struct world *world)
{
    bool is_everywhere = world_chance(world, 60);
    for (int i = 0; i < SIM_NAMES; i++)
        if (is_everywhere || world_chance(world, 50)) {
            world->machines[i].usual = PERSISTS_EVERY_SECOND;
            world->machines[i + SIM_NAMES].usual = PERSISTS_EVERY_SECOND;
            world->machines[i].persistence = PERSISTS_EVERY_SECOND;
        }
}

int64_t losses_lag_us(const struct world *world, int machine)
{
    bool has_cuts =
        plan_is_on(world, FAULT_CUT) || plan_is_on(world, FAULT_QUIET);
    return has_cuts && world->machines[machine].life % 3 != 0 ? SHORT_LAG_US
                                                              : LAG_US;
}

static void free_memory(struct machine *machine, int64_t now_us)
{
    machine->process.is_full = false;
    machine->healed_us = now_us;
}

void losses_heal(struct world *world, int machine)
{
    free_memory(&world->machines[machine], world->now_us);
    if (losses_is_home(world, machine))
        losses_start(world, machine, world->machines[machine].usual);
    else
        losses_kill(world, machine);
}

/* ---- losses ------------------------------------------------------------- */

static void flush(struct world *world, int machine)
{
    if (world->machines[machine].state != MACHINE_UP ||
        !losses_may_lose(world, machine))
        return;
    world_trace(world, "machine %d is flushed", machine);
    machine_flush(&world->machines[machine], world->now_us);
    losses_note(world, machine);
}

static void restart(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    bool forgets = it->persistence != PERSISTS_ALWAYS;
    if (it->state == MACHINE_DOWN ||
        (forgets && !losses_may_lose(world, machine)))
        return;
    losses_kill(world, machine);
    losses_start_later(world, machine, it->usual);
}

/* Some are empty afterwards. */
static void cut(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    bool keeps = world_chance(world, 85);
    int64_t most_us = world_chance(world, 80) ? 100000 : 2000000;
    if (it->state == MACHINE_DOWN || it->persistence == PERSISTS_ALWAYS ||
        !losses_may_lose(world, machine))
        return;
    losses_kill(world, machine);
    world_at(world, 5000 + world_random(world, most_us),
             (struct event){.kind = EVENT_START_MACHINE,
                            .a = machine,
                            .b = keeps ? (int)it->usual : PERSISTS_NOTHING});
}

static void interlude(struct world *world, int machine)
{
    if (world->machines[machine].state == MACHINE_DOWN ||
        !losses_may_lose(world, machine))
        return;
    losses_kill(world, machine);
    losses_note(world, machine);
    losses_start_later(world, machine, PERSISTS_NOTHING);
    faults_end_later(world, 500000 + world_random(world, 20000000),
                     FAULT_INTERLUDE, machine);
}

/* Evicts locks that nobody has released. */
static void evict(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (it->evicted_us[i] != 0)
            return;
    if (it->state != MACHINE_UP || !losses_may_lose(world, machine))
        return;
    world_trace(world, "machine %d evicts locks", machine);
    simnode_expire(&it->memory, machine_clock(it, world->now_us));
    machine_evict(it,
                  (unsigned)world_random(world, 1 << world_resources(world)),
                  world->now_us);
    losses_note(world, machine);
}

/* Another program fills it, or all at once. */
static void fill(struct world *world, int machine)
{
    bool are_all = world_chance(world, 40);
    int64_t us = 100000 + world_random(world, 6000000);
    world_trace(world, "machine %d is full%s", machine,
                are_all ? ", and all others" : "");
    for (int i = 0; i < SIM_MACHINES; i++) {
        if (!are_all && i != machine)
            continue;
        world->machines[i].process.is_full = true;
        faults_end_later(world, us, FAULT_FULL, i);
    }
}

/* ---- all at once -------------------------------------------------------- */

/* A server that reaches every machine as it is, and has seen it vote. */
static int find_watcher(struct world *world)
{
    for (int i = 0; i < SIM_FOREIGN; i++) {
        const struct simserver *server = &world->servers[i];
        int near = 0;
        for (int j = 0; j < server_nodes(world, i); j++)
            near += simlink_is_good(world, i, j, WATCHED_US);
        if (server->engine != NULL && near == server_nodes(world, i) &&
            server->voted_us != 0 &&
            world->now_us - server->voted_us > WATCHED_US)
            return i;
    }
    return -1;
}

/* Whether N empty nodes would probe unused. */
static bool probes_new(const struct world *world)
{
    for (int i = 0; i < SIM_FOREIGN; i++)
        if (world->servers[i].engine != NULL && world->servers[i].is_trusting &&
            world->servers[i].voted_us == 0)
            return true;
    return is_durable_world(world);
}

/* With or without the servers; a first start only if one can object to it. */
static void lose_all(struct world *world)
{
    bool is_everywhere = world_chance(world, 50);
    int watcher = -1;
    if (world->servers[SIM_FOREIGN].engine != NULL)
        return; /* it might win the first start, or not */
    if (probes_new(world)) {
        watcher = find_watcher(world);
        if (watcher < 0)
            return;
        faults_hold(world, OBJECTS_US);
    }
    if (is_everywhere)
        faults_restart_servers(world, watcher, 1000000);
    world_trace(world, "all machines are flushed, server %d sees it", watcher);
    for (int i = 0; i < SIM_NAMES; i++) {
        machine_flush(&world->machines[world->home[i]], world->now_us);
        losses_note(world, world->home[i]);
    }
}

/* Everything is switched off and on again; a file may be an old one. */
static void sleep_all(struct world *world)
{
    bool has_state = false;
    int64_t most_us = world_chance(world, 50) ? 1000000 : 15000000;
    int64_t us = world_random(world, most_us);
    int old = world_chance(world, 50) ? losses_any_machine(world) : -1;
    for (int i = 0; i < SIM_NAMES; i++) {
        const struct machine *it = &world->machines[world->home[i]];
        has_state |= it->usual == PERSISTS_ALWAYS &&
                     it->persistence == PERSISTS_ALWAYS &&
                     it->state != MACHINE_DOWN && world->home[i] != old &&
                     servers_has_name(world, world->faults->configuration, i) &&
                     simstate_is_there(&it->memory);
    }
    if (is_durable_world(world) && !has_state)
        return; /* a first start */
    world_trace(world, "all sleep");
    faults_restart_servers(world, -1, us + 1000000);
    for (int i = 0; i < SIM_NAMES; i++) {
        int machine = world->home[i];
        struct machine *it = &world->machines[machine];
        if (it->state == MACHINE_DOWN)
            continue;
        losses_kill(world, machine);
        if (machine == old && it->backup.at_us != 0) {
            it->disk = it->backup;
            losses_note(world, machine);
        }
        world_at(world, us + world_random(world, 1000000),
                 (struct event){.kind = EVENT_START_MACHINE,
                                .a = machine,
                                .b = (int)it->usual});
    }
}

/* ---- the schedule ------------------------------------------------------- */

void losses_make(struct world *world, enum fault fault, int machine)
{
    switch (fault) {
    case FAULT_RESTART:
        restart(world, machine);
        break;
    case FAULT_FLUSH:
        flush(world, machine);
        break;
    case FAULT_INTERLUDE:
        interlude(world, machine);
        break;
    case FAULT_EVICT:
        evict(world, machine);
        break;
    case FAULT_FULL:
        fill(world, machine);
        break;
    case FAULT_CUT:
        cut(world, machine);
        break;
    case FAULT_LOSE_ALL:
        lose_all(world);
        break;
    case FAULT_SLEEP:
        sleep_all(world);
        break;
    default:
        abort();
    }
}

/* Reads again what was written before. */
static void end_interlude(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    if (it->persistence != PERSISTS_NOTHING ||
        !losses_is_home(world, machine) || it->usual == PERSISTS_NOTHING ||
        it->state == MACHINE_DOWN)
        return;
    losses_kill(world, machine);
    losses_start_later(world, machine, it->usual);
}

void losses_end(struct world *world, enum fault fault, int machine)
{
    if (fault == FAULT_FULL)
        free_memory(&world->machines[machine], world->now_us);
    else if (fault == FAULT_FLUSH && losses_is_home(world, machine))
        flush(world, machine);
    else if (fault == FAULT_CUT)
        cut(world, machine);
    else if (fault == FAULT_INTERLUDE || fault == FAULT_UNDURABLE)
        end_interlude(world, machine);
}
