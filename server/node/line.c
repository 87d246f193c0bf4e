/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <assert.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/un.h>

#include "../base/clock.h"
#include "../base/process.h"

enum { STABLE_US = 1000000 }; /* up for so long: backoff starts anew */

static void line_enter(struct line *line, enum line_state state)
{
    line->state = state;
    line->state_us = clock_now_us();
    loop_timer_set(line->timer, line->state_us + line->setup.silence_us);
}

/* ---- going down --------------------------------------------------------- */

int64_t line_backoff_us(int64_t *longest_us, uint32_t random)
{
    int64_t us = at_least(*longest_us, LINE_BACKOFF_FIRST_US);
    *longest_us = at_most(2 * us, LINE_BACKOFF_LAST_US);
    return us / 2 + random % (us / 2 + 1);
}

static void line_leave(struct line *line, enum line_state state)
{
    if (line->state == LINE_RESOLVE)
        line->names->asker = NULL;
    line->state = state;
    loop_timer_stop(line->timer);
    /* The watch first: the loop must not hold a descriptor that is closed. */
    loop_watch_free(line->watch);
    line->watch = NULL;
    wire_free(line->wire);
    line->wire = NULL;
}

/*
 * The only way down. The state changes before the event: what its callback
 * sends on this line is refused.
 */
void line_fail(struct line *line, enum node_state reason, const char *detail)
{
    char text[NODE_DETAIL_MAX]; /* detail may point into the wire */
    uint32_t random;
    assert(line->state != LINE_CLOSED);
    snprintf(text, sizeof text, "%s", detail);
    int64_t now_us = clock_now_us();
    if (line->state == LINE_CONNECTING || line->state == LINE_SECURING)
        line->names->turn++;
    if (line->state >= LINE_UP && now_us - line->state_us >= STABLE_US)
        line->backoff_us = 0;
    line_leave(line, LINE_IDLE);
    random_bytes(&random, sizeof random);
    loop_timer_set(line->timer,
                   now_us + line_backoff_us(&line->backoff_us, random));
    line->events.down(line->events.ctx, reason, text);
}

/*
 * A node that speaks TLS, but is not asked to, closes the connection without a
 * word.
 */
static void line_fail_with_wire(struct line *line)
{
    char text[NODE_DETAIL_MAX];
    const struct address_node *config = line->setup.config;
    bool may_be_tls = line->state == LINE_HANDSHAKE && line->step == 0 &&
                      !config->is_tls && !config->is_unix;
    snprintf(text, sizeof text, "%s%s", wire_error(line->wire),
             may_be_tls ? "; if the node speaks TLS, write rediss://; a Redis "
                          "proxy cannot be a node"
                        : "");
    line_fail(line, wire_reason(line->wire), text);
}

void line_fail_later(struct line *line)
{
    assert(line->state >= LINE_UP);
    line->state = LINE_FAILING;
    loop_timer_set(line->timer, clock_now_us());
}

/* ---- the handshake ------------------------------------------------------ */

/* The next reply is to this step, or to the first one behind it that was sent.
 */
static void line_skip_steps(struct line *line, int step)
{
    while (step < HANDSHAKE_STEPS && line->sent_us[step] == 0)
        step++;
    line->step = step;
}

static bool line_needs(const struct line *line, int step)
{
    enum line_purpose purpose = line->setup.purpose;
    if (step == HANDSHAKE_LOAD_RIGHTS || step == HANDSHAKE_RIGHTS)
        return purpose != LINE_LISTENS;
    return step != HANDSHAKE_LOAD || purpose == LINE_CALLS;
}

/* All in one write, so in one round trip. False: the attempt failed. */
static bool line_send_steps(struct line *line)
{
    struct handshake_command command;
    line->handshake = (struct handshake){0};
    line->step = 0;
    for (int step = 0; step < HANDSHAKE_STEPS; step++) {
        handshake_command(&command, (enum handshake_step)step,
                          line->setup.config, line->setup.prefix);
        bool is_sent = command.count > 0 && line_needs(line, step);
        line->sent_us[step] = is_sent ? clock_now_us() : 0;
        if (is_sent && !wire_append(line->wire, command.args, command.count)) {
            line_fail(line, STATE_UNREACHABLE,
                      "out of memory for the handshake");
            return false;
        }
    }
    return true;
}

