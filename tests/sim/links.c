/* SPDX-License-Identifier: MIT */
#include "links.h"

#include <assert.h>
#include <stdlib.h>

#include "faults.h"
#include "messages.h"
#include "world.h"

enum {
    SILENCE_US = 1000000,
    CONFIRM_US = 2500000,
    CONFIRM_AGAIN_US = 500000, /* after nobody answered */
    LATE_MOST_US = 6000000,
    HEARD_US = 1500000,
    NEAR_US = 10000,
    JITTER_US = 500,
};

static struct engine *engine_of(struct world *world, int server)
{
    return world->servers[server].engine;
}

struct simlink *simlink_of(struct world *world, int server, int node)
{
    return &world->servers[server].links[node];
}

static int name_of(struct world *world, int server, int node)
{
    enum configuration it = world->servers[server].configuration;
    return servers_config(world, it)->name[node];
}

int simlink_node_of(struct world *world, int server, int name)
{
    for (int i = 0; i < server_nodes(world, server); i++)
        if (name_of(world, server, i) == name)
            return i;
    return -1;
}

static bool is_lagging(const struct world *world, const struct simlink *link)
{
    return world->now_us < link->lags_until_us;
}

int64_t simlink_travel_us(struct world *world, const struct simlink *link,
                          bool is_back)
{
    if (is_lagging(world, link))
        return 50 + link->lag_us[is_back] + world_random(world, JITTER_US);
    return 50 + world_random(world, link->delay_us);
}

int64_t simlink_delay_us(const struct world *world, const struct simlink *link)
{
    return is_lagging(world, link)
               ? link->lag_us[0] + link->lag_us[1] + JITTER_US
               : link->delay_us;
}

bool simlink_is_good(struct world *world, int server, int node,
                     int64_t since_us)
{
    const struct simserver *it = &world->servers[server];
    const struct simlink *link = &it->links[node];
    const struct machine *machine = &world->machines[link->met.machine];
    return it->engine != NULL && !it->is_paused && link->state == LINK_UP &&
           !link->is_cut && link->blocked_us <= world->now_us &&
           simlink_delay_us(world, link) <= NEAR_US &&
           world->now_us - link->up_us >= since_us &&
           world->now_us - link->heard_us <= HEARD_US &&
           machine->state == MACHINE_UP && machine->condition == STATE_NONE &&
           !machine->process.is_full && machine->life == link->met.life;
}

/* ---- begin -------------------------------------------------------------- */

static void connect_later(struct world *world, int server, int node,
                          int64_t delay_us)
{
    world_at(world, delay_us,
             (struct event){.kind = EVENT_CONNECT, .a = server, .b = node});
}

/* What a connection that begins now meets; false: there is no answer. */
static bool meet(struct world *world, int server, int node,
                 struct meeting *meeting)
{
    const struct simlink *link = simlink_of(world, server, node);
    int machine = world->leads[server][name_of(world, server, node)];
    const struct machine *it = &world->machines[machine];
    if (it->state != MACHINE_UP || world->now_us < link->blocked_us)
        return false;
    *meeting = (struct meeting){
        .machine = machine,
        .life = it->life,
        .is_durable = it->persistence == PERSISTS_ALWAYS,
        .unfitness = machine_unfitness(it),
        .began_us = server_clock(&world->servers[server]),
        .clock_us = machine_clock(it, world->now_us),
    };
    memcpy(meeting->run_id, it->run_id, sizeof meeting->run_id);
    return true;
}

static int64_t round_trip_us(struct world *world, const struct simlink *link)
{
    if (is_lagging(world, link))
        return simlink_travel_us(world, link, false) +
               simlink_travel_us(world, link, true);
    return 100 + world_random(world, 2 * link->delay_us);
}

static void connect(struct world *world, int server, int node)
{
    struct simlink *link = simlink_of(world, server, node);
    if (link->state != LINK_IDLE || node >= server_nodes(world, server))
        return; /* another attempt came first, or the list is shorter now */
    if (!meet(world, server, node, &link->met)) {
        engine_on_node_down(engine_of(world, server), node, STATE_UNREACHABLE,
                            "refused");
        connect_later(world, server, node, 20000 + world_random(world, 300000));
        return;
    }
    link->state = LINK_CONNECTING;
    link->connection++;
    link->is_cut = link->is_watched = false;
    link->reason = STATE_UNREACHABLE;
    link->arrives_us = link->replies_us = 0;
    link->delay_us =
        100 + world_random(world, world_chance(world, 5) ? 20000 : 500);
    world_at(world, round_trip_us(world, link),
             (struct event){.kind = EVENT_CONNECTED,
                            .a = server,
                            .b = node,
                            .tag = link->connection});
}

