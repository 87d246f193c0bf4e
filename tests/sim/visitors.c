/* SPDX-License-Identifier: MIT */
#include "visitors.h"

#include "faults.h"

enum {
    WATCH_MOST_MS = 3000,
    LIST_MOST = 10,
    BEGIN_US = 300000,
};

static void choose_resources(struct world *world, struct client *it)
{
    int first = (int)world_random(world, SIM_PLAIN);
    client_choose(it, first);
    if (world_chance(world, 15))
        client_choose_also(it, (first + 1) % SIM_PLAIN);
}

/* One that holds a lock, or has held it; NULL: none was found. */
static const struct client *any_holder(struct world *world)
{
    int first = (int)world_random(world, SIM_CLIENTS);
    for (int i = 0; i < SIM_CLIENTS; i++) {
        const struct client *it =
            &world->clients->client[(first + i) % SIM_CLIENTS];
        if (it->state == CLIENT_HOLDING && it->number > 0)
            return it;
    }
    return NULL;
}

/* The lock, or a part of it; sometimes all readers, or a number that is not
 * there. */
static void choose_victim(struct world *world, struct client *it,
                          const struct client *holder)
{
    choose_resources(world, it);
    it->number = 0;
    it->key = 0;
    if (holder == NULL)
        return;
    client_choose(it, holder->resources[0]);
    for (int i = 1; i < holder->count; i++)
        client_choose_also(it, holder->resources[i]);
    if (world_chance(world, 40))
        client_choose(it,
                      holder->resources[world_random(world, holder->count)]);
    bool is_all =
        holder->is_shared ? world_chance(world, 60) : world_chance(world, 10);
    if (is_all)
        return;
    it->number = holder->number - world_chance(world, 5);
    it->key = it->number == holder->number ? holder->key : 0;
}

static void watch(struct world *world, struct client *it)
{
    if (!it->visit.follows) {
        choose_resources(world, it);
        if (world_chance(world, 60))
            client_choose(it, 0); /* as many others do */
        it->visit = (struct visit){.follows = true, .known = version_free};
    }
    bool is_long = world_chance(world, 10); /* longer than a drain */
    it->wait_ms = 1 + world_random(world, WATCH_MOST_MS);
    if (is_long)
        it->wait_ms = WAIT_MAX_MS;
    client_ask(world, it, ASK_WATCH, clients_any_server(world));
}

void visitor_step(struct world *world, struct client *it)
{
    if (world->clients->is_resting || world->clients->is_led)
        return;
    if (world->now_us < world->clients->quiet_until_us) {
        client_tell(world, it, world->clients->quiet_until_us - world->now_us,
                    CLIENT_STEP);
        return;
    }
    if (it->visit.follows && world_chance(world, 90)) {
        watch(world, it);
        return;
    }
    it->visit.follows = false;
    int what = (int)world_random(world, 100);
    if (what < 30) {
        watch(world, it);
    } else if (what < 55) {
        choose_resources(world, it);
        client_ask(world, it, ASK_INSPECT, clients_any_server(world));
    } else if (what < 75) {
        client_choose(it, 0);
        client_ask(world, it, ASK_LIST, clients_any_server(world));
    } else if (what < 90) {
        client_choose(it, SIM_PLAIN);
        client_ask(world, it, ASK_POOL, clients_any_server(world));
    } else {
        choose_victim(world, it, any_holder(world));
        client_ask(world, it, ASK_FORCE, clients_any_server(world));
    }
}

void visitors_start(struct world *world)
{
    for (int i = SIM_ALL_CLIENTS; i < SIM_EVERYBODY; i++)
        client_tell(world, &world->clients->client[i],
                    world_random(world, BEGIN_US), CLIENT_STEP);
}

void visitors_on_grant(struct world *world, const struct client *client)
{
    int number = SIM_ALL_CLIENTS + (int)world_random(world, 20 * SIM_VISITORS);
    if (number >= SIM_EVERYBODY || world->clients->is_resting ||
        world->clients->is_led)
        return;
    struct client *it = &world->clients->client[number];
    if (it->state != CLIENT_IDLE)
        return;
    it->visit.follows = false;
    choose_victim(world, it, client);
    client_ask(world, it, world_chance(world, 20) ? ASK_FORCE : ASK_INSPECT,
               clients_any_server(world));
}

/* ---- what is asked ------------------------------------------------------ */

static engine_op ask_list(struct engine *engine, struct world *world,
                          struct client *it)
{
    const char *const prefixes[] = {"", "order:", "stock"};
    struct engine_list list = {
        .prefix = span_of(prefixes[world_random(world, 3)]),
        .limit = 1 + (int)world_random(world, LIST_MOST)};
    if (it->visit.has_cursor)
        list.cursor = it->visit.cursor;
    return engine_list(engine, &list, it);
}

static engine_op ask_pool(struct engine *engine, struct world *world,
                          struct client *it)
{
    const struct engine_list list = {
        .pool = span_of(SIM_POOL_NAME),
        .limit = 1 + (int)world_random(world, SIM_SLOTS)};
    return engine_list(engine, &list, it);
}

engine_op visitor_ask(struct world *world, struct client *it,
                      struct span resource)
{
    struct engine *engine = world->servers[it->server].engine;
    switch (it->ask) {
    case ASK_WATCH:
        return engine_watch(engine, resource, span_of(it->visit.known.text),
                            it->wait_ms, it);
    case ASK_FORCE:
        ledger_on_force(world, it);
        return engine_force(engine, resource, it->number, it);
    case ASK_LIST:
        return ask_list(engine, world, it);
    case ASK_POOL:
        return ask_pool(engine, world, it);
    default:
        return 0;
    }
}

/* ---- what is answered --------------------------------------------------- */

void visitor_on_answer(struct world *world, struct client *it)
{
    if (it->ask == ASK_FORCE && it->op != 0)
        ledger_on_forced(
            world, it,
            engine_peek(world->servers[it->server].engine, it->op)->outcome ==
                OUTCOME_RELEASED);
}

static void read_page(struct world *world, struct client *it)
{
    struct engine *engine = world->servers[it->server].engine;
    const struct engine_page *page = engine_take_page(engine, it->op);
    if (page->outcome == LIST_PENDING)
        ledger_violated(world, "answered", client_number(world, it), -1);
    for (int i = 0; i < page->count; i++)
        world->clients->listed +=
            engine_page_lock(engine, it->op, i)->outcome == OUTCOME_FOUND;
    if (it->ask == ASK_POOL) {
        (void)engine_pool_waiters(engine, span_of(SIM_POOL_NAME));
        return;
    }
    it->visit.has_cursor = page->outcome == LIST_PAGE && page->has_next;
    it->visit.cursor = page->next;
}

static void note_holder(struct world *world, struct client *it,
                        const struct engine_result *result)
{
    if (result->outcome == OUTCOME_FOUND)
        ledger_on_told(world, it, result);
    if (result->outcome == OUTCOME_FOUND ||
        result->outcome == OUTCOME_NOT_FOUND)
        it->visit.known = result->version;
}

void visitor_read(struct world *world, struct client *it)
{
    struct simserver *server = &world->servers[it->server];
    if (it->ask == ASK_LIST || it->ask == ASK_POOL) {
        read_page(world, it);
    } else {
        const struct engine_result *result =
            engine_take(server->engine, it->op, server_clock(server));
        world->clients->outcomes[result->outcome]++;
        if (it->ask == ASK_WATCH)
            note_holder(world, it, result);
    }
    engine_close(server->engine, it->op);
}
