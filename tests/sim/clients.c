/* SPDX-License-Identifier: MIT */
#include "clients.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "../../server/lock/names.h"
#include "faults.h"
#include "visitors.h"

enum {
    LIMIT_ERROR_MS = 150, /* by which a median of clocks may differ later, as
                             other nodes vote */
    HASTE_US = 3000,  /* from an extend to the release that overtakes it … */
    REST_US = 300000, /* … or its repair */
    TTL_MOST_MS = 3000, /* mostly */
    TTL_BRIEF_MS = 300,
    WAIT_MOST_MS = 4000,
    LEAVE_US = 1000000, /* of clients that wait */
    TOGETHER_US = 5000, /* clients ask after a quiet spell */
    HELD_US = 200000,   /* mostly, until a release or an extend */
    /* in worlds with visitors: */
    AT_ONCE_US = 3000, /* from a grant to the next request */
    POLL_US = 40000,   /* from a refusal to the next attempt */
    GONE_US = 1000,    /* of clients that leave before the nodes answer */
    SLOW_US = 60000,   /* … or that do not */
    SPREAD_US = 1000000,
    BATCH_MOST = 8, /* operations */
};

#define DENIED "hall"

bool clients_is_denied(struct span resource)
{
    const size_t len = sizeof DENIED - 1;
    return resource.len > len &&
           memcmp(resource.ptr, DENIED NAMES_SLOT, len + 1) == 0;
}

int client_number(const struct world *world, const struct client *client)
{
    return (int)(client - world->clients->client);
}

bool client_believes(const struct world *world, const struct client *client)
{
    return client->believes_until_us > world->now_us;
}

/* It asks what another client has asked, or as a visitor. */
static bool is_ghost(const struct world *world, const struct client *client)
{
    return client_number(world, client) >= SIM_CLIENTS;
}

static bool is_visitor(const struct world *world, const struct client *client)
{
    return client_number(world, client) >= SIM_ALL_CLIENTS;
}

/* It tries again and again, and does not hold for long. */
static bool is_poller(const struct world *world, const struct client *client)
{
    return world->has_visitors && client_number(world, client) % 4 == 3;
}

void client_tell(struct world *world, const struct client *client,
                 int64_t delay_us, enum client_event what)
{
    world_at(world, delay_us,
             (struct event){.kind = EVENT_CLIENT,
                            .a = client_number(world, client),
                            .b = (int)what,
                            .tag = client->serial});
}

int clients_server_of(const struct world *world, const struct event *event)
{
    const struct client *client = &world->clients->client[event->a];
    bool is_of_server = event->b >= CLIENT_ASK && client->serial == event->tag;
    return is_of_server ? client->server : -1;
}

/* ---- asking ------------------------------------------------------------- */

/* How long a request travels to its server. */
static int64_t travel_us(struct world *world)
{
    return 50 + world_random(world, world_chance(world, 2) ? 200000 : 500);
}

int clients_any_server(struct world *world)
{
    bool has_foreign = world->servers[SIM_FOREIGN].engine != NULL;
    return has_foreign && world_chance(world, 5) ? SIM_FOREIGN
                                                 : world_any_server(world);
}

static int64_t random_ttl_ms(struct world *world)
{
    int64_t most_ms = world_chance(world, 50) ? 700 : TTL_MOST_MS;
    if (world->clients->is_hasty)
        return TTL_MOST_MS; /* so that leftovers stay visible for long */
    if (world->clients->is_brief)
        return TTL_MIN_MS + world_random(world, TTL_BRIEF_MS);
    if (world_chance(world, 20))
        most_ms = world->faults->longest_ms;
    return TTL_MIN_MS + world_random(world, most_ms - TTL_MIN_MS);
}

