/* SPDX-License-Identifier: MIT */
#include "render.h"

#include <assert.h>

#include "../../server/lock/names.h"
#include "id.h"

/* ---- locks -------------------------------------------------------------- */

static void put_id(struct json *json, struct span names)
{
    char id[ID_MAX];
    json_put_text(json, "id", (struct span){id, id_encode(id, names)});
}

static void put_resources(struct json *json, struct span names)
{
    json_open_array(json, "resources");
    while (names.len > 0)
        json_put_text(json, NULL, names_next(&names));
    json_close_array(json);
}

/* No name of a slot leaves the server: clients know its pool and its number. */
void render_lock(struct json *json, struct span names, bool as_list)
{
    struct span pool;
    int slots[NAMES_MAX], count = names_slots(names, &pool, slots);
    struct span reported = count > 0 ? pool : names;
    put_id(json, names);
    if (as_list || names_are_several(reported))
        put_resources(json, reported);
    else
        json_put_text(json, "resource", reported);
    if (count == 0)
        return;
    json_open_array(json, "slots");
    for (int i = 0; i < count; i++)
        json_put_integer(json, NULL, slots[i]);
    json_close_array(json);
}

static void put_mode(struct json *json, const struct engine_result *result)
{
    json_put_text(json, "mode",
                  span_of(result->is_shared ? "shared" : "exclusive"));
}

/* Members that are unknown are left out, never null. */
void render_holder(struct json *json, const struct engine_result *result)
{
    if (result->is_shared || result->number > 0) /* else nobody knows */
        put_mode(json, result);
    if (result->holders > 0)
        json_put_integer(json, "readers", result->holders);
    if (result->remaining_ms >= 0)
        json_put_integer(json, "remaining_ms", result->remaining_ms);
    if (result->number > 0)
        json_put_integer(json, "fencing_token", result->number);
    if (result->owner.len > 0)
        json_put_text(json, "owner", result->owner);
}

/* How many nodes have done what was asked, and how many have to. */
static void put_count(struct json *json, const char *done,
                      const struct engine_result *result)
{
    json_open_object(json, "nodes");
    json_put_integer(json, done, result->votes_for);
    json_put_integer(json, "asked", result->asked);
    json_put_integer(json, "quorum", result->quorum);
    json_put_integer(json, "total", result->total);
    json_close_object(json);
}

/* max_hold_ms: 0: without limit. */
static void render_put_limit(struct json *json,
                             const struct engine_result *result,
                             int64_t max_hold_ms)
{
    if (max_hold_ms == 0)
        return;
    json_put_integer(json, "max_hold_ms", max_hold_ms);
    if (result->held_ms >= 0)
        json_put_integer(json, "hold_left_ms",
                         at_least(max_hold_ms - result->held_ms, 0));
}

char *render_grant(const struct engine_result *result,
                   const struct render_times *times, size_t *len)
{
    struct json json;
    json_begin(&json);
    render_lock(&json, result->resource, false);
    if (times->limit > 0)
        json_put_integer(&json, "limit", times->limit);
    put_mode(&json, result);
    json_put_text(&json, "token", result->token);
    json_put_integer(&json, "fencing_token", result->number);
    json_put_integer(&json, "ttl_ms", result->ttl_ms);
    json_put_integer(&json, "validity_ms", result->validity_ms);
    json_put_integer(&json, "elapsed_ms", times->elapsed_ms);
    json_put_integer(&json, "renew_after_ms", times->renew_after_ms);
    render_put_limit(&json, result, times->max_hold_ms);
    if (times->waited_ms != NULL)
        json_put_integer(&json, "waited_ms", *times->waited_ms);
    if (result->owner.len > 0)
        json_put_text(&json, "owner", result->owner);
    put_count(&json, "granted", result);
    return json_end(&json, len);
}

char *render_release(const struct engine_result *result, size_t *len)
{
    struct json json;
    json_begin(&json);
    render_lock(&json, result->resource, false);
    json_put_boolean(&json, "released", true);
    put_count(&json, "released", result);
    return json_end(&json, len);
}

