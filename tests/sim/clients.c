#include "clients.h"

#include <assert.h>
#include <stdio.h>

static int number_of(const struct world *world, const struct client *client)
{
    return (int)(client - world->clients->client);
}

/* The first violation counts; what follows from it does not. */
static void violated(struct world *world, const char *name,
                     const struct client *client)
{
    char *text = world->clients->violation;
    if (text[0] == '\0')
        snprintf(text, sizeof world->clients->violation,
                 "%s: client %d, resource %d, at %lld us", name,
                 number_of(world, client), client->resource,
                 (long long)world->now_us);
}

static void tell(struct world *world, const struct client *client,
                 int64_t delay_us, enum client_event what)
{
    world_at(world, delay_us,
             (struct event){.kind = EVENT_CLIENT,
                            .a = number_of(world, client),
                            .b = (int)what,
                            .tag = client->serial});
}

static bool believes(const struct world *world, const struct client *client)
{
    return client->believes_until_us > world->now_us;
}

/* ---- asking ------------------------------------------------------------- */

static struct span token_of(const struct client *client)
{
    return (struct span){client->token, client->token_len};
}

static void ask(struct world *world, struct client *client,
                enum client_ask what)
{
    struct span resource = span_of(simnode_resource(client->resource));
    client->server = &world->servers[world_random(world, SIM_SERVERS)];
    struct engine *engine = client->server->engine;
    client->state = CLIENT_ASKING;
    client->ask = what;
    client->is_answered = false;
    client->serial++;
    if (what == ASK_ACQUIRE)
        client->op = engine_acquire(engine, resource, span_of("me"),
                                    client->ttl_ms, client);
    else if (what == ASK_EXTEND)
        client->op = engine_extend(engine, resource, token_of(client),
                                   client->ttl_ms, client);
    else
        client->op = engine_release(engine, resource, token_of(client), client);
    assert(client->op != 0);
    if (what == ASK_ACQUIRE && world_chance(world, 5))
        tell(world, client, world_random(world, 60000), CLIENT_LEAVE);
}

static int64_t random_ttl_ms(struct world *world)
{
    int64_t most_ms = world_chance(world, 50) ? 1000 : SIM_MAX_TTL_MS;
    return TTL_MIN_MS + world_random(world, most_ms - TTL_MIN_MS);
}

static void step_holding(struct world *world, struct client *client)
{
    if (believes(world, client) && world_chance(world, 30) &&
        !world->clients->is_resting) {
        client->ttl_ms = random_ttl_ms(world);
        ask(world, client, ASK_EXTEND);
        return;
    }
    client->believes_until_us = 0;
    ask(world, client, ASK_RELEASE);
}

static void step(struct world *world, struct client *client)
{
    if (client->state == CLIENT_HOLDING) {
        step_holding(world, client);
        return;
    }
    if (world->clients->is_resting)
        return;
    client->resource = (int)world_random(world, SIM_RESOURCES);
    client->ttl_ms = random_ttl_ms(world);
    ask(world, client, ASK_ACQUIRE);
}

/* Until it releases, or releases too late. */
static int64_t holding_us(struct world *world, const struct client *client)
{
    int64_t left_us = client->believes_until_us - world->now_us;
    int64_t us = world_random(world, 300000);
    return left_us > 0 && world_chance(world, 10) ? left_us + us : us;
}

/* ---- answers ------------------------------------------------------------ */

void clients_on_answer(struct world *world, struct client *client)
{
    if (client->is_answered || client->state != CLIENT_ASKING)
        violated(world, "answered", client);
    client->is_answered = true;
    /* the server is now and then busy with others before it writes */
    int64_t delay_us =
        world_random(world, world_chance(world, 2) ? 500000 : 300);
    tell(world, client, delay_us, CLIENT_READ_ANSWER);
}

static void begin_to_believe(struct world *world, struct client *client,
                             int64_t validity_ms)
{
    struct clients *clients = world->clients;
    for (int i = 0; i < SIM_CLIENTS; i++) {
        const struct client *other = &clients->client[i];
        if (other != client && other->resource == client->resource &&
            believes(world, other))
            violated(world, "exclusion", client);
    }
    client->believes_until_us = world->now_us + validity_ms * 1000;
}

static void on_granted(struct world *world, struct client *client,
                       const struct engine_result *result, int64_t validity_ms)
{
    int64_t *last = &world->clients->last_number[client->resource];
    if (result->number <= *last)
        violated(world, "rising", client);
    *last = result->number;
    client->token_len = span_copy(client->token, result->token);
    begin_to_believe(world, client, validity_ms);
}

