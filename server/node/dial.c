#include "dial.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/clock.h"

enum dial_state {
    DIAL_REST,
    DIAL_LOOKUP,
    DIAL_CONNECTING,
    DIAL_SECURING, /* by TLS; within the time for connecting */
    DIAL_HANDSHAKE,
};

struct dial {
    struct dial_setup setup;
    struct loop_timer *timer; /* checks for silence */

    enum dial_state state;
    int64_t state_us; /* when the state began, and with it the wait */
    int64_t began_us; /* the lookup; 0: failed, so the last good address */
    struct silence silence;
    struct resolver_address address;
    struct loop_watch *watch;
    struct wire *wire;
    struct handshake handshake;
    int step;                         /* whose reply comes next */
    int64_t sent_us[HANDSHAKE_STEPS]; /* 0: the step was left out */
    int64_t time_received_us;
};

static void enter(struct dial *dial, enum dial_state state)
{
    dial->state = state;
    dial->state_us = clock_now_us();
    loop_timer_set(dial->timer, dial->state_us + dial->silence.timeout_us);
}

/* ---- the ends ----------------------------------------------------------- */

void dial_stop(struct dial *dial)
{
    if (dial->state == DIAL_LOOKUP)
        dial->setup.resolver->fn = NULL;
    dial->state = DIAL_REST;
    loop_timer_stop(dial->timer);
    /* The watch first: the loop must not hold a descriptor that is closed. */
    loop_watch_free(dial->watch);
    dial->watch = NULL;
    wire_free(dial->wire);
    dial->wire = NULL;
}

static void fail_attempt(struct dial *dial, enum node_state reason,
                         const char *detail)
{
    char text[NODE_DETAIL_MAX]; /* detail may point into the wire */
    snprintf(text, sizeof text, "%s", detail);
    if (dial->state == DIAL_CONNECTING || dial->state == DIAL_SECURING)
        dial->setup.resolver->turn++;
    dial_stop(dial);
    dial->setup.events.failed(dial->setup.events.ctx, reason, text);
}

static void finish(struct dial *dial)
{
    assert(dial->state == DIAL_HANDSHAKE);
    const struct dial_result result = {
        .wire = dial->wire,
        .handshake = &dial->handshake,
        .address = &dial->address,
        .facts = {.run_id = dial->handshake.run_id,
                  .is_durable = dial->handshake.is_durable,
                  .certificate_until_s = wire_certificate_until_s(dial->wire),
                  .confirmed_us = dial->began_us,
                  .node_now_us = dial->handshake.node_now_us,
                  .sent_us = dial->sent_us[HANDSHAKE_TIME],
                  .received_us = dial->time_received_us},
        .heard_us = dial->silence.heard_us,
    };
    dial->wire = NULL; /* handed over */
    dial_stop(dial);
    dial->setup.events.done(dial->setup.events.ctx, &result);
}

/* ---- the handshake ------------------------------------------------------ */

static int steps_of(const struct dial *dial)
{
    return dial->setup.is_probe ? HANDSHAKE_LOAD : HANDSHAKE_STEPS;
}

/* All in one write, so in one round trip. False: the attempt failed. */
static bool send_steps(struct dial *dial)
{
    struct handshake_command command;
    dial->handshake = (struct handshake){0};
    dial->step = 0;
    for (int step = 0; step < steps_of(dial); step++) {
        handshake_command(&command, (enum handshake_step)step,
                          dial->setup.config);
        bool is_sent = command.count > 0;
        dial->sent_us[step] = is_sent ? clock_now_us() : 0;
        if (is_sent && !wire_append(dial->wire, command.args, command.count)) {
            fail_attempt(dial, STATE_UNREACHABLE,
                         "no memory for the handshake");
            return false;
        }
    }
    return true;
}

/* False: the attempt has ended. */
static bool take_step(struct dial *dial, const struct wire_reply *reply)
{
    bool is_array = reply->fields[0].type == SCRIPT_FIELD_ARRAY;
    while (dial->sent_us[dial->step] == 0)
        dial->step++;
    enum handshake_step step = (enum handshake_step)dial->step++;
    enum node_state refusal =
        handshake_take(&dial->handshake, step, reply->fields + is_array,
                       reply->count - is_array);
    if (refusal != STATE_NONE) {
        fail_attempt(dial, refusal, dial->handshake.detail);
        return false;
    }
    if (step == HANDSHAKE_TIME)
        dial->time_received_us = dial->silence.heard_us;
    if (dial->step < steps_of(dial))
        return true;
    finish(dial);
    return false;
}

