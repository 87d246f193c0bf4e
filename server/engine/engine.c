/* SPDX-License-Identifier: MIT */
#include "engine.h"

#include <assert.h>
#include <stdlib.h>

#include "parts.h"
#include "port/port.h"
#include "port/token.h"
#include "voting/outlook.h"

/* Each tick does all that is due: rarer ticks would take longer, and delay
 * other calls. */
enum { TICK_US = 20000 };

/* ---- ticks --------------------------------------------------------------- */

/* Nothing is under way, and no node needs more than to be probed. */
static bool is_at_rest(const struct engine *engine)
{
    return engine->nodes.voting == engine->env.settings.nodes &&
           engine->operations.entries.used == 0 &&
           engine->tickets.entries.used == 0 &&
           engine->listings.entries.used == 0 &&
           engine->spreads.entries.used == 0 &&
           engine->releases.entries.used == 0 &&
           engine->releases.debts.items == 0 &&
           TAILQ_EMPTY(&engine->watches.list) && !engine->waits.is_listening;
}

/* Sets the timer of the next tick. False: no memory for it; only the first call
 * may fail. */
static bool set_tick(struct engine *engine, bool is_resting)
{
    const struct engine_port *port = &engine->env.port;
    int64_t at_us = environment_now(&engine->env) + TICK_US;
    engine->is_resting = is_resting;
    if (is_resting)
        at_us = at_least(at_us, nodes_probe_due_us(&engine->nodes));
    return port->timer(port->ctx, TIMER_TICK, at_us);
}

/* Before a client's call. The last tick of a server at rest may be long ago:
 * whether the nodes may vote is judged anew. */
static void engine_wake(struct engine *engine)
{
    if (!engine->is_resting)
        return;
    engine->is_resting = false;
    nodes_tick(&engine->nodes, environment_now(&engine->env));
    (void)set_tick(engine, false);
}

/* After news that may end the rest. */
static void wake_if_due(struct engine *engine)
{
    if (engine->is_resting && !is_at_rest(engine))
        engine_wake(engine);
}

/* ---- life ---------------------------------------------------------------- */

struct engine *engine_new(const struct engine_settings *settings,
                          const struct engine_port *port,
                          struct metrics *metrics)
{
    assert(settings->retry_count >= 0 && settings->node_timeout_us >= 0);
    assert(settings->waiters_max >= 0 && settings->waiters_max <= WAITERS_MAX);
    struct engine *engine = malloc(sizeof *engine);
    if (engine == NULL)
        return NULL;
    metrics->names = &result_names;
    metrics->nodes = settings->nodes;
    metrics->quorum = quorum_of(settings->nodes);
    memcpy(metrics->node_names, settings->node_names,
           sizeof metrics->node_names);
    memcpy(metrics->node_addresses, settings->node_addresses,
           sizeof metrics->node_addresses);
    engine->env = (struct environment){*settings, *port, metrics};
    nodes_init(&engine->nodes, &engine->env);
    spreads_init(&engine->spreads, &engine->nodes);
    releases_init(&engine->releases, &engine->nodes);
    operations_init(&engine->operations, &engine->nodes, &engine->spreads,
                    &engine->releases);
    tickets_init(&engine->tickets, &engine->operations);
    waits_init(&engine->waits, &engine->nodes, &engine->tickets);
    permits_init(&engine->permits, &engine->tickets, &engine->waits);
    watches_init(&engine->watches, &engine->tickets, &engine->waits);
    listings_init(&engine->listings, &engine->nodes, &engine->operations);
    if (!set_tick(engine, is_at_rest(engine))) {
        free(engine);
        return NULL;
    }
    return engine;
}

void engine_free(struct engine *engine)
{
    if (engine == NULL)
        return;
    listings_fini(&engine->listings);
    tickets_fini(&engine->tickets);
    watches_fini(&engine->watches);
    permits_fini(&engine->permits);
    waitqueues_fini(&engine->waits.queues);
    operations_fini(&engine->operations);
    releases_fini(&engine->releases);
    spreads_fini(&engine->spreads);
    free(engine);
}

/* ---- what clients ask ---------------------------------------------------- */

/* A release of the resource was just sent to the nodes. */
static void report_release(struct engine *engine, struct span resource)
{
    waits_on_release(&engine->waits, resource);
    permits_on_release(&engine->permits, resource);
    watches_touch(&engine->watches, resource);
}

void engine_withdraw(struct engine *engine, struct span resource,
                     struct span key_hash, bool is_permit)
{
    if (key_hash.len == 0)
        return;
    if (is_permit)
        permits_withdraw(&engine->permits, resource, key_hash);
    else
        waits_withdraw(&engine->waits, resource, key_hash);
}

