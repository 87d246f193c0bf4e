/* SPDX-License-Identifier: MIT */
#include "steps.h"

#include <stdlib.h>

#include "clients.h"
#include "losses.h"

enum {
    EPOCH_US_LOW = 795221641, /* nodes' clocks begin in 2026 */
    WATCHED_US = 3000000,
    HELD_US = 5000000,
    TINY_MORE_US = 1500000, /* more than any lock lives */
    STEP_REST_US = 16000000,
    LEAST_STEP_US = 300000,
    USUAL_LEAD_US = 3000000,
    FAR_LEAD_US = 60000000, /* more than a quarantine */
};

static const int64_t epoch_us = (1000000000LL + EPOCH_US_LOW) * 1000000;

void steps_init_clock(struct world *world, int machine, enum persistence usual,
                      int64_t offset_us)
{
    machine_init(&world->machines[machine], usual, world->now_us,
                 epoch_us + world->now_us + offset_us);
}

int64_t steps_offset_us(const struct world *world, int machine)
{
    return machine_clock(&world->machines[machine], world->now_us) - epoch_us -
           world->now_us;
}

int64_t steps_honest_offset_us(struct world *world)
{
    int64_t most_us = world->faults->honest_us;
    return world_random(world, 2 * most_us) - most_us;
}

/* ---- what is allowed ---------------------------------------------------- */

/* Every running server has just heard of the machine as it is. */
static bool is_watched(struct world *world, int machine)
{
    int watching = 0;
    for (int i = 0; i < SIM_SERVERS; i++) {
        int node = simlink_node_of(world, i, losses_name_of(machine));
        if (world->servers[i].engine == NULL)
            continue;
        if (node < 0 || !simlink_is_good(world, i, node, WATCHED_US) ||
            simlink_of(world, i, node)->met.machine != machine)
            return false;
        watching++;
    }
    return watching > 0 &&
           world->now_us - world->machines[machine].state_us > WATCHED_US;
}

/* ---- steps -------------------------------------------------------------- */

static void step_clock(struct world *world, int machine, int64_t step_us)
{
    world_trace(world, "machine %d's clock steps by %lld ms", machine,
                (long long)(step_us / 1000));
    machine_step(&world->machines[machine], world->now_us, step_us);
    world->stepped_us[machine] = world->now_us;
    losses_note(world, machine);
}

/* Only a minority may have stepped, and none of them twice. */
static bool may_step(const struct world *world, int machine)
{
    int stepped = 0;
    for (int i = 0; i < SIM_MACHINES; i++) {
        bool is_late = world->stepped_us[i] != 0 &&
                       world->now_us - world->stepped_us[i] < STEP_REST_US;
        if (is_late && i == machine)
            return false;
        stepped += is_late;
    }
    return stepped < SIM_NODES / 2;
}

/* Not where another clock is: a new server would not notice the step there. */
static bool is_lonely(const struct world *world, int machine, int64_t offset_us)
{
    for (int i = 0; i < SIM_MACHINES; i++)
        if (i != machine && world->machines[i].state != MACHINE_DOWN &&
            llabs(steps_offset_us(world, i) - offset_us) < LEAST_STEP_US)
            return false;
    return true;
}

/* Only a minority's clocks are far off at any time. */
static bool may_go_far(const struct world *world, int machine)
{
    int far = 0;
    for (int i = 0; i < SIM_NAMES; i++)
        if (world->home[i] != machine &&
            llabs(steps_offset_us(world, world->home[i])) > USUAL_LEAD_US)
            far++;
    return far < SIM_NODES / 2;
}

static void step(struct world *world, int machine)
{
    int64_t offset_us = steps_offset_us(world, machine);
    if (world->faults->is_wild) {
        step_clock(world, machine, world_random(world, 20000000) - 10000000);
        return;
    }
    if (!may_step(world, machine))
        return;
    int64_t most_us = world_chance(world, 50) ? 480000 : USUAL_LEAD_US;
    int64_t to_us = world_random(world, 2 * most_us) - most_us;
    if (world->faults->goes_far && may_go_far(world, machine))
        to_us = world_random(world, FAR_LEAD_US);
    if (llabs(offset_us) >= LEAST_STEP_US && is_watched(world, machine)) {
        to_us = steps_honest_offset_us(world); /* it is corrected */
        faults_hold(world, HELD_US);
    } else if (llabs(to_us - offset_us) < LEAST_STEP_US ||
               !is_lonely(world, machine, to_us)) {
        return;
    } else if (world_chance(world, 30)) {
        faults_restart_servers(world, -1,
                               1000000); /* new servers have not seen it */
    }
    step_clock(world, machine, to_us - offset_us);
}

/* The validity allows 5 ms for these, once in a lock's life. */
static void step_a_little(struct world *world)
{
    if (world->now_us - world->faults->tiny_us <
        world->faults->longest_ms * 1000 + TINY_MORE_US)
        return;
    world->faults->tiny_us = world->now_us;
    for (int i = 0; i < SIM_MACHINES; i++)
        machine_step(&world->machines[i], world->now_us,
                     world_random(world, 8001) - 4000);
}

static void drift(struct world *world, int machine)
{
    int64_t offset_us = steps_offset_us(world, machine);
    int64_t ppm = world_random(world, 3001);
    bool is_slow = offset_us > 150000 || world_chance(world, 50);
    if (offset_us < -150000)
        is_slow = false;
    machine_drift(&world->machines[machine], world->now_us,
                  is_slow ? -ppm : ppm);
}

void steps_make(struct world *world, enum fault fault, int machine)
{
    switch (fault) {
    case FAULT_STEP:
        step(world, machine);
        break;
    case FAULT_TINY_STEP:
        step_a_little(world);
        break;
    case FAULT_DRIFT:
        drift(world, machine);
        break;
    default:
        abort();
    }
}