static struct node_facts facts_of(struct world *world, int server,
                                  const struct meeting *met)
{
    bool evicts = met->unfitness == STATE_EVICTS;
    return (struct node_facts){
        .evicts = evicts ? "would evict locks" : NULL,
        .run_id = met->run_id,
        .is_durable = met->is_durable,
        .confirmed_us = met->began_us,
        .node_now_us = met->clock_us,
        .sent_us = met->began_us,
        .received_us = server_clock(&world->servers[server]),
    };
}

/* Whether the machine at the other end is still the same. */
static bool is_alive(const struct world *world, const struct meeting *met)
{
    const struct machine *machine = &world->machines[met->machine];
    return machine->state != MACHINE_DOWN && machine->life == met->life;
}

static void on_connected(struct world *world, int server, int node)
{
    struct simlink *link = simlink_of(world, server, node);
    struct node_facts facts = facts_of(world, server, &link->met);
    if (link->state != LINK_CONNECTING)
        return;
    if (!is_alive(world, &link->met) || link->is_cut) {
        link->state = LINK_IDLE;
        connect_later(world, server, node, 20000 + world_random(world, 300000));
        return;
    }
    if (link->met.unfitness != STATE_NONE &&
        link->met.unfitness != STATE_EVICTS) {
        link->state = LINK_IDLE;
        engine_on_node_down(engine_of(world, server), node, link->met.unfitness,
                            "not fit");
        connect_later(world, server, node, 20000 + world_random(world, 300000));
        return;
    }
    world_trace(world, "server %d node %d connected to machine %d", server,
                node, link->met.machine);
    link->state = LINK_UP;
    link->up_us = link->heard_us = world->now_us;
    engine_on_node_up(engine_of(world, server), node, &facts);
    world_at(world, CONFIRM_US,
             (struct event){.kind = EVENT_CONFIRM,
                            .a = server,
                            .b = node,
                            .tag = link->connection});
}

void simlinks_start(struct world *world, int server)
{
    for (int i = 0; i < server_nodes(world, server); i++) {
        struct simlink *link = simlink_of(world, server, i);
        *link = (struct simlink){
            .connection = link->connection,
            .blocked_us = link->blocked_us,
            .lag_us = {link->lag_us[0], link->lag_us[1]},
            .lags_until_us = link->lags_until_us,
        };
        TAILQ_INIT(&link->pending);
        connect_later(world, server, i, world_random(world, 20000));
    }
}

/* ---- end ---------------------------------------------------------------- */

/* What is under way is lost, or still arrives. */
static void strand(struct world *world, struct simlink *link)
{
    bool loses_all = world_chance(world, 40);
    bool is_slow = world_chance(world, 40);
    struct message *message;
    TAILQ_FOREACH(message, &link->pending, link)
    {
        message->is_lost = loses_all;
        if (is_slow)
            message->late_us = world_random(world, LATE_MOST_US);
    }
}

static void on_broken(struct world *world, int server, int node)
{
    struct simlink *link = simlink_of(world, server, node);
    struct engine *engine = engine_of(world, server);
    bool was_up = link->state == LINK_UP;
    struct message *message;
    link->state = LINK_IDLE;
    while ((message = TAILQ_FIRST(&link->pending)) != NULL) {
        struct call_reply gone = {.vote = VOTE_DISCONNECTED};
        if (link->reason != STATE_UNREACHABLE)
            gone =
                (struct call_reply){.vote = VOTE_UNFIT, .state = link->reason};
        uint64_t tag = message->tag;
        int64_t sent_us = message->sent_us;
        message_give_up(world, link, message);
        engine_on_reply(engine, node, tag, &gone, sent_us,
                        server_clock(&world->servers[server]));
    }
    if (was_up)
        engine_on_node_down(engine, node, link->reason, "broken");
    connect_later(
        world, server, node,
        2000 + world_random(world, world_chance(world, 70) ? 20000 : 500000));
}

void simlink_break(struct world *world, int server, int node)
{
    struct simlink *link = simlink_of(world, server, node);
    if (link->state != LINK_UP || link->is_cut)
        return;
    link->is_cut = true;
    strand(world, link);
    world_at(world, 0,
             (struct event){.kind = EVENT_BROKEN,
                            .a = server,
                            .b = node,
                            .tag = link->connection});
}

void simlinks_cut(struct world *world, int machine, bool is_reported)
{
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < SIM_NODES; j++) {
            const struct simlink *link = simlink_of(world, i, j);
            if (link->state == LINK_UP && link->met.machine == machine &&
                is_reported)
                simlink_break(world, i, j);
        }
}