/* A request of this client whose answer nobody reads. */
static void ask_unheard(struct world *world, const struct client *client,
                        enum client_ask what, int64_t delay_us)
{
    struct client *ghost = NULL;
    for (int i = SIM_CLIENTS; i < SIM_ALL_CLIENTS; i++)
        if (world->clients->client[i].state == CLIENT_IDLE)
            ghost = &world->clients->client[i];
    if (ghost == NULL)
        return;
    uint64_t serial = ghost->serial + 1;
    *ghost = *client;
    ghost->serial = serial;
    ghost->batch = 0;
    ghost->has_left = false;
    ghost->believes_until_us = 0;
    if (client->key != 0)
        ghost->ttl_ms = random_ttl_ms(world); /* which a repeat may change */
    ghost->server = clients_any_server(world);
    ghost->state = CLIENT_ASKING;
    ghost->ask = what;
    ghost->is_asked = ghost->is_answered = false;
    world->clients->doubled++;
    client_tell(world, ghost, delay_us, CLIENT_ASK);
}

static void send(struct world *world, struct client *client,
                 enum client_ask what, int server, int64_t travels_us)
{
    client->server = server;
    client->state = CLIENT_ASKING;
    client->ask = what;
    client->is_downgrading = false;
    client->is_asked = client->is_answered = client->has_left = false;
    client->batch = 0;
    client->serial++;
    client_tell(world, client, travels_us, CLIENT_ASK);
}

void client_ask(struct world *world, struct client *client,
                enum client_ask what, int server)
{
    send(world, client, what, server, travel_us(world));
}

/* True if a copy of the request comes later, perhaps to another server. */
static bool ask(struct world *world, struct client *client,
                enum client_ask what)
{
    bool has_key = what == ASK_ACQUIRE && client->key != 0;
    client_ask(world, client, what, clients_any_server(world));
    if (world->clients->is_resting)
        return false;
    bool is_doubled =
        has_key ? world_chance(world, 15)
                : world->clients->has_ghosts && world_chance(world, 3);
    if (is_doubled && has_key)
        client->ghost_key = client->key;
    if (is_doubled)
        ask_unheard(world, client, what,
                    world_random(world, has_key ? HELD_US : 1500000));
    return is_doubled;
}

static void go_on(struct world *world, struct client *client, bool holds)
{
    client->serial++;
    client->state =
        holds && !is_ghost(world, client) ? CLIENT_HOLDING : CLIENT_IDLE;
    if (!is_ghost(world, client) || is_visitor(world, client))
        client_tell(world, client, world_random(world, 150000), CLIENT_STEP);
}

/* The server was not running, or died. */
static void lose_request(struct world *world, struct client *client)
{
    world->clients->lost++;
    client->is_unheard = client->ask == ASK_ACQUIRE;
    go_on(world, client, client->ask == ASK_EXTEND);
}

static engine_op acquire(struct engine *engine, struct client *client,
                         struct span names, int64_t ttl_ms)
{
    char hash[KEY_HASH_LEN + 1];
    const struct engine_acquire order = {
        .resource = names,
        .owner = span_of("me"),
        .key_hash = client_key_hash(client, hash),
        .ttl_ms = ttl_ms,
        .wait_ms = client->wait_ms,
        .is_shared = client->is_shared,
        .limit = client->limit,
        .permits = client->permits,
        .asker = (int)(client->key % 3),
        .is_tried_once = client->batch != 0,
        .only_repeats = client->only_repeats,
    };
    return engine_acquire(engine, &order, client);
}

/* From now on it may take the place of what others have with its key. */
static void note_repeat(struct world *world, const struct client *client)
{
    for (int i = 0; i < SIM_ALL_CLIENTS; i++) {
        struct client *other = &world->clients->client[i];
        if (other != client && client->key != 0 && other->key == client->key)
            other->repeated_us = world->now_us;
    }
}

static engine_op ask_engine(struct world *world, struct client *client,
                            int64_t ttl_ms)
{
    struct engine *engine = world->servers[client->server].engine;
    char names[SIM_NAMES_MAX];
    struct span resource = {
        names, simnode_join(names, client->resources, client->count)};
    switch (client->ask) {
    case ASK_ACQUIRE:
        note_repeat(world, client);
        if (client->limit > 0)
            resource = span_of(client->is_denied ? DENIED : SIM_POOL_NAME);
        return acquire(engine, client, resource, ttl_ms);
    case ASK_EXTEND:
        return engine_extend(engine, resource, client_token(client), ttl_ms,
                             client->is_shared, client);
    case ASK_RELEASE:
        return engine_release(engine, resource, client_token(client), client);
    case ASK_INSPECT:
        return engine_inspect(engine, resource, client);
    default:
        return visitor_ask(world, client, resource);
    }
}

