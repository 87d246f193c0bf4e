#include "turns.h"

#include <assert.h>

#include "timer.h"

enum {
    SLOW_US = 5000000, /* without news, although a quorum announces */
    LEAST_RETRY_US = 1000,
    EXPIRY_US = 1000, /* a node rounds a TTL */
};

/* ---- when the head tries next ------------------------------------------- */

void turns_set_timer(const struct waits *waits, const struct waiter *it,
                     int64_t at_us)
{
    const struct engine_port *port = &waits->env->port;
    /* cannot fail: the waiter has made its slot's timer */
    (void)port->timer(port->ctx, timer_slot(TIMER_WAITER, it->head.index),
                      at_us);
}

void turns_set_head_timer(const struct waits *waits,
                          const struct waitqueue *queue)
{
    const struct waiter *head = waitqueue_first(queue);
    if (head == NULL || head->state == WAITER_TRYING)
        return;
    turns_set_timer(waits, head,
                    queue->try_us < head->until_us ? queue->try_us
                                                   : head->until_us);
}

void turns_plan(struct waits *waits, struct waitqueue *queue, int64_t now_us)
{
    announcements_want(&waits->announcements, queue, now_us);
    const struct engine_result *last = &queue->last;
    uint64_t delays = (uint64_t)waits->env->settings.retry_delay_us + 1;
    int64_t delay_us = (int64_t)(environment_random(waits->env) % delays);
    bool is_announced = last->outcome == OUTCOME_HELD && last->has_holder &&
                        last->number != 0 && queue->is_covered;
    queue->try_by = HANDOVER_RETRY;
    queue->try_us =
        now_us + (is_announced ? SLOW_US + delay_us
                               : at_least(delay_us, LEAST_RETRY_US));
    if (last->outcome == OUTCOME_HELD && last->remaining_ms >= 0)
        waitqueue_try_at(
            queue, queue->last_us + last->remaining_ms * US_PER_MS + EXPIRY_US,
            HANDOVER_EXPIRY);
    if (queue->announced != 0)
        waitqueue_try_at(
            queue, at_least(now_us + TURNS_ENOUGH_US, queue->hints_from_us),
            HANDOVER_ANNOUNCEMENT);
    turns_set_head_timer(waits, queue);
}

/* ---- the end of waiting ------------------------------------------------- */

void turns_leave(struct waits *waits, struct waiter *it, int64_t now_us)
{
    struct waitqueue *queue = it->queue;
    bool was_first = it == waitqueue_first(queue);
    waitqueue_remove(queue, it);
    waits->count--;
    waits->env->metrics->waiters--;
    metrics_observe_wait(waits->env->metrics, now_us - it->since_us);
    it->state = WAITER_SETTLED;
    turns_set_timer(waits, it, 0);
    if (queue->count == 0)
        queue->empty_us = now_us;
    else if (was_first) /* if it was trying, a new plan follows */
        turns_set_head_timer(waits, queue);
}

static void answer(struct waits *waits, struct waiter *it, int64_t now_us)
{
    const struct engine_port *port = &waits->env->port;
    it->result.waited_ms = (now_us - it->since_us) / US_PER_MS;
    port->answer(port->ctx, it->client);
}

/* An outcome without an operation. */
static void settle(struct waits *waits, struct waiter *it,
                   const struct engine_result *result, int64_t now_us)
{
    turns_leave(waits, it, now_us);
    it->result = *result;
    it->result.resource = it->queue->resource;
    it->result.owner =
        (struct span){it->owner, span_copy(it->owner, result->owner)};
    answer(waits, it, now_us);
}

/* What can be said without asking any node. */
static struct engine_result plain_result(const struct waits *waits,
                                         enum outcome outcome)
{
    return (struct engine_result){
        .outcome = outcome,
        .remaining_ms = -1,
        .held_ms = -1,
        .quorum = quorum_of(waits->env->settings.nodes),
        .total = waits->env->settings.nodes,
    };
}

void turns_settle_plainly(struct waits *waits, struct waiter *it,
                          enum outcome outcome, int64_t now_us)
{
    const struct engine_result result = plain_result(waits, outcome);
    settle(waits, it, &result, now_us);
}

void turns_settle_late(struct waits *waits, struct waiter *it, int64_t now_us)
{
    struct engine_result result = it->queue->last;
    int64_t passed_ms = (now_us - it->queue->last_us) / US_PER_MS;
    if (result.outcome == OUTCOME_PENDING ||
        (result.outcome == OUTCOME_HELD && result.remaining_ms >= 0 &&
         result.remaining_ms <= passed_ms))
        result = plain_result(waits, OUTCOME_HELD);
    if (result.remaining_ms >= 0)
        result.remaining_ms -= passed_ms;
    if (result.held_ms >= 0)
        result.held_ms += passed_ms;
    settle(waits, it, &result, now_us);
}

/* ---- attempts ----------------------------------------------------------- */

/* The next one need not ask who has the lock. */
static void note_grant(struct waits *waits, struct waitqueue *queue,
                       const struct engine_result *result, int64_t now_us)
{
    struct engine_result held = plain_result(waits, OUTCOME_HELD);
    held.has_holder = true;
    held.number = result->number;
    held.owner = result->owner;
    held.remaining_ms = result->ttl_ms;
    held.held_ms = 0;
    waitqueue_note(queue, &held, now_us);
}

