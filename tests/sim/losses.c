#include "losses.h"

#include <stdlib.h>

#include "clients.h"
#include "messages.h"

enum {
    EPOCH_US_LOW = 795221641, /* nodes' clocks begin in 2026 */
    QUARANTINE_US = 11000000,
    WATCHED_US = 3000000,
    HELD_US = 5000000,
    BACKUP_AGE_US = 4500000, /* no lock lives so long */
    STEP_REST_US = 16000000,
    LEAST_STEP_US = 300000,
    USUAL_LEAD_US = 3000000,
    FAR_LEAD_US = 60000000, /* more than a quarantine */
};

static const int64_t epoch_us = (1000000000LL + EPOCH_US_LOW) * 1000000;

/* ---- the machines ------------------------------------------------------- */

int64_t losses_lead_us(const struct world *world, int machine)
{
    return machine_clock(&world->machines[machine], world->now_us) - epoch_us -
           world->now_us;
}

static int any_name(struct world *world)
{
    const struct simconfig *config =
        servers_config(world, world->faults->configuration);
    return config->name[world_random(world, SIM_NODES)];
}

int losses_any_machine(struct world *world)
{
    return world->home[any_name(world)];
}

static int name_of(int machine)
{
    return machine % SIM_NAMES;
}

static bool is_home(const struct world *world, int machine)
{
    return world->home[name_of(machine)] == machine;
}

void losses_start(struct world *world, int machine,
                  enum persistence persistence)
{
    struct machine *it = &world->machines[machine];
    if (it->state != MACHINE_DOWN || !is_home(world, machine))
        return;
    machine_start(it, persistence, ++world->lives);
    world_trace(world, "machine %d lives as %s, persistence %d", machine,
                it->run_id, (int)persistence);
}

static void init_machine(struct world *world, int machine,
                         enum persistence usual, int64_t lead_us)
{
    machine_init(&world->machines[machine], usual, world->now_us,
                 epoch_us + world->now_us + lead_us);
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
        init_machine(world, i, usual,
                     world_random(world, 2 * most_us) - most_us);
        init_machine(world, i + SIM_NAMES, usual, 0);
        world->home[i] = world->leads[i] = i;
        losses_start(world, i, usual);
    }
}

static int64_t honest_lead_us(struct world *world)
{
    int64_t most_us = world->faults->honest_us;
    return world_random(world, 2 * most_us) - most_us;
}

/* ---- what is allowed ---------------------------------------------------- */

static int lost_of_late(const struct world *world)
{
    int lost = 0;
    for (int i = 0; i < SIM_NAMES; i++)
        lost += world->lost_us[i] != 0 &&
                world->now_us - world->lost_us[i] < QUARANTINE_US;
    return lost;
}

static bool is_durable_world(const struct world *world)
{
    for (int i = 0; i < SIM_NAMES; i++)
        if (world->machines[i].usual != PERSISTS_ALWAYS)
            return false;
    return true;
}

/* Not all may be empty at once: that is a first start. */
static bool may_lose(struct world *world, int machine)
{
    const struct simconfig *config =
        servers_config(world, world->faults->configuration);
    int lost = lost_of_late(world);
    if (lost > 0 && world_chance(world, lost == 1 ? 40 : 93))
        return false; /* mostly there is a quorum */
    for (int i = 0; i < SIM_NODES; i++) {
        int other = world->home[config->name[i]];
        if (other != machine && world->machines[other].state == MACHINE_UP &&
            simnode_has_state(&world->machines[other].memory))
            return true;
    }
    return false;
}

static void note_loss(struct world *world, int machine)
{
    world->lost_us[name_of(machine)] = world->now_us;
}

/* Every server that there is has just heard of the machine as it is. */
static bool is_watched(struct world *world, int machine)
{
    int watching = 0;
    for (int i = 0; i < SIM_SERVERS; i++) {
        const struct simserver *server = &world->servers[i];
        int node = simlink_node_of(world, i, name_of(machine));
        if (server->engine == NULL)
            continue;
        const struct simlink *link =
            node < 0 ? NULL : simlink_of(world, i, node);
        if (server->is_paused || link == NULL || link->state != LINK_UP ||
            link->is_cut || link->met.machine != machine ||
            link->blocked_us > world->now_us ||
            world->now_us - link->up_us < WATCHED_US ||
            world->now_us - link->heard_us > WATCHED_US / 2 ||
            link->delay_us > 10000)
            return false;
        watching++;
    }
    return watching > 0 && world->machines[machine].state == MACHINE_UP &&
           world->now_us - world->machines[machine].state_us > WATCHED_US &&
           world->machines[machine].condition == VOTE_DONE;
}

/* ---- losses of memory --------------------------------------------------- */

static void kill_machine(struct world *world, int machine)
{
    world_trace(world, "machine %d dies", machine);
    machine_kill(&world->machines[machine], world->now_us);
    if (world->machines[machine].persistence != PERSISTS_ALWAYS)
        note_loss(world, machine);
    messages_clear_backlog(world, machine);
    simlinks_cut(world, machine, world_chance(world, 60));
}

