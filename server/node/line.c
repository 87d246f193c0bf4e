#include "line.h"

#include <assert.h>
#include <stdio.h>

#include "../base/clock.h"
#include "../base/random.h"

enum { STABLE_US = 1000000 }; /* up for so long: backoff starts anew */

/* ---- going down --------------------------------------------------------- */

int64_t line_backoff_us(int64_t *longest_us, uint32_t random)
{
    int64_t us = at_least(*longest_us, LINE_BACKOFF_FIRST_US);
    *longest_us = at_most(2 * us, LINE_BACKOFF_LAST_US);
    return us / 2 + random % (us / 2 + 1);
}

static void disconnect(struct line *line)
{
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
    if (line->state == LINE_UP && now_us - line->up_us >= STABLE_US)
        line->backoff_us = 0;
    line->state = LINE_IDLE;
    line->is_failing = false;
    disconnect(line);
    random_fill(&random, sizeof random);
    loop_timer_set(line->timer,
                   now_us + line_backoff_us(&line->backoff_us, random));
    line->events.down(line->events.ctx, reason, text);
}

void line_fail_later(struct line *line)
{
    assert(line->state == LINE_UP);
    line->is_failing = true;
    loop_timer_set(line->timer, clock_now_us());
}

void line_put_off(struct line *line, int64_t wait_us)
{
    if (line->state == LINE_IDLE)
        loop_timer_set(line->timer, clock_now_us() + wait_us);
}

/* ---- at work ------------------------------------------------------------ */

void line_flush(struct line *line)
{
    if (!line_is_up(line))
        return;
    if (wire_unsent(line->wire) > 0 && !wire_write(line->wire)) {
        line_fail_later(line);
        return;
    }
    bool is_done = wire_unsent(line->wire) == 0;
    int events = LOOP_READABLE | (is_done ? 0 : LOOP_WRITABLE);
    if (!loop_watch_set(line->watch, events))
        line_fail_later(line);
}

/* Replies that came before the connection ended are taken first. */
static void read_replies(struct line *line)
{
    bool has_read;
    if (!wire_read(line->wire, &has_read)) {
        line_fail(line, wire_reason(line->wire), wire_error(line->wire));
        return;
    }
    if (has_read)
        line->silence.heard_us = clock_now_us();
    line->events.heard(line->events.ctx);
    /* No poll would show an end of TLS behind the last bytes. */
    if (line_is_up(line) && wire_error(line->wire) != NULL)
        line_fail(line, wire_reason(line->wire), wire_error(line->wire));
}

static void on_watch(void *arg, int events)
{
    struct line *line = arg;
    if (line->is_failing)
        return;
    /* Reading reports an error after the replies that came before it. */
    if (events & (LOOP_READABLE | LOOP_ERROR))
        read_replies(line);
    if (events & LOOP_WRITABLE)
        line_flush(line);
}

/* ---- coming up ---------------------------------------------------------- */

static void on_dial_done(void *ctx, const struct dial_result *result)
{
    struct line *line = ctx;
    line->wire = result->wire;
    line->silence.heard_us = result->heard_us;
    line->watch =
        loop_watch_new(line->loop, wire_fd(line->wire), on_watch, line);
    if (line->watch == NULL || !loop_watch_set(line->watch, LOOP_READABLE)) {
        line_fail(line, STATE_UNREACHABLE, "the socket cannot be watched");
        return;
    }
    line->state = LINE_UP;
    line->up_us = line->silence.heard_us;
    loop_timer_set(line->timer, line->up_us + line->silence.timeout_us);
    line->events.up(line->events.ctx, result);
    if (line->state == LINE_UP)
        line->events.heard(line->events.ctx); /* what came too early */
}

static void on_dial_failed(void *ctx, enum node_state reason,
                           const char *detail)
{
    line_fail(ctx, reason, detail);
}

/* ---- the timer ---------------------------------------------------------- */

static void check_silence(struct line *line)
{
    char text[DIAL_TEXT_MAX];
    int64_t now_us = clock_now_us();
    int64_t deadline_us = dial_deadline_us(
        &line->silence, line->events.owed_us(line->events.ctx), now_us);
    if (now_us < deadline_us) {
        loop_timer_set(line->timer, deadline_us);
        return;
    }
    dial_explain_silence(&line->silence, "reply", text);
    line_fail(line, STATE_SILENT, text);
}

static void dial_or_check(void *arg)
{
    struct line *line = arg;
    if (line->is_failing) {
        /* Replies that came before the write failed still count. */
        read_replies(line);
        if (line->state != LINE_UP)
            return; /* reading found a better reason */
        if (wire_error(line->wire) != NULL)
            line_fail(line, wire_reason(line->wire), wire_error(line->wire));
        else
            line_fail(line, STATE_UNREACHABLE, "no memory to go on");
    } else if (line->state == LINE_IDLE) {
        line->state = LINE_DIALING;
        dial_start(line->dial);
    } else {
        check_silence(line);
    }
}

/* ---- begin and end ------------------------------------------------------ */

bool line_init(struct line *line, const struct dial_setup *dialing,
               const struct line_events *events)
{
    struct dial_setup setup = *dialing;
    line->loop = setup.loop;
    line->events = *events;
    line->silence.timeout_us = setup.silence_us;
    line->resolver =
        (struct resolver){.loop = setup.loop, .config = setup.config};
    setup.resolver = &line->resolver;
    setup.events = (struct dial_events){on_dial_done, on_dial_failed, line};
    line->dial = dial_new(&setup);
    line->timer = loop_timer_new(setup.loop, dial_or_check, line);
    return line->dial != NULL && line->timer != NULL;
}

void line_fini(struct line *line)
{
    disconnect(line);
    dial_free(line->dial);
    resolver_fini(&line->resolver);
    loop_timer_free(line->timer);
}

void line_open(struct line *line)
{
    if (line->state != LINE_CLOSED)
        return;
    line->state = LINE_IDLE;
    loop_timer_set(line->timer, clock_now_us());
}

void line_close(struct line *line)
{
    line->state = LINE_CLOSED;
    line->is_failing = false;
    loop_timer_stop(line->timer);
    dial_stop(line->dial);
    disconnect(line);
}