engine_op engine_acquire(struct engine *engine,
                         const struct engine_acquire *acquire, void *client)
{
    assert(acquire->ttl_ms > 0);
    assert(acquire->wait_ms >= 0 && acquire->wait_ms <= WAIT_MAX_MS);
    engine_wake(engine);
    if (acquire->wait_ms == 0)
        engine_withdraw(engine, acquire->resource, acquire->key_hash,
                        acquire->limit > 0);
    int64_t now_us = environment_now(&engine->env);
    struct request request = {
        .call = LOCK_ACQUIRE,
        .resource = acquire->resource,
        .owner = acquire->owner,
        .key_hash = acquire->key_hash,
        .asked_us = acquire->key_hash.len > 0
                        ? nodes_asked_us(&engine->nodes, now_us)
                        : 0,
        .ttl_ms = acquire->ttl_ms,
        .is_shared = acquire->is_shared,
        .is_choice = acquire->is_tried_once,
        .client = client,
    };
    /* It may not get in before a writer that waits, unless it is in. */
    bool is_behind = acquire->is_shared &&
                     waits_has_writer(&engine->waits, acquire->resource, false);
    if (acquire->limit > 0)
        return permits_start(
            &engine->permits, &request,
            &(struct permits_request){acquire->limit, acquire->permits,
                                      acquire->asker, acquire->wait_ms,
                                      acquire->is_tried_once,
                                      acquire->only_repeats});
    request.only_repeats =
        is_behind && acquire->wait_ms == 0 &&
        waits_has_writer(&engine->waits, acquire->resource, true);
    return acquire->wait_ms > 0 || (is_behind && acquire->key_hash.len == 0)
               ? waits_start(&engine->waits, &request, acquire->wait_ms)
               : operation_start(&engine->operations, &request);
}

static engine_op engine_start(struct engine *engine, struct request request)
{
    engine_wake(engine);
    return operation_start(&engine->operations, &request);
}

engine_op engine_extend(struct engine *engine, struct span resource,
                        struct span token, int64_t ttl_ms, bool is_shared,
                        void *client)
{
    assert(token_is_ours(token) && ttl_ms > 0);
    return engine_start(engine, (struct request){.call = LOCK_EXTEND,
                                                 .resource = resource,
                                                 .token = token,
                                                 .ttl_ms = ttl_ms,
                                                 .is_shared = is_shared,
                                                 .client = client});
}

engine_op engine_release(struct engine *engine, struct span resource,
                         struct span token, void *client)
{
    assert(token_is_ours(token));
    engine_op op = engine_start(engine, (struct request){.call = LOCK_RELEASE,
                                                         .resource = resource,
                                                         .token = token,
                                                         .client = client});
    report_release(engine, resource);
    return op;
}

engine_op engine_force(struct engine *engine, struct span resource,
                       int64_t number, void *client)
{
    assert(number >= 0);
    return engine_start(engine, (struct request){.call = LOCK_FORCE,
                                                 .resource = resource,
                                                 .number = number,
                                                 .client = client});
}

engine_op engine_inspect(struct engine *engine, struct span resource,
                         void *client)
{
    return engine_start(engine, (struct request){.call = LOCK_INSPECT,
                                                 .resource = resource,
                                                 .client = client});
}

engine_op engine_watch(struct engine *engine, struct span resource,
                       struct span known, int64_t wait_ms, void *client)
{
    engine_wake(engine);
    return watches_start(&engine->watches, resource, known, wait_ms, client);
}

engine_op engine_list(struct engine *engine, const struct engine_list *list,
                      void *client)
{
    engine_wake(engine);
    return listing_start(&engine->listings, list, client);
}

int engine_pool_waiters(const struct engine *engine, struct span pool)
{
    return permits_waiting(&engine->permits, pool);
}

const struct engine_page *engine_take_page(struct engine *engine, engine_op op)
{
    const struct engine_page *page = listing_page(&engine->listings, op);
    if (page->outcome == LIST_NO_QUORUM)
        nodes_on_failed(&engine->nodes);
    return page;
}

const struct engine_result *engine_page_lock(struct engine *engine,
                                             engine_op op, int n)
{
    struct operation *it = listing_lock(&engine->listings, op, n);
    it->result.waiters = waits_count(&engine->waits, it->request.resource);
    return &it->result;
}

static struct operation *engine_must_find(const struct engine *engine,
                                          engine_op op)
{
    assert(handle_kind_of(op) == HANDLE_OPERATION);
    struct operation *it = operation_find(&engine->operations, op);
    assert(it != NULL); /* a request ends its operation once: exchange.c */
    return it;
}

