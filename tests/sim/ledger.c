/* SPDX-License-Identifier: MIT */
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../server/engine/port/token.h"
#include "../lib/node/simholders.h"
#include "clients.h"
#include "faults.h"
#include "lists.h"
#include "messages.h"
#include "steps.h"
#include "world.h"

enum {
    LATE_US = 300000,      /* uncertainty of a node's clock: slow round trips */
    STEPPED_US = 20000000, /* … and how long a step may stay unnoticed */
    LATER_US = 200000,     /* after an evicted lock would have ended */
    MEASURED_US = 300000,  /* how much farther apart servers see clocks */
    FORCED_US = 7000000,   /* a forced release may arrive so much later */
    FORGOTTEN_US = 20000000,
    NEAR_US = 1000000, /* clocks beyond this vote for no server */
    TAKEN_PART = 20,   /* of the time until it must be on all nodes, a lock is
                          kept away by others: several attempts meet them */
};

bool ledger_is_violated(const struct world *world)
{
    return world->clients->ledger.violation[0] != '\0';
}

void ledger_violated(struct world *world, const char *name, int client,
                     int resource)
{
    char *text = world->clients->ledger.violation;
    if (ledger_is_violated(world))
        return; /* only the first violation counts */
    snprintf(text, sizeof world->clients->ledger.violation,
             "%s: client %d, resource %d, at %lld us", name, client, resource,
             (long long)world->now_us);
    world_trace(world, "%s", text);
}

static void violated(struct world *world, const char *name,
                     const struct client *client)
{
    ledger_violated(world, name, client_number(world, client),
                    client->resources[0]);
}

/* ---- the numbers -------------------------------------------------------- */

static bool has_forgotten(const struct world *world)
{
    for (int i = 0; i < SIM_NAMES; i++)
        if (world->lost_us[i] != 0)
            return true;
    return false;
}

/* The same client's, which asked more than once: answers may change places. */
static bool has_key_of(const struct client *client, const struct numbered *last)
{
    return client->key != 0 && client->key == last->key;
}

/*
 * A repeat took the place of this grant, before it was told: its client has had
 * the later one, and may have released it, so that somebody else has the lock.
 */
static bool is_overtaken(const struct ledger *ledger,
                         const struct client *client, int64_t number)
{
    const struct numbered *latest = &ledger->of_keys[client->key % KEYS];
    return has_key_of(client, latest) && number < latest->number;
}

static void note_key(struct ledger *ledger, const struct client *client,
                     int64_t number)
{
    struct numbered *latest = &ledger->of_keys[client->key % KEYS];
    if (client->key != latest->key || number > latest->number)
        *latest = (struct numbered){number, client->key};
}

/* The latest that its number must be above. Readers have no order. */
static struct numbered *last_of(struct ledger *ledger,
                                const struct client *client, int resource)
{
    return client->is_shared ? &ledger->writers[resource]
                             : &ledger->last[resource];
}

void ledger_on_grant(struct world *world, const struct client *client,
                     int64_t began_us)
{
    struct ledger *ledger = &world->clients->ledger;
    int64_t number = client->number;
    bool is_forced = ledger_is_forced(world, client, began_us);
    bool is_foreign =
        world->servers[client->server].configuration == CONFIGURATION_FOREIGN;
    if (is_foreign && ledger->has_first && !has_forgotten(world))
        violated(world, "foreign", client);
    bool has_order = lists_have_order(world, client->server);
    for (int i = 0; i < client->count && has_order; i++) {
        int resource = client->resources[i];
        const struct numbered granted = {number, client->key};
        struct numbered *last = last_of(ledger, client, resource);
        bool is_excused = has_key_of(client, last) || is_forced ||
                          is_overtaken(ledger, client, number);
        if (number == last->number || (number < last->number && !is_excused))
            violated(world, "rising", client);
        if (number > ledger->last[resource].number)
            ledger->last[resource] = granted;
        if (!client->is_shared && number > ledger->writers[resource].number)
            ledger->writers[resource] = granted;
    }
    note_key(ledger, client, number);
}

