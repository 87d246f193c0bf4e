#include "faults.h"

#include <stdlib.h>

#include "clients.h"
#include "losses.h"
#include "messages.h"

enum {
    TRUSTING_PERCENT = 30,
    WILD_PERCENT = 10,
    RATE_LEAST = 25,
    RATE_MOST = 130,
    HOLD_US = 4000000,
};

/* µs between two of them, on average. */
static const int64_t intervals_us[FAULTS] = {
    [FAULT_SLOW] = 400000,
    [FAULT_BREAK] = 500000,
    [FAULT_BLOCK] = 2500000,
    [FAULT_PAUSE] = 1500000,
    [FAULT_ERROR] = 2000000,
    [FAULT_UNCONFIRM] = 8000000,
    [FAULT_RESTART] = 6000000,
    [FAULT_FLUSH] = 8000000,
    [FAULT_INTERLUDE] = 15000000,
    [FAULT_RESTORE] = 8000000,
    [FAULT_ROLLBACK] = 6000000,
    [FAULT_MOVE] = 12000000,
    [FAULT_TWIN] = 15000000,
    [FAULT_LOSE_ALL] = 30000000,
    [FAULT_STEP] = 5000000,
    [FAULT_TINY_STEP] = 2000000,
    [FAULT_DRIFT] = 2000000,
    [FAULT_SERVER_PAUSE] = 2500000,
    [FAULT_SERVER_RESTART] = 6000000,
    [FAULT_NEXT] = 0,
    [FAULT_FOREIGN] = 0,
};

static bool is_on(const struct world *world, enum fault fault)
{
    return (world->faults->enabled & 1u << fault) != 0;
}

static void again(struct world *world, enum fault fault)
{
    int64_t mean_us = intervals_us[fault] * 100 / world->faults->rate;
    if (mean_us > 0)
        world_at(world, 1000 + world_random(world, 2 * mean_us),
                 (struct event){.kind = EVENT_FAULT, .a = (int)fault});
}

/* Mostly short, now and then long. */
static int64_t duration_us(struct world *world, int64_t most_us)
{
    int64_t us = world_chance(world, 60) ? most_us / 20 : most_us;
    return 1000 + world_random(world, us);
}

static int any_server(struct world *world)
{
    return (int)world_random(world, SIM_SERVERS);
}

static struct simlink *any_link(struct world *world)
{
    return simlink_of(world, any_server(world),
                      (int)world_random(world, SIM_NODES));
}

/* ---- connections -------------------------------------------------------- */

static void slow(struct world *world)
{
    any_link(world)->delay_us =
        100 + world_random(world, world_chance(world, 50) ? 60000 : 500);
}

/* One connection, all of a server, or all of a node. */
static void block(struct world *world)
{
    bool is_long = world_chance(world, 5);
    int64_t until_us =
        world->now_us + (is_long ? 18000000 : duration_us(world, 5000000));
    int kind = (int)world_random(world, 3);
    int server = any_server(world);
    int node = (int)world_random(world, SIM_NODES);
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < SIM_NODES; j++)
            if ((i == server || kind == 1) && (j == node || kind == 2))
                simlink_of(world, i, j)->blocked_us = until_us;
}

static void unconfirm(struct world *world)
{
    int64_t until_us = world->now_us + 3000000 + world_random(world, 20000000);
    int server = any_server(world);
    bool is_all = world_chance(world, 50);
    int node = (int)world_random(world, SIM_NODES);
    for (int j = 0; j < SIM_NODES; j++)
        if (is_all || j == node)
            simlink_of(world, server, j)->unconfirmed_us = until_us;
}

