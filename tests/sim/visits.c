/* SPDX-License-Identifier: MIT */
#include "visits.h"

#include "endings.h"
#include "faults.h"

enum {
    WATCHERS = 4,
    WRITERS = 3,
    RIVALS = 2,
    LASTS_US = 1000000,
    TOLD_US = 150000, /* later, as requests and inspections take time */
    STEP_US = 1000,
    WATCH_MS = 10000,
    TTL_MS = 3000,
    SHORT_TTL_MS = 1000, /* within the longest that a lock may be held */
    PAUSE_US = 150000,   /* too long for a round */
    LATER_US = 600000,
};

static struct client *visitor(const struct world *world, int n)
{
    return &world->clients->client[SIM_ALL_CLIENTS + n];
}

static void pause_some(struct world *world, int count)
{
    const struct simconfig *config = faults_config(world);
    int first = (int)world_random(world, config->nodes);
    for (int i = 0; i < count; i++)
        faults_pause(world, faults_home(world, (first + i) % config->nodes),
                     PAUSE_US);
}

/* Nodes may still have what was released: an early replication of another
 * server's. */
static void run_until_tidy(struct world *world)
{
    world_run(world, LATER_US + 2 * world->node_timeout_us);
}

static void choose(struct client *client, int resource, bool is_shared)
{
    client_choose(client, resource);
    client_choose_mode(client, is_shared);
    client->ttl_ms = TTL_MS;
    client->wait_ms = 0;
}

static bool lasts(const struct world *world)
{
    return faults_config(world)->max_ttl_ms >= (LASTS_US + TOLD_US) / 1000;
}

/* ---- watches ------------------------------------------------------------ */

/* Who was answered asks again; some leave, and come to another server. */
static void follow(struct world *world)
{
    for (int i = 0; i < WATCHERS; i++) {
        struct client *it = visitor(world, i);
        if (it->state == CLIENT_ASKING && world_random(world, 500) == 0)
            client_leave(world, it);
        if (it->state != CLIENT_IDLE)
            continue;
        it->wait_ms = WATCH_MS;
        client_ask(world, it, ASK_WATCH, world_any_server(world));
    }
}

static void run_followed(struct world *world, int64_t us)
{
    for (int64_t i = 0; i < us / STEP_US; i++) {
        follow(world);
        world_run(world, STEP_US);
    }
}

/* What lasts has been told to each. */
static void check_told(struct world *world, int resource,
                       struct version version)
{
    run_followed(world, LASTS_US + TOLD_US);
    for (int i = 0; i < WATCHERS; i++)
        if (!version_is(&visitor(world, i)->visit.known, span_of(version.text)))
            ledger_violated(world, "watched",
                            client_number(world, visitor(world, i)), resource);
}

/* False: it did not get the lock. */
static bool write_watched(struct world *world, struct client *writer,
                          int resource)
{
    choose(writer, resource, false);
    if (!endings_acquire(world, writer, world_any_server(world)))
        return false;
    check_told(world, resource, version_of_number(writer->number));
    endings_release(world, writer, world_any_server(world));
    return true;
}

void visits_check_watched(struct world *world, int resource)
{
    if (!lasts(world))
        return;
    for (int i = 0; i < WATCHERS; i++) {
        client_choose(visitor(world, i), resource);
        visitor(world, i)->visit = (struct visit){.known = version_free};
    }
    for (int i = 0; i < WRITERS; i++) {
        struct client *writer = &world->clients->client[i];
        if (!write_watched(world, writer, resource))
            break; /* check_able tells */
        run_followed(world, world_random(world, TOLD_US));
    }
    /* the same client again, when the others know that the lock is free */
    for (int i = 0; i < 2; i++)
        if (write_watched(world, &world->clients->client[0], resource))
            check_told(world, resource, version_free);
    for (int i = 0; i < WATCHERS; i++) {
        struct client *it = visitor(world, i);
        while (it->state == CLIENT_ASKING && !it->is_asked &&
               !ledger_is_violated(world))
            world_run(world, 1000); /* it is on its way */
        client_leave(world, it);
    }
}

/* ---- forced releases ---------------------------------------------------- */

static bool force_all(struct world *world, int resource)
{
    struct client *it = visitor(world, 0);
    choose(it, resource, false);
    it->number = 0;
    return endings_ask(world, it, ASK_FORCE, world_any_server(world),
                       OUTCOME_RELEASED);
}

/* Some nodes did not get the downgrade, and have a writer there. */
void visits_check_forced(struct world *world, int resource)
{
    struct client *holder = &world->clients->client[0];
    choose(holder, resource, false);
    if (!endings_acquire(world, holder, world_any_server(world)))
        return; /* check_able tells */
    client_choose_mode(holder, true);
    pause_some(world, 1 + (int)world_random(world, 2));
    bool is_shared = endings_ask(world, holder, ASK_EXTEND,
                                 world_any_server(world), OUTCOME_EXTENDED);
    world_run(world, world_random(world, 2 * PAUSE_US));
    bool is_forced = is_shared && force_all(world, resource);
    run_until_tidy(world);
    for (int i = 0; i < SIM_MACHINES && is_forced; i++)
        if (simnode_key(&world->machines[i].memory, resource,
                        machine_clock(&world->machines[i], world->now_us)) !=
            NULL)
            ledger_violated(world, "forced", 0, resource);
    endings_release(world, holder, world_any_server(world));
}

