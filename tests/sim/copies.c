/* SPDX-License-Identifier: MIT */
#include "copies.h"

#include <stdlib.h>

#include "../lib/node/simstate.h"
#include "clients.h"
#include "losses.h"
#include "messages.h"

enum {
    QUORUM = SIM_NODES / 2 + 1,
    TOLD_US = 5000000, /* for a server to write its witnesses and read others */
};

/* ---- who has seen more -------------------------------------------------- */

/* What the next life begins with, if this is not running. */
static const struct simmemory *memory_of(const struct machine *machine)
{
    return machine->state == MACHINE_DOWN ? &machine->disk.memory
                                          : &machine->memory;
}

/* A server may accept this data as that of the node just before. */
static bool is_evidence(const struct simmemory *memory, int name)
{
    return memory->durable == '1' &&
           strstr(memory->admit, servers_name_hash(name)) != NULL;
}

static int64_t promised_us(const struct world *world, int name)
{
    int64_t first_us = world->machines[name].promised_us;
    int64_t second_us = world->machines[name + SIM_NAMES].promised_us;
    return first_us > second_us ? first_us : second_us;
}

static bool is_over(const struct world *world, int name, int64_t complete_us)
{
    int64_t last_us = promised_us(world, name);
    return last_us <= complete_us ||
           world->now_us - last_us > faults_quarantine_us(world);
}

/* The node will soon store what the server reports. */
static bool is_near(struct world *world, int server, int node)
{
    struct engine_node_view view;
    if (!simlink_is_good(world, server, node, 0))
        return false;
    engine_view_node(world->servers[server].engine, node, &view);
    return view.is_voting;
}

/* A name of a configuration, and a memory of it that lacks something. */
struct lack {
    enum configuration configuration;
    int name;
    int64_t generation; /* of the data */
    int except; /* this name's machine reports nothing; -1: all report */
};

/* How many others have stored it, or will soon, through this server. */
static int count_witnesses(struct world *world, const struct lack *lack,
                           int server)
{
    const struct simconfig *config = servers_config(world, lack->configuration);
    const char *hash = servers_name_hash(lack->name);
    int count = 0;
    for (int i = 0; i < config->nodes; i++) {
        int name = config->name[i];
        const struct machine *machine = &world->machines[world->home[name]];
        if (name == lack->name || name == lack->except)
            continue;
        count +=
            simstate_witness(memory_of(machine), hash) > lack->generation ||
            (server >= 0 && is_near(world, server, i));
    }
    return count;
}

static bool has_seen_more(struct world *world, const struct lack *lack,
                          int server)
{
    const struct simserver *it = &world->servers[server];
    int node = simlink_node_of(world, server, lack->name);
    return it->engine != NULL && !it->is_paused &&
           it->configuration == lack->configuration && node >= 0 &&
           simlink_of(world, server, node)->generation > lack->generation;
}

/*
 * Of the others, N - q + 1 are asked: one of them must know of a later
 * generation of the node, or a server that knows is about to report it.
 */
static bool is_known(struct world *world, const struct lack *lack)
{
    if (count_witnesses(world, lack, -1) >= QUORUM - 1)
        return true;
    for (int i = 0; i < SIM_FOREIGN; i++) {
        if (!has_seen_more(world, lack, i) ||
            count_witnesses(world, lack, i) < QUORUM - 1)
            continue;
        faults_hold(world, TOLD_US);
        return true;
    }
    return false;
}

static bool is_known_to_all(struct world *world, int name, int64_t generation,
                            int except)
{
    int last = (int)world->faults->configuration;
    for (int i = CONFIGURATION_FIRST; i <= last; i++) {
        struct lack lack = {.configuration = (enum configuration)i,
                            .name = name,
                            .generation = generation,
                            .except = except};
        if (servers_has_name(world, lack.configuration, name) &&
            !is_known(world, &lack))
            return false;
    }
    return true;
}

bool copies_may_have(struct world *world, int machine,
                     const struct simcopy *copy, enum persistence persistence)
{
    int name = losses_name_of(machine);
    if (persistence == PERSISTS_ALWAYS && is_evidence(&copy->memory, name) &&
        !is_over(world, name, copy->at_us) &&
        !is_known_to_all(world, name, copy->memory.generation.it, -1))
        return false;
    if (copy->at_us >= world->machines[machine].written_us)
        return true;
    /* others may be judged by what it has lost of them */
    for (int i = 0; i < SIM_NAMES; i++) {
        const struct machine *other = &world->machines[world->home[i]];
        const struct simmemory *memory = memory_of(other);
        int64_t complete_us = other->state == MACHINE_DOWN ? other->disk.at_us
                                                           : other->complete_us;
        if (i != name && complete_us != 0 && is_evidence(memory, i) &&
            !is_over(world, i, complete_us) &&
            !is_known_to_all(world, i, memory->generation.it, name))
            return false;
    }
    return true;
}

/* ---- copies ------------------------------------------------------------- */

static bool has_evicted(const struct machine *machine)
{
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (machine->evicted_us[i] != 0)
            return true;
    return false;
}

/* From a moment to a long time. */
static int64_t age_us(struct world *world, enum fault fault)
{
    static const int64_t most_us[] = {1000000, 5000000, 20000000};
    if (fault == FAULT_PROMOTE)
        return 5000 + world_random(world, 500000);
    return 10000 + world_random(world, most_us[world_random(world, 3)]);
}

