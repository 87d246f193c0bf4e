#include "permit.h"

#include "../port/tag.h"

int64_t permits_random_us(const struct permits *permits, int64_t most_us)
{
    return (int64_t)(environment_random(permits->env) %
                     ((uint64_t)most_us + 1));
}

/* ---- timers ------------------------------------------------------------- */

void permit_set_timer(const struct permit *it)
{
    int64_t at_us = it->ticket.until_us;
    if (it->not_before_us > permits_now_us(it->permits) &&
        (at_us == 0 || it->not_before_us < at_us))
        at_us = it->not_before_us;
    ticket_set_timer(&it->ticket, at_us);
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
    ticket_join(&it->ticket);
    it->event = ++permits->pools.events;
    TAILQ_INSERT_TAIL(&pool->queue, it, link);
    if (!ticket_waits(&it->ticket))
        return;
    if (pool->waiting++ == 0)
        TAILQ_INSERT_TAIL(&permits->pools.waited_for, pool, link);
    pool->waits->count++;
    pool_want_news(pool, it->limit);
    permit_set_timer(it);
}

static void stop_waiting(struct permits *permits, struct pool *pool,
                         int64_t now_us)
{
    pool->waits->count--;
    if (--pool->waiting > 0)
        return;
    TAILQ_REMOVE(&permits->pools.waited_for, pool, link);
    pool->waits->empty_us = now_us;
    pool->retry_us = 0;
    pool->later = (struct slotset){{0}};
    pool_drop_news(pool);
}

void permit_leave(struct ticket *ticket, int64_t now_us)
{
    struct permit *it = (struct permit *)ticket;
    TAILQ_REMOVE(&it->pool->queue, it, link);
    if (ticket_waits(ticket))
        stop_waiting(it->permits, it->pool, now_us);
}

void permit_settle_held(struct permit *it)
{
    struct permits *permits = it->permits;
    int64_t now_us = permits_now_us(permits);
    int64_t free_us = it->pool->free_from_us;
    struct engine_result result =
        result_plain(OUTCOME_HELD, permits->env->settings.nodes);
    if (free_us > now_us)
        result.remaining_ms = (free_us - now_us) / US_PER_MS;
    permits->env->metrics->permit_refusals++;
    ticket_settle(&it->ticket, &result);
}

void permit_settle_late(struct permit *it)
{
    const struct engine_result last = it->last;
    if (last.outcome == OUTCOME_PENDING)
        permit_settle_held(it);
    else
        ticket_settle(&it->ticket, &last);
}

struct permit *permit_first_waiting(const struct pool *pool)
{
    struct permit *it = TAILQ_FIRST(&pool->queue);
    while (it != NULL &&
           (it->ticket.state != TICKET_QUEUED || !ticket_waits(&it->ticket)))
        it = TAILQ_NEXT(it, link);
    return it;
}
