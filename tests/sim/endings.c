/* SPDX-License-Identifier: MIT */
#include "endings.h"

#include "../lib/node/simholders.h"
#include "clients.h"
#include "copies.h"
#include "faults.h"
#include "losses.h"
#include "visits.h"

enum {
    ABLE_MORE_US = 5000000,
    TIDY_MORE_US = 6000000,
    CONTEST_US = 1000000,
    STRAGGLERS_US = 20000, /* for clients that still ask */
    ASK_AGAIN_US = 400000, /* and two timeouts, for releases to ask again;
                              mostly below a TTL */
    REPLICATED_US = 400000,
    PAUSE_US = 150000, /* too long for a round */
    STEP_US = 1000,
    ANSWER_STEPS = 2000,
    PROMPT_US = 3000, /* how fast connections are without faults */
    SLOW_US = 20000,
    WAITERS = 8,
    TTL_MS = 3000,
    WAIT_MS = 4000,
    HOLD_US = 20000, /* at most a random delay more, even without news */
    LEAVERS = 4,
    SPREAD_MS = 1500,    /* a lock is on all nodes */
    HANDOVER_US = 4000,  /* mostly, from a request to release */
    APART_US = 400000,   /* within half a window */
    RESTED_US = 2000000, /* a server knows that it does not reach a node */
    REGAINERS = 8,
    CROWD = 8,
    BACKUPS = 3,
    PROBED_US = 1100000,
    ARRIVAL_US = 100000,
    FORCED_TIMES = 3,
    APART_TIMES = 4,
    /* half a second of it because of the clocks, and before and after that
       attempts that are tried again after random delays, others in between */
    REGAINED_US = 1900000,
};

/* Until no client asks or holds, but at most this many times step_us. */
static void let_rest(struct world *world, int times, int64_t step_us)
{
    world->clients->is_resting = true;
    for (int i = SIM_ALL_CLIENTS; i < SIM_EVERYBODY; i++)
        client_leave(world, &world->clients->client[i]);
    for (int i = 0; i < times && !clients_are_idle(world->clients); i++)
        world_run(world, step_us);
}

/* A writer that readers kept out wants it: that ends soon by itself. */
static bool is_only_wanted(const struct simmemory *memory, int resource,
                           int64_t clock_us)
{
    const struct simkey *key = simnode_key(memory, resource, clock_us);
    return key != NULL && key->is_shared &&
           simholders_count(memory, resource, clock_us / 1000) == 0;
}

static void check_tidy(struct world *world)
{
    clients_trace(world);
    if (!clients_are_idle(world->clients))
        ledger_violated(world, "answered", -1, -1);
    for (int i = 0; i < SIM_NAMES; i++) {
        const struct machine *machine = &world->machines[world->home[i]];
        int64_t clock_us = machine_clock(machine, world->now_us);
        for (int j = 0; j < SIM_RESOURCES; j++)
            if (simnode_key(&machine->memory, j, clock_us) != NULL &&
                !is_only_wanted(&machine->memory, j, clock_us))
                ledger_violated(world, "tidy", -1, j);
    }
}

/* Once releases have asked again where a call of the lock may have been late.
 */
static void check_tidy_soon(struct world *world)
{
    world_run(world, ASK_AGAIN_US + 2 * world->node_timeout_us);
    check_tidy(world);
}

/* ---- nothing is left behind --------------------------------------------- */

static void contest(struct world *world)
{
    world->clients->is_resting = false;
    clients_start(world);
    world_run(world, CONTEST_US);
    let_rest(world, 1000, STRAGGLERS_US);
}

/*
 * Without faults nothing is left behind, and no TTL has to end for that; except
 * by clients that ask twice and read one of the answers.
 */
static void check_stragglers(struct world *world)
{
    world->clients->has_ghosts = false;
    world->clients->has_repeats = false; /* which stay until their TTL ends */
    contest(world);
    check_tidy_soon(world);
}

/* Two nodes, or one, lack the locks that are taken in this time. */
static void pause_two(struct world *world)
{
    for (int i = 0; i < 2; i++)
        faults_pause(world, losses_any_machine(world), PAUSE_US);
}

/* Makes some connections so slow that calls on others overtake theirs. */
static void slow_down(struct world *world, int64_t slow_us)
{
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < SIM_NODES; j++)
            simlink_of(world, i, j)->delay_us =
                world_chance(world, 30) ? slow_us : PROMPT_US / 6;
}

/* Extends that nobody waits for set nothing after a release. */
static void check_unheard(struct world *world)
{
    world->clients->is_hasty = true;
    slow_down(world, SLOW_US);
    for (int i = 0; i < 4; i++) {
        pause_two(world);
        contest(world);
    }
    check_tidy_soon(world);
    slow_down(world, PROMPT_US);
    world->clients->is_hasty = false;
}