/* False: no more replies, or the attempt has ended. */
static bool take_reply(struct dial *dial)
{
    const struct wire_reply *reply;
    switch (wire_next(dial->wire, &reply)) {
    case WIRE_REPLY:
        return take_step(dial, reply);
    case WIRE_NONE:
        return false;
    case WIRE_GARBAGE:
        break;
    }
    fail_attempt(dial, STATE_GARBAGE,
                 wire_hears_tls(dial->wire)
                     ? "speaks TLS: write rediss:// instead of redis://"
                     : "sent what is no reply, or too long a one");
    return false;
}

/*
 * A node that speaks TLS, but is not asked to, closes the connection without a
 * word.
 */
static void fail_with_wire_error(struct dial *dial)
{
    char text[NODE_DETAIL_MAX];
    const struct address_node *config = dial->setup.config;
    bool may_be_tls = dial->state == DIAL_HANDSHAKE && dial->step == 0 &&
                      !config->is_tls && !config->is_unix;
    snprintf(text, sizeof text, "%.120s%s", wire_error(dial->wire),
             may_be_tls ? "; if the node speaks TLS, write rediss://" : "");
    fail_attempt(dial, wire_reason(dial->wire), text);
}

static void read_replies(struct dial *dial)
{
    bool has_read;
    if (!wire_read(dial->wire, &has_read)) {
        fail_with_wire_error(dial);
        return;
    }
    if (has_read)
        dial->silence.heard_us = clock_now_us();
    while (take_reply(dial))
        continue;
    /* No poll would show an end of TLS behind the last bytes. */
    if (dial->state == DIAL_HANDSHAKE && wire_error(dial->wire) != NULL)
        fail_with_wire_error(dial);
}

static void watch_for(struct dial *dial, int events)
{
    if (dial->watch == NULL || !loop_watch_set(dial->watch, events))
        fail_attempt(dial, STATE_UNREACHABLE, "the socket cannot be watched");
}

static void write_steps(struct dial *dial)
{
    if (!wire_write(dial->wire)) {
        /* a reply may say more: that the server has too many clients */
        read_replies(dial);
        if (dial->state == DIAL_HANDSHAKE)
            fail_with_wire_error(dial);
        return;
    }
    bool is_done = wire_unsent(dial->wire) == 0;
    watch_for(dial, LOOP_READABLE | (is_done ? 0 : LOOP_WRITABLE));
}

/* ---- connecting --------------------------------------------------------- */

/* False: not yet, or the attempt failed. */
static bool begin_handshake(struct dial *dial)
{
    bool is_connected =
        dial->state != DIAL_CONNECTING || wire_finish_connect(dial->wire);
    enum session_shake shake = SESSION_BROKEN;
    if (is_connected) {
        dial->state = DIAL_SECURING;
        shake = wire_shake(dial->wire);
    }
    if (shake == SESSION_BROKEN) {
        fail_with_wire_error(dial);
        return false;
    }
    if (shake != SESSION_READY) {
        watch_for(dial,
                  shake == SESSION_WANTS_WRITE ? LOOP_WRITABLE : LOOP_READABLE);
        return false;
    }
    dial->setup.resolver->good = dial->address;
    enter(dial, DIAL_HANDSHAKE);
    return send_steps(dial);
}

static void on_watch(void *arg, int events)
{
    struct dial *dial = arg;
    if (dial->state == DIAL_CONNECTING || dial->state == DIAL_SECURING) {
        if (!begin_handshake(dial))
            return;
        /* TLS may have read replies already, and waited for reading only. */
        if (dial->setup.config->is_tls)
            events |= LOOP_READABLE | LOOP_WRITABLE;
    }
    /* Reading reports an error after the replies that came before it. */
    if (events & (LOOP_READABLE | LOOP_ERROR))
        read_replies(dial);
    if (dial->state == DIAL_HANDSHAKE && (events & LOOP_WRITABLE))
        write_steps(dial);
}

