/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients.h"
#include "copies.h"
#include "lists.h"
#include "losses.h"
#include "messages.h"
#include "names.h"
#include "plan.h"
#include "quiet.h"
#include "steps.h"

enum {
    HOLD_US = 4000000,
    QUARANTINE_MORE_US = 7000000,
    LAG_US = 200000,      /* hides no step of a clock */
    SHORT_LAG_US = 90000, /* a clock can be proven by it */
    LAGS_US = 6000000,
    APART_US = 2000000,
    STALL_LEAST_US = 100000,
    STALL_MOST_US = 500000,
    PARTED_US = 5000000,
};

/* Mostly short, sometimes long. */
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

void faults_end_later(struct world *world, int64_t us, enum fault fault, int of)
{
    world_at(
        world, us,
        (struct event){.kind = EVENT_FAULT_ENDS, .a = (int)fault, .b = of});
}

/* ---- connections -------------------------------------------------------- */

static void slow(struct world *world)
{
    any_link(world)->delay_us =
        100 + world_random(world, world_chance(world, 50) ? 60000 : 500);
}

void faults_lag(struct world *world, int server, int64_t us)
{
    int64_t most_us = world_chance(world, 25) ? SHORT_LAG_US : LAG_US;
    bool is_back = world_chance(world, 35);
    for (int i = 0; i < SIM_NODES; i++) {
        struct simlink *link = simlink_of(world, server, i);
        if (world_chance(world, 20))
            continue;
        link->lag_us[is_back] = most_us / 2 + world_random(world, most_us / 2);
        link->lag_us[!is_back] = 0;
        link->lags_until_us = world->now_us + us;
    }
}

/* Blocks one connection, all of a server, or all of a node. */
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
    enum call_kind kind = message->call.call.kind;
    bool is_data = kind == CALL_ACQUIRE || kind == CALL_REPEAT ||
                   kind == CALL_EXTEND || kind == CALL_REPLICATE ||
                   kind == CALL_RELEASE || kind == CALL_LISTEN;
    struct simlink *link = simlink_of(world, message->server, message->node);
    if (world->faults->is_calm)
        return;
    if (is_data) {
        message->is_doubled =
            plan_is_on(world, FAULT_DOUBLE) && world_chance(world, 1);
        world->faults->count[FAULT_DOUBLE] += message->is_doubled;
        return;
    }
    bool is_write = kind != CALL_PROBE || message->call.call.nonce.len > 0;
    if (kind == CALL_PROBE && is_write)
        lists_on_quarantine(world, message->server);
    if (!plan_is_on(world, FAULT_TARGET) || !is_write ||
        world->now_us < world->faults->held_us)
        return;
    if (world_chance(world, 10)) { /* given up, and arrives late */
        world->faults->count[FAULT_TARGET]++;
        simlink_break(world, message->server, message->node);
        message->is_lost = world_chance(world, 20);
        message->late_us = world_random(world, 8000000);
    } else if (world_chance(world, 10)) {
        link->delay_us = 100 + world_random(world, 60000);
    }
    if (world_chance(world, 10))
        faults_end_later(world, world_random(world, 6000000), FAULT_FLUSH,
                         message->machine);
}

/* ---- machines and servers ----------------------------------------------- */

void faults_pause(struct world *world, int machine, int64_t us)
{
    if (world->machines[machine].state != MACHINE_UP)
        return;
    world_trace(world, "machine %d pauses", machine);
    world->machines[machine].state = MACHINE_PAUSED;
    world_at(world, us,
             (struct event){.kind = EVENT_RESUME_MACHINE, .a = machine});
}

static void resume_machine(struct world *world, int machine)
{
    if (world->machines[machine].state != MACHINE_PAUSED)
        return;
    world_trace(world, "machine %d goes on", machine);
    world->machines[machine].state = MACHINE_UP;
    world->machines[machine].resumed_us = world->now_us;
    messages_resume(world, machine);
}

/* The error that answers each call for a while. */
static const enum node_state errors[] = {
    STATE_LOADING, STATE_READ_ONLY,     STATE_MISCONFIGURED, STATE_FAILED,
    STATE_BUSY,    STATE_NO_PERMISSION, STATE_NO_SCRIPT,     STATE_TOO_MANY,
    STATE_FAILED,  STATE_GARBAGE,
};
/* What new connections find. */
static const enum node_state unfit[] = {STATE_CLUSTER, STATE_EVICTS,
                                        STATE_TOO_OLD};

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

void faults_restart_servers(struct world *world, int but, int64_t most_us)
{
    for (int i = 0; i < SIM_FOREIGN; i++) {
        if (i == but)
            continue;
        server_kill(world, i);
        world_at(world, world_random(world, most_us),
                 (struct event){.kind = EVENT_START_SERVER,
                                .a = i,
                                .b = (int)world->faults->configuration});
    }
}