/* A copy is made now and put back later. */
static void keep_copy(struct world *world, enum fault fault, int machine)
{
    struct machine *it = &world->machines[machine];
    if (it->state != MACHINE_UP || it->persistence != it->usual ||
        it->complete_us != 0 || it->backup.at_us != 0 || has_evicted(it))
        return;
    it->backup = machine_copy(it, world->now_us);
    world_trace(world, "machine %d is copied, generation %lld", machine,
                (long long)it->memory.generation.it);
    faults_end_later(world, age_us(world, fault), fault, machine);
}

/* Its file no longer changes, whatever it answers from now on. */
static void stop_writing(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    if (it->state != MACHINE_UP || it->persistence != PERSISTS_ALWAYS ||
        it->complete_us != 0 || !losses_may_lose(world, machine))
        return;
    world_trace(world, "machine %d writes no file", machine);
    it->disk = machine_copy(it, world->now_us);
    it->persistence = PERSISTS_NOTHING;
    faults_end_later(world, age_us(world, FAULT_UNDURABLE), FAULT_UNDURABLE,
                     machine);
}

/* Now or in its next life it has the data of another node. */
static void replace(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    int other = losses_any_machine(world);
    if (other == machine || it->state != MACHINE_UP ||
        world->machines[other].state != MACHINE_UP ||
        !losses_may_lose(world, machine))
        return;
    struct simcopy copy = machine_copy(&world->machines[other], world->now_us);
    world_trace(world, "machine %d gets the data of %d", machine, other);
    losses_note(world, machine);
    if (world_chance(world, 50)) {
        machine_replace(it, &copy, ++world->lives, world->now_us);
        it->complete_us = 0; /* none of it is its own */
    } else {
        losses_kill(world, machine);
        it->disk = copy;
        losses_start_later(world, machine, it->usual);
    }
}

static void attach(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    if (it->state == MACHINE_UP && world_chance(world, 70))
        machine_attach(it, ++world->lives, world->now_us);
    else if (it->state == MACHINE_UP)
        machine_reset(it, world->now_us);
}

static void attach_some(struct world *world, int machine)
{
    bool is_everywhere = world_chance(world, 40);
    world_trace(world, "machine %d %s gets a replica", machine,
                is_everywhere ? "and each other" : "alone");
    for (int i = 0; i < SIM_NAMES; i++)
        if (is_everywhere || world->home[i] == machine)
            attach(world, world->home[i]);
}

void copies_attach_all(struct world *world)
{
    for (int i = 0; i < SIM_NAMES; i++)
        machine_attach(&world->machines[world->home[i]], ++world->lives,
                       world->now_us);
}

void copies_make(struct world *world, enum fault fault, int machine)
{
    if (fault == FAULT_ATTACH)
        attach_some(world, machine);
    else if (fault == FAULT_REPLACE)
        replace(world, machine);
    else if (fault == FAULT_UNDURABLE)
        stop_writing(world, machine);
    else
        keep_copy(world, fault, machine);
}

/* ---- and back ----------------------------------------------------------- */

static void roll_back(struct world *world, int machine,
                      const struct simcopy *copy)
{
    struct machine *it = &world->machines[machine];
    if (!copies_may_have(world, machine, copy, it->persistence))
        return;
    world_trace(world, "machine %d is rolled back to generation %lld", machine,
                (long long)copy->memory.generation.it);
    machine_replace(it, copy, ++world->lives, world->now_us);
    losses_note(world, machine);
    if (world_chance(world, 50))
        return;
    it->condition = STATE_READ_ONLY; /* it stays a replica for a while */
    world_at(world, 1000 + world_random(world, 1000000),
             (struct event){.kind = EVENT_HEAL_MACHINE, .a = machine});
}

static void restore(struct world *world, int machine,
                    const struct simcopy *copy)
{
    struct machine *it = &world->machines[machine];
    world_trace(world, "machine %d is restored to generation %lld", machine,
                (long long)copy->memory.generation.it);
    losses_kill(world, machine);
    losses_note(world, machine);
    it->disk = *copy;
    losses_start_later(world, machine, it->usual);
}

/* A replica, slightly behind, takes the name and goes on. */
static void promote(struct world *world, int machine,
                    const struct simcopy *copy)
{
    int to = losses_spare_machine(world, machine);
    if (to < 0)
        return;
    world_trace(world, "machine %d takes over from %d, generation %lld", to,
                machine, (long long)copy->memory.generation.it);
    losses_kill(world, machine);
    losses_note(world, machine);
    losses_move(world, machine, to);
    world->machines[to].disk = *copy;
    world->machines[to].promised_us = world->machines[machine].promised_us;
    world->machines[to].written_us = world->now_us;
    losses_start_later(world, to, world->machines[to].usual);
}

void copies_end(struct world *world, enum fault fault, int machine)
{
    struct machine *it = &world->machines[machine];
    struct simcopy copy = it->backup;
    it->backup.at_us = 0;
    if (it->state != MACHINE_UP || !losses_is_home(world, machine) ||
        !losses_may_lose(world, machine))
        return;
    if (fault == FAULT_ROLLBACK)
        roll_back(world, machine, &copy);
    else if (fault == FAULT_RESTORE)
        restore(world, machine, &copy);
    else if (fault == FAULT_PROMOTE)
        promote(world, machine, &copy);
    else
        abort();
}
