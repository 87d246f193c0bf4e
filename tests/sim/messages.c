/* SPDX-License-Identifier: MIT */
#include "messages.h"

#include <assert.h>
#include <stdlib.h>

#include "clients.h"
#include "faults.h"
#include "ledger.h"
#include "losses.h"
#include "news.h"
#include "world.h"

enum {
    PENDING_MAX = 48,
    LATE_MOST_US = 6000000,
    TURN_US = 3000,        /* of a busy server's loop */
    ADMISSIONS_MOST = 200, /* a second, to one node */
};

static struct message *take_message(struct world *world)
{
    struct message *message = world->spare;
    if (message == NULL)
        message = malloc(sizeof *message);
    else
        world->spare = message->next;
    assert(message != NULL);
    return message;
}

static void give_back(struct world *world, struct message *message)
{
    if (message->is_pending || message->is_travelling)
        return;
    message->next = world->spare;
    world->spare = message;
}

void message_forget(struct world *world, struct message *message)
{
    message->is_travelling = false;
    give_back(world, message);
}

/* The server no longer waits for it. */
void message_give_up(struct world *world, struct simlink *link,
                     struct message *message)
{
    TAILQ_REMOVE(&link->pending, message, link);
    link->pending_count--;
    message->is_pending = false;
    give_back(world, message);
}

/* ---- commands and replies ----------------------------------------------- */

/* One direction of a connection: random delay, order kept. */
static int64_t next_arrival(struct world *world, const struct simlink *link,
                            bool is_back, int64_t last_us)
{
    int64_t at_us = world->now_us + simlink_travel_us(world, link, is_back);
    if (at_us < link->blocked_us)
        at_us = link->blocked_us;
    return at_us > last_us ? at_us : last_us;
}

/*
 * What the server is told of when the call was sent: the calls of one turn
 * leave as one batch, and have the time of the first, which may be a call of
 * another client.
 */
static int64_t batch_began_us(struct world *world, int server,
                              const struct simlink *link)
{
    int64_t now_us = server_clock(&world->servers[server]);
    return world->is_busy ? at_least(now_us - TURN_US, link->met.began_us)
                          : now_us;
}

/* Who may vote is asked again and again, but not as fast as nodes reply. */
static void count_admission(struct world *world, struct simlink *link)
{
    if (world->now_us - link->counted_us >= US_PER_S) {
        link->counted_us = world->now_us;
        link->admissions = 0;
    }
    if (++link->admissions > ADMISSIONS_MOST)
        ledger_violated(world, "paced", -1, -1);
}

enum vote message_send(struct world *world, int server, int node,
                       const struct call *call, uint64_t tag)
{
    struct simlink *link = simlink_of(world, server, node);
    if (link->state != LINK_UP || link->is_cut)
        return VOTE_DISCONNECTED; /* it is breaking right now */
    if (link->pending_count >= PENDING_MAX)
        return VOTE_STALLED;
    struct message *message = take_message(world);
    message->server = server;
    message->node = node;
    message->machine = link->met.machine;
    message->connection = link->connection;
    message->life = link->met.life;
    message->is_pending = message->is_travelling = true;
    message->is_lost = message->is_doubled = false;
    message->late_us = 0;
    message->tag = tag;
    message->sent_us = batch_began_us(world, server, link);
    message->left_us = world->now_us;
    message->due_us =
        world->now_us + world->servers[server].options.node_timeout_us;
    message->is_denied = clients_is_denied(call->resource);
    struct call copied = *call;
    if (message->is_denied)
        copied.resource = span_of(""); /* no node has it */
    simcall_copy(&message->call, &copied);
    if (tag_kind_of(tag) == TAG_ADMISSION)
        count_admission(world, link);
    TAILQ_INSERT_TAIL(&link->pending, message, link);
    link->pending_count++;
    simlink_watch(world, server, node);
    link->arrives_us = next_arrival(world, link, false, link->arrives_us);
    world_at(world, link->arrives_us - world->now_us,
             (struct event){.kind = EVENT_DELIVER, .object = message});
    faults_on_send(world, message);
    return VOTE_PENDING;
}

static void send_reply(struct world *world, struct message *message)
{
    struct simlink *link = simlink_of(world, message->server, message->node);
    if (link->connection != message->connection || link->is_cut) {
        message_forget(world, message);
        return;
    }
    link->replies_us = next_arrival(world, link, true, link->replies_us);
    world_at(world, link->replies_us - world->now_us,
             (struct event){
                 .kind = EVENT_REPLY, .a = message->server, .object = message});
}