void faults_restart_server(struct world *world, int server)
{
    struct faults *faults = world->faults;
    enum configuration configuration = faults->configuration;
    if (world->servers[server].engine == NULL)
        return;
    if (configuration == CONFIGURATION_NEXT &&
        !plan_is_on(world, FAULT_LISTS) && world_chance(world, 10))
        configuration = CONFIGURATION_FIRST; /* an old server comes back */
    if (server == SIM_FOREIGN)
        configuration = CONFIGURATION_FOREIGN;
    if (plan_is_on(world, FAULT_LISTS))
        configuration =
            server == SIM_FOREIGN ? CONFIGURATION_OTHER : lists_choose(world);
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
    enum configuration configuration = (enum configuration)event->b;
    if (plan_is_on(world, FAULT_LISTS) &&
        !lists_may_start(world, configuration)) {
        if (event->a == SIM_FOREIGN)
            return;
        configuration = world->faults->configuration;
    }
    server_start(world, event->a, configuration, false);
}

/*
 * Splits the network while the first server takes over: each name that both
 * configurations have can be reached by the new server or by the old ones.
 */
static void split(struct world *world, int64_t us)
{
    const struct simconfig *next = servers_config(world, CONFIGURATION_NEXT);
    for (int i = 0; i < next->nodes; i++) {
        int name = next->name[i];
        bool is_with_old = world_chance(world, 40);
        if (name >= SIM_NODES)
            continue; /* only in the new one */
        if (is_with_old)
            simlink_of(world, 0, i)->blocked_us = world->now_us + us;
        for (int j = 1; j < SIM_FOREIGN && !is_with_old; j++)
            simlink_of(world, j, name)->blocked_us = world->now_us + us;
    }
}

/* The servers follow one after the other, or one of them does not. */
static void take_over(struct world *world)
{
    bool is_split = world_chance(world, 50);
    int64_t apart_us = is_split ? 25000000 : 0;
    servers_choose_next(world);
    names_heal(world);
    if (is_split)
        split(world, apart_us);
    for (int i = 0; i < SIM_FOREIGN; i++) {
        if (i > 0 && world_chance(world, 30))
            continue;
        faults_end_later(world,
                         i == 0 ? 0 : apart_us + world_random(world, 15000000),
                         FAULT_SERVER_RESTART, i);
    }
}

/* ---- servers and clients ------------------------------------------------ */

/* A server that starts now knows the clocks only by such connections. */
static void lag(struct world *world, int server)
{
    faults_lag(world, server, 200000 + world_random(world, LAGS_US));
    if (world_chance(world, 30))
        faults_restart_server(world, server);
}

/* One after the other is restarted with other limits and timeouts. */
static void change_options(struct world *world)
{
    for (int i = 0; i < SIM_FOREIGN; i++)
        faults_end_later(world, i * APART_US + world_random(world, APART_US),
                         FAULT_SERVER_RESTART, i);
}

static void stall(struct world *world)
{
    server_pause(world, any_server(world),
                 STALL_LEAST_US +
                     world_random(world, STALL_MOST_US - STALL_LEAST_US));
}

static void terminate(struct world *world)
{
    world_at(world, 0,
             (struct event){.kind = EVENT_TERMINATE, .a = any_server(world)});
}

/* Each server does not reach another node, and a minority's clocks are off. */
static void part(struct world *world)
{
    int64_t us = 500000 + world_random(world, PARTED_US);
    int first = (int)world_random(world, SIM_NODES);
    for (int i = 0; i < SIM_FOREIGN; i++) {
        int node = (first + i) % SIM_NODES;
        if (world_chance(world, 20))
            continue;
        simlink_break(world, i, node);
        simlink_of(world, i, node)->blocked_us = world->now_us + us;
    }
    if (world_chance(world, 50))
        steps_make(world, FAULT_STEP, losses_any_machine(world));
}

/* ---- the schedule ------------------------------------------------------- */

int64_t faults_quarantine_us(const struct world *world)
{
    int64_t longest_ms = world->faults->longest_ms;
    return (longest_ms < 4000 ? 4000 : longest_ms) * 1000 + QUARANTINE_MORE_US;
}

void faults_hold(struct world *world, int64_t us)
{
    if (world->now_us + us > world->faults->held_us)
        world->faults->held_us = world->now_us + us;
}

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
        faults_pause(world, losses_any_machine(world),
                     duration_us(world, 4000000));
        break;
    case FAULT_ERROR:
        err(world);
        break;
    case FAULT_UNCONFIRM:
        unconfirm(world);
        break;
    case FAULT_STEP:
    case FAULT_TINY_STEP:
    case FAULT_DRIFT:
        steps_make(world, fault, losses_any_machine(world));
        break;
    case FAULT_MOVE:
    case FAULT_TWIN:
    case FAULT_SPLIT:
    case FAULT_ROLL:
    case FAULT_ASTRAY:
        names_make(world, fault, losses_any_name(world));
        break;
    case FAULT_UNDURABLE:
    case FAULT_RESTORE:
    case FAULT_ROLLBACK:
    case FAULT_REPLACE:
    case FAULT_PROMOTE:
    case FAULT_ATTACH:
        copies_make(world, fault, losses_any_machine(world));
        break;
    case FAULT_SERVER_PAUSE:
        server_pause(world, any_server(world), duration_us(world, 6000000));
        break;
    case FAULT_SERVER_RESTART:
    case FAULT_EPOCH:
        faults_restart_server(world, any_server(world));
        break;
    case FAULT_NEXT:
        take_over(world);
        break;
    case FAULT_FOREIGN:
        server_start(world, SIM_FOREIGN, CONFIGURATION_FOREIGN, false);
        break;
    case FAULT_LAG:
        lag(world, any_server(world));
        break;
    case FAULT_OPTIONS:
        change_options(world);
        break;
    case FAULT_QUIET:
        quiet_make(world);
        break;
    case FAULT_STALL:
        stall(world);
        break;
    case FAULT_TERM:
        terminate(world);
        break;
    case FAULT_APART:
        part(world);
        break;
    case FAULT_LISTS:
        lists_change(world);
        break;
    default:
        losses_make(world, fault, losses_any_machine(world));
    }
}