static void line_come_up(struct line *line)
{
    char lacks[NODE_DETAIL_MAX];
    handshake_explain(line->handshake.lacks, lacks, sizeof lacks);
    const struct node_facts facts = {
        .run_id = line->handshake.run_id,
        .is_durable = line->handshake.is_durable,
        .not_durable = line->handshake.not_durable,
        .lacks = lacks,
        .evicts = line->handshake.evicts,
        .certificate_until_s = wire_certificate_until_s(line->wire),
        .confirmed_us = line->began_us,
        .node_now_us = line->handshake.node_now_us,
        .sent_us = line->sent_us[HANDSHAKE_TIME],
        .received_us = line->time_received_us,
    };
    line_enter(line, LINE_UP);
    line->events.up(line->events.ctx, &facts);
}

/* False: the handshake has ended. */
static bool line_take_step(struct line *line, const struct wire_reply *reply)
{
    line_skip_steps(line, line->step);
    enum handshake_step step = (enum handshake_step)line->step;
    line_skip_steps(line, line->step + 1);
    enum node_state refusal =
        handshake_take(&line->handshake, step, reply->fields, reply->count);
    if (refusal != STATE_NONE) {
        line_fail(line, refusal, line->handshake.detail);
        return false;
    }
    if (step == HANDSHAKE_TIME)
        line->time_received_us = line->received_us;
    if (line->step < HANDSHAKE_STEPS)
        return true;
    line_come_up(line);
    return false;
}

/* False: no more replies, or the handshake has ended. */
static bool line_take_reply(struct line *line)
{
    const struct wire_reply *reply;
    switch (wire_next(line->wire, &reply)) {
    case WIRE_REPLY:
        return line_take_step(line, reply);
    case WIRE_NONE:
        return false;
    case WIRE_GARBAGE:
        break;
    }
    line_fail(line, STATE_GARBAGE,
              wire_receives_tls(line->wire)
                  ? "speaks TLS: write rediss:// instead of redis://"
                  : "sent data that is not a Redis reply, or is too long");
    return false;
}

/* ---- reading and writing ------------------------------------------------- */

/* Replies that came before the connection ended are taken first. */
static void line_read(struct line *line)
{
    bool has_read;
    if (!wire_read(line->wire, &has_read)) {
        line_fail_with_wire(line);
        return;
    }
    if (has_read)
        line->received_us = clock_now_us();
    while (line->state == LINE_HANDSHAKE && line_take_reply(line))
        continue;
    if (line->state >= LINE_UP) /* some may have come with the handshake's */
        line->events.received(line->events.ctx);
    /* No poll would show an end of TLS behind the last bytes. */
    if ((line->state == LINE_HANDSHAKE || line->state == LINE_UP) &&
        wire_error(line->wire) != NULL)
        line_fail_with_wire(line);
}

static void line_watch_for(struct line *line, int events)
{
    if (line->watch == NULL || !loop_watch_set(line->watch, events))
        line_fail(line, STATE_UNREACHABLE, "the socket cannot be watched");
}

static int line_awaited(const struct line *line)
{
    return LOOP_READABLE | (wire_unsent(line->wire) > 0 ? LOOP_WRITABLE : 0);
}

static void line_write_steps(struct line *line)
{
    if (wire_write(line->wire)) {
        line_watch_for(line, line_awaited(line));
        return;
    }
    /* a reply may say more: that the server has too many clients */
    line_read(line);
    if (line->state == LINE_HANDSHAKE)
        line_fail_with_wire(line);
}

void line_flush(struct line *line)
{
    if (line->state != LINE_UP)
        return;
    if ((wire_unsent(line->wire) > 0 && !wire_write(line->wire)) ||
        !loop_watch_set(line->watch, line_awaited(line)))
        line_fail_later(line);
}

/* ---- connecting --------------------------------------------------------- */

