#include "link.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "backoff.h"
#include "clock.h"
#include "handshake.h"
#include "pipeline.h"
#include "random.h"

enum {
    STABLE_US = 1000000, /* up for so long: backoff starts anew */
    ADDRESS_MAX = 64,    /* a numeric address, with an interface's name */
};

enum link_state {
    LINK_IDLE, /* until the backoff is over */
    LINK_LOOKUP,
    LINK_CONNECTING,
    LINK_HANDSHAKE,
    LINK_UP,
};

/*
 * The timer means: try again (idle), take the failure of a write (is_failing),
 * else look whether the node is silent.
 */
struct link {
    struct loop *loop;
    struct loop_timer *timer;
    const struct config_node *config;
    struct link_events events;
    int node;
    int64_t silence_us;

    enum link_state state;
    bool is_failing;   /* a write failed; the link goes down in the next turn */
    bool is_reloading; /* the script is on its way again */
    int64_t heard_us;  /* when something was read, or the state began */
    int64_t up_us;     /* up since */
    struct backoff backoff;
    struct loop_lookup *lookup;
    struct loop_watch *watch;
    struct wire *wire;
    struct pipeline pipeline;
    struct handshake handshake;
    int64_t time_sent_us; /* of the handshake's TIME */
    int64_t time_received_us;

    unsigned attempt;          /* which of a name's addresses is tried */
    char address[ADDRESS_MAX]; /* in use */
    char good[ADDRESS_MAX];    /* connected last; "": none */
};

/* ---- going down --------------------------------------------------------- */

static void disconnect(struct link *link)
{
    loop_lookup_cancel(link->lookup);
    link->lookup = NULL;
    /* The watch first: the loop must not hold a descriptor that is closed. */
    loop_watch_free(link->watch);
    link->watch = NULL;
    wire_free(link->wire);
    link->wire = NULL;
}

/* Every pending call gets its one reply. */
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
 * The one way down. The state changes before any callback: what they send on
 * this link is refused, and nothing of it is left that they could reach.
 */
static void fail(struct link *link, enum vote reason, const char *detail)
{
    char text[HANDSHAKE_DETAIL_MAX]; /* detail may lie in the wire */
    snprintf(text, sizeof text, "%s", detail);
    int64_t now_us = clock_now_us();
    if (link->state == LINK_UP && now_us - link->up_us >= STABLE_US)
        backoff_reset(&link->backoff);
    if (link->state == LINK_CONNECTING)
        link->attempt++;
    link->state = LINK_IDLE;
    link->is_failing = false;
    link->is_reloading = false;
    disconnect(link);
    schedule_retry(link, now_us);
    drop_pending(link, now_us);
    link->events.down(link->events.ctx, link->node, reason, text);
}

/* For places from which nobody may be called back. */
static void fail_next_turn(struct link *link)
{
    link->is_failing = true;
    loop_timer_set(link->timer, clock_now_us());
}

/* ---- sending ------------------------------------------------------------ */

enum vote link_send(struct link *link, const struct script_call *call,
                    uint64_t tag)
{
    if (link->state != LINK_UP || link->is_failing)
        return VOTE_UNREACHABLE;
    return pipeline_call(&link->pipeline, call, tag);
}

static bool send_step(struct link *link, enum handshake_step step)
{
    struct handshake_command command;
    handshake_command(&command, step, link->config);
    if (command.argc == 0)
        return true;
    return pipeline_step(&link->pipeline, (int)step, command.argc, command.argv,
                         command.len);
}

/* Sends this step and all behind it. False: no memory. */
static bool send_steps(struct link *link, enum handshake_step first)
{
    for (int step = (int)first; step < HANDSHAKE_STEPS; step++)
        if (!send_step(link, (enum handshake_step)step))
            return false;
    return true;
}

