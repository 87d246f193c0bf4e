/* SPDX-License-Identifier: MIT */
#include "lists.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

enum {
    LONG = SIM_NODES,
    SHORT = 3,
    ORDERLY_PERCENT = 40,
    OTHER_PERCENT = 60,
    WORD_PERCENT = 25,
    RIVAL_PERCENT = 20,
    ABSENT_PERCENT = 20, /* of the servers, in each change */
    OLD_PERCENT = 15,
    KEEPS_WORD_PERCENT = 50, /* of the orderly ones */
    CUT_PERCENT = 40,        /* of the changes */
    CUT_US = 20000000,       /* longer than a quarantine */
    CHANGES_MOST = 6, /* given up one after the other, a node tells them all */
    FOLLOW_US = 5000000,
};

/* The next server that quarantines nodes begins it. */
#define CUT_SOON 1

static const enum configuration lists[] = {
    CONFIGURATION_FIRST, CONFIGURATION_NEXT, CONFIGURATION_THIRD};
enum { LISTS = sizeof lists / sizeof *lists };

static struct simconfig *config_of(const struct world *world,
                                   enum configuration configuration)
{
    return &world->faults->configs[configuration];
}

/* ---- at the start ------------------------------------------------------- */

uint64_t lists_faults(struct world *world)
{
    static const enum fault kinds[] = {
        FAULT_SLOW,         FAULT_BREAK,          FAULT_BLOCK, FAULT_DOUBLE,
        FAULT_PAUSE,        FAULT_ERROR,          FAULT_DRIFT, FAULT_UNCONFIRM,
        FAULT_SERVER_PAUSE, FAULT_SERVER_RESTART, FAULT_STALL, FAULT_TERM,
    };
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        all |= fault_bit(kinds[i]);
    all &= (uint64_t)world_random(world, INT64_C(1) << FAULT_FULL);
    return all | fault_bit(FAULT_LISTS);
}

static void shuffle(struct world *world, int names[SIM_NAMES])
{
    for (int i = 0; i < SIM_NAMES; i++) {
        int at = (int)world_random(world, i + 1);
        names[i] = i;
        names[i] = names[at];
        names[at] = i;
    }
}

static void set(struct world *world, enum configuration configuration,
                const int *names, int nodes)
{
    static const char *const fingerprints[CONFIGURATIONS][2] = {
        [CONFIGURATION_FIRST] = {"fingerprint-4-03", "fingerprint-4-05"},
        [CONFIGURATION_NEXT] = {"fingerprint-5-03", "fingerprint-5-05"},
        [CONFIGURATION_THIRD] = {"fingerprint-6-03", "fingerprint-6-05"},
        [CONFIGURATION_OTHER] = {"fingerprint-7-03", "fingerprint-7-05"},
    };
    struct simconfig *config = config_of(world, configuration);
    config->nodes = nodes;
    config->fingerprint = fingerprints[configuration][nodes == LONG];
    config->epoch = 1;
    config->max_ttl_ms = config_of(world, CONFIGURATION_FIRST)->max_ttl_ms;
    memcpy(config->name, names, (size_t)nodes * sizeof *names);
}

static int any_length(struct world *world)
{
    return world_chance(world, 50) ? LONG : SHORT;
}

static void draw(struct world *world, enum configuration configuration)
{
    int names[SIM_NAMES];
    shuffle(world, names);
    set(world, configuration, names, any_length(world));
}

static int count_shared(const struct world *world, enum configuration one,
                        enum configuration other)
{
    int count = 0;
    for (int i = 0; i < SIM_NAMES; i++)
        count += servers_has_name(world, one, i) &&
                 servers_has_name(world, other, i);
    return count;
}

static bool has_majority(const struct world *world, enum configuration next,
                         enum configuration before)
{
    return count_shared(world, next, before) >
           config_of(world, before)->nodes / 2;
}

static bool are_orderly(const struct world *world)
{
    if (!has_majority(world, CONFIGURATION_THIRD, CONFIGURATION_NEXT))
        return false;
    if (world->faults->keeps_word) /* and no more than that */
        return config_of(world, CONFIGURATION_NEXT)->nodes ==
                   config_of(world, CONFIGURATION_THIRD)->nodes &&
               count_shared(world, CONFIGURATION_NEXT, CONFIGURATION_THIRD) ==
                   config_of(world, CONFIGURATION_NEXT)->nodes / 2 + 1;
    return has_majority(world, CONFIGURATION_NEXT, CONFIGURATION_FIRST) &&
           has_majority(world, CONFIGURATION_FIRST, CONFIGURATION_THIRD);
}