/* Whether the client leaves, at any moment, before it has its answer. */
static void consider_leaving(struct world *world, const struct client *client)
{
    bool is_brief = world_chance(world, 50);
    int64_t most_us = is_brief ? GONE_US : SLOW_US;
    bool is_watch = client->ask == ASK_WATCH;
    if (client->wait_ms > 0 && (client->ask == ASK_ACQUIRE || is_watch))
        most_us = is_brief ? SLOW_US : LEAVE_US;
    if (world_chance(world, is_watch ? 40 : world->clients->leaving))
        client_tell(world, client, world_random(world, most_us), CLIENT_LEAVE);
}

/* Its earlier requests, of clients that left without a word, wait no more. */
static void expect_withdrawn(struct world *world, const struct client *client)
{
    for (int i = 0; i < SIM_ALL_CLIENTS; i++) {
        const struct client *other = &world->clients->client[i];
        if (other != client && other->key == client->key && other->is_asked &&
            other->state == CLIENT_ASKING && other->ask == ASK_ACQUIRE &&
            other->wait_ms > 0 && other->server == client->server &&
            engine_peek(world->servers[other->server].engine, other->op)
                    ->outcome == OUTCOME_PENDING)
            ledger_violated(world, "withdrawal", client_number(world, client),
                            client->resources[0]);
    }
}

/* The server accepts the request. */
static void begin(struct world *world, struct client *client)
{
    struct simserver *server = &world->servers[client->server];
    if (server->engine == NULL || server->is_closed) {
        lose_request(world, client);
        return;
    }
    int64_t most_ms = server->options.max_ttl_ms;
    int64_t ttl_ms = client->ttl_ms < most_ms ? client->ttl_ms : most_ms;
    client->is_asked = true;
    client->begun_us = world->now_us;
    client->had.is_clear = ledger_is_clear(world, client);
    client->op = 0;
    world->clients->asked[client->ask]++;
    client->op = ask_engine(world, client, ttl_ms);
    assert(client->op != 0);
    if (client->ask == ASK_ACQUIRE && client->key != 0 && client->wait_ms == 0)
        expect_withdrawn(world, client);
    if (world->clients->is_resting && !world->clients->is_led &&
        client->ask == ASK_WATCH)
        client_tell(world, client, 0, CLIENT_LEAVE);
    if (world->clients->is_resting)
        return;
    if (client->batch != 0)
        return; /* they leave together */
    if (world->has_visitors)
        consider_leaving(world, client);
    else if (client->ask == ASK_ACQUIRE && world_chance(world, 4))
        client_tell(world, client,
                    world_random(world, client->wait_ms > 0 ? LEAVE_US : 60000),
                    CLIENT_LEAVE);
}

/* Another lock, of one or several resources, with or without a key. */
static void choose(struct world *world, struct client *client)
{
    int first = (int)world_random(world, world_resources(world));
    int more = 0;
    client_choose(client, first);
    if (world->has_permits && world_chance(world, 50)) {
        int limit = world_chance(world, 80)
                        ? SIM_SLOTS
                        : 1 + (int)world_random(world, SIM_SLOTS);
        int permits = 1 + (world_chance(world, 20) && limit > 1);
        client_choose_permits(client, limit, permits);
        client->is_denied = world->has_visitors && world_chance(world, 20);
    } else if (world_chance(world, 20)) {
        more = 1 + (int)world_random(world, SIM_HELD_MAX - 1);
    }
    for (int i = 1; i <= more; i++)
        client_choose_also(client, (first + i) % world_resources(world));
    if (world->has_shared && client->limit == 0)
        client_choose_mode(client, world_chance(world, 60));
    if (world->clients->has_repeats && world_chance(world, 40))
        client->key = ++world->clients->keys;
}

/* ---- batches ------------------------------------------------------------ */

