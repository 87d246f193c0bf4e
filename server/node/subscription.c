/* SPDX-License-Identifier: MIT */
#include "subscription.h"

#include <assert.h>
#include <stdlib.h>

#include "../base/clock.h"
#include "../lock/names.h"

enum {
    UNSENT_MAX =
        16 * 1024 * 1024,  /* bytes in the wire: room for 10,000 names */
    REFUSED_US = 30000000, /* until the next attempt */
    NUMBER_MAX = 16,       /* digits of a fencing token */
    CHANNEL_MAX = PREFIX_MAX + sizeof SCRIPT_RELEASED - 1 + RESOURCE_MAX,
};

struct subscription {
    struct node_events events;
    int node;
    bool is_up;
    bool is_refused; /* the last reply was an error */
    struct line line;
    size_t head_len; /* of channel: what stands before the resource */
    char channel[CHANNEL_MAX];
};

/* ---- sending ------------------------------------------------------------ */

void subscription_set(struct subscription *subscription, struct span resource,
                      bool is_on)
{
    struct line *line = &subscription->line;
    assert(resource.len <= RESOURCE_MAX);
    if (!line_is_up(line))
        return;
    size_t len = subscription->head_len;
    len += span_copy(subscription->channel + len, resource);
    const struct span args[] = {span_of(is_on ? "SUBSCRIBE" : "UNSUBSCRIBE"),
                                {subscription->channel, len}};
    if (wire_unsent(line->wire) > UNSENT_MAX ||
        !wire_append(line->wire, args, 2))
        line_fail_later(line);
}

void subscription_flush(struct subscription *subscription)
{
    line_flush(&subscription->line);
}

/* ---- receiving ---------------------------------------------------------- */

/*
 * The resource of a channel, copied: the callback may close, and free the wire.
 * False: it is not a channel of ours.
 */
static bool read_channel(const struct subscription *subscription,
                         const struct script_field *field,
                         char copy[RESOURCE_MAX], struct span *resource)
{
    struct span channel = field->string;
    size_t head_len = subscription->head_len;
    if (field->type != SCRIPT_FIELD_STRING || channel.len < head_len ||
        channel.len > head_len + RESOURCE_MAX ||
        memcmp(channel.ptr, subscription->channel, head_len) != 0)
        return false;
    *resource =
        (struct span){copy, span_copy(copy, span_behind(channel, head_len))};
    return true;
}

/*
 * The number in an announcement. On the channel of a pool NAMES_SLOT and a slot
 * follow it: they make the resource the name of that slot.
 */
static struct span take_slot(struct span text, char copy[RESOURCE_MAX],
                             struct span *resource)
{
    struct span number = span_take(&text, NAMES_SLOT[0]);
    if (text.len <= RESOURCE_MAX - resource->len)
        resource->len += span_copy(copy + resource->len, text);
    return number;
}

/*
 * kind channel text | kind channel count, as an array. False: it is no
 * announcement.
 */
static bool subscription_take_reply(struct subscription *subscription,
                                    const struct wire_reply *reply)
{
    const struct node_events *events = &subscription->events;
    const struct script_field *fields = reply->fields + 1;
    char copy[RESOURCE_MAX];
    subscription->is_refused = reply->fields[0].type == SCRIPT_FIELD_ERROR;
    if (reply->count != 4 || reply->fields[0].type != SCRIPT_FIELD_ARRAY ||
        reply->fields[0].integer != 3)
        return false;
    struct span kind = fields[0].string, resource;
    if (fields[0].type != SCRIPT_FIELD_STRING ||
        !read_channel(subscription, &fields[1], copy, &resource))
        return false;
    if (fields[2].type == SCRIPT_FIELD_STRING) {
        if (!span_is(kind, "message"))
            return false;
        struct span number = take_slot(fields[2].string, copy, &resource);
        events->announced(events->engine, subscription->node, resource,
                          at_least(span_number(number, NUMBER_MAX), 0));
        return true;
    }
    if (fields[2].type != SCRIPT_FIELD_INTEGER)
        return false;
    if (!span_is(kind, "subscribe"))
        return span_is(kind, "unsubscribe");
    events->subscribed(events->engine, subscription->node, resource);
    return true;
}

/* Stops when a callback closes the line. */
static void subscription_on_received(void *ctx)
{
    struct subscription *subscription = ctx;
    struct line *line = &subscription->line;
    const struct wire_reply *reply;
    enum wire_next next = WIRE_REPLY;
    while (next == WIRE_REPLY && line->state >= LINE_UP) {
        next = wire_next(line->wire, &reply);
        if (next == WIRE_GARBAGE ||
            (next == WIRE_REPLY &&
             !subscription_take_reply(subscription, reply)))
            line_fail(line, STATE_GARBAGE, "sent an invalid announcement");
    }
}

/* Heartbeats, ever since. */
static int64_t subscription_owed_us(void *ctx)
{
    const struct subscription *subscription = ctx;
    return subscription->line.state_us;
}

/* ---- up and down -------------------------------------------------------- */

static void subscription_on_up(void *ctx, const struct node_facts *facts)
{
    struct subscription *subscription = ctx;
    (void)facts;
    subscription->is_up = true;
    subscription_set(subscription, span_of(""), true);
    subscription->events.listener_up(subscription->events.engine,
                                     subscription->node);
}

/* A user that may not subscribe now may hardly do so in a moment. */
static void subscription_on_down(void *ctx, enum node_state reason,
                                 const char *detail)
{
    struct subscription *subscription = ctx;
    bool was_up = subscription->is_up;
    (void)reason, (void)detail;
    if (subscription->is_refused)
        line_open(&subscription->line, clock_now_us() + REFUSED_US);
    subscription->is_refused = false;
    subscription->is_up = false;
    if (was_up)
        subscription->events.listener_down(subscription->events.engine,
                                           subscription->node);
}

void subscription_open(struct subscription *subscription)
{
    if (subscription->line.state == LINE_CLOSED)
        line_open(&subscription->line, clock_now_us());
}

void subscription_close(struct subscription *subscription)
{
    subscription->is_up = false;
    line_close(&subscription->line);
}

/* ---- begin and end ------------------------------------------------------ */

struct subscription *subscription_new(int node, const struct line_setup *setup,
                                      const struct node_events *events)
{
    struct subscription *subscription = calloc(1, sizeof *subscription);
    if (subscription == NULL)
        return NULL;
    subscription->node = node;
    subscription->events = *events;
    size_t len = span_copy(subscription->channel, span_of(setup->prefix));
    len += span_copy(subscription->channel + len, span_of(SCRIPT_RELEASED));
    subscription->head_len = len;
    const struct line_events listening = {
        subscription_on_up, subscription_on_received, subscription_on_down,
        subscription_owed_us, subscription};
    if (!line_init(&subscription->line, setup, &listening)) {
        subscription_free(subscription);
        return NULL;
    }
    return subscription;
}

void subscription_free(struct subscription *subscription)
{
    if (subscription == NULL)
        return;
    line_fini(&subscription->line);
    free(subscription);
}