/* began_us: as in struct dial. */
static void start_connecting(struct dial *dial,
                             const struct resolver_address *address,
                             int64_t began_us)
{
    const struct address_node *config = dial->setup.config;
    enter(dial, DIAL_CONNECTING);
    dial->address = *address;
    dial->began_us = began_us;
    dial->wire =
        wire_new((const struct sockaddr *)&address->storage, address->len);
    if (dial->wire == NULL ||
        (config->is_tls &&
         !wire_secure(dial->wire, dial->setup.trust, config->host))) {
        fail_attempt(dial, STATE_UNREACHABLE, "no memory to connect");
        return;
    }
    if (wire_error(dial->wire) != NULL) {
        fail_with_wire_error(dial);
        return;
    }
    dial->watch =
        loop_watch_new(dial->setup.loop, wire_fd(dial->wire), on_watch, dial);
    watch_for(dial, LOOP_READABLE | LOOP_WRITABLE);
}

/* ---- the lookup --------------------------------------------------------- */

/*
 * A link does not need the name server to reach a node that it knows. But the
 * name may lead somewhere else by now, so a probe fails.
 */
static void on_address(void *arg, const struct resolver_address *address,
                       int64_t began_us, const char *error)
{
    struct dial *dial = arg;
    const struct resolver_address *last = &dial->setup.resolver->good;
    if (address != NULL)
        start_connecting(dial, address, began_us);
    else if (last->len == 0 || dial->setup.is_probe)
        fail_attempt(dial, STATE_UNREACHABLE, error);
    else
        start_connecting(dial, last, 0);
}

void dial_start(struct dial *dial)
{
    assert(dial->state == DIAL_REST);
    enter(dial, DIAL_LOOKUP);
    resolver_ask(dial->setup.resolver, on_address, dial);
}

/* ---- silence ------------------------------------------------------------ */

int64_t dial_deadline_us(const struct silence *silence, int64_t owed_us,
                         int64_t now_us)
{
    int64_t since_us =
        owed_us == 0 ? now_us : at_least(silence->heard_us, owed_us);
    return since_us + silence->timeout_us;
}

void dial_explain_silence(const struct silence *silence, const char *missing,
                          char text[DIAL_TEXT_MAX])
{
    (void)snprintf(text, DIAL_TEXT_MAX, "no %s for %" PRId64 " ms", missing,
                   silence->timeout_us / US_PER_MS);
}

/* A server without TLS may say nothing to a handshake, and wait for more. */
static void check_silence(void *arg)
{
    struct dial *dial = arg;
    char text[DIAL_TEXT_MAX], detail[NODE_DETAIL_MAX];
    int64_t now_us = clock_now_us();
    int64_t deadline_us =
        dial_deadline_us(&dial->silence, dial->state_us, now_us);
    if (now_us < deadline_us) {
        loop_timer_set(dial->timer, deadline_us);
        return;
    }
    if (dial->state == DIAL_LOOKUP) {
        dial->setup.resolver->fn = NULL;
        on_address(dial, NULL, 0, "the name was not resolved in time");
        return;
    }
    const char *missing = "reply", *hint = "";
    if (dial->state == DIAL_CONNECTING)
        missing = "connection";
    if (dial->state == DIAL_SECURING) {
        missing = "TLS handshake";
        hint = "; if the node does not speak TLS, write redis://";
    }
    dial_explain_silence(&dial->silence, missing, text);
    snprintf(detail, sizeof detail, "%s%s", text, hint);
    fail_attempt(dial, STATE_SILENT, detail);
}

/* ---- begin and end ------------------------------------------------------ */

struct dial *dial_new(const struct dial_setup *setup)
{
    struct dial *dial = calloc(1, sizeof *dial);
    assert(setup->silence_us > 0);
    if (dial == NULL)
        return NULL;
    dial->setup = *setup;
    dial->silence.timeout_us = setup->silence_us;
    dial->timer = loop_timer_new(setup->loop, check_silence, dial);
    if (dial->timer == NULL) {
        free(dial);
        return NULL;
    }
    return dial;
}

void dial_free(struct dial *dial)
{
    if (dial == NULL)
        return;
    dial_stop(dial);
    loop_timer_free(dial->timer);
    free(dial);
}