/* Whether both are of one lock: refused as a whole before the engine sees it.
 */
static bool clash(const struct client *one, const struct client *other)
{
    bool are_permits = one->ask == ASK_ACQUIRE && one->limit > 0 &&
                       other->ask == ASK_ACQUIRE && other->limit > 0;
    if (are_permits || (one->is_shared && other->is_shared))
        return false;
    return client_shares_resource(one, other);
}

/* What a client that shares a process with others asks now; ASKS: nothing. */
static enum client_ask choose_operation(struct world *world,
                                        struct client *client)
{
    client->ttl_ms = random_ttl_ms(world);
    client->wait_ms = 0;
    if (client->state == CLIENT_HOLDING) {
        bool extends = world_chance(world, 60);
        return extends ? ASK_EXTEND : ASK_RELEASE;
    }
    bool repeats = client->key != 0 && client->is_unheard;
    if (client->state != CLIENT_IDLE ||
        client_number(world, client) >= world->clients->active)
        return ASKS; /* under way, or not among those that ask */
    if (!repeats)
        choose(world, client);
    client->only_repeats = false;
    return ASK_ACQUIRE;
}

/* One more for the batch; false: it clashes with one in it. */
static bool join(struct world *world, struct client *client,
                 struct client **batch, int count)
{
    enum client_ask what = choose_operation(world, client);
    if (what == ASKS)
        return false;
    enum client_ask before = client->ask;
    client->ask = what;
    client->is_downgrading = false;
    for (int i = 0; i < count; i++) {
        if (clash(client, batch[i])) {
            client->ask = before;
            return false;
        }
    }
    batch[count] = client;
    return true;
}

/*
 * What some clients want, which share a process, in one request: they acquire,
 * extend and release. Sometimes it leaves before it is answered.
 */
static void ask_batch(struct world *world, int first)
{
    struct client *batch[BATCH_MOST];
    int server = clients_any_server(world), count = 0;
    int64_t travels_us = travel_us(world);
    for (int i = 0; i < SIM_CLIENTS && count < BATCH_MOST; i++)
        count += join(world, &world->clients->client[(first + i) % SIM_CLIENTS],
                      batch, count);
    world->clients->batches++;
    for (int i = 0; i < count; i++) {
        if (batch[i]->ask == ASK_RELEASE)
            batch[i]->believes_until_us = 0;
        send(world, batch[i], batch[i]->ask, server, travels_us);
        batch[i]->batch = world->clients->batches;
    }
    bool is_brief = world_chance(world, 50);
    if (count > 0 && world_chance(world, world->clients->leaving))
        client_tell(world, batch[0],
                    travels_us +
                        world_random(world, is_brief ? GONE_US : SLOW_US),
                    CLIENT_LEAVE_BATCH);
}

/* The next one of the batch, from the i-th client on; NULL: there is none. */
static struct client *in_batch(struct world *world, int batch, int *i)
{
    while (*i < SIM_CLIENTS) {
        struct client *it = &world->clients->client[(*i)++];
        if (it->batch == batch && it->state == CLIENT_ASKING)
            return it;
    }
    return NULL;
}

/* They are answered together, when the last one is decided. */
static void answer_batch(struct world *world, int batch, int64_t delay_us)
{
    struct client *it;
    for (int i = 0; (it = in_batch(world, batch, &i)) != NULL;)
        if (!it->is_answered)
            return;
    for (int i = 0; (it = in_batch(world, batch, &i)) != NULL;)
        client_tell(world, it, delay_us, CLIENT_READ_ANSWER);
}

/* Acquires are undone at once; the others go on, and nobody is told. */
static void leave_batch(struct world *world, int batch)
{
    struct client *it;
    world->clients->left++;
    for (int i = 0; (it = in_batch(world, batch, &i)) != NULL;) {
        it->has_left = true;
        if (it->ask == ASK_ACQUIRE)
            client_leave(world, it);
    }
    answer_batch(world, batch, 0); /* those that are left may all have one */
}

