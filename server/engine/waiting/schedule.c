#include "schedule.h"

enum {
    SLOW_US = 5000000, /* between attempts while a quorum announces */
    EXPIRY_US = 1000,  /* a node rounds a TTL */
};

/* ---- later -------------------------------------------------------------- */

void schedule_timer(const struct waiter *it)
{
    int64_t at_us = it->ticket.until_us;
    if (it->ticket.state != TICKET_QUEUED)
        return;
    if (waiter_is_contender(it) && it->plan->try_us < at_us)
        at_us = it->plan->try_us;
    if (it->claim.try_us != 0 && it->claim.try_us < at_us)
        at_us = it->claim.try_us;
    ticket_set_timer(&it->ticket, at_us);
}

void schedule_plan(struct waiter *it, int64_t now_us)
{
    struct waits *waits = it->waits;
    struct waitplan *plan = it->plan;
    const struct engine_result *last = &plan->last;
    uint64_t delays = (uint64_t)waits->env->settings.retry_delay_us + 1;
    int64_t delay_us = (int64_t)(environment_random(waits->env) % delays);
    for (int i = 0; i < it->count; i++)
        announcements_want(&waits->announcements, it->places[i].queue, now_us);
    /* of a shared lock only the last release is announced: it tries soon, which
       keeps other readers out meanwhile if it is a writer */
    bool is_announced = last->outcome == OUTCOME_HELD && last->has_holder &&
                        last->number != 0 && waiter_is_covered(it);
    plan->try_by = HANDOVER_RETRY;
    plan->try_us =
        now_us + (is_announced ? SLOW_US + delay_us
                               : at_least(delay_us, SCHEDULE_LEAST_US));
    if (last->outcome == OUTCOME_HELD && last->remaining_ms >= 0)
        waitplan_try_at(
            plan, plan->last_us + last->remaining_ms * US_PER_MS + EXPIRY_US,
            HANDOVER_EXPIRY);
    if (plan->announced != 0)
        waitplan_try_at(
            plan, at_least(now_us + SCHEDULE_ENOUGH_US, plan->hints_from_us),
            HANDOVER_ANNOUNCEMENT);
    schedule_timer(it);
}

/* ---- now ---------------------------------------------------------------- */

static void put_ready(struct waiter *it)
{
    if (it->is_ready)
        return;
    it->is_ready = true;
    TAILQ_INSERT_TAIL(&it->waits->ready, it, ready);
}

void schedule_ready(struct waiter *it, enum metrics_handover by)
{
    it->plan->woken_by = by;
    if (it->ticket.state != TICKET_QUEUED || waiter_is_barred(it))
        it->plan->is_woken = true;
    else
        put_ready(it);
}

void schedule_claim(struct waiter *it, int64_t now_us)
{
    if (it->ticket.state != TICKET_QUEUED ||
        !claim_is_due(&it->claim, now_us)) {
        schedule_timer(it);
        return;
    }
    put_ready(it);
    /* before all others: their attempts might bar it one after the other */
    for (int i = 0; i < it->count; i++)
        if (it->places[i].queue->due == NULL)
            it->places[i].queue->due = it;
}

void schedule_not_ready(struct waiter *it)
{
    if (it->is_ready)
        TAILQ_REMOVE(&it->waits->ready, it, ready);
    it->is_ready = false;
    for (int i = 0; i < it->count; i++)
        if (it->places[i].queue->due == it)
            it->places[i].queue->due = NULL;
}

struct waiter *schedule_next(struct waits *waits)
{
    struct waiter *it = TAILQ_FIRST(&waits->ready), *next;
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, ready);
        bool is_barred = waiter_is_barred(it);
        if (is_barred && !waiter_is_contender(it))
            continue;
        schedule_not_ready(it);
        if (!is_barred)
            return it;
        it->plan->is_woken = true; /* barred by one that was ready before */
    }
    return NULL;
}