/* ---- the keys ----------------------------------------------------------- */

/*
 * How much earlier than the grant a repeat may have been asked that takes its
 * place: their servers see the two moments by clocks that differ, and so does
 * the one that leaves it open which was first.
 */
static int64_t doubt_us(const struct world *world)
{
    int64_t least_us = 0, most_us = 0;
    for (int i = 0; i < SIM_NAMES; i++) {
        int64_t us = steps_offset_us(world, world->home[i]);
        if (llabs(us) > NEAR_US)
            continue;
        least_us = us < least_us ? us : least_us;
        most_us = us > most_us ? us : most_us;
    }
    return MEASURED_US + 2 * (most_us - least_us);
}

/* Another request with its key may have been asked for after it. */
static bool may_be_replaced(const struct world *world,
                            const struct client *client)
{
    return client->key != 0 &&
           client->repeated_us + doubt_us(world) >= client->granted_us;
}

/* Its token in any form, or a repeat: one with its key that was asked for after
 * it. */
static bool is_its_token(const struct world *world, struct span token,
                         const struct client *client, bool or_repeat)
{
    char text[KEY_HASH_LEN + 1];
    struct span hash = client_key_hash(client, text);
    struct token_parts parts;
    if (token_is_same(token, client_token(client)))
        return true;
    return or_repeat && hash.len > 0 && may_be_replaced(world, client) &&
           token_parse(token, &parts) && parts.key_hash.len == hash.len &&
           memcmp(parts.key_hash.ptr, hash.ptr, hash.len) == 0;
}

/* Maybe beside others. */
static bool is_its(const struct world *world, const struct machine *machine,
                   int resource, const struct client *client, bool or_repeat)
{
    const struct simmemory *memory = &machine->memory;
    int64_t clock_us = machine_clock(machine, world->now_us);
    const struct simkey *key = simnode_key(memory, resource, clock_us);
    if (key == NULL)
        return false;
    if (!key->is_shared)
        return is_its_token(world, (struct span){key->token, key->token_len},
                            client, or_repeat);
    for (const struct simholder *it = NULL;
         (it = simholders_next(memory, resource, it)) != NULL;)
        if (it->ends_ms >= clock_us / 1000 &&
            is_its_token(world, simholder_token(it), client, or_repeat))
            return true;
    return false;
}

bool ledger_has_lock(const struct world *world, const struct machine *machine,
                     const struct client *client)
{
    for (int i = 0; i < client->count; i++)
        if (!is_its(world, machine, client->resources[i], client, true))
            return false;
    return true;
}

static void trace_keys(const struct world *world, int number,
                       const struct client *client)
{
    const struct machine *machine = &world->machines[number];
    int64_t clock_ms = machine_clock(machine, world->now_us) / 1000;
    for (int i = 0; i < client->count; i++) {
        const struct simkey *key = &machine->memory.keys[client->resources[i]];
        if (key->is_set)
            world_trace(
                world, "machine %d has %s key %d, ends in %lld ms", number,
                is_its(world, machine, client->resources[i], client, true)
                    ? "its"
                    : "another",
                client->resources[i], (long long)(key->expires_ms - clock_ms));
    }
}

/* Which machines have it, and which names have lost what they had. */
static void check_kept(struct world *world, const struct client *client)
{
    const struct simconfig *config = servers_config(world, client->believes_in);
    bool is_on_name[SIM_NAMES] = {false};
    int kept = 0;
    for (int i = 0; i < SIM_MACHINES; i++)
        if (ledger_has_lock(world, &world->machines[i], client)) {
            is_on_name[i % SIM_NAMES] = true;
            kept++;
        }
    for (int i = 0; i < config->nodes; i++) {
        int name = config->name[i];
        kept += !is_on_name[name] && world->lost_us[name] >= client->granted_us;
    }
    if (kept > config->nodes / 2 || !world->clients->ledger.claims_clocks)
        return;
    world_trace(world, "client %d believes since %lld ms until in %lld ms",
                client_number(world, client),
                (long long)(world->now_us - client->granted_us) / 1000,
                (long long)(client->believes_until_us - world->now_us) / 1000);
    for (int i = 0; i < SIM_MACHINES; i++)
        trace_keys(world, i, client);
    violated(world, "kept", client);
}