static void force_at_once(struct world *world, const struct client *holder)
{
    uint64_t before = world->clients->outcomes[OUTCOME_RELEASED];
    for (int i = 0; i < RIVALS; i++) {
        struct client *it = visitor(world, i);
        choose(it, holder->resources[0], false);
        it->number = holder->number;
        client_ask(world, it, ASK_FORCE, world_any_server(world));
    }
    bool is_asking = true;
    while (is_asking && !ledger_is_violated(world) &&
           world->clients->outcomes[OUTCOME_RELEASED] == before) {
        world_run(world, STEP_US);
        is_asking = false;
        for (int i = 0; i < RIVALS; i++)
            is_asking |= visitor(world, i)->state == CLIENT_ASKING;
    }
    if (world->clients->outcomes[OUTCOME_RELEASED] == before)
        ledger_violated(world, "forced", 0, holder->resources[0]);
}

void visits_check_rivals(struct world *world, int resource)
{
    struct client *holder = &world->clients->client[0];
    struct client *next = &world->clients->client[1];
    choose(holder, resource, world->has_shared && world_chance(world, 50));
    choose(next, resource, false);
    next->wait_ms = TTL_MS;
    if (!lasts(world) ||
        !endings_acquire(world, holder, world_any_server(world)))
        return;
    pause_some(world, (int)world_random(world, 2));
    force_at_once(world, holder);
    (void)endings_acquire(world, next, world_any_server(world));
    world_run(world, LATER_US); /* the ledger sees whether it is kept */
    for (int i = 0; i < RIVALS; i++)
        client_leave(world, visitor(world, i));
    for (int i = 0; i < 2; i++) {
        struct client *it = &world->clients->client[i];
        endings_release(world, it, world_any_server(world));
    }
}

/* A node is asked again when another reader is there. */
void visits_check_later(struct world *world, int resource)
{
    struct client *one = &world->clients->client[0];
    struct client *other = &world->clients->client[1];
    choose(one, resource, true);
    choose(other, resource, true);
    run_until_tidy(world);
    if (!lasts(world) || !endings_acquire(world, one, world_any_server(world)))
        return;
    pause_some(world, 1);
    if (force_all(world, resource) &&
        endings_acquire(world, other, world_any_server(world))) {
        world_run(world, LATER_US);
        other->ttl_ms = SHORT_TTL_MS;
        if (!endings_ask(world, other, ASK_EXTEND, world_any_server(world),
                         OUTCOME_EXTENDED))
            ledger_violated(world, "forced", 1, resource);
    }
    for (int i = 0; i < 2; i++) {
        struct client *it = &world->clients->client[i];
        endings_release(world, it, world_any_server(world));
    }
}

/* ---- as many readers as may ---------------------------------------------- */

static void join(struct world *world, int n, int resource, enum outcome wanted)
{
    struct client *it = &world->clients->client[n];
    choose(it, resource, true);
    if (!endings_ask(world, it, ASK_ACQUIRE, world_any_server(world), wanted))
        ledger_violated(world, "readers", n, resource);
}

static void leave(struct world *world, int n)
{
    struct client *it = &world->clients->client[n];
    endings_release(world, it, world_any_server(world));
}

void visits_check_crowd(struct world *world, int resource)
{
    int most = world->readers_max;
    if (!lasts(world) || most >= SIM_CLIENTS)
        return;
    run_until_tidy(world);
    for (int i = 0; i < most; i++)
        join(world, i, resource, OUTCOME_GRANTED);
    world_run(world, LATER_US); /* all nodes have all of them */
    join(world, most, resource, OUTCOME_HELD);
    leave(world, 0);
    join(world, most, resource, OUTCOME_GRANTED);
    for (int i = 1; i <= most; i++)
        leave(world, i);
}

/* Its client does not know either answer; the ledger judges the second one. */
void visits_check_parts(struct world *world, int resource)
{
    struct client *holder = &world->clients->client[0];
    choose(holder, resource, true);
    client_choose_also(holder, (resource + 1) % SIM_PLAIN);
    holder->key = ++world->clients->keys;
    if (!lasts(world) ||
        !endings_acquire(world, holder, world_any_server(world)))
        return;
    client_note_had(world, holder, client_token(holder));
    holder->believes_until_us = 0;
    world_run(world, LASTS_US + TOLD_US); /* by all clocks */
    int part = holder->resources[world_random(world, holder->count)];
    if (force_all(world, part))
        (void)endings_acquire(world, holder, world_any_server(world));
    endings_release(world, holder, world_any_server(world));
}
