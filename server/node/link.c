#include "link.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../base/random.h"
#include "backoff.h"
#include "confirm.h"
#include "pipeline.h"
#include "silence.h"

enum { STABLE_US = 1000000 }; /* up for so long: backoff starts anew */

enum link_state {
    LINK_IDLE, /* until the backoff ends */
    LINK_DIALING,
    LINK_UP,
};

/*
 * The timer means: dial again (idle), take the failure of a write (is_failing),
 * else check for silence. It is not set while the dial is at work.
 */
struct link {
    struct loop *loop;
    struct loop_timer *timer;
    const struct config_node *config;
    struct link_events events;
    int node;

    enum link_state state;
    bool is_failing;   /* a write failed; the link goes down in the next turn */
    bool is_reloading; /* SCRIPT LOAD was sent again */
    int64_t up_us;     /* up since */
    struct silence silence;
    struct backoff backoff;
    struct resolver *resolver;
    struct dial *dial;
    struct confirm *confirm; /* at work while the link is up */
    struct loop_watch *watch;
    struct wire *wire;
    struct pipeline pipeline;
    struct handshake handshake;
};

/* ---- going down --------------------------------------------------------- */

static void disconnect(struct link *link)
{
    /* The watch first: the loop must not hold a descriptor that is closed. */
    loop_watch_free(link->watch);
    link->watch = NULL;
    wire_free(link->wire);
    link->wire = NULL;
}

/* Each pending call gets its one reply. */
static void drop_pending(struct link *link, int64_t now_us)
{
    struct pipeline_reply reply;
    while (pipeline_drop(&link->pipeline, &reply))
        link->events.reply(link->events.ctx, link->node, reply.tag,
                           &reply.script, reply.sent_us, now_us);
}

static void schedule_retry(struct link *link, int64_t now_us)
{
    uint32_t random;
    random_fill(&random, sizeof random);
    loop_timer_set(link->timer,
                   now_us + backoff_next_us(&link->backoff, random));
}

/*
 * The only way down. The state changes before any event: what its callback
 * sends on this link is refused.
 */
static void fail(struct link *link, enum node_state reason, const char *detail)
{
    char text[HANDSHAKE_DETAIL_MAX]; /* detail may point into the wire */
    snprintf(text, sizeof text, "%s", detail);
    int64_t now_us = clock_now_us();
    if (link->state == LINK_UP && now_us - link->up_us >= STABLE_US)
        backoff_reset(&link->backoff);
    link->state = LINK_IDLE;
    link->is_failing = false;
    link->is_reloading = false;
    confirm_end(link->confirm);
    disconnect(link);
    schedule_retry(link, now_us);
    drop_pending(link, now_us);
    link->events.down(link->events.ctx, link->node, reason, text);
}

/* Goes down in the next turn: for callers that must not cause an event. */
static void fail_next_turn(struct link *link)
{
    link->is_failing = true;
    loop_timer_set(link->timer, clock_now_us());
}

/* ---- sending ------------------------------------------------------------ */

enum vote link_send(struct link *link, const struct call *call, uint64_t tag)
{
    if (link->state != LINK_UP || link->is_failing)
        return VOTE_UNREACHABLE;
    return pipeline_call(&link->pipeline, call, tag);
}

void link_flush(struct link *link)
{
    if (link->state != LINK_UP || link->is_failing)
        return;
    if (!pipeline_append(&link->pipeline) ||
        (wire_unsent(link->wire) > 0 && !wire_write(link->wire))) {
        fail_next_turn(link);
        return;
    }
    bool is_done = wire_unsent(link->wire) == 0;
    int events = LOOP_READABLE | (is_done ? 0 : LOOP_WRITABLE);
    if (!loop_watch_set(link->watch, events))
        fail_next_turn(link);
}

/* ---- receiving ---------------------------------------------------------- */

/* False: the link went down. */
static bool take_load(struct link *link, const struct pipeline_reply *reply)
{
    enum node_state state = handshake_take(&link->handshake, HANDSHAKE_LOAD,
                                           reply->fields, reply->count);
    link->is_reloading = false;
    if (state == STATE_VOTING)
        return true;
    fail(link, state, link->handshake.detail);
    return false;
}

/*
 * Somebody flushed the node's scripts: loads ours again, once, however many
 * calls miss it. Those calls are not sent again: their rounds may be lost by
 * now, and their votes tell what happened.
 */
static void reload_script(struct link *link)
{
    struct handshake_command load;
    if (link->is_reloading)
        return;
    link->is_reloading = true;
    handshake_command(&load, HANDSHAKE_LOAD, link->config);
    if (!pipeline_step(&link->pipeline, HANDSHAKE_LOAD, load.args, load.count))
        fail_next_turn(link); /* after the reply that is being taken */
}

/* False: the link went down. */
static bool take_call(struct link *link, const struct pipeline_reply *reply)
{
    /* First, so that the script is there for what the event sends. */
    if (reply->script.state == STATE_NO_SCRIPT)
        reload_script(link);
    link->events.reply(link->events.ctx, link->node, reply->tag, &reply->script,
                       reply->sent_us, link->silence.heard_us);
    if (reply->script.vote != VOTE_GARBAGE)
        return true;
    fail(link, STATE_GARBAGE, "sent a reply that our script never gives");
    return false;
}

/* False: no more replies, or the link went down. */
static bool take_reply(struct link *link)
{
    struct pipeline_reply reply;
    switch (pipeline_next(&link->pipeline, link->silence.heard_us, &reply)) {
    case PIPELINE_CALL:
        return take_call(link, &reply);
    case PIPELINE_STEP:
        return take_load(link, &reply);
    case PIPELINE_NONE:
        return false;
    case PIPELINE_UNASKED:
        fail(link, STATE_GARBAGE, "sent a reply that nobody asked for");
        return false;
    case PIPELINE_GARBAGE:
        break;
    }
    fail(link, STATE_GARBAGE, "sent what is no reply, or too long a one");
    return false;
}