static void start_later(struct world *world, int machine,
                        enum persistence persistence)
{
    int64_t most_us = world_chance(world, 70) ? 500000 : 5000000;
    world_at(world, 5000 + world_random(world, most_us),
             (struct event){.kind = EVENT_START_MACHINE,
                            .a = machine,
                            .b = (int)persistence});
}

static void flush(struct world *world, int machine)
{
    if (world->machines[machine].state != MACHINE_UP ||
        !may_lose(world, machine))
        return;
    world_trace(world, "machine %d is flushed", machine);
    machine_flush(&world->machines[machine], world->now_us);
    note_loss(world, machine);
}

static void restart(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    bool forgets = it->persistence != PERSISTS_ALWAYS;
    if (it->state == MACHINE_DOWN || (forgets && !may_lose(world, machine)))
        return;
    kill_machine(world, machine);
    start_later(world, machine, it->usual);
}

static void interlude(struct world *world, int machine)
{
    if (world->machines[machine].state == MACHINE_DOWN ||
        !may_lose(world, machine))
        return;
    kill_machine(world, machine);
    note_loss(world, machine);
    start_later(world, machine, PERSISTS_NOTHING);
    world_at(world, 500000 + world_random(world, 20000000),
             (struct event){
                 .kind = EVENT_FAULT_ENDS, .a = FAULT_INTERLUDE, .b = machine});
}

/* What is older than any lock is put back; else it is kept for later. */
static void put_back(struct world *world, int machine, enum fault fault)
{
    struct machine *it = &world->machines[machine];
    bool is_usual = it->state == MACHINE_UP && it->persistence == it->usual;
    if (!is_usual)
        return;
    if (it->backup_us == 0 ||
        world->now_us - it->backup_us > 2 * STEP_REST_US) {
        machine_back_up(it, world->now_us);
        return;
    }
    if (world->now_us - it->backup_us < BACKUP_AGE_US ||
        !may_lose(world, machine))
        return;
    if (fault == FAULT_RESTORE) {
        kill_machine(world, machine);
        machine_restore(it);
        start_later(world, machine, it->usual);
    } else if (is_watched(world, machine)) {
        world_trace(world, "machine %d is rolled back", machine);
        machine_roll_back(it, world->now_us);
        simlinks_cut(world, machine, true);
        world->faults->held_us = world->now_us + HELD_US;
    } else {
        return;
    }
    note_loss(world, machine);
    it->backup_us = 0;
}

/* All that know anything of the nodes; others come soon. */
static void kill_servers(struct world *world)
{
    for (int i = 0; i < SIM_FOREIGN; i++) {
        server_kill(world, i);
        world_at(world, world_random(world, 1000000),
                 (struct event){.kind = EVENT_START_SERVER,
                                .a = i,
                                .b = (int)world->faults->configuration});
    }
}

/*
 * All at once, and with the servers or without: only where this cannot look
 * like a first start.
 */
static void lose_all(struct world *world)
{
    bool is_everywhere = world_chance(world, 50);
    if (is_durable_world(world) ||
        world->servers[SIM_FOREIGN].engine != NULL) /* it would win, or not */
        return;
    for (int i = 0; i < SIM_SERVERS; i++)
        if (world->servers[i].engine != NULL && world->servers[i].is_trusting &&
            !world->servers[i].has_voted)
            return;
    if (is_everywhere)
        kill_servers(world);
    world_trace(world, "all machines are flushed");
    for (int i = 0; i < SIM_NAMES; i++) {
        machine_flush(&world->machines[world->home[i]], world->now_us);
        note_loss(world, world->home[i]);
    }
}

/* ---- names -------------------------------------------------------------- */

/* A new machine; the old one lives on for who is connected to it. */
static void move(struct world *world, int name)
{
    int from = world->home[name];
    int to = (from + SIM_NAMES) % SIM_MACHINES;
    if (world->machines[to].state != MACHINE_DOWN ||
        world->machines[from].state == MACHINE_DOWN ||
        world->leads[name] != from || !may_lose(world, from))
        return;
    world_trace(world, "name %d moves to machine %d", name, to);
    init_machine(world, to, world->machines[from].usual, honest_lead_us(world));
    world->home[name] = world->leads[name] = to;
    losses_start(world, to, world->machines[from].usual);
    note_loss(world, to);
    world_at(
        world, 1000000 + world_random(world, 22000000),
        (struct event){.kind = EVENT_FAULT_ENDS, .a = FAULT_MOVE, .b = from});
}

static void lead_astray(struct world *world, int name)
{
    int other = any_name(world);
    if (other == name || world->leads[name] != world->home[name])
        return;
    world_trace(world, "name %d leads to that of %d", name, other);
    world->leads[name] = world->home[other];
    world_at(
        world, 500000 + world_random(world, 5000000),
        (struct event){.kind = EVENT_FAULT_ENDS, .a = FAULT_TWIN, .b = name});
}

