#include "releases.h"

#include <assert.h>
#include <stdlib.h>

#include "tag.h"
#include "token.h"

enum {
    RELEASES_MAX = 60000, /* at once, with those in flight */
    LASTING_MAX = 10000,  /* that are repeated */
    REPEAT_US = 500000,
};

void releases_init(struct releases *releases, struct nodes *nodes)
{
    releases->nodes = nodes;
    slots_init(&releases->slots, sizeof(struct release), RELEASES_MAX);
    TAILQ_INIT(&releases->list);
}

static uint16_t bit(int node)
{
    return (uint16_t)(1u << node);
}

static void forget(struct releases *releases, struct release *it)
{
    TAILQ_REMOVE(&releases->list, it, link);
    if (it->text != it->small)
        free(it->text);
    slots_give(&releases->slots, it);
    releases->nodes->metrics->releases_pending = releases->slots.used;
}

void releases_fini(struct releases *releases)
{
    while (!TAILQ_EMPTY(&releases->list))
        forget(releases, TAILQ_FIRST(&releases->list));
    slots_fini(&releases->slots);
}

static bool copy_text(struct release *it, const struct release_order *order)
{
    size_t len = order->resource.len + order->token.len;
    it->text = len <= sizeof it->small ? it->small : malloc(len);
    if (it->text == NULL)
        return false;
    it->resource_len = span_copy(it->text, order->resource);
    it->token_len = span_copy(it->text + it->resource_len, order->token);
    return true;
}

static struct release *remember(struct releases *releases,
                                const struct release_order *order)
{
    struct release *it = slots_take(&releases->slots);
    if (it == NULL)
        return NULL;
    if (!copy_text(it, order)) {
        slots_give(&releases->slots, it);
        return NULL;
    }
    /*
     * When memory is short the oldest stay: they were granted before the node
     * went away, so the node has them; later ones it never granted.
     */
    it->is_lasting = releases->slots.used <= LASTING_MAX;
    it->operation = order->operation;
    it->owed = order->nodes;
    it->in_flight = 0;
    it->until_us = order->until_us;
    it->not_before_us = order->acquire_ends_us;
    it->repeat_at_us = order->acquire_ends_us;
    TAILQ_INSERT_TAIL(&releases->list, it, link);
    releases->nodes->metrics->releases_pending = releases->slots.used;
    return it;
}

static struct span token_of(const struct release *it)
{
    return (struct span){it->text + it->resource_len, it->token_len};
}

static enum vote send_to(struct releases *releases, struct release *it,
                         int node)
{
    struct script_call call = {
        .kind = SCRIPT_RELEASE,
        .resource = {it->text, it->resource_len},
        .token = token_of(it),
    };
    uint64_t tag = slots_handle(it, tag_bits(TAG_RELEASE, 0));
    enum vote vote = nodes_send(releases->nodes, node, &call, 0, tag);
    if (vote == VOTE_PENDING)
        it->in_flight |= bit(node);
    return vote;
}

/* Forgets a release that nothing can come of any more. */
static void forget_if_over(struct releases *releases, struct release *it)
{
    if (it->in_flight != 0 || (it->owed != 0 && it->is_lasting))
        return;
    if (it->owed != 0)
        releases->nodes->metrics->releases_dropped++;
    forget(releases, it);
}

bool releases_start(struct releases *releases,
                    const struct release_order *order,
                    enum vote unsent[NODES_MAX])
{
    assert(order->resource.len <= RESOURCE_MAX);
    assert(order->token.len <= TOKEN_MAX);
    struct release *it = remember(releases, order);
    if (it == NULL)
        return false;
    for (int i = 0; i < releases->nodes->settings.nodes; i++) {
        unsent[i] = VOTE_UNREACHABLE;
        if ((order->nodes & ~order->not_at_once) & bit(i))
            unsent[i] = send_to(releases, it, i);
    }
    forget_if_over(releases, it);
    return true;
}

/*
 * A client may release through another server than it acquired through. The
 * acquire may then still be on its way to a slow node, and set the key behind
 * the release. It cannot once its deadline has passed on the node: a node that
 * did not have the key, and looked before that, is asked again.
 */
static bool may_be_overtaken(const struct releases *releases,
                             const struct release *it, int node,
                             const struct script_reply *reply)
{
    const struct nodes *nodes = releases->nodes;
    struct token_parts parts;
    if (it->operation == 0 || reply->vote == VOTE_DELETED ||
        !token_parse(token_of(it), &parts))
        return false;
    /* the number is the median of the clocks when the acquire was sent */
    int64_t looked_us = reply->node_now_us -
                        clocks_lead_us(&nodes->clocks, node, nodes_now(nodes));
    return looked_us <= parts.number + nodes->settings.node_timeout_us +
                            nodes_doubt_us(nodes);
}

uint64_t releases_on_reply(struct releases *releases, int node, uint64_t tag,
                           const struct script_reply *reply)
{
    struct release *it = slots_find(&releases->slots, tag);
    if (it == NULL)
        return 0;
    uint64_t operation = it->operation;
    it->in_flight &= (uint16_t)~bit(node);
    if (vote_is_answer(reply->vote) &&
        !may_be_overtaken(releases, it, node, reply))
        it->owed &= (uint16_t)~bit(node);
    forget_if_over(releases, it);
    return operation;
}

static void repeat(struct releases *releases, struct release *it,
                   uint16_t to_nodes)
{
    uint16_t due = it->owed & (uint16_t)~it->in_flight & to_nodes;
    for (int i = 0; i < releases->nodes->settings.nodes; i++)
        if ((due & bit(i)) && releases->nodes->node[i].is_up)
            (void)send_to(releases, it, i); /* else at the next repetition */
}

void releases_on_up(struct releases *releases, int node, int64_t now_us)
{
    struct release *it;
    TAILQ_FOREACH(it, &releases->list, link)
    if (now_us >= it->not_before_us)
        repeat(releases, it, bit(node));
}

void releases_tick(struct releases *releases, int64_t now_us)
{
    struct release *next;
    for (struct release *it = TAILQ_FIRST(&releases->list); it; it = next) {
        next = TAILQ_NEXT(it, link);
        if (now_us >= it->until_us) {
            forget(releases, it);
        } else if (now_us >= it->repeat_at_us) {
            it->repeat_at_us = now_us + REPEAT_US;
            repeat(releases, it, UINT16_MAX);
        }
    }
}