const struct engine_result *engine_take(struct engine *engine, engine_op op,
                                        int64_t now_us)
{
    const struct engine_result *result;
    if (handle_kind_of(op) == HANDLE_TICKET) {
        result = ticket_take(&engine->tickets, op, now_us);
    } else {
        struct operation *it = engine_must_find(engine, op);
        if (it->request.call == LOCK_INSPECT)
            it->result.waiters =
                waits_count(&engine->waits, it->request.resource);
        result = operation_take(it, now_us);
    }
    if (result->outcome == OUTCOME_GRANTED ||
        result->outcome == OUTCOME_RELEASED)
        watches_touch(&engine->watches, result->resource);
    if (result->outcome == OUTCOME_NO_QUORUM)
        nodes_on_failed(&engine->nodes);
    return result;
}

const struct engine_result *engine_peek(const struct engine *engine,
                                        engine_op op)
{
    return handle_kind_of(op) == HANDLE_TICKET
               ? ticket_peek(&engine->tickets, op)
               : &engine_must_find(engine, op)->result;
}

void engine_close(struct engine *engine, engine_op op)
{
    switch (handle_kind_of(op)) {
    case HANDLE_OPERATION:
        operation_close(engine_must_find(engine, op));
        return;
    case HANDLE_TICKET:
        ticket_close(&engine->tickets, op);
        return;
    case HANDLE_LISTING:
        listing_close(&engine->listings, op);
        return;
    }
    assert(false); /* engine_op is what a call of ours returned */
}

static bool abandon_operation(struct engine *engine, engine_op op)
{
    char text[NAMES_LEN_MAX];
    struct operation *it = engine_must_find(engine, op);
    struct span resource = {text, span_copy(text, it->request.resource)};
    bool is_acquire = it->request.call == LOCK_ACQUIRE;
    bool is_granted = operation_abandon(it);
    if (is_acquire) /* its grant, if any, is being released */
        report_release(engine, resource);
    return is_granted;
}

bool engine_abandon(struct engine *engine, engine_op op)
{
    switch (handle_kind_of(op)) {
    case HANDLE_OPERATION:
        return abandon_operation(engine, op);
    case HANDLE_TICKET:
        return ticket_abandon(&engine->tickets, op);
    case HANDLE_LISTING:
        listing_close(&engine->listings, op);
        return false;
    }
    assert(false); /* as above */
    return false;
}

void engine_stop_waiting(struct engine *engine)
{
    tickets_stop(&engine->tickets);
}

bool engine_is_releasing(const struct engine *engine)
{
    return releases_are_open(&engine->releases);
}

void engine_stop(struct engine *engine)
{
    spreads_flush(&engine->spreads);
}

/* ---- what operators see -------------------------------------------------- */

static void assert_node(const struct engine *engine, int node)
{
    assert(node >= 0 && node < engine->env.settings.nodes);
}

void engine_view_node(const struct engine *engine, int node,
                      struct engine_node_view *view)
{
    assert_node(engine, node);
    const struct nodes *nodes = &engine->nodes;
    const struct node *it = &nodes->node[node];
    int64_t now_us = environment_now(nodes->env);
    *view = (struct engine_node_view){
        .name = nodes->env->settings.node_names[node],
        .address = nodes->env->settings.node_addresses[node],
        .state = status_name(nodes, node),
        .is_voting = status_is_voting(nodes, node),
        .since_us = it->since_us,
        .has_clock = it->is_up && nodes->clocks.node[node].base.is_known,
        .clock_offset_us = clocks_offset_us(&nodes->clocks, node, now_us),
        .clock_steps = nodes->env->metrics->clock_steps[node],
        .quarantine_us = rules_remaining_us(&nodes->members, node, now_us),
        .rtt_us = it->rtt_us,
        .is_connected = it->is_up || it->is_open,
        .is_durable = nodes->members.node[node].is_durable,
    };
    status_describe(nodes, node, now_us, view->detail);
}

int engine_voting(const struct engine *engine)
{
    return engine->nodes.voting;
}

bool engine_has_quorum(const struct engine *engine)
{
    const struct quorum_loss *loss = &engine->nodes.loss;
    int nodes = engine->env.settings.nodes, serving = 0;
    for (int i = 0; i < nodes; i++)
        serving += status_is_serving(&engine->nodes, i);
    return serving >= quorum_of(nodes) || (!loss->is_first && !loss->is_logged);
}

int64_t engine_quorum_in_us(const struct engine *engine)
{
    return status_quorum_in_us(&engine->nodes, environment_now(&engine->env));
}

void engine_outlook(const struct engine *engine, int64_t since_us,
                    struct outlook *outlook)
{
    outlook_make(outlook, &engine->nodes, since_us,
                 environment_now(&engine->env));
}

int engine_waiters_max(const struct engine *engine)
{
    return engine->env.settings.waiters_max;
}

int engine_in_flight(const struct engine *engine)
{
    return engine->operations.in_flight;
}

/* ---- what the nodes and the loop tell ------------------------------------ */

static void note_certificate(struct engine *engine, int node,
                             const struct node_facts *facts)
{
    engine->env.metrics->node_certificate_until_s[node] =
        facts->certificate_until_s;
}