static void on_extend_answer(struct world *world, struct client *client,
                             enum outcome outcome, int64_t validity_ms)
{
    int64_t until_us = client->believes_until_us;
    if (outcome == OUTCOME_EXTENDED)
        begin_to_believe(world, client, validity_ms);
    else if ((outcome == OUTCOME_NOT_OWNER || outcome == OUTCOME_NOT_FOUND) &&
             believes(world, client))
        violated(world, "kept", client);
    if (client->believes_until_us < until_us)
        client->believes_until_us = until_us; /* the old validity stands */
}

static void read_answer(struct world *world, struct client *client)
{
    struct engine *engine = client->server->engine;
    /* first the validity: it may turn the outcome */
    int64_t validity_ms = engine_validity_ms(engine, client->op, world->now_us);
    const struct engine_result *result = engine_result(engine, client->op);
    bool holds = client->ask == ASK_EXTEND;
    world->clients->outcomes[result->outcome]++;
    if (result->outcome == OUTCOME_GRANTED) {
        on_granted(world, client, result, validity_ms);
        holds = true;
    } else if (client->ask == ASK_EXTEND) {
        on_extend_answer(world, client, result->outcome, validity_ms);
    }
    engine_close(engine, client->op);
    client->serial++;
    client->state = holds ? CLIENT_HOLDING : CLIENT_IDLE;
    tell(world, client,
         holds ? holding_us(world, client) : world_random(world, 200000),
         CLIENT_STEP);
}

static void leave(struct world *world, struct client *client)
{
    engine_abandon(client->server->engine, client->op);
    world->clients->left++;
    client->serial++;
    client->state = CLIENT_IDLE;
    tell(world, client, world_random(world, 200000), CLIENT_STEP);
}

void clients_on_event(struct world *world, const struct event *event)
{
    struct client *client = &world->clients->client[event->a];
    if (client->serial != event->tag)
        return;
    if (event->b == CLIENT_STEP)
        step(world, client);
    else if (event->b == CLIENT_READ_ANSWER)
        read_answer(world, client);
    else
        leave(world, client);
}

void clients_start(struct world *world)
{
    for (int i = 0; i < SIM_CLIENTS; i++)
        tell(world, &world->clients->client[i],
             100000 + world_random(world, 200000), CLIENT_STEP);
}

bool clients_are_idle(const struct clients *clients)
{
    for (int i = 0; i < SIM_CLIENTS; i++)
        if (clients->client[i].state != CLIENT_IDLE)
            return false;
    return true;
}

/* ---- what must hold ----------------------------------------------------- */

static bool has_key(const struct world *world, int node,
                    const struct client *client)
{
    const struct simkey *key =
        simnode_key(&world->nodes[node], client->resource, world->now_us);
    return key != NULL && key->token_len == client->token_len &&
           memcmp(key->token, client->token, key->token_len) == 0;
}

void clients_check(struct world *world)
{
    for (int i = 0; i < SIM_CLIENTS; i++) {
        const struct client *client = &world->clients->client[i];
        if (!believes(world, client))
            continue;
        int nodes = 0;
        for (int j = 0; j < SIM_NODES; j++)
            nodes += has_key(world, j, client);
        if (nodes <= SIM_NODES / 2)
            violated(world, "kept", client);
    }
}

void clients_check_end(struct world *world)
{
    struct client nobody = {0};
    struct client *client = &world->clients->client[0];
    if (!clients_are_idle(world->clients))
        violated(world, "answered", client);
    if (world->late_executions > 0)
        violated(world, "mortal", client);
    for (int i = 0; i < SIM_NODES; i++)
        for (int j = 0; j < SIM_RESOURCES; j++)
            if (simnode_key(&world->nodes[i], j, world->now_us) != NULL)
                violated(world, "tidy", client);
    for (int i = 0; i < SIM_RESOURCES; i++) {
        *client = nobody;
        client->resource = i;
        client->ttl_ms = 10000;
        uint64_t granted = world->clients->outcomes[OUTCOME_GRANTED];
        ask(world, client, ASK_ACQUIRE);
        client->serial += 1000000; /* so that it does not leave */
        world_run(world, 2000000);
        if (world->clients->outcomes[OUTCOME_GRANTED] == granted)
            violated(world, "alive", client);
    }
}