void simlinks_abandon(struct world *world, int server)
{
    for (int i = 0; i < SIM_NODES; i++) {
        struct simlink *link = simlink_of(world, server, i);
        strand(world, link);
        while (!TAILQ_EMPTY(&link->pending))
            message_give_up(world, link, TAILQ_FIRST(&link->pending));
        link->state = LINK_IDLE;
        link->connection++; /* what still arrives is dropped */
    }
}

static void probe_for_silence(struct world *world, int server, int node,
                              int64_t at_us)
{
    struct simlink *link = simlink_of(world, server, node);
    link->is_watched = true;
    world_at(world, at_us > world->now_us ? at_us - world->now_us : 0,
             (struct event){.kind = EVENT_SILENCE,
                            .a = server,
                            .b = node,
                            .tag = link->connection});
}

void simlink_watch(struct world *world, int server, int node)
{
    if (!simlink_of(world, server, node)->is_watched)
        probe_for_silence(world, server, node, world->now_us + SILENCE_US);
}

/* Gives up a node that owes a reply and sends nothing for this long. */
static void on_silence(struct world *world, int server, int node)
{
    struct simlink *link = simlink_of(world, server, node);
    const struct message *oldest = TAILQ_FIRST(&link->pending);
    link->is_watched = false;
    if (link->state != LINK_UP || oldest == NULL)
        return;
    int64_t since_us =
        oldest->left_us > link->heard_us ? oldest->left_us : link->heard_us;
    if (world->now_us >= since_us + SILENCE_US)
        simlink_break(world, server, node);
    else
        probe_for_silence(world, server, node, since_us + SILENCE_US);
}

/* ---- confirmations ------------------------------------------------------ */

static void confirm(struct world *world, int server, int node)
{
    struct simlink *link = simlink_of(world, server, node);
    struct event event = {.a = server, .b = node, .tag = link->connection};
    event.kind = EVENT_CONFIRM;
    if (world->now_us < link->unconfirmed_us ||
        !meet(world, server, node, &link->confirming)) {
        world_at(world, CONFIRM_AGAIN_US, event);
        return;
    }
    world_at(world, CONFIRM_US, event);
    event.kind = EVENT_CONFIRMED;
    bool is_slow = world_chance(world, 5) && !world->faults->is_calm;
    int64_t delay_us = is_slow ? 3000000 : simlink_delay_us(world, link);
    world_at(world, 100 + world_random(world, delay_us), event);
}

static void on_confirmed(struct world *world, int server, int node)
{
    struct simlink *link = simlink_of(world, server, node);
    struct node_facts facts = facts_of(world, server, &link->confirming);
    enum node_state refusal = link->confirming.unfitness;
    if (link->confirming.life != link->met.life)
        refusal = STATE_MOVED;
    else if (link->met.unfitness == STATE_EVICTS) /* or does so no more */
        refusal = refusal == STATE_NONE     ? STATE_EVICTS
                  : refusal == STATE_EVICTS ? STATE_NONE
                                            : refusal;
    if (refusal != STATE_NONE) {
        world_trace(world, "server %d node %d is refused: %s", server, node,
                    state_name(refusal));
        link->reason = refusal;
        simlink_break(world, server, node);
        return;
    }
    engine_on_node_confirmed(engine_of(world, server), node, &facts);
}

/* ---- events ------------------------------------------------------------- */

/* Whether the event belongs to a connection that has ended. */
static bool is_of_old(struct world *world, const struct event *event)
{
    const struct simlink *link = simlink_of(world, event->a, event->b);
    return link->connection != event->tag;
}

static void on_link_event(struct world *world, const struct event *event)
{
    int server = event->a;
    int node = event->b;
    const struct simlink *link = simlink_of(world, server, node);
    switch ((enum event_kind)event->kind) {
    case EVENT_CONNECTED:
        on_connected(world, server, node);
        break;
    case EVENT_CONFIRM:
        if (link->state == LINK_UP)
            confirm(world, server, node);
        break;
    case EVENT_CONFIRMED:
        if (link->state == LINK_UP)
            on_confirmed(world, server, node);
        break;
    case EVENT_SILENCE:
        on_silence(world, server, node);
        break;
    case EVENT_BROKEN:
        on_broken(world, server, node);
        break;
    default:
        abort();
    }
}

void simlink_on_event(struct world *world, const struct event *event)
{
    if (event->kind == EVENT_CONNECT && engine_of(world, event->a) != NULL)
        connect(world, event->a, event->b);
    else if (event->kind != EVENT_CONNECT && !is_of_old(world, event))
        on_link_event(world, event);
}