/* ---- every server can acquire every resource ---------------------------- */

static void check_able(struct world *world)
{
    for (int i = 0; i < world_resources(world); i++) {
        struct client *client = &world->clients->client[i];
        uint64_t granted = world->clients->outcomes[OUTCOME_GRANTED];
        client_choose(client, i);
        client->ttl_ms = 1000;
        client->wait_ms = 0;
        client_ask(world, client, ASK_ACQUIRE, i % SIM_FOREIGN);
        world_run(world, 1200000);
        if (world->clients->outcomes[OUTCOME_GRANTED] != granted)
            continue;
        servers_trace(world);
        ledger_violated(world, "able", i, i);
        return;
    }
}

/* ---- a lock that was extended is on all nodes --------------------------- */

static void choose(struct client *client, int resource, int64_t wait_ms)
{
    client_choose(client, resource);
    client->ttl_ms = TTL_MS;
    client->wait_ms = wait_ms;
}

/* All nodes vote, and have done so since since_us by the server's clock. */
static bool is_all_well(struct world *world, int server, int64_t since_us)
{
    for (int i = 0; i < server_nodes(world, server); i++) {
        const struct simlink *link = simlink_of(world, server, i);
        struct engine_node_view view;
        engine_view_node(world->servers[server].engine, i, &view);
        if (!view.is_voting || view.since_us > since_us ||
            link->delay_us > PROMPT_US || link->blocked_us > world->now_us)
            return false;
    }
    return true;
}

bool endings_ask(struct world *world, struct client *client,
                 enum client_ask what, int server, enum outcome wanted)
{
    uint64_t before = world->clients->outcomes[wanted];
    client_ask(world, client, what, server);
    for (int i = 0; i < ANSWER_STEPS && client->state == CLIENT_ASKING; i++)
        world_run(world, STEP_US);
    client_leave(world, client);
    return world->clients->outcomes[wanted] > before;
}

bool endings_acquire(struct world *world, struct client *client, int server)
{
    return endings_ask(world, client, ASK_ACQUIRE, server, OUTCOME_GRANTED);
}

void endings_release(struct world *world, struct client *client, int server)
{
    client->believes_until_us = 0;
    (void)endings_ask(world, client, ASK_RELEASE, server, OUTCOME_RELEASED);
}

static void check_everywhere(struct world *world, const struct client *client)
{
    const struct simconfig *config = faults_config(world);
    for (int i = 0; i < config->nodes; i++) {
        const struct machine *machine = &world->machines[faults_home(world, i)];
        if (!ledger_has_lock(world, machine, client))
            ledger_violated(world, "replicated", client_number(world, client),
                            client->resources[0]);
    }
}

/* Acquired while two nodes are down; then extended, and released. */
static void check_replicated(struct world *world, int resource)
{
    struct client *client = &world->clients->client[resource];
    int server = world_any_server(world);
    choose(client, resource, 0);
    pause_two(world);
    bool is_held = endings_acquire(world, client, server);
    world_run(world, PAUSE_US);
    server = world_any_server(world);
    int64_t since_us = server_clock(&world->servers[server]);
    bool is_extended = is_held && endings_ask(world, client, ASK_EXTEND, server,
                                              OUTCOME_EXTENDED);
    bool is_hurried = world_chance(world, 50);
    world_run(world,
              is_hurried ? world_random(world, REPLICATED_US) : REPLICATED_US);
    if (is_extended && !is_hurried && is_all_well(world, server, since_us))
        check_everywhere(world, client);
    endings_release(world, client, world_any_server(world));
}

static void check_all_replicated(struct world *world)
{
    let_rest(world, 20, 1000000);
    world->clients->is_led = true;
    for (int i = 0; i < world_resources(world); i++)
        check_replicated(world, i);
    check_tidy_soon(world);
}

/* ---- backups of all nodes at once cost nothing -------------------------- */

static bool is_all_well_everywhere(struct world *world)
{
    for (int i = 0; i < SIM_FOREIGN; i++)
        if (!is_all_well(world, i, server_clock(&world->servers[i])))
            return false;
    return true;
}

/* Neither a lock that is held nor a request. */
static void check_backups(struct world *world)
{
    struct client *holder = &world->clients->client[0];
    struct client *other = &world->clients->client[1];
    for (int i = 0; i < BACKUPS; i++) {
        int resource = i % (world_resources(world) - 1);
        int server = world_any_server(world);
        /* each server has probed once since the last change */
        world_run(world, PROBED_US + world_random(world, 1000000));
        choose(holder, resource, 0);
        choose(other, resource + 1, 0);
        if (!is_all_well_everywhere(world))
            continue;
        bool is_held = endings_acquire(world, holder, server);
        copies_attach_all(world);
        bool is_kept = is_held &&
                       endings_ask(world, holder, ASK_EXTEND,
                                   world_any_server(world), OUTCOME_EXTENDED) &&
                       endings_acquire(world, other, server);
        if (!is_kept)
            ledger_violated(world, "backups", i, resource);
        endings_release(world, holder, server);
        endings_release(world, other, server);
    }
}

