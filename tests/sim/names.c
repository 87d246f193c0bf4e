/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <stdlib.h>

#include "losses.h"

enum {
    JUDGED_US = 6000000,
    ASTRAY_US = 8000000, /* too short to take a name from a machine in use */
    ROLL_US = 3000000,   /* mostly, from one server to the next */
    WRONG_MOST = 3,      /* addresses of a server */
};

void names_lead_all(struct world *world, int name, int machine)
{
    for (int i = 0; i < SIM_SERVERS; i++)
        world->leads[i][name] = machine;
}

bool names_lead_home(const struct world *world, int name)
{
    for (int i = 0; i < SIM_SERVERS; i++)
        if (world->leads[i][name] != world->home[name])
            return false;
    return true;
}

bool names_are_right(const struct world *world, int server)
{
    for (int i = 0; i < SIM_NAMES; i++)
        if (world->leads[server][i] != world->home[i])
            return false;
    return true;
}

void names_heal(struct world *world)
{
    for (int i = 0; i < SIM_NAMES; i++)
        names_lead_all(world, i, world->home[i]);
}

static void end_later(struct world *world, enum fault fault, int of,
                      int64_t most_us)
{
    faults_end_later(world, 500000 + world_random(world, most_us), fault, of);
}

/* A new machine; the old one lives on for servers that are connected to it. */
static void move(struct world *world, int name)
{
    int from = world->home[name];
    int to = losses_spare_machine(world, from);
    if (to < 0 || world->machines[from].state == MACHINE_DOWN ||
        !losses_may_lose(world, from))
        return;
    world_trace(world, "name %d moves to machine %d", name, to);
    losses_move(world, from, to);
    losses_start(world, to, world->machines[to].usual);
    losses_note(world, to);
    end_later(world, FAULT_MOVE, from, 22000000);
}

/* Leads to another node's machine, for one server or for all. */
static void lead_astray(struct world *world, int name)
{
    int other = losses_any_name(world);
    int server = world_any_server(world);
    if (other == name || !names_lead_home(world, name))
        return;
    world_trace(world, "name %d leads to that of %d", name, other);
    if (world_chance(world, 50))
        names_lead_all(world, name, world->home[other]);
    else
        world->leads[server][name] = world->home[other];
    end_later(world, FAULT_TWIN, name, 5000000);
}

/*
 * Leads some servers to a new machine, the others to the old one. The new one
 * is empty, or a replica that was in sync until now.
 */
static void split(struct world *world, int name)
{
    int from = world->home[name];
    int to = losses_spare_machine(world, from);
    int stays = world_any_server(world);
    int goes =
        (stays + 1 + (int)world_random(world, SIM_FOREIGN - 1)) % SIM_FOREIGN;
    if (to < 0 || world->faults->configuration != CONFIGURATION_FIRST ||
        !machine_is_admitted(&world->machines[from]) ||
        !losses_may_lose(world, from))
        return;
    for (int i = 0; i < SIM_FOREIGN; i++)
        if (i == goes || (i != stays && world_chance(world, 50)))
            world->leads[i][name] = to;
    losses_make_spare(world, to);
    struct machine *it = &world->machines[to];
    if (world_chance(world, 50))
        it->disk = machine_copy(&world->machines[from], world->now_us);
    it->promised_us = world->machines[from].promised_us;
    machine_start(it, it->usual, ++world->lives);
    world_trace(world,
                "name %d leads to machine %d for server %d, generation %lld",
                name, to, goes, (long long)it->memory.generation.it);
    faults_hold(world, JUDGED_US);
    end_later(world, FAULT_SPLIT, name, 25000000);
    end_later(world, FAULT_MOVE, to, 35000000);
}

/* Nothing is connected to it any more. */
static void end_old_machine(struct world *world, int machine)
{
    if (losses_is_home(world, machine))
        return;
    losses_kill(world, machine);
    losses_note(world, machine);
}

/* ---- by restarts of servers --------------------------------------------- */

static void start_spare(struct world *world, int machine)
{
    losses_make_spare(world, machine);
    machine_start(&world->machines[machine], world->machines[machine].usual,
                  ++world->lives);
}

/* All names were led home meanwhile. */
static void give_up(struct world *world, int to)
{
    int from = world->home[losses_name_of(to)];
    end_old_machine(world, to);
    if (world->machines[from].state == MACHINE_DOWN)
        losses_start_later(world, from, world->machines[from].usual);
}

/* The next server is restarted with the new address; after the last one the
 * name has moved. */