/* ---- clocks ------------------------------------------------------------- */

static void step_clock(struct world *world, int machine, int64_t step_us)
{
    world_trace(world, "machine %d's clock steps by %lld ms", machine,
                (long long)(step_us / 1000));
    machine_step(&world->machines[machine], world->now_us, step_us);
    world->stepped_us[machine] = world->now_us;
    note_loss(world, machine);
}

/* A minority may have stepped, and none of them twice. */
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

/* Not where any other clock is: there, a fresh server would not see it. */
static bool is_lonely(const struct world *world, int machine, int64_t lead_us)
{
    for (int i = 0; i < SIM_MACHINES; i++)
        if (i != machine && world->machines[i].state != MACHINE_DOWN &&
            llabs(losses_lead_us(world, i) - lead_us) < LEAST_STEP_US)
            return false;
    return true;
}

/* Only a minority's clocks are far from right at any time. */
static bool may_go_far(const struct world *world, int machine)
{
    int far = 0;
    for (int i = 0; i < SIM_NAMES; i++)
        if (world->home[i] != machine &&
            llabs(losses_lead_us(world, world->home[i])) > USUAL_LEAD_US)
            far++;
    return far < SIM_NODES / 2;
}

static void step(struct world *world, int machine)
{
    int64_t lead_us = losses_lead_us(world, machine);
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
    if (llabs(lead_us) >= LEAST_STEP_US && is_watched(world, machine)) {
        to_us = honest_lead_us(world); /* it is set right */
        world->faults->held_us = world->now_us + HELD_US;
    } else if (llabs(to_us - lead_us) < LEAST_STEP_US ||
               !is_lonely(world, machine, to_us)) {
        return;
    } else if (world_chance(world, 30)) {
        kill_servers(world); /* who comes then has not seen it */
    }
    step_clock(world, machine, to_us - lead_us);
}

/* The validity has 5 ms for these, once in a lock's life. */
static void step_a_little(struct world *world)
{
    if (world->now_us - world->faults->tiny_us < BACKUP_AGE_US)
        return;
    world->faults->tiny_us = world->now_us;
    for (int i = 0; i < SIM_MACHINES; i++)
        machine_step(&world->machines[i], world->now_us,
                     world_random(world, 8001) - 4000);
}

/* ---- the schedule ------------------------------------------------------- */

void losses_make_wild(struct faults *faults)
{
    static const enum fault remembered[] = {
        FAULT_SLOW,  FAULT_BREAK,     FAULT_BLOCK,        FAULT_DOUBLE,
        FAULT_PAUSE, FAULT_ERROR,     FAULT_STEP,         FAULT_DRIFT,
        FAULT_TWIN,  FAULT_UNCONFIRM, FAULT_SERVER_PAUSE, FAULT_SERVER_RESTART,
    };
    uint32_t all = 0;
    for (size_t i = 0; i < sizeof remembered / sizeof *remembered; i++)
        all |= 1u << remembered[i];
    faults->enabled = (faults->enabled & all) | 1u << FAULT_STEP;
}

void losses_make(struct world *world, enum fault fault)
{
    int name = any_name(world);
    int machine = world->home[name];
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
    case FAULT_RESTORE:
    case FAULT_ROLLBACK:
        put_back(world, machine, fault);
        break;
    case FAULT_LOSE_ALL:
        lose_all(world);
        break;
    case FAULT_MOVE:
        move(world, name);
        break;
    case FAULT_TWIN:
        lead_astray(world, name);
        break;
    case FAULT_STEP:
        step(world, machine);
        break;
    case FAULT_TINY_STEP:
        step_a_little(world);
        break;
    default:
        abort();
    }
}

/* Nobody is connected to it any more. */
static void end_old_machine(struct world *world, int machine)
{
    if (is_home(world, machine))
        return;
    kill_machine(world, machine);
    note_loss(world, machine);
}

static void end_interlude(struct world *world, int machine)
{
    struct machine *it = &world->machines[machine];
    if (it->persistence != PERSISTS_NOTHING || !is_home(world, machine) ||
        it->usual == PERSISTS_NOTHING || it->state == MACHINE_DOWN)
        return;
    kill_machine(world, machine);
    note_loss(world, machine);
    start_later(world, machine, it->usual);
}

void losses_end(struct world *world, enum fault fault, int of)
{
    if (fault == FAULT_FLUSH && is_home(world, of) && !world->faults->is_calm &&
        world->now_us >= world->faults->held_us)
        flush(world, of);
    else if (fault == FAULT_INTERLUDE && !world->faults->is_calm)
        end_interlude(world, of);
    else if (fault == FAULT_MOVE)
        end_old_machine(world, of);
    else if (fault == FAULT_TWIN)
        world->leads[of] = world->home[of];
}

void losses_heal(struct world *world, int machine)
{
    int name = name_of(machine);
    world->leads[name] = world->home[name];
    if (is_home(world, machine))
        losses_start(world, machine, world->machines[machine].usual);
    else
        kill_machine(world, machine);
}
