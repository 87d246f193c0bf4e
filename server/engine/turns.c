#include "turns.h"

#include <assert.h>

#include "timer.h"

enum {
    SLOW_US = 5000000, /* without news, although a quorum announces */
    LEAST_RETRY_US = 1000,
    EXPIRY_US = 1000, /* a node rounds a TTL */
};

/* ---- when it tries next ------------------------------------------------- */

static void stop_timer(const struct waits *waits, const struct waiter *it)
{
    const struct engine_port *port = &waits->env->port;
    /* cannot fail: the waiter has made its slot's timer */
    (void)port->timer(port->ctx, timer_slot(TIMER_WAITER, it->head.index), 0);
}

void turns_set_timer(const struct waits *waits, const struct waiter *it)
{
    const struct engine_port *port = &waits->env->port;
    int64_t at_us = it->until_us;
    if (it->state != WAITER_QUEUED)
        return;
    if (waiter_is_contender(it) && it->plan->try_us < at_us)
        at_us = it->plan->try_us;
    (void)port->timer(port->ctx, timer_slot(TIMER_WAITER, it->head.index),
                      at_us);
}

void turns_plan(struct waits *waits, struct waiter *it, int64_t now_us)
{
    struct waitplan *plan = it->plan;
    const struct engine_result *last = &plan->last;
    uint64_t delays = (uint64_t)waits->env->settings.retry_delay_us + 1;
    int64_t delay_us = (int64_t)(environment_random(waits->env) % delays);
    for (int i = 0; i < it->count; i++)
        announcements_want(&waits->announcements, it->places[i].queue, now_us);
    bool is_announced = last->outcome == OUTCOME_HELD && last->has_holder &&
                        last->number != 0 && waiter_is_covered(it);
    plan->try_by = HANDOVER_RETRY;
    plan->try_us = now_us + (is_announced ? SLOW_US + delay_us
                                          : at_least(delay_us, LEAST_RETRY_US));
    if (last->outcome == OUTCOME_HELD && last->remaining_ms >= 0)
        waitplan_try_at(
            plan, plan->last_us + last->remaining_ms * US_PER_MS + EXPIRY_US,
            HANDOVER_EXPIRY);
    if (plan->announced != 0)
        waitplan_try_at(plan,
                        at_least(now_us + TURNS_ENOUGH_US, plan->hints_from_us),
                        HANDOVER_ANNOUNCEMENT);
    turns_set_timer(waits, it);
}

/* ---- who tries ---------------------------------------------------------- */

void turns_make_ready(struct waits *waits, struct waiter *it,
                      enum metrics_handover by)
{
    it->plan->woken_by = by;
    if (it->state != WAITER_QUEUED || waiter_is_barred(it)) {
        it->plan->is_woken = true;
    } else if (!it->is_ready) {
        it->is_ready = true;
        TAILQ_INSERT_TAIL(&waits->ready, it, ready);
    }
}

static void not_ready(struct waits *waits, struct waiter *it)
{
    if (it->is_ready)
        TAILQ_REMOVE(&waits->ready, it, ready);
    it->is_ready = false;
}

/* The contender for one of its resources, if it neither tries nor is to. */
static struct waiter *idle_contender(const struct waiter *it, int place)
{
    struct waiter *contender = it->places[place].queue->contender;
    bool is_idle = contender != NULL && contender->state == WAITER_QUEUED &&
                   !contender->is_ready;
    return is_idle ? contender : NULL;
}

/* After an attempt of another one or its own. */
static void go_on_after_try(struct waits *waits, const struct waiter *tried,
                            bool was_held, int64_t now_us)
{
    for (int i = 0; i < tried->count; i++) {
        struct waiter *it = idle_contender(tried, i);
        if (it == NULL)
            continue;
        if (it->plan->is_woken && (was_held || it->plan != tried->plan))
            turns_make_ready(waits, it, it->plan->woken_by);
        else
            turns_plan(waits, it, now_us);
    }
}

static void go_on_after_grant(struct waits *waits, const struct waiter *granted,
                              int64_t now_us)
{
    for (int i = 0; i < granted->count; i++) {
        struct waiter *it = idle_contender(granted, i);
        if (it == NULL)
            continue;
        it->plan->is_woken = false;
        turns_plan(waits, it, now_us);
    }
}

/* One that waited has left: who contends now keeps the plan, if there is one.
 */
static void go_on_after_leave(struct waits *waits, const struct waiter *left,
                              int64_t now_us)
{
    for (int i = 0; i < left->count; i++) {
        struct waiter *it = idle_contender(left, i);
        if (it == NULL)
            continue;
        if (it->plan->is_woken)
            turns_make_ready(waits, it, it->plan->woken_by);
        else if (it->plan->try_us == 0)
            turns_plan(waits, it, now_us);
        else
            turns_set_timer(waits, it);
    }
}