static void step_holding(struct world *world, struct client *client)
{
    bool believes = client_believes(world, client);
    for (int i = 0; world->clients->is_hasty && i < 3; i++)
        ask_unheard(
            world, client, ASK_EXTEND,
            world_random(world, world_chance(world, 50) ? HASTE_US : REST_US));
    if (world->has_visitors && world_chance(world, 5) &&
        !world->clients->is_resting) {
        ask_batch(world, client_number(world, client));
        return;
    }
    if (world_chance(world, believes ? 60 : 15) &&
        !world->clients->is_resting) {
        client->ttl_ms = random_ttl_ms(world);
        bool is_first = !client->is_shared && world->has_shared &&
                        client->limit == 0 && world_chance(world, 30);
        if (is_first)
            client_choose_mode(client, true);
        client->is_downgrading = !ask(world, client, ASK_EXTEND) && is_first;
        return;
    }
    client->believes_until_us = 0;
    (void)ask(world, client, ASK_RELEASE);
}

/* Until the end of a quiet spell, and holders a little longer. */
static void keep_quiet(struct world *world, struct client *client)
{
    if (client->state == CLIENT_HOLDING && !world->clients->is_silent &&
        world_chance(world, 20)) {
        client->ttl_ms = random_ttl_ms(world);
        (void)ask(world, client, ASK_EXTEND);
        return;
    }
    int64_t left_us = world->clients->quiet_until_us - world->now_us;
    int64_t more_us = client->state == CLIENT_HOLDING ? HELD_US : TOGETHER_US;
    client_tell(world, client, left_us + world_random(world, more_us),
                CLIENT_STEP);
}

static void step(struct world *world, struct client *client)
{
    if (world->now_us < world->clients->quiet_until_us) {
        keep_quiet(world, client);
        return;
    }
    if (client->state == CLIENT_HOLDING) {
        step_holding(world, client);
        return;
    }
    if (world->clients->is_resting)
        return;
    bool repeats = client->key != 0 && client->is_unheard &&
                   world->clients->has_repeats && world_chance(world, 80);
    bool polls = is_poller(world, client) && client->count > 0 &&
                 client->limit == 0 && client->key == 0 &&
                 world_chance(world, 90);
    if (!repeats && !polls)
        choose(world, client);
    client->ttl_ms = random_ttl_ms(world);
    client->wait_ms = polls || world_chance(world, 50)
                          ? 0
                          : world_random(world, WAIT_MOST_MS);
    client->only_repeats = repeats && client->limit > 0 &&
                           client->wait_ms == 0 && client->key % 2 == 0;
    ask(world, client,
        !repeats && world_chance(world, 5) && client->limit == 0 ? ASK_INSPECT
                                                                 : ASK_ACQUIRE);
}

/* Until it releases or extends, possibly too late. */
static int64_t holding_us(struct world *world, const struct client *client)
{
    int64_t left_us = client->believes_until_us - world->now_us;
    int64_t us = world_random(world, HELD_US);
    if (world->has_visitors &&
        world_chance(world, is_poller(world, client) ? 90 : 30))
        return world_random(world, AT_ONCE_US);
    return left_us > 0 && world_chance(world, 10) ? left_us + us : us;
}

/* ---- answers ------------------------------------------------------------ */

/* How long after it was granted or extended a lock is on all nodes. */
static int64_t client_spread_us(const struct world *world,
                                const struct client *client)
{
    const struct simserver *server = &world->servers[client->extended_by];
    return at_least(SPREAD_US, 4 * server->options.node_timeout_us);
}

/* When the deciding round began. */
static int64_t began_at(const struct world *world, const struct client *client,
                        const struct engine_result *result)
{
    return world->now_us - (server_clock(&world->servers[client->server]) -
                            result->round_start_us);
}