static void end(struct world *world, const struct event *event)
{
    enum fault fault = (enum fault)event->a;
    if (names_ends(fault)) {
        names_end(world, fault, event->b);
        return;
    }
    if (world->faults->is_calm)
        return;
    if (world->now_us < world->faults->held_us) { /* the end is a fault, too */
        world_at(world,
                 world->faults->held_us - world->now_us +
                     world_random(world, 1000000),
                 *event);
        return;
    }
    switch (fault) {
    case FAULT_SERVER_RESTART:
    case FAULT_TERM:
        faults_restart_server(world, event->b);
        break;
    case FAULT_RESTORE:
    case FAULT_ROLLBACK:
    case FAULT_PROMOTE:
        copies_end(world, fault, event->b);
        break;
    case FAULT_QUIET:
        quiet_ask(world, event->b);
        break;
    default:
        losses_end(world, fault, event->b);
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
        plan_again(world, (enum fault)event->a);
        break;
    case EVENT_FAULT_ENDS:
        end(world, event);
        break;
    case EVENT_RESUME_MACHINE:
        resume_machine(world, event->a);
        break;
    case EVENT_START_MACHINE:
        losses_start(world, event->a, (enum persistence)event->b);
        break;
    case EVENT_HEAL_MACHINE:
        world->machines[event->a].condition = STATE_NONE;
        world->machines[event->a].healed_us = world->now_us;
        break;
    case EVENT_START_SERVER:
        start_server(world, event);
        break;
    default:
        abort();
    }
}

/* ---- the end of all faults ---------------------------------------------- */

/* Whether a node votes, or did, with the names of this configuration. */
static bool has_admission(const struct world *world, enum configuration by)
{
    for (int i = 0; i < SIM_NAMES; i++)
        if (servers_has_admitted(world, by, i))
            return true;
    return false;
}

/*
 * New names that cannot know whether the old ones are dead, as too few of these
 * are among them, or have lost it: the old servers are stopped, and the
 * new ones are told so.
 */
static void stop_old_servers(struct world *world)
{
    struct faults *faults = world->faults;
    bool may_be_refused = plan_is_on(world, FAULT_LISTS)
                              ? !faults->is_orderly || faults->word_epoch != 0
                              : faults->configuration == CONFIGURATION_NEXT;
    if (!may_be_refused || has_admission(world, faults->configuration))
        return;
    faults->are_old_stopped = true;
    for (int i = 0; i < SIM_FOREIGN; i++)
        server_kill(world, i);
}

void faults_calm(struct world *world)
{
    struct faults *faults = world->faults;
    faults->is_calm = true;
    for (int i = 0; i < SIM_MACHINES; i++) {
        world->machines[i].condition = STATE_NONE;
        resume_machine(world, i);
        losses_heal(world, i);
    }
    names_heal(world);
    server_kill(world, SIM_FOREIGN);
    if (plan_is_on(world, FAULT_LISTS))
        lists_follow_epoch(world);
    else if (has_admission(world, CONFIGURATION_FOREIGN) ||
             faults->configuration == CONFIGURATION_NEXT)
        servers_choose_next(world); /* only a higher epoch takes its nodes */
    stop_old_servers(world);
    for (int i = 0; i < SIM_FOREIGN; i++) {
        struct simserver *server = &world->servers[i];
        server_resume(world, i);
        if (server->configuration != faults->configuration ||
            !server_has_usual_options(world, i) || server->drains_us != 0)
            server_kill(world, i);
        if (server->engine == NULL)
            server_start(world, i, faults->configuration, false);
    }
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < SIM_NODES; j++) {
            struct simlink *link = simlink_of(world, i, j);
            link->delay_us = 500;
            link->blocked_us = link->unconfirmed_us = link->lags_until_us = 0;
        }
    world->clients->quiet_until_us = 0;
    world->clients->is_brief = false;
}

void faults_set_clocks(struct world *world)
{
    for (int i = 0; i < SIM_MACHINES; i++) {
        struct machine *machine = &world->machines[i];
        machine_drift(machine, world->now_us, 0);
        machine_step(machine, world->now_us, -steps_offset_us(world, i));
    }
}