/* A lock that is held, or free. */
static void put_found(struct json *json, const struct engine_result *result,
                      int64_t max_hold_ms)
{
    render_lock(json, result->resource, false);
    json_put_boolean(json, "held", result->outcome == OUTCOME_FOUND);
    json_put_text(json, "version", span_of(result->version.text));
    render_holder(json, result);
    json_put_integer(json, "waiters", result->waiters);
    render_put_limit(json, result, max_hold_ms);
    put_count(json, "held", result);
}

char *render_inspect(const struct engine_result *result, int64_t max_hold_ms,
                     size_t *len)
{
    struct json json;
    json_begin(&json);
    put_found(&json, result, max_hold_ms);
    return json_end(&json, len);
}

char *render_pool(const struct render_pool *pool, size_t *len)
{
    struct json json;
    bool is_held[POOL_SLOTS_MAX] = {false};
    json_begin(&json);
    render_lock(&json, pool->name, false);
    json_put_integer(&json, "limit", pool->limit);
    json_open_array(&json, "slots");
    for (int i = 0; i < pool->count; i++) {
        const struct engine_result *lock = pool->slot(pool->ctx, i);
        struct span name;
        int slot = names_slot(lock->resource, &name);
        assert(slot >= 0);
        is_held[slot] = true;
        json_open_object(&json, NULL);
        json_put_integer(&json, "slot", slot);
        put_id(&json, lock->resource);
        json_put_text(&json, "version", span_of(lock->version.text));
        render_holder(&json, lock);
        put_count(&json, "held", lock);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_open_array(&json, "free");
    for (int i = 0; i < pool->limit; i++)
        if (!is_held[i])
            json_put_integer(&json, NULL, i);
    json_close_array(&json);
    json_put_integer(&json, "waiters", pool->waiters);
    return json_end(&json, len);
}

void render_page_begin(struct json *json)
{
    json_begin(json);
    json_open_array(json, "locks");
}

void render_page_lock(struct json *json, const struct engine_result *result,
                      int64_t max_hold_ms)
{
    json_open_object(json, NULL);
    put_found(json, result, max_hold_ms);
    json_close_object(json);
}

char *render_page_end(struct json *json, const char *cursor, size_t *len)
{
    json_close_array(json);
    if (cursor != NULL)
        json_put_text(json, "next_cursor", span_of(cursor));
    return json_end(json, len);
}

/* ---- what operators ask ------------------------------------------------- */

static void put_node(struct json *json, const struct engine_node_view *view,
                     int64_t now_us)
{
    json_open_object(json, NULL);
    json_put_text(json, "node", span_of(view->name));
    json_put_text(json, "address", span_of(view->address));
    json_put_text(json, "state", span_of(view->state));
    json_put_text(json, "detail", span_of(view->detail));
    json_put_boolean(json, "voting", view->is_voting);
    json_put_integer(json, "state_age_ms",
                     (now_us - view->since_us) / US_PER_MS);
    if (view->quarantine_us > 0)
        json_put_integer(json, "quarantine_ms",
                         divide_up(view->quarantine_us, US_PER_MS));
    if (view->has_clock)
        json_put_integer(json, "clock_lead_ms",
                         view->clock_offset_us / US_PER_MS);
    if (view->clock_steps > 0)
        json_put_integer(json, "clock_steps", (int64_t)view->clock_steps);
    if (view->rtt_us > 0)
        json_put_integer(json, "rtt_us", view->rtt_us);
    if (view->is_connected)
        json_put_boolean(json, "durable", view->is_durable);
    json_close_object(json);
}

void render_node_list(struct json *json, const struct render_nodes *nodes)
{
    json_open_array(json, "nodes");
    for (int i = 0; i < nodes->total; i++)
        put_node(json, &nodes->list[i], nodes->now_us);
    json_close_array(json);
}

char *render_nodes(const struct render_nodes *nodes, size_t *len)
{
    struct json json;
    json_begin(&json);
    if (nodes->status != NULL)
        json_put_text(&json, "status", span_of(nodes->status));
    json_put_integer(&json, "voting", nodes->voting);
    json_put_integer(&json, "quorum", nodes->quorum);
    json_put_integer(&json, "total", nodes->total);
    if (nodes->has_list)
        render_node_list(&json, nodes);
    return json_end(&json, len);
}