void faults_on_send(struct world *world, struct message *message)
{
    enum script_kind kind = message->call.call.kind;
    bool is_data = kind == SCRIPT_ACQUIRE || kind == SCRIPT_EXTEND ||
                   kind == SCRIPT_RELEASE;
    struct simlink *link = simlink_of(world, message->server, message->node);
    if (world->faults->is_calm)
        return;
    if (is_data) {
        message->is_doubled =
            is_on(world, FAULT_DOUBLE) && world_chance(world, 1);
        world->faults->count[FAULT_DOUBLE] += message->is_doubled;
        return;
    }
    bool is_write = kind != SCRIPT_LOOK || message->call.call.nonce.len > 0;
    if (!is_on(world, FAULT_TARGET) || !is_write ||
        world->now_us < world->faults->held_us)
        return;
    if (world_chance(world, 10)) { /* given up, and comes late */
        world->faults->count[FAULT_TARGET]++;
        simlink_break(world, message->server, message->node);
        message->is_lost = world_chance(world, 20);
        message->late_us = world_random(world, 8000000);
    } else if (world_chance(world, 10)) {
        link->delay_us = 100 + world_random(world, 60000);
    }
    if (world_chance(world, 10))
        world_at(world, world_random(world, 6000000),
                 (struct event){.kind = EVENT_FAULT_ENDS,
                                .a = FAULT_FLUSH,
                                .b = message->machine});
}

/* ---- machines and servers ----------------------------------------------- */

static void pause_machine(struct world *world)
{
    int machine = losses_any_machine(world);
    if (world->machines[machine].state != MACHINE_UP)
        return;
    world_trace(world, "machine %d pauses", machine);
    world->machines[machine].state = MACHINE_PAUSED;
    world_at(world, duration_us(world, 4000000),
             (struct event){.kind = EVENT_RESUME_MACHINE, .a = machine});
}

static void resume_machine(struct world *world, int machine)
{
    if (world->machines[machine].state != MACHINE_PAUSED)
        return;
    world_trace(world, "machine %d goes on", machine);
    world->machines[machine].state = MACHINE_UP;
    messages_resume(world, machine);
}

/* What each call is answered, for a while. */
static const enum vote errors[] = {
    VOTE_LOADING, VOTE_READ_ONLY,     VOTE_MISCONFIGURED, VOTE_OUT_OF_MEMORY,
    VOTE_BUSY,    VOTE_NO_PERMISSION, VOTE_NO_SCRIPT,     VOTE_TOO_MANY,
    VOTE_FAILED,  VOTE_GARBAGE,
};
/* What fresh connections find. */
static const enum vote unfit[] = {VOTE_CLUSTER, VOTE_EVICTS, VOTE_TOO_OLD};

static void err(struct world *world)
{
    int machine = losses_any_machine(world);
    bool is_unfit = world_chance(world, 25);
    int count = is_unfit ? sizeof unfit / sizeof *unfit
                         : sizeof errors / sizeof *errors;
    world->machines[machine].condition =
        (is_unfit ? unfit : errors)[world_random(world, count)];
    world_at(world, duration_us(world, is_unfit ? 10000000 : 1000000),
             (struct event){.kind = EVENT_HEAL_MACHINE, .a = machine});
}

static void restart_server(struct world *world, int server)
{
    struct faults *faults = world->faults;
    enum configuration configuration = faults->configuration;
    if (world->servers[server].engine == NULL)
        return;
    if (configuration == CONFIGURATION_NEXT && world_chance(world, 10))
        configuration = CONFIGURATION_FIRST; /* an old one comes back */
    if (server == SIM_FOREIGN)
        configuration = CONFIGURATION_FOREIGN;
    server_kill(world, server);
    world_at(world, duration_us(world, 3000000),
             (struct event){.kind = EVENT_START_SERVER,
                            .a = server,
                            .b = (int)configuration});
}

static void start_server(struct world *world, const struct event *event)
{
    if (world->servers[event->a].engine != NULL ||
        (world->faults->is_calm && event->a == SIM_FOREIGN))
        return;
    if (world->now_us < world->faults->held_us) {
        world_at(world, HOLD_US, *event);
        return;
    }
    server_start(world, event->a, (enum configuration)event->b, false);
}

/*
 * The network is split while the first server takes over: each name that both
 * configurations have is in the reach of the new server or of the old ones.
 */
static void split(struct world *world, int64_t us)
{
    const struct simconfig *next = servers_config(world, CONFIGURATION_NEXT);
    for (int i = 0; i < SIM_NODES; i++) {
        int name = next->name[i];
        bool is_with_old = world_chance(world, 40);
        if (name >= SIM_NODES)
            continue; /* of the new one only */
        if (is_with_old)
            simlink_of(world, 0, i)->blocked_us = world->now_us + us;
        for (int j = 1; j < SIM_FOREIGN && !is_with_old; j++)
            simlink_of(world, j, name)->blocked_us = world->now_us + us;
    }
}