/* ---- permits ------------------------------------------------------------ */

/* How many nodes have the lock, with this key. */
static int nodes_with(const struct world *world, const struct client *client)
{
    int count = 0;
    for (int i = 0; i < SIM_NODES; i++)
        count += ledger_has_lock(world, &world->machines[faults_home(world, i)],
                                 client);
    return count;
}

/* The permits that it has had, by any token with its key. */
static struct client before(const struct world *world,
                            const struct client *client)
{
    struct client it = *client;
    it.count = client->had.count;
    memcpy(it.resources, client->had.resources, sizeof it.resources);
    it.repeated_us = world->now_us;
    return it;
}

bool ledger_is_clear(const struct world *world, const struct client *client)
{
    struct client it = before(world, client);
    if (client->had.key == 0 || client->had.key != client->key ||
        nodes_with(world, &it) < SIM_NODES)
        return false;
    const struct client had = it;
    it.count = 1;
    for (int i = SIM_PLAIN; i < SIM_RESOURCES; i++) {
        it.resources[0] = i;
        if (!client_has_resource(&had, i) &&
            nodes_with(world, &it) > SIM_NODES / 2)
            return false;
    }
    return true;
}

/*
 * Their servers' clocks must tell which was first, and no other request with
 * its key may have been asked.
 */
void ledger_on_permits(struct world *world, const struct client *client)
{
    const struct had *had = &client->had;
    const struct client it = before(world, client);
    if (!had->is_clear || client->ghost_key == client->key ||
        client->begun_us < had->granted_us + doubt_us(world) - MEASURED_US ||
        !world->clients->ledger.claims_clocks ||
        nodes_with(world, &it) < SIM_NODES)
        return;
    world->clients->ledger.sames++;
    for (int i = 0; i < had->count; i++)
        if (!client_has_resource(client, had->resources[i]))
            violated(world, "same", client);
}

/* Whether most nodes have just this token, not another one with its key. */
static bool is_on_most(const struct world *world, int resource,
                       struct span token)
{
    struct client it = {.count = 1, .resources = {resource}};
    it.token_len = span_copy(it.token, token);
    return nodes_with(world, &it) > SIM_NODES / 2;
}

/*
 * It has taken the place of the reader that its client was before, whoever else
 * asked with its key.
 */
static void check_replaced(struct world *world, const struct client *client)
{
    const struct had *had = &client->had;
    if (had->token_len == 0 || had->key != client->key ||
        client->begun_us < had->granted_us + doubt_us(world) - MEASURED_US)
        return;
    world->clients->ledger.sames++;
    for (int i = 0; i < had->count; i++)
        if (is_on_most(world, had->resources[i],
                       (struct span){had->token, had->token_len}))
            violated(world, "same", client);
}

/* Another reader there with the key of this one, who has a majority as well. */
static bool has_twin(const struct world *world, const struct machine *machine,
                     int resource, struct span token)
{
    struct token_parts own, other;
    bool has_key = token_parse(token, &own) && own.key_hash.len > 0;
    for (const struct simholder *it = NULL;
         has_key &&
         (it = simholders_next(&machine->memory, resource, it)) != NULL;)
        if (!token_is_same(simholder_token(it), token) &&
            token_parse(simholder_token(it), &other) &&
            span_is_same(other.key_hash, own.key_hash) &&
            is_on_most(world, resource, simholder_token(it)))
            return true;
    return false;
}