/* False: not yet, or the attempt failed. */
static bool line_begin_handshake(struct line *line)
{
    bool is_connected =
        line->state != LINE_CONNECTING || wire_finish_connect(line->wire);
    enum session_shake shake = SESSION_BROKEN;
    if (is_connected) {
        line->state = LINE_SECURING;
        shake = wire_shake(line->wire);
    }
    if (shake == SESSION_BROKEN) {
        line_fail_with_wire(line);
        return false;
    }
    if (shake != SESSION_READY) {
        line_watch_for(line, shake == SESSION_WANTS_WRITE ? LOOP_WRITABLE
                                                          : LOOP_READABLE);
        return false;
    }
    line->names->good = line->address;
    line_enter(line, LINE_HANDSHAKE);
    return line_send_steps(line);
}

static void line_on_watch(void *arg, int events)
{
    struct line *line = arg;
    if (line->state == LINE_FAILING)
        return;
    if (line->state == LINE_CONNECTING || line->state == LINE_SECURING) {
        if (!line_begin_handshake(line))
            return;
        /* TLS may have read replies already, and waited for reading only. */
        if (line->setup.config->is_tls)
            events |= LOOP_READABLE | LOOP_WRITABLE;
    }
    /* Reading reports an error after the replies that came before it. */
    if (events & (LOOP_READABLE | LOOP_ERROR))
        line_read(line);
    if (!(events & LOOP_WRITABLE))
        return;
    if (line->state == LINE_HANDSHAKE)
        line_write_steps(line);
    else
        line_flush(line);
}

/* began_us: as in struct line. */
static void line_connect(struct line *line, const struct line_address *address,
                         int64_t began_us)
{
    const struct address_node *config = line->setup.config;
    line_enter(line, LINE_CONNECTING);
    line->address = *address;
    line->began_us = began_us;
    line->wire =
        wire_new((const struct sockaddr *)&address->storage, address->len);
    if (line->wire == NULL ||
        (config->is_tls &&
         !wire_secure(line->wire, line->setup.trust, config->host))) {
        line_fail(line, STATE_UNREACHABLE, "out of memory to connect");
        return;
    }
    if (wire_error(line->wire) != NULL) {
        line_fail_with_wire(line);
        return;
    }
    line->watch = loop_watch_new(line->setup.loop, wire_fd(line->wire),
                                 line_on_watch, line);
    line_watch_for(line, LOOP_READABLE | LOOP_WRITABLE);
}

/* ---- the lookup --------------------------------------------------------- */

static struct line_address make_address(const void *bytes, socklen_t len)
{
    struct line_address address = {.len = len};
    assert(len <= sizeof address.storage);
    memcpy(&address.storage, bytes, len);
    return address;
}

/*
 * A name may have several addresses, and the first may be one where nobody
 * listens (localhost: ::1 before 127.0.0.1): each failure moves on to another.
 */
static struct line_address choose_address(const struct addrinfo *found,
                                          unsigned turn)
{
    unsigned count = 0;
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        count++;
    if (count == 0)
        return (struct line_address){.len = 0};
    for (unsigned i = turn % count; i > 0; i--)
        found = found->ai_next;
    return make_address(found->ai_addr, found->ai_addrlen);
}

/*
 * address: without length if there is none; error says why. For calls, no name
 * server is needed to reach a node that is known.
 */
static void line_take_address(struct line *line, struct line_address address,
                              const char *error)
{
    struct line_names *names = line->names;
    names->asker = NULL;
    if (address.len > 0)
        line_connect(line, &address, names->began_us);
    else if (names->good.len > 0 && line->setup.purpose == LINE_CALLS)
        line_connect(line, &names->good, 0);
    else
        line_fail(line, STATE_UNREACHABLE, error);
}

static void on_lookup(void *arg, const struct addrinfo *found,
                      const char *error)
{
    struct line_names *names = arg;
    struct line_address address = choose_address(found, names->turn);
    names->lookup = NULL;
    if (names->asker == NULL)
        names->late = address;
    else
        line_take_address(names->asker, address, error);
}