/* The servers follow one by one; or one does not. */
static void take_over(struct world *world)
{
    bool is_split = world_chance(world, 50);
    int64_t apart_us = is_split ? 25000000 : 0;
    world->faults->configuration = CONFIGURATION_NEXT;
    if (is_split)
        split(world, apart_us);
    for (int i = 0; i < SIM_FOREIGN; i++) {
        if (i > 0 && world_chance(world, 30))
            continue;
        world_at(world, i == 0 ? 0 : apart_us + world_random(world, 15000000),
                 (struct event){.kind = EVENT_FAULT_ENDS,
                                .a = FAULT_SERVER_RESTART,
                                .b = i});
    }
}

/* ---- clocks ------------------------------------------------------------- */

static void drift(struct world *world)
{
    int machine = losses_any_machine(world);
    int64_t lead_us = losses_lead_us(world, machine);
    int64_t ppm = world_random(world, 3001);
    bool is_slow = lead_us > 150000 || world_chance(world, 50);
    if (lead_us < -150000)
        is_slow = false;
    machine_drift(&world->machines[machine], world->now_us,
                  is_slow ? -ppm : ppm);
}

/* ---- the schedule ------------------------------------------------------- */

static void make(struct world *world, enum fault fault)
{
    switch (fault) {
    case FAULT_SLOW:
        slow(world);
        break;
    case FAULT_BREAK:
        simlink_break(world, any_server(world),
                      (int)world_random(world, SIM_NODES));
        break;
    case FAULT_BLOCK:
        block(world);
        break;
    case FAULT_PAUSE:
        pause_machine(world);
        break;
    case FAULT_ERROR:
        err(world);
        break;
    case FAULT_UNCONFIRM:
        unconfirm(world);
        break;
    case FAULT_DRIFT:
        drift(world);
        break;
    case FAULT_SERVER_PAUSE:
        server_pause(world, any_server(world), duration_us(world, 6000000));
        break;
    case FAULT_SERVER_RESTART:
        restart_server(world, any_server(world));
        break;
    case FAULT_NEXT:
        take_over(world);
        break;
    case FAULT_FOREIGN:
        server_start(world, SIM_FOREIGN, CONFIGURATION_FOREIGN, false);
        break;
    default:
        losses_make(world, fault);
        break;
    }
}

void faults_on_event(struct world *world, const struct event *event)
{
    struct faults *faults = world->faults;
    bool may_begin = !faults->is_calm && world->now_us >= faults->held_us;
    switch ((enum event_kind)event->kind) {
    case EVENT_FAULT:
        if (faults->is_calm)
            return;
        if (may_begin) {
            faults->count[event->a]++;
            make(world, (enum fault)event->a);
        }
        again(world, (enum fault)event->a);
        break;
    case EVENT_FAULT_ENDS:
        if (event->a == FAULT_SERVER_RESTART && !faults->is_calm)
            restart_server(world, event->b);
        else if (event->a != FAULT_SERVER_RESTART)
            losses_end(world, (enum fault)event->a, event->b);
        break;
    case EVENT_RESUME_MACHINE:
        resume_machine(world, event->a);
        break;
    case EVENT_START_MACHINE:
        losses_start(world, event->a, (enum persistence)event->b);
        break;
    case EVENT_HEAL_MACHINE:
        world->machines[event->a].condition = VOTE_DONE;
        break;
    case EVENT_START_SERVER:
        start_server(world, event);
        break;
    default:
        abort();
    }
}

/* ---- the end of all faults ---------------------------------------------- */

/* What a foreign server has admitted, only a higher epoch takes from it. */
static bool has_foreign_admission(const struct world *world)
{
    const char *foreign = "1:foreign:";
    for (int i = 0; i < SIM_NAMES; i++)
        if (strncmp(world->machines[world->home[i]].memory.admit, foreign,
                    strlen(foreign)) == 0)
            return true;
    return false;
}