/* Sends a copy whose reply nobody waits for. */
static void double_message(struct world *world, const struct message *message)
{
    struct message *copy = take_message(world);
    *copy = *message;
    simcall_copy(&copy->call, &message->call.call);
    copy->is_pending = copy->is_doubled = false;
    copy->is_travelling = true;
    copy->connection = 0;
    world_at(world, 50 + world_random(world, LATE_MOST_US),
             (struct event){.kind = EVENT_DELIVER, .object = copy});
}

static void trace(const struct world *world, const struct message *message)
{
    const struct simcall *call = &message->call;
    const struct call_reply *reply = &message->answer.reply;
    bool is_of_lock = call->call.kind >= CALL_ACQUIRE;
    if (is_of_lock)
        world_trace(
            world, "server %d machine %d %s %d %.*s number %lld: %s",
            message->server, message->machine, simcall_name(call->call.kind),
            call->resource, (int)call->call.token.len, call->token,
            (long long)call->call.number, ballot_name(call_ballot(reply)));
    else
        world_trace(
            world, "server %d machine %d %s: %s %d generation %lld admit %s",
            message->server, message->machine, simcall_name(call->call.kind),
            ballot_name(call_ballot(reply)), (int)reply->probe.word,
            (long long)world->machines[message->machine].memory.generation.it,
            world->machines[message->machine].memory.admit);
}

static void execute(struct world *world, struct message *message)
{
    struct machine *machine = &world->machines[message->machine];
    int64_t lag_us =
        machine->persistence == PERSISTS_EVERY_SECOND
            ? world_random(world, losses_lag_us(world, message->machine))
            : 0;
    if (message->is_denied) {
        message->answer.reply = (struct call_reply){.vote = VOTE_KEY_REFUSED};
        send_reply(world, message);
        return;
    }
    ledger_before_execution(world, message);
    struct news news = {world, message->machine};
    machine_execute(machine, &message->call, world->now_us, lag_us,
                    news_listeners(&news), &message->answer);
    ledger_on_execution(world, message);
    if (world->is_tracing)
        trace(world, message);
    if (message->is_doubled)
        double_message(world, message);
    send_reply(world, message);
}

void message_deliver(struct world *world, struct message *message)
{
    struct machine *machine = &world->machines[message->machine];
    if (message->late_us > 0) {
        int64_t late_us = message->late_us;
        message->late_us = 0;
        world_at(world, late_us,
                 (struct event){.kind = EVENT_DELIVER, .object = message});
    } else if (message->is_lost || machine->life != message->life ||
               machine->state == MACHINE_DOWN) {
        message_forget(world, message);
    } else if (machine->state == MACHINE_PAUSED) {
        TAILQ_INSERT_TAIL(&world->backlog[message->machine], message, waiting);
    } else {
        execute(world, message);
    }
}

void messages_resume(struct world *world, int machine)
{
    struct message *message;
    while ((message = TAILQ_FIRST(&world->backlog[machine])) != NULL) {
        TAILQ_REMOVE(&world->backlog[machine], message, waiting);
        message_deliver(world, message);
    }
}

void messages_clear_backlog(struct world *world, int machine)
{
    struct message *message;
    while ((message = TAILQ_FIRST(&world->backlog[machine])) != NULL) {
        TAILQ_REMOVE(&world->backlog[machine], message, waiting);
        message_forget(world, message);
    }
}

void message_reply(struct world *world, struct message *message)
{
    struct simlink *link = simlink_of(world, message->server, message->node);
    if (link->state != LINK_UP || link->connection != message->connection) {
        message_forget(world, message);
        return;
    }
    TAILQ_REMOVE(&link->pending, message, link);
    link->pending_count--;
    message->is_pending = false;
    link->heard_us = world->now_us;
    link->has_probed |= message->call.call.kind == CALL_PROBE &&
                        message->answer.reply.vote == VOTE_DONE;
    if (message->answer.reply.generation > link->generation)
        link->generation = message->answer.reply.generation;
    engine_on_reply(world->servers[message->server].engine, message->node,
                    message->tag, &message->answer.reply, message->sent_us,
                    server_clock(&world->servers[message->server]));
    if (message->answer.reply.vote == VOTE_UNREADABLE)
        simlink_break(world, message->server, message->node);
    message_forget(world, message);
}

bool message_drops(struct world *world, const struct event *event)
{
    if (event->kind != EVENT_REPLY)
        return false;
    struct message *message = event->object;
    const struct simlink *link =
        simlink_of(world, message->server, message->node);
    if (link->connection == message->connection && !link->is_cut)
        return false;
    message_forget(world, message);
    return true;
}
