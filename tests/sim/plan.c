/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include "clients.h"
#include "lists.h"
#include "losses.h"

enum {
    TRUSTING_PERCENT = 30,
    WILD_PERCENT = 10,
    SPELLS_PERCENT = 25,
    RATE_LEAST = 25,
    RATE_MOST = 130,
    LONG_PERCENT = 30,
    FEW_PERCENT = 30,
    FEW = 5,
    LONG_TTL_MS = 8000, /* many heartbeats */
};

const struct fault_kind fault_kinds[FAULTS] = {
    [FAULT_SLOW] = {"slow", 400000},
    [FAULT_BREAK] = {"break", 500000},
    [FAULT_BLOCK] = {"block", 2500000},
    [FAULT_DOUBLE] = {"double", 0},
    [FAULT_PAUSE] = {"pause", 1500000},
    [FAULT_ERROR] = {"error", 2000000},
    [FAULT_UNCONFIRM] = {"unconfirm", 8000000},
    [FAULT_RESTART] = {"restart", 6000000},
    [FAULT_FLUSH] = {"flush", 8000000},
    [FAULT_INTERLUDE] = {"interlude", 15000000},
    [FAULT_UNDURABLE] = {"undurable", 10000000},
    [FAULT_RESTORE] = {"restore", 6000000},
    [FAULT_ROLLBACK] = {"rollback", 4000000},
    [FAULT_REPLACE] = {"replace", 12000000},
    [FAULT_PROMOTE] = {"promote", 6000000},
    [FAULT_EVICT] = {"evict", 8000000},
    [FAULT_MOVE] = {"move", 12000000},
    [FAULT_TWIN] = {"twin", 15000000},
    [FAULT_SPLIT] = {"split", 20000000},
    [FAULT_LOSE_ALL] = {"lose_all", 30000000},
    [FAULT_SLEEP] = {"sleep", 40000000},
    [FAULT_STEP] = {"step", 5000000},
    [FAULT_TINY_STEP] = {"tiny_step", 2000000},
    [FAULT_DRIFT] = {"drift", 2000000},
    [FAULT_SERVER_PAUSE] = {"server_pause", 2500000},
    [FAULT_SERVER_RESTART] = {"server_restart", 6000000},
    [FAULT_TARGET] = {"target", 0},
    [FAULT_NEXT] = {"next", 0},
    [FAULT_FOREIGN] = {"foreign", 0},
    [FAULT_LAG] = {"lag", 4000000},
    [FAULT_CUT] = {"cut", 8000000},
    [FAULT_OPTIONS] = {"options", 15000000},
    [FAULT_QUIET] = {"quiet", 5000000},
    [FAULT_ROLL] = {"roll", 12000000},
    [FAULT_ASTRAY] = {"astray", 6000000},
    [FAULT_EPOCH] = {"epoch", 8000000},
    [FAULT_STALL] = {"stall", 1000000},
    [FAULT_TERM] = {"term", 4000000},
    [FAULT_APART] = {"apart", 4000000},
    [FAULT_LISTS] = {"lists", 8000000},
    [FAULT_FULL] = {"full", 3000000},
    [FAULT_ATTACH] = {"attach", 2000000},
};

bool plan_is_on(const struct world *world, enum fault fault)
{
    return (world->faults->enabled & fault_bit(fault)) != 0;
}

void plan_again(struct world *world, enum fault fault)
{
    int64_t mean_us =
        fault_kinds[fault].interval_us * 100 / world->faults->rate;
    if (mean_us > 0)
        world_at(world, 1000 + world_random(world, 2 * mean_us),
                 (struct event){.kind = EVENT_FAULT, .a = (int)fault});
}

/* Where a rule may overlook what is promised while all seems quiet. */
static const uint64_t spells =
    UINT64_C(1) << FAULT_QUIET | UINT64_C(1) << FAULT_OPTIONS;
static const uint64_t beside_spells =
    UINT64_C(1) << FAULT_CUT | UINT64_C(1) << FAULT_LAG |
    UINT64_C(1) << FAULT_DRIFT | UINT64_C(1) << FAULT_ATTACH;

static bool has_only_spells(const struct world *world)
{
    return (world->faults->enabled & ~beside_spells) == spells;
}

static void choose_configs(struct world *world)
{
    struct faults *faults = world->faults;
    int first = (int)world_random(world, SIM_NAMES - SIM_NODES + 1);
    for (int i = 0; i < CONFIGURATIONS; i++)
        faults->configs[i].nodes = SIM_NODES;
    for (int i = 0; i < SIM_NODES; i++) {
        faults->configs[CONFIGURATION_FIRST].name[i] = i;
        faults->configs[CONFIGURATION_FOREIGN].name[i] = i;
        faults->configs[CONFIGURATION_NEXT].name[i] = first + i;
    }
    struct simconfig *next = &faults->configs[CONFIGURATION_NEXT];
    bool is_long = world_chance(world, LONG_PERCENT);
    int64_t first_ms = is_long ? LONG_TTL_MS : 2000;
    const int64_t limits_ms[] = {1000, 2000, is_long ? LONG_TTL_MS : 3000};
    next->epoch = 2;
    next->max_ttl_ms = limits_ms[world_random(world, 3)];
    next->fingerprint = "fingerprint-2-05";
    faults->configs[CONFIGURATION_FIRST].epoch = 1;
    faults->configs[CONFIGURATION_FIRST].max_ttl_ms = first_ms;
    faults->configs[CONFIGURATION_FIRST].fingerprint = "fingerprint-1-05";
    faults->configs[CONFIGURATION_FOREIGN].epoch = 1;
    faults->configs[CONFIGURATION_FOREIGN].max_ttl_ms = first_ms;
    faults->configs[CONFIGURATION_FOREIGN].fingerprint = "fingerprint-3-05";
    faults->longest_ms = is_long ? LONG_TTL_MS : 3000;
}

