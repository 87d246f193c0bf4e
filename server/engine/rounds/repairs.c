#include "repairs.h"

#include <assert.h>

#include "../port/fence.h"
#include "../port/tag.h"
#include "../port/token.h"

enum { REPAIRS_MAX = 4096 };

void repairs_init(struct repairs *repairs, struct nodes *nodes)
{
    repairs->env = nodes->env;
    repairs->nodes = nodes;
    slots_init(&repairs->slots, sizeof(struct repair), REPAIRS_MAX);
    TAILQ_INIT(&repairs->list);
}

static void end(struct repairs *repairs, struct repair *it)
{
    TAILQ_REMOVE(&repairs->list, it, link);
    texts_drop(&it->texts);
    slots_give(&repairs->slots, it);
}

void repairs_fini(struct repairs *repairs)
{
    while (!TAILQ_EMPTY(&repairs->list))
        end(repairs, TAILQ_FIRST(&repairs->list));
    slots_fini(&repairs->slots);
}

/* ---- begin -------------------------------------------------------------- */

void repairs_start(struct repairs *repairs, struct span resource,
                   struct span token, int64_t ttl_ms, const struct round *round)
{
    struct token_parts parts;
    uint16_t missing = 0;
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].vote == VOTE_FREE && round->votes[i].highest >= 0)
            missing |= (uint16_t)(1u << i);
    if (missing == 0 || !token_parse(token, &parts))
        return;
    struct repair *it = slots_take(&repairs->slots);
    if (it == NULL)
        return;
    if (!texts_keep(&it->texts, resource, token)) {
        slots_give(&repairs->slots, it);
        return;
    }
    it->is_looking = false;
    it->at_us =
        environment_now(repairs->env) + repairs->env->settings.node_timeout_us;
    it->start_us = round->start_us;
    it->until_us = round->start_us +
                   round_validity_ms(round, ttl_ms, round->start_us,
                                     repairs->env->settings.drift_factor) *
                       1000;
    it->ttl_ms = ttl_ms;
    it->number = parts.number;
    it->nodes = missing;
    it->found = 0;
    for (int i = 0; i < round->total; i++)
        it->seen[i] = round->votes[i].highest;
    TAILQ_INSERT_TAIL(&repairs->list, it, link);
}

/* ---- calls -------------------------------------------------------------- */

static struct call call_of(const struct repair *it, enum call_kind kind)
{
    struct call call =
        fence_call(kind, texts_first(&it->texts), texts_second(&it->texts));
    call.number = it->number;
    return call;
}

/*
 * Asks the nodes that had the lock. The look must end within the validity that
 * the client was told: after that the lock may have another owner.
 */
static void look(struct repairs *repairs, struct repair *it, int64_t now_us)
{
    struct nodes *nodes = repairs->nodes;
    const struct engine_settings *settings = &repairs->env->settings;
    it->is_looking = true;
    it->at_us = now_us + settings->node_timeout_us;
    if (it->until_us < it->at_us)
        it->at_us = it->until_us;
    if (now_us >= it->at_us) {
        end(repairs, it);
        return;
    }
    struct call call = call_of(it, CALL_EXTEND);
    uint64_t tag = slots_handle(it, tag_bits(TAG_REPAIR, 0));
    for (int i = 0; i < settings->nodes; i++)
        if (!(it->nodes & 1u << i))
            (void)nodes_send(nodes, i, &call, it->at_us, tag);
}

/* Sets the rest of the TTL: the lock ends when it does on the other nodes. */
static void set(struct repairs *repairs, const struct repair *it,
                int64_t now_us)
{
    struct nodes *nodes = repairs->nodes;
    struct call call = call_of(it, CALL_REPAIR);
    call.ttl_ms = it->ttl_ms - (now_us - it->start_us) / 1000;
    assert(call.ttl_ms > 0);
    uint64_t tag = slots_handle(it, tag_bits(TAG_REPAIR, 0));
    for (int i = 0; i < repairs->env->settings.nodes; i++) {
        call.seen = it->seen[i];
        if (it->nodes & 1u << i)
            (void)nodes_send(nodes, i, &call, it->at_us, tag);
    }
}

/* ---- events ------------------------------------------------------------- */

void repairs_on_reply(struct repairs *repairs, uint64_t tag,
                      const struct call_reply *reply)
{
    struct repair *it = slots_find(&repairs->slots, tag);
    int64_t now_us = environment_now(repairs->env);
    if (it == NULL)
        return; /* the reply to a repair itself, or too late */
    it->found += reply->vote == VOTE_EXTENDED;
    if (it->found < quorum_of(repairs->env->settings.nodes))
        return;
    if (now_us < it->at_us)
        set(repairs, it, now_us);
    end(repairs, it);
}

void repairs_tick(struct repairs *repairs, int64_t now_us)
{
    struct repair *next;
    for (struct repair *it = TAILQ_FIRST(&repairs->list); it; it = next) {
        next = TAILQ_NEXT(it, link);
        if (now_us < it->at_us)
            continue;
        if (it->is_looking)
            end(repairs, it);
        else
            look(repairs, it, now_us);
    }
}