/* ---- who waits is served ------------------------------------------------ */

/* Releases what it has had for a moment. */
static void pass_on(struct world *world, struct client *client)
{
    if (client->state != CLIENT_HOLDING ||
        world->now_us - client->granted_us < HOLD_US)
        return;
    client->believes_until_us = 0;
    client_ask(world, client, ASK_RELEASE, world_any_server(world));
}

static void pass_all_on(struct world *world, int count)
{
    for (int ms = 0; ms < 2 * WAIT_MS && !clients_are_idle(world->clients);
         ms++) {
        world_run(world, 1000);
        for (int i = 0; i < count; i++)
            pass_on(world, &world->clients->client[i]);
    }
}

/*
 * Some clients wait at several servers, for a lock or for permits, every third
 * for another resource as well or for two; and each is granted it shortly.
 */
static void check_served(struct world *world, int resource, bool are_permits)
{
    struct client *all = world->clients->client;
    uint64_t granted = world->clients->outcomes[OUTCOME_GRANTED];
    for (int i = 0; i < WAITERS; i++) {
        choose(&all[i], resource, WAIT_MS);
        if (are_permits)
            client_choose_permits(&all[i], SIM_SLOTS, i % 3 == 0 ? 2 : 1);
        if (!are_permits && i % 3 == 0)
            client_choose_also(&all[i],
                               (resource + 1 + i) % world_resources(world));
        client_ask(world, &all[i], ASK_ACQUIRE, world_any_server(world));
    }
    pass_all_on(world, WAITERS);
    if (world->clients->outcomes[OUTCOME_GRANTED] != granted + WAITERS)
        ledger_violated(world, "served", -1, resource);
}

/*
 * A client that waits leaves while the lock is released: it may just have been
 * granted, and has nothing of it.
 */
static void check_left(struct world *world, int resource)
{
    struct client *holder = &world->clients->client[0];
    struct client *waiter = &world->clients->client[1];
    choose(holder, resource, 0);
    choose(waiter, resource, WAIT_MS);
    int server = world_any_server(world);
    if (!endings_acquire(world, holder, server))
        return; /* check_able tells */
    client_ask(world, waiter, ASK_ACQUIRE, world_any_server(world));
    world_run(world, STRAGGLERS_US);
    holder->believes_until_us = 0;
    client_ask(world, holder, ASK_RELEASE, world_any_server(world));
    world_run(world, world_random(world, HANDOVER_US));
    client_leave(world, waiter);
    let_rest(world, ANSWER_STEPS, STEP_US);
    if (waiter->state == CLIENT_HOLDING) /* it was too late to leave */
        endings_release(world, waiter, server);
    check_tidy_soon(world);
}

/* ---- who lost the answer has its lock again ----------------------------- */

/*
 * Two clocks are behind, and one server does not reach one of the others: its
 * time is behind that of the other servers.
 */
static void set_apart(struct world *world)
{
    const struct simconfig *config = faults_config(world);
    int first = (int)world_random(world, config->nodes);
    for (int i = 0; i < 2; i++) {
        int name = config->name[(first + i) % config->nodes];
        machine_step(&world->machines[world->home[name]], world->now_us,
                     -APART_US);
    }
    world_run(world, faults_quarantine_us(world) + ABLE_MORE_US);
    int server = world_any_server(world);
    int node = (first + 2) % config->nodes;
    simlink_of(world, server, node)->blocked_us = INT64_MAX;
    simlink_break(world, server, node);
    world_run(world, RESTED_US);
}

/* Some of the resources next to this one, with a key or without. */
static void choose_near(struct world *world, struct client *client,
                        int resource)
{
    int count = 1 + (int)world_random(world, SIM_HELD_MAX);
    int first = resource + (int)world_random(world, 2);
    choose(client, first % world_resources(world), WAIT_MS);
    for (int i = 1; i < count; i++)
        client_choose_also(client, (first + i) % world_resources(world));
    if (world_chance(world, 50))
        client->key = ++world->clients->keys;
}

/*
 * A client is granted a lock, does not learn it, and asks again while others
 * wait for some of its resources, or for more.
 */