/* In a wild world leaves only faults that make nothing forget. */
static void make_wild(struct faults *faults)
{
    static const enum fault remembered[] = {
        FAULT_SLOW,  FAULT_BREAK,     FAULT_BLOCK,        FAULT_DOUBLE,
        FAULT_PAUSE, FAULT_ERROR,     FAULT_STEP,         FAULT_DRIFT,
        FAULT_TWIN,  FAULT_UNCONFIRM, FAULT_SERVER_PAUSE, FAULT_SERVER_RESTART,
        FAULT_STALL, FAULT_TERM,      FAULT_ATTACH,
    };
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof remembered / sizeof *remembered; i++)
        all |= fault_bit(remembered[i]);
    faults->enabled = (faults->enabled & all) | fault_bit(FAULT_STEP);
}

/* Or so few that nobody else is there, and they do not stay, either. */
static void choose_crowd(struct world *world)
{
    bool are_few = world_chance(world, FEW_PERCENT);
    int half = SIM_CLIENTS / 2;
    world->clients->active = are_few
                                 ? 1 + (int)world_random(world, FEW)
                                 : half + (int)world_random(world, half + 1);
    world->clients->leaving = are_few && world_chance(world, 50) ? 50 : 10;
}

static void choose_faults(struct world *world)
{
    struct faults *faults = world->faults;
    const uint64_t late = fault_bit(FAULT_NEXT) | fault_bit(FAULT_FOREIGN);
    const int64_t kinds = INT64_C(1) << FAULT_ROLL;
    const int64_t changes = INT64_C(1) << (FAULT_STALL - FAULT_ROLL);
    const int64_t moments = INT64_C(1) << (FAULT_LISTS - FAULT_STALL);
    faults->rate =
        RATE_LEAST + (int)world_random(world, RATE_MOST - RATE_LEAST);
    faults->enabled = (uint64_t)world_random(world, kinds);
    if (world_chance(world, 60)) /* fewer kinds test deeper */
        faults->enabled &= (uint64_t)world_random(world, kinds) | late;
    if (plan_is_on(world, FAULT_QUIET) && world_chance(world, 70))
        faults->enabled |= fault_bit(FAULT_OPTIONS);
    if (world->has_changes) /* the other worlds are as they were before these */
        faults->enabled |= (uint64_t)world_random(world, changes) << FAULT_ROLL;
    if (world->has_visitors)
        faults->enabled |= (uint64_t)world_random(world, moments)
                           << FAULT_STALL;
    if (world->only != 0)
        faults->enabled = world->only;
    else if (world->has_lists)
        faults->enabled = lists_faults(world);
    else if (world_chance(world, SPELLS_PERCENT)) /* others would spoil them */
        faults->enabled = spells | (faults->enabled & beside_spells);
    if (world->has_backups && world->only == 0)
        faults->enabled |= fault_bit(FAULT_ATTACH);
    if (has_only_spells(world))
        faults->rate = RATE_MOST;
    faults->is_wild = !has_only_spells(world) &&
                      !plan_is_on(world, FAULT_LISTS) &&
                      world_chance(world, WILD_PERCENT);
    if (faults->is_wild)
        make_wild(faults);
    if (world->has_full && world->only == 0 && !has_only_spells(world))
        faults->enabled |= fault_bit(FAULT_FULL);
    for (int i = 0; i < FAULTS; i++)
        if (plan_is_on(world, (enum fault)i) && fault_kinds[i].interval_us > 0)
            plan_again(world, (enum fault)i);
    for (int i = FAULT_NEXT; i <= FAULT_FOREIGN; i++)
        if (plan_is_on(world, (enum fault)i))
            world_at(world, 15000000 + world_random(world, 30000000),
                     (struct event){.kind = EVENT_FAULT, .a = i});
    world->clients->has_ghosts = plan_is_on(world, FAULT_DOUBLE);
    world->clients->has_repeats = world_chance(world, 60);
    world->clients->ledger.claims_clocks = !faults->is_wild;
    world->clients->active = SIM_CLIENTS;
    if (world->has_visitors || world->has_lists)
        choose_crowd(world);
}

void plan_init(struct world *world)
{
    *world->faults = (struct faults){.rate = 100};
    choose_configs(world);
    losses_init(world);
    if (world->has_lists)
        lists_choose_kind(world);
    choose_faults(world);
    if (world->has_lists)
        lists_init(world);
    if (plan_is_on(world, FAULT_CUT) || plan_is_on(world, FAULT_QUIET))
        losses_write_late(world);
    if (plan_is_on(world, FAULT_QUIET))
        world->clients->is_brief = world_chance(world, 80);
    bool is_trusting = has_only_spells(world) || world->has_lists ||
                       world_chance(world, TRUSTING_PERCENT);
    for (int i = 0; i < SIM_FOREIGN; i++) {
        if (plan_is_on(world, FAULT_DRIFT))
            world->servers[i].ppm = world_random(world, 2001) - 1000;
        if (i == 0 || world_chance(world, 70))
            server_start(world, i, world->faults->configuration, is_trusting);
        else
            world_at(world, world_random(world, 5000000),
                     (struct event){.kind = EVENT_START_SERVER, .a = i});
    }
    if (world->has_lists)
        lists_start_other(world);
}
