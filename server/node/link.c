/* SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/process.h"
#include "pipeline.h"

enum {
    FLUSH_BYTES = 64 * 1024, /* that are written in the middle of a turn */
    /* the longest times from the start of one recheck to that of the next, and
       from one that says nothing about the node */
    RECHECK_US = CONFIRMED_US / 2,
    RECHECK_AGAIN_US = 500000,
};

struct link {
    struct node_events events;
    int node;

    bool is_reloading;  /* SCRIPT LOAD was sent again */
    int64_t doubted_us; /* when a refused call last began a recheck; 0: never */
    struct line line;
    struct line recheck; /* open while the link is up */
    struct pipeline pipeline;
    struct line_address address; /* of the last connection; len 0: none */
};

/* ---- going down --------------------------------------------------------- */

/* The line is down already: what the callbacks send on this link is refused. */
static void link_on_down(void *ctx, enum node_state reason, const char *detail)
{
    struct link *link = ctx;
    struct pipeline_reply reply;
    int64_t now_us = clock_now_us();
    link->is_reloading = false;
    line_close(&link->recheck);
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

/*
 * The node refuses a command to our user, as its rights have changed. A recheck
 * asks for all of them, and takes the link down until they are back: otherwise
 * the node would fail one call after another, and vote in between.
 */
static void doubt_rights(struct link *link)
{
    int64_t now_us = clock_now_us();
    if (link->recheck.state != LINE_IDLE ||
        (link->doubted_us != 0 && now_us - link->doubted_us < RECHECK_AGAIN_US))
        return;
    link->doubted_us = now_us;
    line_open(&link->recheck, now_us);
}

/* False: the link went down. */
static bool link_take_call(struct link *link,
                           const struct pipeline_reply *reply)
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
        handshake_command(&load, HANDSHAKE_LOAD, link->line.setup.config,
                          link->line.setup.prefix);
        if (!pipeline_load(&link->pipeline, load.args, load.count))
            line_fail_later(&link->line); /* after this reply is taken */
    }
    if (reply->script.state == STATE_NO_PERMISSION)
        doubt_rights(link);
    link->events.reply(link->events.engine, link->node, reply->tag,
                       &reply->script, reply->sent_us, link->line.received_us);
    if (reply->script.vote != VOTE_UNREADABLE)
        return true;
    line_fail(&link->line, STATE_GARBAGE,
              "sent a reply that redlockd's script never gives");
    return false;
}

/* False: no more replies, or the link went down. */
static bool link_take_reply(struct link *link)
{
    struct pipeline_reply reply;
    enum node_state state = STATE_GARBAGE;
    const char *detail = "sent data that is not a Redis reply, or is too long";
    switch (pipeline_next(&link->pipeline, link->line.received_us, &reply)) {
    case PIPELINE_CALL:
        return link_take_call(link, &reply);
    case PIPELINE_LOADED:
        link->is_reloading = false;
        state = handshake_take(&link->line.handshake, HANDSHAKE_LOAD,
                               reply.loaded->fields, reply.loaded->count);
        if (state == STATE_NONE)
            return true;
        detail = link->line.handshake.detail;
        break;
    case PIPELINE_NONE:
        return false;
    case PIPELINE_UNASKED:
        detail = "sent a reply without a request";
        break;
    case PIPELINE_GARBAGE:
        break;
    }
    line_fail(&link->line, state, detail);
    return false;
}

/* One reading of the clock is right for all. */
static void link_on_received(void *ctx)
{
    while (link_take_reply(ctx))
        continue;
}

/* When the oldest call without a reply was sent. */
static int64_t link_owed_us(void *ctx)
{
    const struct link *link = ctx;
    return pipeline_oldest_us(&link->pipeline);
}

/* ---- coming up, and rechecks --------------------------------------------- */

/* Up to a quarter sooner, so that many servers do not recheck in step. */
static void recheck_after(struct link *link, int64_t since_us, int64_t wait_us)
{
    uint32_t random;
    random_bytes(&random, sizeof random);
    line_open(&link->recheck, since_us + wait_us - random % (wait_us / 4 + 1));
}

/* Remembers the address. True if the last connection had another one. */
static bool has_moved(struct link *link)
{
    struct line_address last = link->address;
    link->address = link->line.address;
    return last.len != 0 &&
           (last.len != link->address.len ||
            memcmp(&last.storage, &link->address.storage, last.len) != 0);
}

static void link_on_up(void *ctx, const struct node_facts *facts)
{
    struct link *link = ctx;
    struct node_facts with_move = *facts;
    with_move.has_moved = has_moved(link);
    pipeline_begin(&link->pipeline, link->line.wire, link->line.handshake.sha);
    if (facts->confirmed_us == 0) /* the last good address */
        recheck_after(link, clock_now_us(), RECHECK_AGAIN_US);
    else
        recheck_after(link, facts->confirmed_us, RECHECK_US);
    link->events.up(link->events.engine, link->node, &with_move);
}

static void on_recheck_up(void *ctx, const struct node_facts *facts)
{
    struct link *link = ctx;
    line_close(&link->recheck);
    if (strcmp(facts->run_id, link->line.handshake.run_id) != 0) {
        /* What the old server still owes would be no vote: do not wait for it.
         */
        line_fail(
            &link->line, STATE_MOVED,
            "the name or address leads to another server now (run_id changed)");
        return;
    }
    /* A node that begins or ceases to evict keys is met anew. */
    bool has_evicted = link->line.handshake.evicts[0] != '\0';
    if (has_evicted != (facts->evicts[0] != '\0')) {
        line_fail(&link->line, STATE_EVICTS,
                  has_evicted ? "no longer evicts locks; connecting again"
                              : facts->evicts);
        return;
    }
    recheck_after(link, facts->confirmed_us, RECHECK_US);
    link->events.confirmed(link->events.engine, link->node, facts);
}

static void on_recheck_down(void *ctx, enum node_state reason,
                            const char *detail)
{
    struct link *link = ctx;
    switch (reason) {
    case STATE_UNREACHABLE:
    case STATE_SILENT:
    case STATE_LOADING:
    case STATE_BUSY:
    case STATE_TOO_MANY:
        /* it may pass unaided, and says nothing about the node */
        recheck_after(link, clock_now_us(), RECHECK_AGAIN_US);
        break;
    default:
        line_fail(&link->line, reason, detail);
    }
}

/* ---- begin and end ------------------------------------------------------ */

struct link *link_new(int node, const struct line_setup *setup,
                      const struct node_events *events)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->node = node;
    link->events = *events;
    pipeline_init(&link->pipeline, span_of(setup->prefix));
    struct line_setup for_calls = *setup, for_rechecks = *setup;
    for_calls.purpose = LINE_CALLS;
    for_rechecks.purpose = LINE_RECHECKS;
    for_rechecks.beside = &link->line;
    const struct line_events of_calls = {link_on_up, link_on_received,
                                         link_on_down, link_owed_us, link};
    const struct line_events of_rechecks = {
        .up = on_recheck_up, .down = on_recheck_down, .ctx = link};
    if (!line_init(&link->line, &for_calls, &of_calls) ||
        !line_init(&link->recheck, &for_rechecks, &of_rechecks)) {
        link_free(link);
        return NULL;
    }
    line_open(&link->line, clock_now_us());
    return link;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    line_fini(&link->recheck);
    line_fini(&link->line);
    pipeline_fini(&link->pipeline);
    free(link);
}