/* There are no old servers. */
static void begin_by_word(struct world *world)
{
    struct faults *faults = world->faults;
    struct simconfig *config = config_of(world, CONFIGURATION_NEXT);
    faults->configuration = CONFIGURATION_NEXT;
    config_of(world, CONFIGURATION_FIRST)->is_begun = false;
    config->is_begun = true;
    config->epoch = config->word_epoch = faults->word_epoch = 2;
}

void lists_init(struct world *world)
{
    struct faults *faults = world->faults;
    int names[SIM_NAMES];
    shuffle(world, names);
    set(world, CONFIGURATION_FIRST, names,
        faults->has_other ? SHORT : any_length(world));
    set(world, CONFIGURATION_OTHER, names + SHORT, SHORT);
    do {
        draw(world, CONFIGURATION_NEXT);
        draw(world, CONFIGURATION_THIRD);
    } while (faults->is_orderly && !are_orderly(world));
    config_of(world, CONFIGURATION_FIRST)->is_begun = true;
    if (faults->keeps_word)
        begin_by_word(world);
    if (world_chance(world, 50)) { /* for which it needed the word */
        config_of(world, CONFIGURATION_OTHER)->epoch = 2;
        config_of(world, CONFIGURATION_OTHER)->word_epoch = 2;
    }
}

void lists_choose_kind(struct world *world)
{
    struct faults *faults = world->faults;
    faults->is_orderly = world_chance(world, ORDERLY_PERCENT);
    faults->keeps_word =
        faults->is_orderly && world_chance(world, KEEPS_WORD_PERCENT);
    faults->has_other =
        !faults->is_orderly && world_chance(world, OTHER_PERCENT);
}

void lists_start_other(struct world *world)
{
    if (world->faults->has_other)
        server_start(world, SIM_FOREIGN, CONFIGURATION_OTHER, true);
}

/* ---- changes ------------------------------------------------------------ */

/* How many of the nodes vote with it that another list has as well. */
static int count_admitted(const struct world *world,
                          enum configuration configuration,
                          enum configuration other)
{
    const struct simconfig *config = config_of(world, configuration);
    int count = 0;
    for (int i = 0; i < config->nodes; i++)
        count += servers_has_name(world, other, config->name[i]) &&
                 servers_has_admitted(world, configuration, config->name[i]);
    return count;
}

/* All nodes of the list by which the word was given vote. */
static void note_done(struct world *world)
{
    struct faults *faults = world->faults;
    enum configuration now = faults->configuration;
    const struct simconfig *config = config_of(world, now);
    if (config->word_epoch == config->epoch &&
        count_admitted(world, now, now) == config->nodes)
        faults->is_word_done = true;
}

static bool needs_word(const struct world *world, enum configuration next)
{
    const struct faults *faults = world->faults;
    return (faults->word_epoch != 0 && !faults->is_word_done) ||
           config_of(world, next)->is_given_up;
}

static void take_word(struct world *world)
{
    struct faults *faults = world->faults;
    struct simconfig *config = config_of(world, faults->configuration);
    world_trace(world, "all servers are stopped");
    for (int i = 0; i < LISTS; i++) {
        struct simconfig *it = config_of(world, lists[i]);
        it->word_epoch = 0;
        it->is_given_up = it->is_begun && it != config;
    }
    config->word_epoch = faults->word_epoch = config->epoch;
    faults->is_word_done = false;
    for (int i = 0; i < SIM_SERVERS; i++)
        server_kill(world, i);
    for (int i = 0; i < SIM_FOREIGN; i++)
        world_at(world, world_random(world, FOLLOW_US),
                 (struct event){.kind = EVENT_START_SERVER,
                                .a = i,
                                .b = (int)faults->configuration});
}