/* Of two under way at once, with one key, one has the lock. */
static void check_alone(struct world *world, const struct client *client,
                        struct span token)
{
    for (int i = 0; i < client->count; i++) {
        int resource = client->resources[i];
        for (int k = 0; k < SIM_MACHINES; k++)
            if (has_twin(world, &world->machines[k], resource, token) &&
                is_on_most(world, resource, token))
                violated(world, "same", client);
    }
}

void ledger_on_repeat(struct world *world, const struct client *client,
                      struct span token)
{
    if (!world->clients->ledger.claims_clocks)
        return;
    check_replaced(world, client);
    if (client->is_shared && client->key != 0)
        check_alone(world, client, token);
}

/* ---- evictions ---------------------------------------------------------- */

/* Only the eviction of the earlier lock let its node grant this one. */
static bool is_windfall(const struct ledger *ledger, const struct client *later,
                        const struct client *earlier)
{
    for (int i = 0; i < WINDFALLS; i++) {
        const struct windfall *it = &ledger->windfalls[i];
        if (client_has_resource(later, it->resource) &&
            client_has_resource(earlier, it->resource) &&
            token_is_same((struct span){it->token, it->token_len},
                          client_token(later)) &&
            earlier->granted_us < it->evicted_us)
            return true;
    }
    return false;
}

static void note_windfall(struct ledger *ledger, const struct simcall *call,
                          int resource, int64_t evicted_us)
{
    struct windfall *it =
        &ledger->windfalls[ledger->windfall_count++ % WINDFALLS];
    it->resource = resource;
    it->evicted_us = evicted_us;
    it->number = call->call.number;
    it->token_len = span_copy(it->token, call->call.token);
}

static bool is_about(const struct simcall *call, int resource)
{
    for (int i = 0; i < call->names; i++)
        if (call->resources[i] == resource)
            return true;
    return false;
}

/* A probe notices what was evicted, unless the node has begun another life. */
static void probe_for_evictions(struct world *world,
                                const struct message *message)
{
    struct machine *machine = &world->machines[message->machine];
    const struct call_reply *reply = &message->answer.reply;
    const struct simcall *call = &message->call;
    bool is_check = call->call.kind == CALL_PROBE && reply->vote == VOTE_DONE &&
                    reply->probe.word != PROBE_SUPERSEDED &&
                    reply->probe.word != PROBE_OTHER;
    for (int i = 0; i < SIM_RESOURCES; i++) {
        int64_t *evicted_us = &machine->evicted_us[i];
        bool is_over = world->now_us - *evicted_us >
                       world->faults->longest_ms * 1000 + LATER_US;
        if (*evicted_us != 0 && !is_over && reply->vote == VOTE_GRANTED &&
            call->call.kind != CALL_REPLICATE && is_about(call, i))
            note_windfall(&world->clients->ledger, call, i, *evicted_us);
        if (machine->is_unseen ? is_over : is_check)
            *evicted_us = 0;
    }
}

/* The grant with this number, as above, of which no belief may be known. */
static bool is_windfall_of(const struct ledger *ledger, int resource,
                           int64_t number, const struct client *earlier)
{
    for (int i = 0; i < WINDFALLS; i++) {
        const struct windfall *it = &ledger->windfalls[i];
        if (it->resource == resource && it->number == number &&
            earlier->granted_us < it->evicted_us)
            return true;
    }
    return false;
}

void ledger_on_extension(struct world *world, const struct client *client,
                         int64_t number)
{
    struct ledger *ledger = &world->clients->ledger;
    bool has_order = lists_have_order(world, client->server);
    for (int i = 0; i < client->count && has_order; i++) {
        int resource = client->resources[i];
        const struct numbered *last = last_of(ledger, client, resource);
        if (number >= last->number || has_key_of(client, last))
            continue;
        if (is_windfall_of(ledger, resource, last->number, client))
            ledger->excused++;
        else
            violated(world, "rising", client);
    }
}

