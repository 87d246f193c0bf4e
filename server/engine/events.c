#include "parts.h"
#include "port/tag.h"

/* Each tick does all that is due: rarer ticks would take longer, and delay
 * other calls. */
enum { TICK_US = 20000 };

bool engine_set_tick(struct engine *engine)
{
    struct engine_port *port = &engine->env.port;
    return port->timer(port->ctx, TIMER_TICK,
                       environment_now(&engine->env) + TICK_US);
}

void engine_tell_release(struct engine *engine, struct span resource)
{
    waits_on_release(&engine->waits, resource);
    permits_on_release(&engine->permits, resource);
    watches_touch(&engine->watches, resource);
}

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
}

void engine_on_node_down(struct engine *engine, int node,
                         enum node_state reason, const char *detail)
{
    assert_node(engine, node);
    nodes_on_down(&engine->nodes, node, reason, detail);
    operations_on_looked(&engine->operations, node);
}

void engine_on_node_confirmed(struct engine *engine, int node,
                              const struct node_facts *facts)
{
    assert_node(engine, node);
    note_certificate(engine, node, facts);
    nodes_on_confirmed(&engine->nodes, node, facts);
}

/* The vote counts for the operation that sent the release. */
static void take_release(struct engine *engine, int node, uint64_t asking,
                         const struct call_reply *reply)
{
    const struct operation *it = operation_find(&engine->operations, asking);
    if (it != NULL && reply->vote == VOTE_DELETED) {
        struct span resource = it->request.resource;
        waits_on_listeners(&engine->waits, resource, reply->listeners);
        permits_on_listeners(&engine->permits, resource, reply->listeners);
        if (it->attempt.forced != NULL &&
            round_count(&it->attempt.round, VOTE_DELETED) == 0 &&
            it->attempt.forced->tally[node].due == 1)
            engine_tell_release(engine, resource);
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
    bool was_unseen = admission_is_unseen(&engine->nodes.admission, node);
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
            operations_on_looked(&engine->operations, node);
        break;
    }
}

void engine_on_timer(struct engine *engine, uint32_t slot)
{
    if (slot != TIMER_TICK) {
        uint32_t index = timer_index_of(slot);
        switch (timer_owner_of(slot)) {
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
    (void)engine_set_tick(engine); /* cannot fail: the timer exists */
}

void engine_on_listener_up(struct engine *engine, int node)
{
    assert_node(engine, node);
    announcements_on_up(&engine->waits.announcements, node);
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