/* One server begins with a third list, with the same epoch. */
static void begin_rival(struct world *world)
{
    struct faults *faults = world->faults;
    int server = world_any_server(world);
    int epoch = config_of(world, faults->configuration)->epoch;
    for (int i = 0; i < LISTS; i++) {
        struct simconfig *rival = config_of(world, lists[i]);
        if (rival->epoch > epoch || lists[i] == faults->configuration ||
            rival->is_given_up || world_chance(world, 50))
            continue;
        world_trace(world, "server %d begins with a rival", server);
        rival->epoch = epoch;
        rival->is_begun = true;
        server_kill(world, server);
        world_at(world, world_random(world, FOLLOW_US),
                 (struct event){.kind = EVENT_START_SERVER,
                                .a = server,
                                .b = (int)lists[i]});
        return;
    }
}

/* If the new servers will be cut off from a name, one of the old ones stays. */
static void follow(struct world *world)
{
    int stays =
        world->faults->cut_us == CUT_SOON ? world_any_server(world) : -1;
    for (int i = 0; i < SIM_FOREIGN; i++)
        if (i != stays && !world_chance(world, ABSENT_PERCENT))
            faults_end_later(world, world_random(world, FOLLOW_US),
                             FAULT_SERVER_RESTART, i);
}

/* Only to the list behind it, back and forth, or to any. */
static enum configuration choose_next(struct world *world)
{
    const struct faults *faults = world->faults;
    if (faults->keeps_word)
        return faults->configuration == CONFIGURATION_NEXT ? CONFIGURATION_THIRD
                                                           : CONFIGURATION_NEXT;
    int at = 0;
    while (at < LISTS && lists[at] != faults->configuration)
        at++;
    assert(at < LISTS);
    int by = faults->is_orderly ? 1 : 1 + (int)world_random(world, LISTS - 1);
    return lists[(at + by) % LISTS];
}

/* The highest of the list on its nodes, or of all others there. */
static int highest_epoch(const struct world *world, bool is_own)
{
    enum configuration now = world->faults->configuration;
    const struct simconfig *config = config_of(world, now);
    int highest = 0;
    for (int i = 0; i < config->nodes; i++) {
        const struct simmemory *memory =
            &world->machines[faults_home(world, i)].memory;
        const char *found[] = {memory->admit, memory->quarantine,
                               memory->taken};
        for (int k = 0; k < 3; k++) {
            struct span fingerprint =
                found[k][0] == '\0' ? span_of("")
                                    : call_state_part(span_of(found[k]),
                                                      CALL_STATE_FINGERPRINT);
            if (span_is(fingerprint, config->fingerprint) == is_own)
                highest = (int)at_least(highest, atoi(found[k]));
        }
    }
    return highest;
}

void lists_follow_epoch(struct world *world)
{
    struct faults *faults = world->faults;
    struct simconfig *config = config_of(world, faults->configuration);
    int own = highest_epoch(world, true);
    int others = (int)at_least(1, highest_epoch(world, false));
    config->epoch = own > others ? own : others + 1;
    if (!faults->is_calm && config->epoch <= faults->word_epoch &&
        config->word_epoch == 0)
        config->epoch = faults->word_epoch + 1;
    config->is_begun = true;
}

/*
 * The last change of an orderly world is done, and so many of the nodes vote
 * that the next list has as well that --plan does not refuse it.
 */
static bool may_follow(struct world *world)
{
    const struct faults *faults = world->faults;
    enum configuration now = faults->configuration;
    int telling = count_admitted(world, now, choose_next(world));
    return telling > config_of(world, now)->nodes / 2 &&
           (!faults->keeps_word || faults->is_word_done);
}

void lists_change(struct world *world)
{
    struct faults *faults = world->faults;
    note_done(world);
    if (faults->count[FAULT_LISTS] > CHANGES_MOST ||
        world->now_us < faults->cut_us ||
        (faults->is_orderly && !may_follow(world)))
        return;
    faults->cut_us = world_chance(world, CUT_PERCENT) ? CUT_SOON : 0;
    enum configuration next = choose_next(world);
    bool is_word = needs_word(world, next) ||
                   (!faults->is_orderly && world_chance(world, WORD_PERCENT));
    faults->configuration = next;
    lists_follow_epoch(world);
    world_trace(world, "the list changes, epoch %d",
                config_of(world, faults->configuration)->epoch);
    if (is_word) {
        take_word(world);
        return;
    }
    follow(world);
    if (!faults->is_orderly && world_chance(world, RIVAL_PERCENT))
        begin_rival(world);
}