/* ---- beliefs ------------------------------------------------------------ */

static void check_capacity(struct world *world, const struct client *client)
{
    const struct clients *clients = world->clients;
    int permits = 0;
    if (client->limit == 0)
        return;
    bool is_whole = client->count == client->permits;
    for (int i = 0; i < client->count; i++)
        is_whole &= client->resources[i] >= SIM_PLAIN &&
                    client->resources[i] < SIM_PLAIN + client->limit;
    for (int i = 0; i < SIM_CLIENTS; i++) {
        const struct client *other = &clients->client[i];
        if (other->limit > 0 && client_believes(world, other) &&
            !lists_are_apart(world, client->believes_in, other->believes_in))
            permits += other->count;
    }
    bool is_claimed =
        clients->ledger.claims_clocks && clients->ledger.excused == 0;
    if (!is_whole || (permits > SIM_SLOTS && is_claimed))
        violated(world, "capacity", client);
}

/* Whether one of the clients before it has its key: the lock is the same. */
static bool is_counted(const struct clients *clients, int number, int resource)
{
    const struct client *client = &clients->client[number];
    for (int i = 0; i < number && client->key != 0; i++)
        if (clients->client[i].key == client->key &&
            clients->client[i].is_shared &&
            client_has_resource(&clients->client[i], resource))
            return true;
    return false;
}

static void check_readers(struct world *world, const struct client *client)
{
    const struct clients *clients = world->clients;
    bool is_claimed =
        clients->ledger.claims_clocks && clients->ledger.excused == 0;
    int most = SIM_NODES * world->readers_max / (SIM_NODES / 2 + 1);
    for (int i = 0; client->is_shared && is_claimed && i < client->count; i++) {
        int resource = client->resources[i], readers = 0;
        for (int k = 0; k < SIM_CLIENTS; k++) {
            const struct client *other = &clients->client[k];
            readers += other->is_shared &&
                       client_has_resource(other, resource) &&
                       client_believes(world, other) &&
                       !lists_are_apart(world, client->believes_in,
                                        other->believes_in) &&
                       !is_counted(clients, k, resource);
        }
        if (readers > most)
            violated(world, "readers", client);
    }
}

void ledger_on_belief(struct world *world, const struct client *client)
{
    const struct clients *clients = world->clients;
    for (int i = 0; i < SIM_CLIENTS; i++) {
        const struct client *other = &clients->client[i];
        if (other == client || !client_shares_resource(other, client) ||
            (other->is_shared && client->is_shared) ||
            !client_believes(world, other) || !clients->ledger.claims_clocks ||
            lists_are_apart(world, client->believes_in, other->believes_in))
            continue;
        if (is_windfall(&clients->ledger, client, other) ||
            is_windfall(&clients->ledger, other, client)) {
            world->clients->ledger.excused++;
            continue;
        }
        world_trace(world, "clients %d and %d hold resource %d",
                    client_number(world, client), i, client->resources[0]);
        violated(world, "exclusion", client);
    }
    check_capacity(world, client);
    check_readers(world, client);
    check_kept(world, client);
}

void ledger_on_belief_end(struct world *world, const struct client *client)
{
    check_kept(world, client);
}

void ledger_on_denial(struct world *world, const struct client *client)
{
    check_kept(world, client);
}

/* ---- forced releases ---------------------------------------------------- */

/* Its lock may be that of a later request with its key, which has taken its
 * place. */
static bool names(const struct forced *it, const struct client *client)
{
    bool is_there = false;
    for (int i = 0; i < it->count; i++)
        is_there |= client_has_resource(client, it->resources[i]);
    bool is_its_repeat =
        it->key != 0 && it->key == client->key && it->number > client->number;
    return is_there &&
           (it->number == 0 ? client->is_shared
                            : client->number == it->number || is_its_repeat);
}