void link_flush(struct link *link)
{
    if (link->state < LINK_HANDSHAKE || link->is_failing)
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

static void go_up(struct link *link)
{
    const struct link_facts facts = {
        .run_id = link->handshake.run_id,
        .version = link->handshake.version,
        .role = link->handshake.role,
        .node_now_us = link->handshake.node_now_us,
        .sent_us = link->time_sent_us,
        .received_us = link->time_received_us,
    };
    link->state = LINK_UP;
    link->up_us = link->heard_us;
    link->events.up(link->events.ctx, link->node, &facts);
}

/* False: the link went down. */
static bool take_step(struct link *link, const struct pipeline_reply *reply)
{
    enum handshake_step step = (enum handshake_step)reply->step;
    enum vote vote =
        handshake_take(&link->handshake, step, reply->fields, reply->count);
    if (vote != VOTE_DONE) {
        fail(link, vote, link->handshake.detail);
        return false;
    }
    if (step == HANDSHAKE_TIME) {
        link->time_sent_us = reply->sent_us;
        link->time_received_us = link->heard_us;
    }
    if (step == HANDSHAKE_STEPS - 1) {
        link->is_reloading = false;
        if (link->state == LINK_HANDSHAKE)
            go_up(link);
    }
    return true;
}

/*
 * Somebody flushed the node's scripts: ours is loaded again, once, however many
 * calls find it gone. None of these is sent again: its round may be lost by
 * now, and its vote tells what happened.
 */
static void reload_script(struct link *link)
{
    if (link->is_reloading)
        return;
    link->is_reloading = true;
    if (!send_steps(link, HANDSHAKE_LOAD))
        fail_next_turn(link); /* behind the reply that is being taken */
}

/* False: the link went down. */
static bool take_call(struct link *link, const struct pipeline_reply *reply)
{
    /* First, so that what the event sends finds the script again. */
    if (reply->script.vote == VOTE_NO_SCRIPT)
        reload_script(link);
    link->events.reply(link->events.ctx, link->node, reply->tag, &reply->script,
                       reply->sent_us, link->heard_us);
    if (reply->script.vote != VOTE_GARBAGE)
        return true;
    fail(link, VOTE_GARBAGE, "sent a reply that our script never gives");
    return false;
}

/* False: no more replies, or the link went down. */
static bool take_reply(struct link *link)
{
    struct pipeline_reply reply;
    switch (pipeline_next(&link->pipeline, link->heard_us, &reply)) {
    case PIPELINE_CALL:
        return take_call(link, &reply);
    case PIPELINE_STEP:
        return take_step(link, &reply);
    case PIPELINE_NONE:
        return false;
    case PIPELINE_UNASKED:
        fail(link, VOTE_GARBAGE, "sent a reply that nobody asked for");
        return false;
    case PIPELINE_GARBAGE:
        break;
    }
    fail(link, VOTE_GARBAGE, "sent what is no reply, or too long a one");
    return false;
}

/*
 * Reads, and takes all complete replies; one reading of the clock is right for
 * all. What came before the end of the connection is taken first.
 */
static void read_replies(struct link *link)
{
    bool has_read;
    if (!wire_read(link->wire, &has_read)) {
        fail(link, VOTE_UNREACHABLE, wire_error(link->wire));
        return;
    }
    if (has_read)
        link->heard_us = clock_now_us();
    while (take_reply(link))
        continue;
}

/* ---- coming up ---------------------------------------------------------- */

/* False: the link went down. */
static bool begin_handshake(struct link *link)
{
    if (!wire_finish_connect(link->wire)) {
        fail(link, VOTE_UNREACHABLE, wire_error(link->wire));
        return false;
    }
    memcpy(link->good, link->address, sizeof link->good);
    link->state = LINK_HANDSHAKE;
    link->heard_us = clock_now_us();
    link->handshake = (struct handshake){0};
    pipeline_begin(&link->pipeline, link->wire, link->handshake.sha);
    if (send_steps(link, (enum handshake_step)0))
        return true;
    fail(link, VOTE_UNREACHABLE, "no memory for the handshake");
    return false;
}

static void on_watch(void *arg, int events)
{
    struct link *link = arg;
    if (link->is_failing)
        return;
    if (link->state == LINK_CONNECTING && !begin_handshake(link))
        return;
    /* An error is told by reading, behind the replies that came before it. */
    if (events & (LOOP_READABLE | LOOP_ERROR))
        read_replies(link);
    if (events & LOOP_WRITABLE)
        link_flush(link);
}

static void start_connecting(struct link *link)
{
    const struct config_node *config = link->config;
    link->state = LINK_CONNECTING;
    link->heard_us = clock_now_us();
    link->wire = wire_new(config->is_unix ? config->host : link->address,
                          config->port, config->is_unix);
    if (link->wire == NULL || wire_error(link->wire) != NULL) {
        fail(link, VOTE_UNREACHABLE,
             link->wire ? wire_error(link->wire) : "no memory to connect");
        return;
    }
    link->watch =
        loop_watch_new(link->loop, wire_fd(link->wire), on_watch, link);
    if (link->watch == NULL ||
        !loop_watch_set(link->watch, LOOP_READABLE | LOOP_WRITABLE)) {
        fail(link, VOTE_UNREACHABLE, "the socket cannot be watched");
        return;
    }
    loop_timer_set(link->timer, link->heard_us + link->silence_us);
}

/* A name server that is away does not take the node away. */
static void connect_to_last(struct link *link, const char *error)
{
    memcpy(link->address, link->good, sizeof link->address);
    if (link->address[0] != '\0')
        start_connecting(link);
    else
        fail(link, VOTE_UNREACHABLE, error);
}

/*
 * A name may have several addresses, and the first may be one where nobody
 * listens (localhost: ::1 before 127.0.0.1): each failure moves on to another.
 */
static void on_lookup(void *arg, const struct addrinfo *found,
                      const char *error)
{
    struct link *link = arg;
    const struct addrinfo *chosen = found;
    unsigned count = 0;
    link->lookup = NULL;
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        count++;
    for (unsigned i = count > 0 ? link->attempt % count : 0; i > 0; i--)
        chosen = chosen->ai_next;
    if (chosen != NULL &&
        getnameinfo(chosen->ai_addr, chosen->ai_addrlen, link->address,
                    sizeof link->address, NULL, 0, NI_NUMERICHOST) == 0)
        start_connecting(link);
    else
        connect_to_last(link, error ? error : "the name has no usable address");
}

static void start_lookup(struct link *link)
{
    if (link->config->is_unix) {
        start_connecting(link);
        return;
    }
    link->state = LINK_LOOKUP;
    link->heard_us = clock_now_us();
    link->lookup = loop_lookup_new(link->loop, link->config->host,
                                   link->config->port, on_lookup, link);
    if (link->lookup == NULL)
        fail(link, VOTE_UNREACHABLE, "the name cannot be looked up");
    else
        loop_timer_set(link->timer, link->heard_us + link->silence_us);
}

/* ---- the timer ---------------------------------------------------------- */

/* From when on the node, or the name server, is silent. */
static int64_t silent_from(const struct link *link)
{
    int64_t since_us = link->heard_us;
    if (link->state >= LINK_HANDSHAKE) {
        int64_t oldest_us = pipeline_oldest_us(&link->pipeline);
        if (oldest_us == 0)
            since_us = clock_now_us(); /* it owes nothing */
        else if (oldest_us > since_us)
            since_us = oldest_us;
    }
    return since_us + link->silence_us;
}

static void fail_silent(struct link *link)
{
    char text[64];
    if (link->state == LINK_LOOKUP) {
        loop_lookup_cancel(link->lookup);
        link->lookup = NULL;
        connect_to_last(link, "the name was not resolved in time");
        return;
    }
    snprintf(text, sizeof text, "no %s for %d ms",
             link->state == LINK_CONNECTING ? "connection" : "reply",
             (int)(link->silence_us / 1000));
    fail(link, VOTE_SILENT, text);
}

/* True: the node said something, or the link went down saying it. */
static bool has_spoken(struct link *link)
{
    int64_t before_us = link->heard_us;
    if (link->state < LINK_HANDSHAKE)
        return false;
    read_replies(link);
    return link->state < LINK_HANDSHAKE || link->heard_us != before_us;
}

static void look_for_silence(struct link *link)
{
    /*
     * If this process was stopped, the replies lie in the socket: that is no
     * silence of the node.
     */
    if (clock_now_us() >= silent_from(link) && !has_spoken(link))
        fail_silent(link);
    else if (link->state >= LINK_HANDSHAKE)
        loop_timer_set(link->timer, silent_from(link));
}

/* The replies that came before the write failed are votes all the same. */
static void take_failure(struct link *link)
{
    read_replies(link);
    if (link->state == LINK_IDLE)
        return; /* reading has told more */
    const char *error = wire_error(link->wire);
    fail(link, VOTE_UNREACHABLE, error ? error : "no memory to go on");
}

static void on_timer(void *arg)
{
    struct link *link = arg;
    if (link->is_failing)
        take_failure(link);
    else if (link->state == LINK_IDLE)
        start_lookup(link);
    else
        look_for_silence(link);
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
    link->silence_us = silence_us;
    link->events = *events;
    link->timer = loop_timer_new(loop, on_timer, link);
    if (link->timer == NULL) {
        free(link);
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
    loop_timer_free(link->timer);
    pipeline_fini(&link->pipeline);
    free(link);
}
