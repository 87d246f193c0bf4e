#include "names.h"

#include <stdlib.h>

#include "losses.h"

enum { JUDGED_US = 6000000 };

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

void names_heal(struct world *world)
{
    for (int i = 0; i < SIM_NAMES; i++)
        names_lead_all(world, i, world->home[i]);
}

static void end_later(struct world *world, enum fault fault, int of,
                      int64_t most_us)
{
    world_at(
        world, 500000 + world_random(world, most_us),
        (struct event){.kind = EVENT_FAULT_ENDS, .a = (int)fault, .b = of});
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
    int server = (int)world_random(world, SIM_FOREIGN);
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
    int stays = (int)world_random(world, SIM_FOREIGN);
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
    world_trace(world, "name %d leads to machine %d for server %d, beat %lld",
                name, to, goes, (long long)it->memory.beat.it);
    faults_hold(world, JUDGED_US);
    end_later(world, FAULT_SPLIT, name, 25000000);
    end_later(world, FAULT_MOVE, to, 35000000);
}

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
    default:
        abort();
    }
}

/* Nothing is connected to it any more. */
static void end_old_machine(struct world *world, int machine)
{
    if (losses_is_home(world, machine))
        return;
    losses_kill(world, machine);
    losses_note(world, machine);
}

void names_end(struct world *world, enum fault fault, int of)
{
    if (fault == FAULT_MOVE)
        end_old_machine(world, of);
    else
        names_lead_all(world, of, world->home[of]);
}