/* Without an answer, its releases are sent as long as any lock may last. */
static int64_t over_us(const struct world *world, const struct forced *it)
{
    return it->answered_us != INT64_MAX
               ? it->answered_us
               : it->asked_us + world->faults->longest_ms * 1000 + FORCED_US;
}

bool ledger_is_forced(const struct world *world, const struct client *client,
                      int64_t began_us)
{
    const struct ledger *ledger = &world->clients->ledger;
    int64_t again_us = client->is_revived ? FORCED_US : 0;
    for (uint64_t i = 0; i < FORCED && i < ledger->forced_count; i++) {
        const struct forced *it = &ledger->forced[i];
        if (names(it, client) && over_us(world, it) + again_us >= began_us)
            return true;
    }
    return false;
}

/*
 * An acquire, or its early replication, was on its way when its lock was
 * released by force: it may have a majority again, until the release is sent
 * once more. An extend that begins meanwhile is granted, and its lock is
 * released all the same. What is promised is only that an acquire that begins
 * after the answer is kept; and this one began before. A creation is no excuse:
 * before its answer, the release has left a tombstone on a majority.
 */
static void note_revived(struct world *world, const struct message *message)
{
    struct ledger *ledger = &world->clients->ledger;
    const struct simcall *call = &message->call;
    for (int i = 0; i < SIM_CLIENTS; i++) {
        struct client *it = &world->clients->client[i];
        if (it->is_revived || !client_has_resource(it, call->resource) ||
            !token_is_same(client_token(it), call->call.token))
            continue;
        for (uint64_t j = 0; j < FORCED && j < ledger->forced_count; j++)
            it->is_revived |= names(&ledger->forced[j], it) &&
                              ledger->forced[j].asked_us >= it->granted_us;
        if (it->is_revived)
            world_trace(world, "client %d has its lock again", i);
        ledger->revived += it->is_revived;
    }
}

void ledger_on_force(struct world *world, const struct client *client)
{
    struct ledger *ledger = &world->clients->ledger;
    struct forced *it = &ledger->forced[ledger->forced_count++ % FORCED];
    *it = (struct forced){.by = client_number(world, client),
                          .count = client->count,
                          .number = client->number,
                          .key = client->key,
                          .asked_us = world->now_us,
                          .answered_us = INT64_MAX};
    memcpy(it->resources, client->resources, sizeof it->resources);
    world_trace(world, "client %d forces %lld of resource %d", it->by,
                (long long)it->number, it->resources[0]);
    for (int i = 0; i < SIM_CLIENTS; i++)
        if (names(it, &world->clients->client[i]))
            world->clients->client[i].believes_until_us = 0;
}

void ledger_on_forced(struct world *world, const struct client *client,
                      bool is_done)
{
    struct ledger *ledger = &world->clients->ledger;
    int by = client_number(world, client);
    struct forced *latest = NULL;
    for (uint64_t i = 0; i < FORCED && i < ledger->forced_count; i++) {
        struct forced *it = &ledger->forced[i];
        if (it->by == by &&
            (latest == NULL || it->asked_us >= latest->asked_us))
            latest = it;
    }
    if (latest != NULL && is_done)
        latest->answered_us = world->now_us;
}

/* Those who believe in a lock of the call that the node has, bit per client. */
static uint64_t find_holders(const struct world *world,
                             const struct message *message)
{
    const struct machine *machine = &world->machines[message->machine];
    const struct simcall *call = &message->call;
    uint64_t holders = 0;
    for (int i = 0; i < SIM_CLIENTS; i++)
        for (int j = 0; j < call->names; j++) {
            const struct client *it = &world->clients->client[i];
            if (client_believes(world, it) &&
                client_has_resource(it, call->resources[j]) &&
                is_its(world, machine, call->resources[j], it, false))
                holders |= UINT64_C(1) << i;
        }
    return holders;
}