void faults_calm(struct world *world)
{
    struct faults *faults = world->faults;
    faults->is_calm = true;
    for (int i = 0; i < SIM_MACHINES; i++) {
        world->machines[i].condition = VOTE_DONE;
        resume_machine(world, i);
        losses_heal(world, i);
    }
    server_kill(world, SIM_FOREIGN);
    if (has_foreign_admission(world))
        faults->configuration = CONFIGURATION_NEXT;
    for (int i = 0; i < SIM_FOREIGN; i++) {
        struct simserver *server = &world->servers[i];
        server_resume(world, i);
        if (server->configuration != faults->configuration)
            server_kill(world, i);
        if (server->engine == NULL)
            server_start(world, i, faults->configuration, false);
    }
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < SIM_NODES; j++) {
            struct simlink *link = simlink_of(world, i, j);
            link->delay_us = 500;
            link->blocked_us = link->unconfirmed_us = 0;
        }
}

void faults_set_clocks(struct world *world)
{
    for (int i = 0; i < SIM_MACHINES; i++) {
        struct machine *machine = &world->machines[i];
        machine_drift(machine, world->now_us, 0);
        machine_step(machine, world->now_us, -losses_lead_us(world, i));
    }
}

/* ---- the beginning ------------------------------------------------------ */

static void choose_configs(struct world *world)
{
    struct faults *faults = world->faults;
    int first = (int)world_random(world, SIM_NAMES - SIM_NODES + 1);
    for (int i = 0; i < SIM_NODES; i++) {
        faults->configs[CONFIGURATION_FIRST].name[i] = i;
        faults->configs[CONFIGURATION_FOREIGN].name[i] = i;
        faults->configs[CONFIGURATION_NEXT].name[i] = first + i;
    }
    struct simconfig *next = &faults->configs[CONFIGURATION_NEXT];
    static const int64_t limits_ms[] = {1000, 2000, 3000};
    next->epoch = 2;
    next->max_ttl_ms = limits_ms[world_random(world, 3)];
    next->fingerprint = "next";
    faults->configs[CONFIGURATION_FIRST].epoch = 1;
    faults->configs[CONFIGURATION_FIRST].max_ttl_ms = 2000;
    faults->configs[CONFIGURATION_FIRST].fingerprint = "first";
    faults->configs[CONFIGURATION_FOREIGN].epoch = 1;
    faults->configs[CONFIGURATION_FOREIGN].max_ttl_ms = 2000;
    faults->configs[CONFIGURATION_FOREIGN].fingerprint = "foreign";
}

static void choose_faults(struct world *world)
{
    struct faults *faults = world->faults;
    const uint32_t late = 1u << FAULT_NEXT | 1u << FAULT_FOREIGN;
    faults->rate =
        RATE_LEAST + (int)world_random(world, RATE_MOST - RATE_LEAST);
    faults->enabled = (uint32_t)world_random(world, 1 << FAULTS);
    if (world_chance(world, 60)) /* fewer kinds go deeper */
        faults->enabled &= (uint32_t)world_random(world, 1 << FAULTS) | late;
    if (world->only != 0)
        faults->enabled = world->only;
    faults->is_wild = world_chance(world, WILD_PERCENT);
    if (faults->is_wild)
        losses_make_wild(faults);
    for (int i = 0; i < FAULTS; i++)
        if (is_on(world, (enum fault)i) && intervals_us[i] > 0)
            again(world, (enum fault)i);
    for (int i = FAULT_NEXT; i <= FAULT_FOREIGN; i++)
        if (is_on(world, (enum fault)i))
            world_at(world, 15000000 + world_random(world, 30000000),
                     (struct event){.kind = EVENT_FAULT, .a = i});
    world->clients->has_ghosts = is_on(world, FAULT_DOUBLE);
    world->clients->ledger.claims_clocks = !faults->is_wild;
}

void faults_init(struct world *world)
{
    *world->faults = (struct faults){.rate = 100};
    choose_configs(world);
    losses_init(world);
    choose_faults(world);
    bool is_trusting = world_chance(world, TRUSTING_PERCENT);
    for (int i = 0; i < SIM_FOREIGN; i++) {
        if (is_on(world, FAULT_DRIFT))
            world->servers[i].ppm = world_random(world, 2001) - 1000;
        if (i == 0 || world_chance(world, 70))
            server_start(world, i, CONFIGURATION_FIRST, is_trusting);
        else
            world_at(world, world_random(world, 5000000),
                     (struct event){.kind = EVENT_START_SERVER, .a = i});
    }
}