static void check_regained(struct world *world, int resource)
{
    struct client *all = world->clients->client;
    struct client *holder = &all[0];
    int crowd = (int)world_random(world, CROWD);
    choose_near(world, holder, resource);
    holder->key = ++world->clients->keys;
    if (!endings_acquire(world, holder, world_any_server(world)))
        return; /* check_able tells */
    for (int i = 1; i <= crowd; i++) {
        choose_near(world, &all[i], resource);
        client_ask(world, &all[i], ASK_ACQUIRE, world_any_server(world));
    }
    world_run(world, world_random(world, ARRIVAL_US));
    int64_t asked_us = world->now_us;
    (void)endings_acquire(world, holder, world_any_server(world));
    if (holder->state != CLIENT_HOLDING ||
        holder->granted_us - asked_us > REGAINED_US)
        ledger_violated(world, "regained", 0, holder->resources[0]);
    pass_all_on(world, crowd + 1);
}

static void check_each_regained(struct world *world)
{
    if (faults_config(world)->max_ttl_ms < REGAINED_US / 1000)
        return; /* it would end meanwhile */
    for (int i = 0; i < REGAINERS; i++)
        check_regained(world, i % world_resources(world));
}

static void check_all_regained(struct world *world)
{
    check_each_regained(world);
    const struct simconfig *config = faults_config(world);
    if (config->max_ttl_ms < REGAINED_US / 1000 || config->nodes < SIM_NODES)
        return; /* two would be a majority of three */
    set_apart(world);
    check_each_regained(world);
}

/* ---- who repeats a permit gets no second one ----------------------------- */

/* One node has the token of this slot for the next slot, too. */
static void leave_token(struct world *world, int slot)
{
    struct machine *machine = &world->machines[losses_any_machine(world)];
    struct simkey *keys = machine->memory.keys;
    int next = SIM_PLAIN + (slot - SIM_PLAIN + 1) % SIM_SLOTS;
    machine_note(machine, world->now_us);
    if (keys[slot].is_set && !keys[next].is_set)
        keys[next] = keys[slot];
}

/*
 * A client had lost a try for another slot, whose release did not reach a node,
 * and repeats its acquire while all nodes have its permit.
 */
static void check_same(struct world *world)
{
    struct client *client = &world->clients->client[0];
    client_choose_permits(client, SIM_SLOTS, 1);
    client->key = ++world->clients->keys;
    client->ttl_ms = 2 * SPREAD_MS;
    client->wait_ms = 0;
    if (faults_config(world)->max_ttl_ms < client->ttl_ms ||
        !endings_acquire(world, client, world_any_server(world)))
        return; /* check_able tells */
    int slot = client->resources[0];
    world_run(world, SPREAD_MS * 1000);
    leave_token(world, slot);
    bool is_granted = endings_acquire(world, client, world_any_server(world));
    if (is_granted && client->resources[0] != slot)
        ledger_violated(world, "same", 0, slot);
    endings_release(world, client, world_any_server(world));
    world_run(world, 2 * SPREAD_MS * 1000); /* what was left ends */
}

/* ---- all of it ---------------------------------------------------------- */

static void check_visits(struct world *world)
{
    visits_check_watched(world, (int)world_random(world, SIM_PLAIN));
    for (int i = 0; i < FORCED_TIMES && world->has_shared; i++)
        visits_check_forced(world, (int)world_random(world, SIM_PLAIN));
}

/* How much longer a key may live, if clocks step back again and again. */
static int64_t fell_us(const struct world *world)
{
    int64_t most_us = 0;
    for (int i = 0; i < SIM_NAMES && world->faults->is_wild; i++)
        most_us = at_least(most_us, world->machines[world->home[i]].fell_us);
    return most_us;
}

void endings_check(struct world *world)
{
    let_rest(world, 20, 1000000);
    world_run(world,
              world->faults->longest_ms * 1000 + TIDY_MORE_US + fell_us(world));
    check_tidy(world);
    check_stragglers(world);
    check_unheard(world);
    faults_set_clocks(world);
    world_run(world, faults_quarantine_us(world) + ABLE_MORE_US);
    check_able(world);
    check_all_replicated(world);
    for (int i = 0; i < LEAVERS; i++)
        check_left(world, (int)world_random(world, world_resources(world)));
    check_served(world, (int)world_random(world, world_resources(world)),
                 false);
    if (world->has_visitors)
        check_visits(world);
    if (world->has_permits)
        check_same(world);
    check_all_regained(world);
    if (world->has_permits)
        check_served(world, SIM_PLAIN, true);
    for (int i = 0; i < APART_TIMES && world->has_visitors && world->has_shared;
         i++)
        visits_check_later(world, (int)world_random(world, SIM_PLAIN));
    if (world->has_visitors && world->has_shared)
        visits_check_parts(world, (int)world_random(world, SIM_PLAIN));
    for (int i = 0; i < FORCED_TIMES && world->has_visitors; i++)
        visits_check_rivals(world, (int)world_random(world, SIM_PLAIN));
    if (world->has_shared)
        visits_check_crowd(world, (int)world_random(world, SIM_PLAIN));
    check_backups(world);
}