void clients_on_answer(struct world *world, struct client *client)
{
    if (client->is_answered || !client->is_asked ||
        client->state != CLIENT_ASKING)
        ledger_violated(world, "answered", client_number(world, client),
                        client->resources[0]);
    client->is_answered = true;
    if (is_visitor(world, client)) {
        visitor_on_answer(world, client);
    } else if (client->op !=
               0) { /* otherwise it was refused before it had a handle */
        struct simserver *server = &world->servers[client->server];
        const struct engine_result *result =
            engine_take(server->engine, client->op, server_clock(server));
        world_trace(world, "client %d resource %d is answered %s, number %lld",
                    client_number(world, client), client->resources[0],
                    outcome_name(result->outcome), (long long)result->number);
        if (result->outcome == OUTCOME_GRANTED && client->limit > 0)
            client->count =
                simnode_resource_numbers(result->resource, client->resources);
        if (result->outcome == OUTCOME_GRANTED) {
            client->number = result->number;
            /* A release of all readers may have found it on its first node,
             * while it was on its way: its token is released on the others,
             * too. */
            client->is_revived = false;
            client->is_revived = ledger_is_forced(
                world, client, began_at(world, client, result));
        }
        if (result->outcome == OUTCOME_GRANTED && client->limit > 0 &&
            !is_ghost(world, client))
            ledger_on_permits(world, client);
        if (result->outcome == OUTCOME_GRANTED)
            ledger_on_grant(world, client, began_at(world, client, result));
        if (result->outcome == OUTCOME_EXTENDED && !is_ghost(world, client) &&
            !ledger_is_forced(world, client, began_at(world, client, result)))
            ledger_on_extension(world, client, result->number);
    }
    /* sometimes the server is busy with others before it writes; not at the
     * end, where clients are expected to know in time */
    bool is_busy = !world->clients->is_led && world_chance(world, 2);
    int64_t delay_us = world_random(world, is_busy ? 500000 : 300);
    if (client->batch != 0)
        answer_batch(world, client->batch, client->has_left ? 0 : delay_us);
    else
        client_tell(world, client, delay_us, CLIENT_READ_ANSWER);
}

/*
 * Who extends a lock for less does not shorten it, nor knows how long it lasts:
 * its server spreads it for as long as it told, and the server that told more
 * goes on.
 */
static void note_spread(struct world *world, struct client *client)
{
    client->extended_us = world->now_us;
    client->extended_by = client->server;
    client->was_shared = client->is_shared;
    int64_t us = client_spread_us(world, client);
    client_tell(world, client, us / 2, CLIENT_HALF_SPREAD);
    client_tell(world, client, us, CLIENT_SPREAD);
}

static void believe(struct world *world, struct client *client,
                    const struct engine_result *result)
{
    int64_t validity_ms = result->validity_ms;
    int64_t us = validity_ms * 1000 - validity_ms * client->ppm / 1000;
    int64_t until_us = world->now_us + us;
    bool is_longest = until_us > client->believes_until_us;
    int64_t began_us = began_at(world, client, result);
    if (ledger_is_forced(world, client, began_us)) {
        client->believes_until_us = 0; /* it may be gone, or may stay */
        return;
    }
    client->believes_in = world->servers[client->server].configuration;
    if (is_longest)
        client->believes_until_us = until_us; /* otherwise the old one stands */
    world_trace(world, "client %d holds resource %d by server %d for %lld ms",
                client_number(world, client), client->resources[0],
                client->server, (long long)us / 1000);
    ledger_on_belief(world, client);
    if (is_longest)
        note_spread(world, client);
    client_tell(world, client, client->believes_until_us - world->now_us - 1,
                CLIENT_BELIEF_ENDS);
}

static void take_grant(struct world *world, struct client *client,
                       const struct engine_result *result)
{
    if (is_ghost(world, client))
        return;
    client->token_len = span_copy(client->token, result->token);
    client->believes_until_us = 0;
    client->granted_us = began_at(world, client, result);
    believe(world, client, result);
    if (world->has_visitors)
        visitors_on_grant(world, client);
}

static void take_extend_answer(struct world *world, struct client *client,
                               const struct engine_result *result)
{
    enum outcome outcome = result->outcome;
    if (is_ghost(world, client))
        return;
    if (outcome == OUTCOME_EXTENDED)
        client->token_len = span_copy(client->token, result->token);
    if (outcome == OUTCOME_MAX_HOLD && client->is_downgrading)
        client_choose_mode(client, false); /* nothing has changed */
    client->is_downgrading = false;
    if (outcome == OUTCOME_EXTENDED)
        believe(world, client, result);
    else if ((outcome == OUTCOME_NOT_OWNER || outcome == OUTCOME_NOT_FOUND) &&
             client_believes(world, client))
        ledger_on_denial(world, client);
}