/*
 * The lock is held by an earlier acquire with the same key: its repeat need not
 * wait. Once for each grant.
 */
static void wake_repeat(struct waits *waits, const struct waiter *it,
                        const struct engine_result *held)
{
    struct waiter *repeat =
        waitqueue_find_key(it->places[0].queue, held->key_hash);
    if (repeat == NULL || repeat->repeated == held->number ||
        held->number >= repeat->asked_us || repeat->state != WAITER_QUEUED ||
        waiter_is_barred(repeat))
        return;
    repeat->repeated = held->number;
    turns_make_ready(waits, repeat, HANDOVER_CAUSES);
}

/* ---- the end of waiting ------------------------------------------------- */

static void leave(struct waits *waits, struct waiter *it, int64_t now_us)
{
    not_ready(waits, it);
    waitqueues_leave(&waits->queues, it);
    waits->count--;
    waits->env->metrics->waiters--;
    metrics_observe_wait(waits->env->metrics, now_us - it->since_us);
    it->state = WAITER_SETTLED;
    stop_timer(waits, it);
    for (int i = 0; i < it->count; i++)
        if (it->places[i].queue->count == 0)
            it->places[i].queue->empty_us = now_us;
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
    leave(waits, it, now_us);
    it->result = *result;
    it->result.resource = it->names;
    it->result.key_hash = (struct span){0};
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

static void settle_plainly(struct waits *waits, struct waiter *it,
                           enum outcome outcome, int64_t now_us)
{
    const struct engine_result result = plain_result(waits, outcome);
    settle(waits, it, &result, now_us);
}

static void settle_late(struct waits *waits, struct waiter *it, int64_t now_us)
{
    struct engine_result result = it->plan->last;
    int64_t passed_ms = (now_us - it->plan->last_us) / US_PER_MS;
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

static void set_trying(const struct waiter *it, struct waiter *trying)
{
    for (int i = 0; i < it->count; i++)
        it->places[i].queue->trying = trying;
}

/* The next ones need not ask who has the lock. */
static void note_grant(struct waits *waits, const struct waiter *it,
                       const struct engine_result *result, int64_t now_us)
{
    struct engine_result held = plain_result(waits, OUTCOME_HELD);
    held.has_holder = true;
    held.number = result->number;
    held.owner = result->owner;
    held.key_hash = result->key_hash;
    held.remaining_ms = result->ttl_ms;
    held.held_ms = 0;
    for (int i = 0; i < it->count; i++) {
        struct waitqueue *queue = it->places[i].queue;
        bool is_woken = it->plan->tried_by == HANDOVER_RELEASE;
        queue->run = is_woken ? queue->run + 1 : 1;
        queue->plan.hint_gap_us = 0;
        queue->plan.announced = 0;
        waitplan_note(&queue->plan, &held, now_us);
    }
    wake_repeat(waits, it, &held);
}

static void take_grant(struct waits *waits, struct waiter *it,
                       const struct engine_result *result, int64_t now_us)
{
    if (it->plan->tried_by != HANDOVER_CAUSES)
        waits->env->metrics->handovers[it->plan->tried_by]++;
    leave(waits, it, now_us);
    note_grant(waits, it, result, now_us);
    go_on_after_grant(waits, it, now_us);
    answer(waits, it, now_us);
}

/* While the same holder stays, announcements of its release are not true. */
static void doubt_hints(struct waits *waits, struct waitplan *plan,
                        const struct engine_result *result, int64_t now_us)
{
    int64_t most_us = waits->env->settings.retry_delay_us;
    if (result->outcome != OUTCOME_HELD ||
        result->number != plan->last.number) {
        plan->hint_gap_us = 0;
        return;
    }
    if (plan->tried_by != HANDOVER_ANNOUNCEMENT)
        return; /* says nothing about them */
    plan->hint_gap_us = at_least(plan->hint_gap_us * 2, LEAST_RETRY_US);
    if (plan->hint_gap_us > most_us)
        plan->hint_gap_us = most_us;
    plan->hints_from_us = now_us + plan->hint_gap_us;
}

/* An attempt was lost. */
static void take_loss(struct waits *waits, struct waiter *it,
                      const struct engine_result *result, int64_t now_us)
{
    bool is_held = result->outcome == OUTCOME_HELD;
    doubt_hints(waits, it->plan, result, now_us);
    waitplan_note(it->plan, result, now_us);
    it->state = WAITER_QUEUED;
    if (is_held)
        wake_repeat(waits, it, result);
    if (now_us >= it->until_us)
        settle_late(waits, it, now_us);
    else if (waits->is_stopped)
        settle_plainly(waits, it, OUTCOME_STOPPED, now_us);
    else if (!waiter_is_contender(it))
        turns_set_timer(waits, it);
    go_on_after_try(waits, it, is_held, now_us);
}

static void take_outcome(struct waits *waits, struct waiter *it)
{
    int64_t now_us = environment_now(waits->env);
    struct operations *operations = waits->operations;
    struct operation *operation = operation_find(operations, it->operation);
    const struct engine_result *result =
        operation_take(operations, operation, now_us);
    set_trying(it, NULL);
    if (result->outcome == OUTCOME_GRANTED) {
        take_grant(waits, it, result, now_us);
    } else if (result->outcome == OUTCOME_KEY_REFUSED) {
        leave(waits, it, now_us);
        go_on_after_try(waits, it, false, now_us);
        answer(waits, it, now_us);
    } else {
        it->operation = 0;
        take_loss(waits, it, result, now_us);
        operation_discard(operations, operation);
    }
}

/* True: it has its outcome already. */
static bool begin(struct waits *waits, struct waiter *it)
{
    struct waitplan *plan = it->plan;
    assert(it->state == WAITER_QUEUED && it->operation == 0);
    plan->tried_by = plan->woken_by;
    plan->is_woken = false;
    plan->announced = 0;
    plan->try_us = 0;
    it->state = WAITER_TRYING;
    it->is_answered = false;
    set_trying(it, it);
    stop_timer(waits, it);
    it->operation = operation_start(
        waits->operations, &(struct operation_order){
                               .call = LOCK_ACQUIRE,
                               .resource = it->names,
                               .owner = {it->owner, it->owner_len},
                               .key_hash = {it->key_hash, it->key_hash_len},
                               .asked_us = it->asked_us,
                               .ttl_ms = it->ttl_ms,
                               .owned_by = OWNER_WAITER,
                               .client = it,
                           });
    if (it->operation != 0)
        return it->is_answered;
    it->state = WAITER_QUEUED; /* no memory: later */
    set_trying(it, NULL);
    turns_plan(waits, it, environment_now(waits->env));
    return false;
}

void turns_run(struct waits *waits)
{
    struct waiter *it;
    while ((it = TAILQ_FIRST(&waits->ready)) != NULL) {
        not_ready(waits, it);
        if (waiter_is_barred(it))
            it->plan->is_woken = true; /* by one that was ready before it */
        else if (begin(waits, it))
            take_outcome(waits, it);
    }
}

static void on_settled(void *ctx, void *client)
{
    struct waits *waits = ctx;
    struct waiter *it = client;
    it->is_answered = true;
    if (it->operation == 0)
        return; /* it has just begun */
    take_outcome(waits, it);
    turns_run(waits);
}

/* ---- what happens ------------------------------------------------------- */

void turns_wake(struct waits *waits, struct waiter *it,
                enum metrics_handover by)
{
    turns_make_ready(waits, it, by);
    turns_run(waits);
}

void turns_refuse(struct waits *waits, struct waiter *it, enum outcome outcome)
{
    const struct engine_port *port = &waits->env->port;
    it->state = WAITER_SETTLED;
    it->result = plain_result(waits, outcome);
    it->result.resource = it->names;
    port->answer(port->ctx, it->client);
}

void turns_begin(struct waits *waits, struct waiter *it, int64_t now_us)
{
    const struct engine_result *last = &it->places[0].queue->plan.last;
    waitqueues_join(&waits->queues, it);
    waits->count++;
    waits->env->metrics->waiters++;
    it->state = WAITER_QUEUED;
    if (waiter_is_contender(it))
        turns_make_ready(waits, it, HANDOVER_CAUSES);
    else if (waits->is_stopped)
        settle_plainly(waits, it, OUTCOME_STOPPED, now_us);
    else if (last->outcome == OUTCOME_HELD)
        wake_repeat(waits, it, last);
    if (!it->is_ready)
        turns_set_timer(waits, it);
    turns_run(waits);
}

void turns_abandon(struct waits *waits, struct waiter *it, bool has_asked,
                   int64_t now_us)
{
    if (it->state == WAITER_TRYING)
        set_trying(it, NULL);
    if (it->state != WAITER_SETTLED)
        leave(waits, it, now_us);
    for (int i = 0; has_asked && i < it->count; i++) {
        struct waiter *next = it->places[i].queue->contender;
        if (next != NULL)
            turns_make_ready(waits, next, HANDOVER_RELEASE);
    }
    go_on_after_leave(waits, it, now_us);
    turns_run(waits);
}

void turns_stop(struct waits *waits, struct waiter *it, int64_t now_us)
{
    settle_plainly(waits, it, OUTCOME_STOPPED, now_us);
}

void turns_settle_late(struct waits *waits, struct waiter *it, int64_t now_us)
{
    settle_late(waits, it, now_us);
    go_on_after_leave(waits, it, now_us);
    turns_run(waits);
}

void turns_init(struct waits *waits)
{
    TAILQ_INIT(&waits->ready);
    waits->operations->hooks[OWNER_WAITER] =
        (struct operation_hook){on_settled, waits};
}