static void take_replies(struct link *link)
{
    while (take_reply(link))
        continue;
}

/*
 * Reads, and takes all complete replies; one reading of the clock is right for
 * all. Replies that came before the connection ended are taken first.
 */
static void read_replies(struct link *link)
{
    bool has_read;
    if (!wire_read(link->wire, &has_read)) {
        fail(link, STATE_UNREACHABLE, wire_error(link->wire));
        return;
    }
    if (has_read)
        link->silence.heard_us = clock_now_us();
    take_replies(link);
}

static void on_watch(void *arg, int events)
{
    struct link *link = arg;
    if (link->is_failing)
        return;
    /* Reading reports an error after the replies that came before it. */
    if (events & (LOOP_READABLE | LOOP_ERROR))
        read_replies(link);
    if (events & LOOP_WRITABLE)
        link_flush(link);
}

/* ---- coming up ---------------------------------------------------------- */

/* The texts are borrowed from the handshake. */
static struct node_facts facts_of(const struct dial_result *result)
{
    return (struct node_facts){
        .run_id = result->handshake->run_id,
        .is_durable = result->handshake->is_durable,
        .confirmed_us = result->began_us,
        .node_now_us = result->handshake->node_now_us,
        .sent_us = result->time_sent_us,
        .received_us = result->time_received_us,
    };
}

static void go_up(struct link *link, const struct dial_result *result)
{
    const struct node_facts facts = facts_of(result);
    link->state = LINK_UP;
    link->up_us = link->silence.heard_us;
    loop_timer_set(link->timer,
                   link->silence.heard_us + link->silence.timeout_us);
    confirm_begin(link->confirm, facts.run_id, facts.confirmed_us);
    link->events.up(link->events.ctx, link->node, &facts);
}

static void on_dial_done(void *ctx, const struct dial_result *result)
{
    struct link *link = ctx;
    link->wire = result->wire;
    link->handshake = *result->handshake;
    link->silence.heard_us = result->heard_us;
    pipeline_begin(&link->pipeline, link->wire, link->handshake.sha);
    link->watch =
        loop_watch_new(link->loop, wire_fd(link->wire), on_watch, link);
    if (link->watch == NULL || !loop_watch_set(link->watch, LOOP_READABLE)) {
        fail(link, STATE_UNREACHABLE, "the socket cannot be watched");
        return;
    }
    go_up(link, result);
    take_replies(link); /* there must be none: nothing was asked yet */
}

static void on_confirmed(void *ctx, const struct dial_result *result)
{
    struct link *link = ctx;
    const struct node_facts facts = facts_of(result);
    link->events.confirmed(link->events.ctx, link->node, &facts);
}

/*
 * Dialing failed, or another server is at the node's name: what the old one
 * still owes would be no vote, so the link does not wait for it.
 */
static void on_failed(void *ctx, enum node_state reason, const char *detail)
{
    fail(ctx, reason, detail);
}

/* ---- the timer ---------------------------------------------------------- */

static void check_silence(struct link *link)
{
    char text[SILENCE_TEXT_MAX];
    int64_t now_us = clock_now_us();
    int64_t deadline_us = silence_deadline_us(
        &link->silence, pipeline_oldest_us(&link->pipeline), now_us);
    if (now_us < deadline_us) {
        loop_timer_set(link->timer, deadline_us);
        return;
    }
    silence_explain(&link->silence, "reply", text);
    fail(link, STATE_SILENT, text);
}

/* Replies that came before the write failed still are votes. */
static void take_failure(struct link *link)
{
    read_replies(link);
    if (link->state == LINK_IDLE)
        return; /* reading found a better reason */
    const char *error = wire_error(link->wire);
    fail(link, STATE_UNREACHABLE, error ? error : "no memory to go on");
}

static void on_timer(void *arg)
{
    struct link *link = arg;
    if (link->is_failing) {
        take_failure(link);
    } else if (link->state == LINK_IDLE) {
        link->state = LINK_DIALING;
        dial_start(link->dial);
    } else {
        check_silence(link);
    }
}

/* ---- begin and end ------------------------------------------------------ */

struct link *link_new(struct loop *loop, int node,
                      const struct config_node *config, const char *prefix,
                      int64_t silence_us, const struct link_events *events)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->loop = loop;
    link->node = node;
    link->config = config;
    pipeline_init(&link->pipeline, span_of(prefix));
    link->silence.timeout_us = silence_us;
    link->events = *events;
    link->resolver = resolver_new(loop, config);
    const struct dial_setup dialing = {
        .loop = loop,
        .config = config,
        .resolver = link->resolver,
        .silence_us = silence_us,
        .events = {on_dial_done, on_failed, link},
    };
    const struct confirm_events confirming = {on_confirmed, on_failed, link};
    link->dial = dial_new(&dialing);
    link->confirm = confirm_new(&dialing, CONFIRMED_US / 2, &confirming);
    link->timer = loop_timer_new(loop, on_timer, link);
    if (link->resolver == NULL || link->dial == NULL || link->confirm == NULL ||
        link->timer == NULL) {
        link_free(link);
        return NULL;
    }
    loop_timer_set(link->timer, clock_now_us());
    return link;
}

void link_free(struct link *link)
{
    if (link == NULL)
        return;
    disconnect(link);
    confirm_free(link->confirm);
    dial_free(link->dial);
    resolver_free(link->resolver);
    loop_timer_free(link->timer);
    pipeline_fini(&link->pipeline);
    free(link);
}