/* ---- servers ------------------------------------------------------------ */

bool lists_may_start(const struct world *world,
                     enum configuration configuration)
{
    const struct simconfig *config = config_of(world, configuration);
    if (configuration == CONFIGURATION_OTHER)
        return world->faults->word_epoch == 0; /* which stops it, too */
    return config->is_begun && !config->is_given_up;
}

enum configuration lists_choose(struct world *world)
{
    enum configuration old = lists[world_random(world, LISTS)];
    bool is_old = (!world->faults->is_orderly || world->faults->keeps_word) &&
                  world_chance(world, OLD_PERCENT) &&
                  lists_may_start(world, old);
    return is_old ? old : world->faults->configuration;
}

/* ---- what is claimed ---------------------------------------------------- */

bool lists_have_order(const struct world *world, int server)
{
    return !world->faults->is_blind &&
           world->servers[server].configuration != CONFIGURATION_OTHER;
}

static bool is_of_other(const struct world *world, const char *admit)
{
    return span_is(call_state_part(span_of(admit), CALL_STATE_FINGERPRINT),
                   config_of(world, CONFIGURATION_OTHER)->fingerprint);
}

/* The epoch with which the machine of this name votes, or did until it was
 * taken, but not for the other installation; 0: with none. */
static int epoch_on(const struct world *world, int name)
{
    const struct simmemory *it = &world->machines[world->home[name]].memory;
    const char *admit = it->admit[0] != '\0' ? it->admit : it->taken;
    return admit[0] == '\0' || is_of_other(world, admit) ? 0 : atoi(admit);
}

/* A node that the servers of another list have as well, or any. */
static int any_shared(struct world *world, int server)
{
    enum configuration list = world->servers[server].configuration;
    int nodes = server_nodes(world, server);
    int first = (int)world_random(world, nodes);
    for (int i = first; i < first + nodes; i++)
        for (int k = 0; k < SIM_FOREIGN; k++)
            if (world->servers[k].engine != NULL &&
                world->servers[k].configuration != list &&
                servers_has_name(world, world->servers[k].configuration,
                                 config_of(world, list)->name[i % nodes]))
                return i % nodes;
    return first;
}

/*
 * None of the servers that have this list now, or that start later, reaches one
 * of its nodes any more; those of another list do.
 */
static void cut_off(struct world *world, int server)
{
    const struct simserver *by = &world->servers[server];
    int node = any_shared(world, server);
    world->faults->cut_us = world->now_us + CUT_US;
    world_trace(world, "name %d is cut off from the new servers",
                config_of(world, by->configuration)->name[node]);
    for (int i = 0; i < SIM_FOREIGN; i++)
        if (world->servers[i].engine == NULL ||
            world->servers[i].configuration == by->configuration)
            simlink_of(world, i, node)->blocked_us = world->faults->cut_us;
}

static void probe_for_blindness(struct world *world, int server)
{
    enum configuration list = world->servers[server].configuration;
    int highest = 0, seen = 0;
    if (!world->faults->has_other || list == CONFIGURATION_OTHER)
        return;
    for (int i = 0; i < SIM_NAMES; i++)
        highest = (int)at_least(highest, epoch_on(world, i));
    for (int i = 0; i < server_nodes(world, server); i++)
        if (simlink_of(world, server, i)->has_probed)
            seen = (int)at_least(
                seen, epoch_on(world, config_of(world, list)->name[i]));
    world->faults->is_blind |= seen < highest;
}

void lists_on_quarantine(struct world *world, int server)
{
    struct faults *faults = world->faults;
    enum configuration list = world->servers[server].configuration;
    probe_for_blindness(world, server);
    if (faults->cut_us == CUT_SOON && list == faults->configuration)
        cut_off(world, server);
}

bool lists_are_apart(const struct world *world, enum configuration one,
                     enum configuration other)
{
    if (one == other || !plan_is_on(world, FAULT_LISTS))
        return false;
    if (world->faults->is_blind)
        return true;
    return one == CONFIGURATION_OTHER || other == CONFIGURATION_OTHER;
}