/* The server has sent it, but it does not arrive: the client asks again. */
static bool loses_answer(struct world *world, const struct client *client)
{
    return client->key != 0 && world->clients->has_repeats &&
           world_chance(world, 20);
}

void client_note_had(const struct world *world, struct client *client,
                     struct span token)
{
    struct had *had = &client->had;
    had->key = client->limit > 0 || client->is_shared ? client->key : 0;
    had->token_len = client->is_shared ? span_copy(had->token, token) : 0;
    had->count = client->count;
    memcpy(had->resources, client->resources, sizeof had->resources);
    had->granted_us = world->now_us;
}

/* A server without a limit refuses no extend for it; one that has a limit tells
 * how much of it is left, and the validity ends within it. */
static void check_limit(struct world *world, const struct client *client,
                        const struct engine_result *result)
{
    int64_t max_ms = world->servers[client->server].max_hold_ms;
    int64_t left_ms = max_ms - result->held_ms;
    bool is_known = max_ms > 0 && result->held_ms >= 0;
    bool is_wrong = result->outcome == OUTCOME_MAX_HOLD
                        ? max_ms == 0
                        : result->outcome == OUTCOME_EXTENDED && is_known &&
                              result->validity_ms > left_ms + LIMIT_ERROR_MS;
    if (is_wrong)
        ledger_violated(world, "limit", client_number(world, client),
                        client->resources[0]);
}

/* Only what is new needs memory. */
static void check_full(struct world *world, const struct client *client,
                       const struct engine_result *result)
{
    for (int i = 0; i < result->total; i++)
        if (client->ask != ASK_ACQUIRE &&
            result->votes[i].state == STATE_OUT_OF_MEMORY)
            ledger_violated(world, "full", client_number(world, client),
                            client->resources[0]);
}

static void read_answer(struct world *world, struct client *client)
{
    struct simserver *server = &world->servers[client->server];
    struct engine *engine = server->engine;
    if (is_visitor(world, client)) {
        visitor_read(world, client);
        client->serial++;
        client->state = CLIENT_IDLE;
        client_tell(
            world, client,
            world_random(world, client->visit.follows ? AT_ONCE_US : REST_US),
            CLIENT_STEP);
        return;
    }
    const struct engine_result *result =
        engine_take(engine, client->op, server_clock(server));
    bool holds = client->ask == ASK_EXTEND;
    if (client->has_left) {
        engine_close(engine, client->op);
        go_on(world, client, holds);
        return;
    }
    world->clients->outcomes[result->outcome]++;
    for (int i = 0; i < result->total; i++)
        world->clients->votes[ballot_number(result->votes[i])]++;
    check_full(world, client, result);
    int64_t rest_us =
        world_random(world, result->outcome == OUTCOME_NO_QUORUM ? 1000000
                            : is_poller(world, client)           ? POLL_US
                                                                 : 150000);
    client->serial++;
    client->is_unheard = false;
    world->clients->repeated += result->is_repeat;
    check_limit(world, client, result);
    if (client->ask == ASK_ACQUIRE && client->only_repeats &&
        result->outcome == OUTCOME_GRANTED && !result->is_repeat)
        ledger_violated(world, "capacity", client_number(world, client),
                        client->resources[0]);
    if (result->outcome == OUTCOME_GRANTED)
        ledger_on_repeat(world, client, result->token);
    if (result->outcome == OUTCOME_GRANTED && loses_answer(world, client)) {
        client->is_unheard = true;
        client_note_had(world, client, result->token);
        if (world->has_visitors) /* what an operator may take a part of */
            visitors_on_grant(world, client);
    } else if (result->outcome == OUTCOME_GRANTED) {
        take_grant(world, client, result);
        holds = true;
    } else if (client->ask == ASK_EXTEND) {
        take_extend_answer(world, client, result);
    }
    if (is_ghost(world, client) && world_chance(world, 50))
        engine_abandon(engine, client->op);
    else
        engine_close(engine, client->op);
    client->state = holds ? CLIENT_HOLDING : CLIENT_IDLE;
    if (is_ghost(world, client))
        client->state = CLIENT_IDLE;
    else
        client_tell(world, client, holds ? holding_us(world, client) : rest_us,
                    CLIENT_STEP);
}