static void take_grant(struct waits *waits, struct waiter *it,
                       const struct engine_result *result, int64_t now_us)
{
    struct waitqueue *queue = it->queue;
    note_grant(waits, queue, result, now_us);
    if (queue->tried_by != HANDOVER_CAUSES)
        waits->env->metrics->handovers[queue->tried_by]++;
    queue->run = queue->tried_by == HANDOVER_RELEASE ? queue->run + 1 : 1;
    queue->hint_gap_us = 0;
    queue->announced = 0;
    turns_leave(waits, it, now_us);
    if (queue->count > 0)
        turns_plan(waits, queue, now_us);
    answer(waits, it, now_us);
}

/* While the same holder stays, announcements of its release are not true. */
static void doubt_hints(struct waits *waits, struct waitqueue *queue,
                        const struct engine_result *result, int64_t now_us)
{
    int64_t most_us = waits->env->settings.retry_delay_us;
    if (result->outcome != OUTCOME_HELD ||
        result->number != queue->last.number) {
        queue->hint_gap_us = 0;
        return;
    }
    if (queue->tried_by != HANDOVER_ANNOUNCEMENT)
        return; /* says nothing about them */
    queue->hint_gap_us = at_least(queue->hint_gap_us * 2, LEAST_RETRY_US);
    if (queue->hint_gap_us > most_us)
        queue->hint_gap_us = most_us;
    queue->hints_from_us = now_us + queue->hint_gap_us;
}

/* An attempt was lost. True: the head is to try again at once. */
static bool go_on(struct waits *waits, struct waiter *it,
                  const struct engine_result *result, int64_t now_us)
{
    struct waitqueue *queue = it->queue;
    doubt_hints(waits, queue, result, now_us);
    waitqueue_note(queue, result, now_us);
    if (now_us >= it->until_us)
        turns_settle_late(waits, it, now_us);
    else if (waits->is_stopped)
        turns_settle_plainly(waits, it, OUTCOME_STOPPED, now_us);
    else
        it->state = WAITER_QUEUED;
    if (queue->count == 0) /* it may be another one that is first now */
        return false;
    if (queue->is_woken && result->outcome == OUTCOME_HELD)
        return true;
    turns_plan(waits, queue, now_us);
    return false;
}

/* True: the head is to try again at once. */
static bool take_outcome(struct waits *waits, struct waiter *it)
{
    int64_t now_us = environment_now(waits->env);
    struct operations *operations = waits->operations;
    struct operation *operation = operation_find(operations, it->operation);
    const struct engine_result *result =
        operation_take(operations, operation, now_us);
    if (result->outcome == OUTCOME_GRANTED) {
        take_grant(waits, it, result, now_us);
        return false;
    }
    if (result->outcome == OUTCOME_KEY_REFUSED) {
        turns_leave(waits, it, now_us);
        if (it->queue->count > 0)
            turns_plan(waits, it->queue, now_us);
        answer(waits, it, now_us);
        return false;
    }
    it->operation = 0;
    bool tries_again = go_on(waits, it, result, now_us);
    operation_discard(operations, operation);
    return tries_again;
}

/* Begins an attempt of the head; true: it has its outcome already. */
static bool begin(struct waits *waits, struct waitqueue *queue,
                  enum metrics_handover by)
{
    struct waiter *it = waitqueue_first(queue);
    assert(it->state == WAITER_QUEUED && it->operation == 0);
    queue->tried_by = by;
    queue->is_woken = false;
    queue->announced = 0;
    it->state = WAITER_TRYING;
    it->is_answered = false;
    turns_set_timer(waits, it, 0);
    it->operation = operation_start(waits->operations,
                                    &(struct operation_order){
                                        .call = LOCK_ACQUIRE,
                                        .resource = queue->resource,
                                        .owner = {it->owner, it->owner_len},
                                        .ttl_ms = it->ttl_ms,
                                        .is_for_waiter = true,
                                        .client = it,
                                    });
    if (it->operation != 0)
        return it->is_answered;
    it->state = WAITER_QUEUED; /* no memory: later */
    turns_plan(waits, queue, environment_now(waits->env));
    return false;
}

/* The waiter's attempt has its outcome. */
static void take_outcomes(struct waits *waits, struct waiter *it)
{
    struct waitqueue *queue = it->queue;
    while (take_outcome(waits, it) && begin(waits, queue, queue->woken_by))
        it = waitqueue_first(queue);
}

static void on_settled(void *ctx, void *client)
{
    struct waiter *it = client;
    it->is_answered = true;
    if (it->operation != 0) /* otherwise it has just begun */
        take_outcomes(ctx, it);
}

void turns_try(struct waits *waits, struct waitqueue *queue,
               enum metrics_handover by)
{
    if (begin(waits, queue, by))
        take_outcomes(waits, waitqueue_first(queue));
}

void turns_wake(struct waits *waits, struct waitqueue *queue,
                enum metrics_handover by)
{
    const struct waiter *head = waitqueue_first(queue);
    if (head == NULL)
        return;
    if (head->state == WAITER_QUEUED) {
        turns_try(waits, queue, by);
        return;
    }
    queue->is_woken = true;
    queue->woken_by = by;
}

void turns_init(struct waits *waits)
{
    waits->operations->on_settled = on_settled;
    waits->operations->ctx = waits;
}
