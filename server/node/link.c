#include "link.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "confirm.h"
#include "line.h"
#include "pipeline.h"

enum { FLUSH_BYTES = 64 * 1024 }; /* that are written in the middle of a turn */

struct link {
    const struct address_node *config;
    struct link_events events;
    int node;

    bool is_reloading; /* SCRIPT LOAD was sent again */
    struct line line;
    struct confirm *confirm; /* at work while the link is up */
    struct pipeline pipeline;
    struct handshake handshake;
    struct resolver_address address; /* of the last connection; len 0: none */
};

/* ---- going down --------------------------------------------------------- */

/* The line is down already: what the callbacks send on this link is refused. */
static void on_down(void *ctx, enum node_state reason, const char *detail)
{
    struct link *link = ctx;
    struct pipeline_reply reply;
    int64_t now_us = clock_now_us();
    link->is_reloading = false;
    confirm_end(link->confirm);
    while (pipeline_drop(&link->pipeline, &reply))
        link->events.reply(link->events.engine, link->node, reply.tag,
                           &reply.script, reply.sent_us, now_us);
    link->events.down(link->events.engine, link->node, reason, detail);
}

/* ---- sending ------------------------------------------------------------ */

/*
 * A turn may serve thousands of requests, for longer than a node may take: so
 * what has gathered is written before its end, and the node works meanwhile.
 * Not with each batch, as a node that wakes up for each costs more.
 */
enum vote link_send(struct link *link, const struct call *call, uint64_t tag)
{
    if (!line_is_up(&link->line))
        return VOTE_DISCONNECTED;
    size_t unsent = wire_unsent(link->line.wire);
    enum vote vote = pipeline_call(&link->pipeline, call, tag);
    if (wire_unsent(link->line.wire) / FLUSH_BYTES > unsent / FLUSH_BYTES)
        line_flush(&link->line);
    return vote;
}

void link_flush(struct link *link)
{
    if (!line_is_up(&link->line))
        return;
    if (pipeline_append(&link->pipeline))
        line_flush(&link->line);
    else
        line_fail_later(&link->line);
}

/* ---- receiving ---------------------------------------------------------- */

/* False: the link went down. */
static bool take_call(struct link *link, const struct pipeline_reply *reply)
{
    /*
     * Somebody flushed the node's scripts: loads ours again, once, however many
     * calls miss it. First, so that the script is there for what the event
     * sends. Those calls are not sent again: their rounds may be lost by now,
     * and their votes tell what happened.
     */
    if (reply->script.state == STATE_NO_SCRIPT && !link->is_reloading) {
        struct handshake_command load;
        link->is_reloading = true;
        handshake_command(&load, HANDSHAKE_LOAD, link->config);
        if (!pipeline_step(&link->pipeline, HANDSHAKE_LOAD, load.args,
                           load.count))
            line_fail_later(&link->line); /* after this reply is taken */
    }
    link->events.reply(link->events.engine, link->node, reply->tag,
                       &reply->script, reply->sent_us,
                       link->line.silence.heard_us);
    if (reply->script.vote != VOTE_UNREADABLE)
        return true;
    line_fail(&link->line, STATE_GARBAGE,
              "sent a reply that our script never gives");
    return false;
}

/* False: no more replies, or the link went down. */
static bool take_reply(struct link *link)
{
    struct pipeline_reply reply;
    enum node_state state = STATE_GARBAGE;
    const char *detail = "sent what is no reply, or too long a one";
    switch (
        pipeline_next(&link->pipeline, link->line.silence.heard_us, &reply)) {
    case PIPELINE_CALL:
        return take_call(link, &reply);
    case PIPELINE_STEP:
        link->is_reloading = false;
        state = handshake_take(&link->handshake, HANDSHAKE_LOAD, reply.fields,
                               reply.count);
        if (state == STATE_NONE)
            return true;
        detail = link->handshake.detail;
        break;
    case PIPELINE_NONE:
        return false;
    case PIPELINE_UNASKED:
        detail = "sent a reply that nobody asked for";
        break;
    case PIPELINE_GARBAGE:
        break;
    }
    line_fail(&link->line, state, detail);
    return false;
}

/* One reading of the clock is right for all. */
static void on_heard(void *ctx)
{
    while (take_reply(ctx))
        continue;
}

/* When the oldest call without a reply was sent. */
static int64_t owed_us(void *ctx)
{
    const struct link *link = ctx;
    return pipeline_oldest_us(&link->pipeline);
}

/* ---- coming up ---------------------------------------------------------- */

/* Remembers the address. True if the last connection had another one. */
static bool has_moved(struct link *link, const struct resolver_address *address)
{
    struct resolver_address last = link->address;
    link->address = *address;
    return last.len != 0 &&
           (last.len != address->len ||
            memcmp(&last.storage, &address->storage, last.len) != 0);
}

static void on_up(void *ctx, const struct dial_result *result)
{
    struct link *link = ctx;
    struct node_facts facts = result->facts;
    facts.has_moved = has_moved(link, result->address);
    link->handshake = *result->handshake;
    pipeline_begin(&link->pipeline, link->line.wire, link->handshake.sha);
    confirm_begin(link->confirm, facts.run_id, facts.confirmed_us);
    link->events.up(link->events.engine, link->node, &facts);
}

static void on_confirmed(void *ctx, const struct dial_result *result)
{
    struct link *link = ctx;
    link->events.confirmed(link->events.engine, link->node, &result->facts);
}

/*
 * Another server is at the node's name: what the old one still owes would be no
 * vote, so the link does not wait for it.
 */
static void on_refuted(void *ctx, enum node_state reason, const char *detail)
{
    struct link *link = ctx;
    line_fail(&link->line, reason, detail);
}

/* ---- begin and end ------------------------------------------------------ */

struct link *link_new(int node, const struct dial_setup *dialing,
                      const char *prefix, const struct link_events *events)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->node = node;
    link->config = dialing->config;
    pipeline_init(&link->pipeline, span_of(prefix));
    link->events = *events;
    struct dial_setup probing = *dialing;
    const struct line_events listening = {on_up, on_heard, on_down, owed_us,
                                          link};
    const struct confirm_events confirming = {on_confirmed, on_refuted, link};
    bool is_made = line_init(&link->line, dialing, &listening);
    probing.resolver = &link->line.resolver;
    link->confirm = confirm_new(&probing, CONFIRMED_US / 2, &confirming);
    if (!is_made || link->confirm == NULL) {
        link_free(link);
        return NULL;
    }
    line_open(&link->line);
    return link;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    confirm_free(link->confirm);
    line_fini(&link->line);
    pipeline_fini(&link->pipeline);
    free(link);
}