static void roll_on(struct world *world, int to)
{
    int name = losses_name_of(to);
    int first = world_any_server(world);
    if (world->faults->is_calm)
        return;
    if (names_lead_home(world, name)) {
        give_up(world, to);
        return;
    }
    for (int i = first; i < first + SIM_FOREIGN; i++) {
        int server = i % SIM_FOREIGN;
        if (world->leads[server][name] == to)
            continue;
        world->leads[server][name] = to;
        faults_restart_server(world, server);
        faults_end_later(world, 1 + world_random(world, ROLL_US), FAULT_ROLL,
                         to);
        return;
    }
    world_trace(world, "name %d has moved to machine %d", name, to);
    faults_end_later(world, world_random(world, JUDGED_US), FAULT_MOVE,
                     world->home[name]);
    losses_note(world, to);
    world->home[name] = to;
    names_lead_all(world, name, to);
}

/* The old machine is dead already, or lives on. */
static void roll(struct world *world, int name)
{
    int from = world->home[name];
    int to = losses_spare_machine(world, from);
    bool is_dead = world_chance(world, 30);
    int server = world_any_server(world);
    for (int i = 0; i < SIM_FOREIGN; i++)
        if (!names_are_right(world, i))
            return; /* one after the other */
    if (to < 0 || !losses_may_lose(world, from))
        return;
    world_trace(world, "name %d begins to move to machine %d", name, to);
    start_spare(world, to);
    losses_note(world, to);
    if (is_dead && world->machines[from].state == MACHINE_UP)
        losses_kill(world, from);
    world->leads[server][name] = to;
    faults_restart_server(world, server);
    faults_end_later(world, 1 + world_random(world, ROLL_US), FAULT_ROLL, to);
}

/* For this server the names of two nodes lead each to the other one. */
static bool swap(struct world *world, int server)
{
    int one = losses_any_name(world);
    int other = losses_any_name(world);
    if (one == other || !names_lead_home(world, one) ||
        !names_lead_home(world, other))
        return false;
    world->leads[server][one] = world->home[other];
    world->leads[server][other] = world->home[one];
    return true;
}

/* For this server a name leads to an empty machine. */
static bool mislead(struct world *world, int server)
{
    int name = losses_any_name(world);
    int to = losses_spare_machine(world, world->home[name]);
    if (to < 0)
        return false;
    start_spare(world, to);
    world->leads[server][name] = to;
    faults_end_later(world, 2 * ASTRAY_US, FAULT_MOVE, to);
    return true;
}

/* A server is restarted with wrong addresses, and later with the right ones. */
static void go_astray(struct world *world)
{
    int server = world_any_server(world);
    int count = world_chance(world, 50) ? 1 : WRONG_MOST;
    bool is_wrong = false;
    if (!names_are_right(world, server))
        return; /* a server that knows no right address begins anew */
    if (world_chance(world, 40))
        is_wrong = swap(world, server);
    else
        for (int i = 0; i < count; i++)
            is_wrong |= mislead(world, server);
    if (!is_wrong)
        return;
    world_trace(world, "server %d goes astray", server);
    faults_restart_server(world, server);
    end_later(world, FAULT_ASTRAY, server, ASTRAY_US - 500000);
}

/* A name that moves meanwhile goes on to move. */
static void end_astray(struct world *world, int server)
{
    for (int i = 0; i < SIM_NAMES; i++)
        world->leads[server][i] = world->home[i];
    if (!world->faults->is_calm)
        faults_restart_server(world, server);
}

/* ---- the schedule ------------------------------------------------------- */

void names_make(struct world *world, enum fault fault, int name)
{
    switch (fault) {
    case FAULT_MOVE:
        move(world, name);
        break;
    case FAULT_TWIN:
        lead_astray(world, name);
        break;
    case FAULT_SPLIT:
        split(world, name);
        break;
    case FAULT_ROLL:
        roll(world, name);
        break;
    case FAULT_ASTRAY:
        go_astray(world);
        break;
    default:
        abort();
    }
}

bool names_ends(enum fault fault)
{
    return fault == FAULT_MOVE || fault == FAULT_TWIN || fault == FAULT_SPLIT ||
           fault == FAULT_ROLL || fault == FAULT_ASTRAY;
}

void names_end(struct world *world, enum fault fault, int of)
{
    if (fault == FAULT_MOVE)
        end_old_machine(world, of);
    else if (fault == FAULT_ROLL)
        roll_on(world, of);
    else if (fault == FAULT_ASTRAY)
        end_astray(world, of);
    else
        names_lead_all(world, of, world->home[of]);
}
