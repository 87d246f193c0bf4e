#include "fills.h"

#include <assert.h>

#include "../../lock/names.h"
#include "../port/fence.h"
#include "../port/tag.h"
#include "../port/token.h"

enum {
    FILLS_MAX = 60000,       /* at once; without a place, one is sent early */
    FOLLOW_LEAST_US = 50000, /* a fill is sent at half of it, by the tick */
    TICKS_US = 25000,        /* the tick, which may be late */
    HASHED_AT = 1 + TOKEN_NUMBER_LEN, /* the random digits of a token */
};

void fills_init(struct fills *fills, struct nodes *nodes)
{
    fills->env = nodes->env;
    fills->nodes = nodes;
    slots_init(&fills->slots, sizeof(struct fill), FILLS_MAX);
    TAILQ_INIT(&fills->list);
    for (int i = 0; i < FILLS_BUCKETS; i++)
        LIST_INIT(&fills->buckets[i]);
}

static void forget(struct fills *fills, struct fill *it)
{
    TAILQ_REMOVE(&fills->list, it, link);
    LIST_REMOVE(it, in_bucket);
    texts_drop(&it->texts);
    slots_give(&fills->slots, it);
}

void fills_fini(struct fills *fills)
{
    while (!TAILQ_EMPTY(&fills->list))
        forget(fills, TAILQ_FIRST(&fills->list));
    slots_fini(&fills->slots);
}

bool fills_may_follow(const struct round *round)
{
    return round->deadline_us - round->start_us >= FOLLOW_LEAST_US;
}

/* The tokens are ours, and so have random digits there. */
static unsigned bucket_of(struct span token)
{
    uint32_t digits;
    assert(token.len >= HASHED_AT + sizeof digits);
    memcpy(&digits, token.ptr + HASHED_AT, sizeof digits);
    return (digits ^ digits >> 16) * UINT32_C(0x9e3779b1) >> 20;
}

/* Of several resources, one is enough: without it, the lock is none. */
static struct fill *find(struct fills *fills, struct span resource,
                         struct span token)
{
    struct fill *it;
    LIST_FOREACH(it, &fills->buckets[bucket_of(token)], in_bucket)
    if (token_is_same(texts_second(&it->texts), token) &&
        names_overlap(texts_first(&it->texts), resource))
        return it;
    return NULL;
}

/* ---- sending ------------------------------------------------------------ */

/* The lock ends there when it does on the other nodes. */
static void send(struct fills *fills, const struct fill *it,
                 struct span resource, struct span token)
{
    int64_t passed_ms = (environment_now(fills->env) - it->start_us) / 1000;
    struct token_parts parts;
    struct call call = fence_call(CALL_ACQUIRE, resource, token);
    if (!token_parse(token, &parts) || passed_ms >= it->ttl_ms)
        return;
    call.is_fill = true;
    call.number = parts.number;
    call.ttl_ms = it->ttl_ms - passed_ms;
    fills->env->metrics->fills++;
    for (int i = 0; i < fills->env->settings.nodes; i++)
        if ((it->asked & 1u << i) == 0)
            (void)nodes_send(fills->nodes, i, &call, it->deadline_us,
                             tag_forgotten());
}

static void send_and_forget(struct fills *fills, struct fill *it)
{
    send(fills, it, texts_first(&it->texts), texts_second(&it->texts));
    forget(fills, it);
}

/* ---- the fills ---------------------------------------------------------- */

/* Calls to the other nodes may take as long as the round did. */
static int64_t due_us(const struct round *round, int64_t now_us)
{
    int64_t half_us = (round->deadline_us - round->start_us) / 2;
    int64_t flight_us = round->won_us - round->start_us;
    int64_t last_us = round->deadline_us - flight_us - TICKS_US;
    int64_t at_us =
        now_us + (half_us < FILLS_AFTER_US ? half_us : FILLS_AFTER_US);
    return at_us < last_us ? at_us : last_us;
}

/* What is due first is the first one. */
static void insert(struct fills *fills, struct fill *it)
{
    struct fill *before = TAILQ_LAST(&fills->list, fill_list);
    while (before != NULL && before->at_us > it->at_us)
        before = TAILQ_PREV(before, fill_list, link);
    if (before != NULL)
        TAILQ_INSERT_AFTER(&fills->list, before, it, link);
    else
        TAILQ_INSERT_HEAD(&fills->list, it, link);
}

void fills_add(struct fills *fills, const struct round *round,
               struct span resource, struct span token, int64_t ttl_ms)
{
    if (round->unasked == 0)
        return;
    int64_t now_us = environment_now(fills->env);
    struct fill fill = {
        .at_us = due_us(round, now_us),
        .start_us = round->start_us,
        .deadline_us = round->deadline_us,
        .ttl_ms = ttl_ms,
    };
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].is_sent)
            fill.asked |= (uint16_t)(1u << i);
    struct fill *it = fill.at_us > now_us ? slots_take(&fills->slots) : NULL;
    if (it == NULL || !texts_keep(&it->texts, resource, token)) {
        if (it != NULL)
            slots_give(&fills->slots, it);
        send(fills, &fill, resource, token);
        return;
    }
    it->asked = fill.asked;
    it->at_us = fill.at_us;
    it->start_us = fill.start_us;
    it->deadline_us = fill.deadline_us;
    it->ttl_ms = fill.ttl_ms;
    insert(fills, it);
    LIST_INSERT_HEAD(&fills->buckets[bucket_of(token)], it, in_bucket);
}

void fills_send(struct fills *fills, struct span resource, struct span token)
{
    struct fill *it = find(fills, resource, token);
    if (it != NULL)
        send_and_forget(fills, it);
}

/*
 * The extend of another server that missed the lock somewhere looks again, and
 * may set it there, a timeout after the grant at the earliest. If a majority
 * has deleted it before, that look fails. A server that was stopped for so long
 * asks all nodes at once.
 */
bool fills_cancel(struct fills *fills, struct span resource, struct span token,
                  struct release_scope *scope)
{
    struct fill *it = find(fills, resource, token);
    if (it == NULL)
        return false;
    bool is_in_time = environment_now(fills->env) < it->deadline_us;
    if (scope != NULL && is_in_time)
        *scope = (struct release_scope){it->asked, it->deadline_us};
    forget(fills, it);
    return is_in_time;
}

void fills_tick(struct fills *fills, int64_t now_us)
{
    struct fill *it;
    while ((it = TAILQ_FIRST(&fills->list)) != NULL && now_us >= it->at_us)
        send_and_forget(fills, it);
}

void fills_flush(struct fills *fills)
{
    while (!TAILQ_EMPTY(&fills->list))
        send_and_forget(fills, TAILQ_FIRST(&fills->list));
}
