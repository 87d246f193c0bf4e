#include "confirm.h"

#include <assert.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../base/random.h"

struct confirm {
    struct confirm_events events;
    struct loop_timer *timer; /* the next probe */
    struct dial *dial;
    int64_t interval_us;
    char run_id[RUN_ID_LEN + 1];
};

/* Up to a quarter sooner, so that many servers do not probe in step. */
static int64_t spread(int64_t us)
{
    uint32_t random;
    random_fill(&random, sizeof random);
    return us - random % (us / 4 + 1);
}

static void probe_soon(struct confirm *confirm)
{
    loop_timer_set(confirm->timer, clock_now_us() + spread(CONFIRM_RETRY_US));
}

static void start_probe(void *arg)
{
    struct confirm *confirm = arg;
    dial_start(confirm->dial);
}

static void on_done(void *ctx, const struct dial_result *result)
{
    struct confirm *confirm = ctx;
    wire_free(result->wire);
    if (strcmp(result->facts.run_id, confirm->run_id) != 0) {
        confirm->events.refuted(confirm->events.ctx, STATE_MOVED,
                                "the name or address belongs to another server "
                                "now (run_id changed)");
        return;
    }
    /* before the event, which may call confirm_end */
    loop_timer_set(confirm->timer,
                   result->facts.confirmed_us + spread(confirm->interval_us));
    confirm->events.confirmed(confirm->events.ctx, result);
}

static void on_failed(void *ctx, enum node_state reason, const char *detail)
{
    struct confirm *confirm = ctx;
    switch (reason) {
    case STATE_UNREACHABLE:
    case STATE_SILENT:
    case STATE_LOADING:
    case STATE_BUSY:
    case STATE_TOO_MANY:
        /* it may pass unaided, and says nothing about the node */
        probe_soon(confirm);
        break;
    default:
        confirm->events.refuted(confirm->events.ctx, reason, detail);
    }
}

struct confirm *confirm_new(const struct dial_setup *dialing,
                            int64_t interval_us,
                            const struct confirm_events *events)
{
    struct confirm *confirm = calloc(1, sizeof *confirm);
    struct dial_setup setup = *dialing;
    if (confirm == NULL)
        return NULL;
    setup.is_probe = true;
    setup.events = (struct dial_events){on_done, on_failed, confirm};
    confirm->events = *events;
    confirm->interval_us = interval_us;
    confirm->dial = dial_new(&setup);
    confirm->timer = loop_timer_new(setup.loop, start_probe, confirm);
    if (confirm->dial == NULL || confirm->timer == NULL) {
        confirm_free(confirm);
        return NULL;
    }
    return confirm;
}

void confirm_free(struct confirm *confirm)
{
    if (confirm == NULL)
        return;
    dial_free(confirm->dial);
    loop_timer_free(confirm->timer);
    free(confirm);
}

void confirm_begin(struct confirm *confirm, const char *run_id,
                   int64_t known_us)
{
    assert(strlen(run_id) <= RUN_ID_LEN);
    confirm_end(confirm);
    confirm->run_id[span_copy(confirm->run_id, span_of(run_id))] = '\0';
    if (known_us == 0)
        probe_soon(confirm);
    else
        loop_timer_set(confirm->timer, known_us + spread(confirm->interval_us));
}

void confirm_end(struct confirm *confirm)
{
    loop_timer_stop(confirm->timer);
    dial_stop(confirm->dial);
}
