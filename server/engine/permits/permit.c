#include "permit.h"

#include <assert.h>

#include "../port/tag.h"

int64_t permits_random_us(const struct permits *permits, int64_t most_us)
{
    return (int64_t)(environment_random(permits->env) %
                     ((uint64_t)most_us + 1));
}

/* ---- timers ------------------------------------------------------------- */

void permit_set_timer_at(const struct permit *it, int64_t at_us)
{
    const struct engine_port *port = &it->permits->env->port;
    /* cannot fail: the timer was made with the permit */
    (void)port->timer(port->ctx, timer_slot(TIMER_PERMIT, it->head.index),
                      at_us);
}

void permit_set_timer(const struct permit *it)
{
    int64_t at_us = it->until_us;
    if (it->not_before_us > permits_now_us(it->permits) &&
        (at_us == 0 || it->not_before_us < at_us))
        at_us = it->not_before_us;
    permit_set_timer_at(it, at_us);
}

bool permit_set_pool_timer(const struct permits *permits,
                           const struct pool *pool)
{
    const struct engine_port *port = &permits->env->port;
    int64_t at_us =
        pool->is_surveyed ? pool->deadline_us : pool->survey_from_us;
    if (pool->retry_us != 0 && (at_us == 0 || pool->retry_us < at_us))
        at_us = pool->retry_us;
    if (slotset_next(&pool->later, 0) >= 0 &&
        (at_us == 0 || pool->later_us < at_us))
        at_us = pool->later_us;
    return port->timer(port->ctx, timer_slot(TIMER_POOL, pool->head.index),
                       at_us);
}

/* ---- joining and leaving ------------------------------------------------ */

void permit_join(struct permit *it)
{
    struct permits *permits = it->permits;
    struct pool *pool = it->pool;
    it->state = PERMIT_QUEUED;
    it->event = ++permits->pools.events;
    TAILQ_INSERT_TAIL(&pool->queue, it, link);
    if (it->until_us == 0)
        return;
    if (pool->waiting++ == 0)
        TAILQ_INSERT_TAIL(&permits->pools.waited_for, pool, link);
    pool->waits->count++;
    permits->waits->count++;
    permits->env->metrics->waiters++;
    pool_want_news(pool, it->limit);
    permit_set_timer(it);
}

static void stop_waiting(struct permit *it, int64_t now_us)
{
    struct permits *permits = it->permits;
    struct pool *pool = it->pool;
    pool->waits->count--;
    permits->waits->count--;
    permits->env->metrics->waiters--;
    metrics_observe_wait(permits->env->metrics, now_us - it->since_us);
    if (--pool->waiting > 0)
        return;
    TAILQ_REMOVE(&permits->pools.waited_for, pool, link);
    pool->waits->empty_us = now_us;
    pool->retry_us = 0;
    pool->later = (struct slotset){{0}};
    pool_drop_news(pool);
}

void permit_leave(struct permit *it, int64_t now_us)
{
    /* one that has settled is in no queue, and its timer finds it so */
    assert(it->state != PERMIT_SETTLED);
    TAILQ_REMOVE(&it->pool->queue, it, link);
    if (it->until_us != 0)
        stop_waiting(it, now_us);
    it->state = PERMIT_SETTLED;
    permit_set_timer_at(it, 0);
}

void permit_answer(struct permit *it, int64_t now_us)
{
    const struct engine_port *port = &it->permits->env->port;
    if (it->until_us != 0)
        it->result.waited_ms = (now_us - it->since_us) / US_PER_MS;
    port->answer(port->ctx, it->client);
}

void permit_settle(struct permit *it, const struct engine_result *result)
{
    int64_t now_us = permits_now_us(it->permits);
    permit_leave(it, now_us);
    it->result = *result;
    it->result.resource = it->pool->name;
    if (result->outcome == OUTCOME_HELD) {
        int64_t free_us = it->pool->free_from_us;
        it->permits->env->metrics->permit_refusals++;
        it->result.remaining_ms =
            free_us > now_us ? (free_us - now_us) / US_PER_MS : -1;
    }
    permit_answer(it, now_us);
}

void permit_settle_as(struct permit *it, enum outcome outcome)
{
    const struct engine_result result =
        result_plain(outcome, it->permits->env->settings.nodes);
    permit_settle(it, &result);
}

void permit_settle_late(struct permit *it)
{
    const struct engine_result last = it->last;
    if (last.outcome == OUTCOME_PENDING)
        permit_settle_as(it, OUTCOME_HELD);
    else
        permit_settle(it, &last);
}

struct permit *permit_first_waiting(const struct pool *pool)
{
    struct permit *it = TAILQ_FIRST(&pool->queue);
    while (it != NULL && (it->state != PERMIT_QUEUED || it->until_us == 0))
        it = TAILQ_NEXT(it, link);
    return it;
}