void engine_on_node_up(struct engine *engine, int node,
                       const struct node_facts *facts)
{
    assert_node(engine, node);
    note_certificate(engine, node, facts);
    nodes_on_up(&engine->nodes, node, facts);
    debts_on_up(&engine->releases.debts, node, environment_now(&engine->env));
    wake_if_due(engine);
}

void engine_on_node_down(struct engine *engine, int node,
                         enum node_state reason, const char *detail)
{
    assert_node(engine, node);
    nodes_on_down(&engine->nodes, node, reason, detail);
    operations_on_probed(&engine->operations, node);
    wake_if_due(engine);
}

void engine_on_node_confirmed(struct engine *engine, int node,
                              const struct node_facts *facts)
{
    assert_node(engine, node);
    note_certificate(engine, node, facts);
    nodes_on_confirmed(&engine->nodes, node, facts);
    wake_if_due(engine);
}

/* The vote counts for the operation that sent the release. */
static void take_release(struct engine *engine, int node, uint64_t asking,
                         const struct call_reply *reply)
{
    const struct operation *it = operation_find(&engine->operations, asking);
    if (it != NULL && reply->vote == VOTE_DELETED) {
        struct span resource = it->request.resource;
        waits_on_listeners(&engine->waits, resource, reply->listeners);
        if (it->forced != NULL && round_count(&it->round, VOTE_DELETED) == 0 &&
            it->forced->tally[node].due == 1)
            report_release(engine, resource);
    }
    operation_on_release(&engine->operations, node, asking, reply);
}

void engine_on_reply(struct engine *engine, int node, uint64_t tag,
                     const struct call_reply *reply, int64_t sent_us,
                     int64_t received_us)
{
    assert_node(engine, node);
    struct call_reply counted = *reply;
    /* only then may operations wait for its admission to be read */
    bool was_unseen = members_is_unseen(&engine->nodes.members, node);
    struct ballot ballot =
        nodes_on_reply(&engine->nodes, node, tag, reply, sent_us, received_us);
    counted.vote = ballot.vote;
    counted.state = ballot.state;
    switch (tag_kind_of(tag)) {
    case TAG_OPERATION:
        operation_on_reply(&engine->operations, node, tag, &counted);
        break;
    case TAG_RELEASE: {
        uint64_t asking =
            releases_on_reply(&engine->releases, node, tag, reply, received_us);
        if (asking != 0)
            take_release(engine, node, asking, &counted);
        break;
    }
    case TAG_SPREAD:
        spreads_on_reply(&engine->spreads, node, tag, &counted, sent_us);
        break;
    case TAG_SCAN:
        listings_on_reply(&engine->listings, tag, &counted);
        break;
    case TAG_SLOTS:
        permits_on_reply(&engine->permits, node, tag, &counted);
        break;
    case TAG_ADMISSION:
        if (was_unseen)
            operations_on_probed(&engine->operations, node);
        break;
    }
    wake_if_due(engine);
}

void engine_on_timer(struct engine *engine, uint32_t id)
{
    if (id != TIMER_TICK) {
        uint32_t index = timer_index_of(id);
        switch (timer_owner_of(id)) {
        case TIMER_OPERATION:
            operation_on_timer(&engine->operations, index);
            return;
        case TIMER_TICKET:
            tickets_on_timer(&engine->tickets, index);
            return;
        case TIMER_POOL:
            permits_on_pool_timer(&engine->permits, index);
            return;
        }
        assert(false); /* timer_owner_of has no others */
    }
    int64_t now_us = environment_now(&engine->env);
    nodes_tick(&engine->nodes, now_us);
    spreads_tick(&engine->spreads, now_us);
    releases_tick(&engine->releases, now_us);
    waits_tick(&engine->waits, now_us);
    permits_tick(&engine->permits, now_us);
    watches_tick(&engine->watches, now_us);
    listings_tick(&engine->listings, now_us);
    (void)set_tick(engine, is_at_rest(engine));
}

void engine_on_listener_up(struct engine *engine, int node)
{
    assert_node(engine, node);
    waits_on_listener_up(&engine->waits, node);
}

void engine_on_listener_down(struct engine *engine, int node)
{
    assert_node(engine, node);
    waits_on_listener_down(&engine->waits, node);
}

void engine_on_subscribed(struct engine *engine, int node, struct span resource)
{
    assert_node(engine, node);
    waits_on_subscribed(&engine->waits, node, resource);
}

void engine_on_announced(struct engine *engine, int node, struct span resource,
                         int64_t number)
{
    assert_node(engine, node);
    waits_on_announced(&engine->waits, node, resource, number);
    permits_on_announced(&engine->permits, node, resource, number);
    watches_touch(&engine->watches, resource);
}