/* Joins the lookup of an attempt that was given up. */
static void line_resolve(struct line *line)
{
    struct line_names *names = line->names;
    const struct address_node *config = line->setup.config;
    struct line_address late = names->late;
    assert(names->asker == NULL);
    line_enter(line, LINE_RESOLVE);
    names->asker = line;
    names->late.len = 0;
    if (late.len > 0) {
        line_take_address(line, late, NULL);
        return;
    }
    if (names->lookup != NULL)
        return;
    names->began_us = clock_now_us();
    if (config->is_unix) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        size_t len = strlen(config->host);
        assert(len < sizeof address.sun_path); /* options_load refuses others */
        memcpy(address.sun_path, config->host, len);
        line_take_address(line, make_address(&address, sizeof address), NULL);
        return;
    }
    names->lookup = loop_lookup_new(line->setup.loop, config->host,
                                    config->port, on_lookup, names);
    if (names->lookup == NULL)
        line_take_address(line, (struct line_address){.len = 0},
                          "the name cannot be resolved");
}

/* ---- the timer ---------------------------------------------------------- */

/*
 * When the node times out: it owes something since the state began, or as the
 * owner says, and sends something meanwhile or not. If it owes nothing, it
 * cannot time out before it is checked again.
 */
static int64_t line_deadline_us(const struct line *line, int64_t now_us)
{
    int64_t owed_us = line->state == LINE_UP
                          ? line->events.owed_us(line->events.ctx)
                          : line->state_us;
    int64_t since_us =
        owed_us == 0 ? now_us : at_least(line->received_us, owed_us);
    return since_us + line->setup.silence_us;
}

static void line_fail_silent(struct line *line)
{
    char detail[NODE_DETAIL_MAX];
    const char *missing = "reply", *hint = "";
    if (line->state == LINE_CONNECTING)
        missing = "connection";
    if (line->state == LINE_SECURING) {
        missing = "TLS handshake";
        hint = "; if the node does not speak TLS, write redis://";
    }
    (void)snprintf(detail, sizeof detail, "no %s for %" PRId64 " ms%s", missing,
                   line->setup.silence_us / US_PER_MS, hint);
    line_fail(line, STATE_SILENT, detail);
}

/*
 * A server without TLS may say nothing to a handshake, and wait for more.
 *
 * If the process was stopped, the reply may be in the socket: a loop_timer
 * always runs after that was read.
 */
static void line_check_silence(struct line *line)
{
    int64_t now_us = clock_now_us();
    int64_t deadline_us = line_deadline_us(line, now_us);
    if (now_us < deadline_us)
        loop_timer_set(line->timer, deadline_us);
    else if (line->state == LINE_RESOLVE)
        line_take_address(line, (struct line_address){.len = 0},
                          "the name was not resolved in time");
    else
        line_fail_silent(line);
}

static void line_on_timer(void *arg)
{
    struct line *line = arg;
    if (line->state == LINE_FAILING) {
        /* Replies that came before the write failed still count. */
        line_read(line);
        if (line->state != LINE_FAILING)
            return; /* reading found a better reason */
        if (wire_error(line->wire) != NULL)
            line_fail_with_wire(line);
        else
            line_fail(line, STATE_UNREACHABLE, "out of memory");
    } else if (line->state == LINE_IDLE) {
        line_resolve(line);
    } else {
        line_check_silence(line);
    }
}

/* ---- begin and end ------------------------------------------------------ */

bool line_init(struct line *line, const struct line_setup *setup,
               const struct line_events *events)
{
    assert(setup->silence_us > 0);
    line->setup = *setup;
    line->events = *events;
    line->names =
        setup->beside != NULL ? setup->beside->names : &line->own_names;
    line->timer = loop_timer_new(setup->loop, line_on_timer, line);
    return line->timer != NULL;
}

void line_fini(struct line *line)
{
    if (line->timer == NULL)
        return;
    line_close(line);
    loop_timer_free(line->timer);
    loop_lookup_cancel(line->own_names.lookup);
}

void line_open(struct line *line, int64_t at_us)
{
    assert(line->state == LINE_CLOSED || line->state == LINE_IDLE);
    line->state = LINE_IDLE;
    loop_timer_set(line->timer, at_us);
}

void line_close(struct line *line)
{
    line_leave(line, LINE_CLOSED);
}