void client_leave(struct world *world, struct client *client)
{
    if (client->state != CLIENT_ASKING || !client->is_asked)
        return;
    engine_abandon(world->servers[client->server].engine, client->op);
    world->clients->left++;
    client->is_unheard = client->ask == ASK_ACQUIRE;
    go_on(world, client, client->ask == ASK_EXTEND);
    if (client->batch != 0) /* of the others, all may have an answer now */
        answer_batch(world, client->batch, 0);
}

void clients_on_server_death(struct world *world, int server)
{
    for (int i = 0; i < SIM_EVERYBODY; i++) {
        struct client *client = &world->clients->client[i];
        if (client->state == CLIENT_ASKING && client->server == server)
            lose_request(world, client);
    }
}

bool clients_are_served(const struct world *world, int server)
{
    for (int i = 0; i < SIM_EVERYBODY; i++) {
        const struct client *client = &world->clients->client[i];
        if (client->state == CLIENT_ASKING && client->server == server &&
            client->is_asked)
            return true;
    }
    return false;
}

/* ---- events ------------------------------------------------------------- */

static void on_spread(struct world *world, struct client *client, bool is_half)
{
    int64_t us = client_spread_us(world, client);
    if (client->extended_us + (is_half ? us / 2 : us) != world->now_us)
        return;
    if (is_half)
        ledger_on_half_spread(world, client);
    else
        ledger_on_spread(world, client);
}

void clients_on_event(struct world *world, const struct event *event)
{
    struct client *client = &world->clients->client[event->a];
    if (event->b == CLIENT_BELIEF_ENDS) {
        if (client->believes_until_us == world->now_us + 1)
            ledger_on_belief_end(world, client);
        return;
    }
    if (event->b == CLIENT_SPREAD || event->b == CLIENT_HALF_SPREAD) {
        on_spread(world, client, event->b == CLIENT_HALF_SPREAD);
        return;
    }
    if (client->serial != event->tag)
        return;
    switch ((enum client_event)event->b) {
    case CLIENT_STEP:
        if (is_visitor(world, client))
            visitor_step(world, client);
        else if (!world->clients->is_led)
            step(world, client);
        break;
    case CLIENT_ASK:
        begin(world, client);
        break;
    case CLIENT_READ_ANSWER:
        read_answer(world, client);
        break;
    case CLIENT_LEAVE:
        client_leave(world, client);
        break;
    case CLIENT_LEAVE_BATCH:
        leave_batch(world, client->batch);
        break;
    case CLIENT_BELIEF_ENDS:
    case CLIENT_HALF_SPREAD:
    case CLIENT_SPREAD:
        break;
    }
}

void clients_start(struct world *world)
{
    for (int i = 0; i < world->clients->active; i++) {
        struct client *client = &world->clients->client[i];
        client->ppm = world_random(world, 1001) - 500;
        client_tell(world, client, 100000 + world_random(world, 200000),
                    CLIENT_STEP);
    }
    if (world->has_visitors)
        visitors_start(world);
}

void clients_trace(const struct world *world)
{
    for (int i = 0; i < SIM_EVERYBODY; i++) {
        const struct client *it = &world->clients->client[i];
        if (it->state != CLIENT_IDLE)
            world_trace(world, "client %d %s, server %d, request %d%s%s", i,
                        it->state == CLIENT_ASKING ? "asks" : "holds",
                        it->server, (int)it->ask, it->is_asked ? ", taken" : "",
                        it->is_answered ? ", answered" : "");
    }
}

bool clients_are_idle(const struct clients *clients)
{
    for (int i = 0; i < SIM_EVERYBODY; i++)
        if (clients->client[i].state != CLIENT_IDLE)
            return false;
    return true;
}