static void check_forced(struct world *world, const struct message *message)
{
    uint64_t gone =
        world->clients->ledger.holders & ~find_holders(world, message);
    for (int i = 0; i < SIM_CLIENTS; i++)
        if ((gone >> i & 1) != 0 &&
            !ledger_is_forced(world, &world->clients->client[i],
                              world->clients->client[i].granted_us))
            violated(world, "forced", &world->clients->client[i]);
}

/* ---- all nodes ---------------------------------------------------------- */

/* Nothing was wrong between the server and the node since then. */
static bool was_well(struct world *world, int number, int node,
                     int64_t since_us)
{
    const struct simserver *server = &world->servers[number];
    const struct simlink *link = &server->links[node];
    const struct machine *machine = &world->machines[link->met.machine];
    int64_t ago_us = world->now_us - since_us;
    struct engine_node_view view;
    if (!simlink_is_good(world, number, node, ago_us) ||
        link->blocked_us > since_us || machine->resumed_us > since_us ||
        machine->condition != STATE_NONE || machine->process.is_full ||
        machine->healed_us > since_us || link->lags_until_us > since_us)
        return false;
    engine_view_node(server->engine, node, &view);
    return view.is_voting &&
           view.since_us + ago_us <= server_clock(server) - ago_us / 1000;
}

/* It may have lost what it had of the lock. */
static bool has_lost(const struct world *world, const struct machine *machine,
                     const struct client *client)
{
    int name = (int)(machine - world->machines) % SIM_NAMES;
    for (int i = 0; i < client->count; i++)
        if (machine->evicted_us[client->resources[i]] >= client->granted_us)
            return true;
    return world->lost_us[name] >= client->granted_us;
}

/* Somebody else has a part of the lock there, alone. */
static bool is_taken(const struct world *world, const struct machine *machine,
                     const struct client *client)
{
    int64_t clock_us = machine_clock(machine, world->now_us);
    for (int i = 0; i < client->count; i++) {
        int resource = client->resources[i];
        const struct simkey *key =
            simnode_key(&machine->memory, resource, clock_us);
        if (key != NULL && !is_its(world, machine, resource, client, true) &&
            !(key->is_shared && client->is_shared))
            return true;
    }
    return false;
}

/* For how long in all parts of the lock, or what keeps it away, were there. */
static int64_t taken_us(const struct world *world, struct machine *machine,
                        const struct client *client)
{
    int64_t us = 0;
    machine_note(machine, world->now_us);
    for (int i = 0; i < client->count; i++) {
        us += machine->exclusive_us[client->resources[i]];
        if (!client->is_shared)
            us += machine->shared_us[client->resources[i]];
    }
    return us;
}

static struct machine *met_by(struct world *world, int server, int node)
{
    return &world->machines[world->servers[server].links[node].met.machine];
}

void ledger_on_half_spread(struct world *world, struct client *client)
{
    int nodes = server_nodes(world, client->extended_by);
    for (int i = 0; i < nodes; i++)
        client->taken_us[i] =
            taken_us(world, met_by(world, client->extended_by, i), client);
}

/* Nothing is created that ends before two more probes. */
static bool ends_soon(const struct world *world, const struct client *client)
{
    int64_t left_us = client->believes_until_us - world->now_us;
    const struct simserver *server = &world->servers[client->extended_by];
    return left_us <= server->options.node_timeout_us;
}

void ledger_on_spread(struct world *world, const struct client *client)
{
    struct ledger *ledger = &world->clients->ledger;
    int by = client->extended_by;
    int64_t since_us = client->extended_us;
    int nodes = server_nodes(world, by);
    bool is_on_all = true;
    if (ends_soon(world, client) || !ledger->claims_clocks ||
        client->is_shared != client->was_shared || /* another server's … */
        may_be_replaced(world, client) ||          /* … as well */
        world->servers[by].engine == NULL ||
        world->servers[by].resumed_us > since_us)
        return;
    for (int i = 0; i < nodes; i++)
        if (!was_well(world, by, i, since_us))
            return;
    for (int i = 0; i < nodes; i++) {
        struct machine *machine = met_by(world, by, i);
        if (ledger_has_lock(world, machine, client) ||
            is_taken(world, machine, client) ||
            has_lost(world, machine, client) ||
            taken_us(world, machine, client) - client->taken_us[i] >
                (world->now_us - since_us) / TAKEN_PART)
            continue;
        world_trace(world, "machine %d lacks the lock of client %d",
                    (int)(machine - world->machines),
                    client_number(world, client));
        is_on_all = false;
    }
    ledger->spreads++;
    if (!is_on_all && !world->has_lists)
        violated(world, "spread", client);
}

/* ---- watches ------------------------------------------------------------ */

/* A node may have the data of a time before what was told. */
static bool has_just_forgotten(const struct world *world)
{
    for (int i = 0; i < SIM_NAMES; i++)
        if (world->lost_us[i] != 0 &&
            world->now_us - world->lost_us[i] < FORGOTTEN_US)
            return true;
    return false;
}

void ledger_on_told(struct world *world, struct client *client,
                    const struct engine_result *result)
{
    int64_t *newest = &client->visit.newest;
    if (client->count > 1 || result->is_shared || result->number == 0)
        return; /* there is no order of these */
    if (result->number < *newest && world->clients->ledger.claims_clocks &&
        !has_just_forgotten(world))
        violated(world, "watched", client);
    *newest = at_least(*newest, result->number);
}

/* ---- what the nodes do -------------------------------------------------- */

/* A lock that becomes a shared one while those are released by force is one of
 * them, although its holder has not read yet that it is shared. */
static void check_deleted(struct world *world, const struct message *message)
{
    const struct simcall *call = &message->call;
    for (int i = 0; i < SIM_CLIENTS; i++) {
        struct client *client = &world->clients->client[i];
        if (!client_has_resource(client, call->resource) ||
            !client_believes(world, client) ||
            !token_is_same(client_token(client), call->call.token))
            continue;
        if (ledger_is_forced(world, client, client->granted_us))
            client->believes_until_us = 0;
        else
            violated(world, "own", client);
    }
}

static bool is_of_first(const char *admit)
{
    return span_is(call_state_part(span_of(admit), CALL_STATE_FINGERPRINT),
                   "fingerprint-1-05"); /* whatever its epoch */
}

void ledger_before_execution(struct world *world, const struct message *message)
{
    const struct machine *machine = &world->machines[message->machine];
    world->clients->ledger.is_touching_first =
        message->server == SIM_FOREIGN && is_of_first(machine->memory.admit);
    if (world->has_visitors && message->call.call.kind == CALL_RELEASE)
        world->clients->ledger.holders = find_holders(world, message);
}

void ledger_on_execution(struct world *world, const struct message *message)
{
    if (is_of_first(world->machines[message->machine].memory.admit))
        world->clients->ledger.has_first = true;
    if (world->clients->ledger.is_touching_first &&
        !is_of_first(world->machines[message->machine].memory.admit))
        ledger_violated(world, "foreign", -1, -1);
    probe_for_evictions(world, message);
    enum vote vote = message->answer.reply.vote;
    enum call_kind kind = message->call.call.kind;
    if (vote == VOTE_GRANTED && (kind == CALL_ACQUIRE || kind == CALL_REPEAT))
        note_revived(world, message);
    if (vote == VOTE_DELETED)
        check_deleted(world, message);
    if (world->has_visitors && message->call.call.kind == CALL_RELEASE)
        check_forced(world, message);
    if (vote != VOTE_GRANTED && vote != VOTE_EXTENDED)
        return;
    bool is_late = world->now_us - message->due_us > LATE_US;
    int64_t stepped_us = world->stepped_us[message->machine];
    bool has_stepped =
        stepped_us != 0 && world->now_us - stepped_us < STEPPED_US;
    if (is_late && !has_stepped && world->clients->ledger.claims_clocks)
        ledger_violated(world, "mortal", -1, message->call.resource);
}
