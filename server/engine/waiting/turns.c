#include "turns.h"

#include <assert.h>

#include "look.h"

/* ---- the next turn ------------------------------------------------------ */

/* The contender in one of its queues, if it is neither trying nor ready. */
static struct waiter *idle_contender(const struct waiter *it, int place)
{
    struct waiter *contender = it->places[place].queue->contender;
    bool is_idle = contender != NULL && contender->state == WAITER_QUEUED &&
                   !contender->is_ready;
    return is_idle ? contender : NULL;
}

/* After a lost attempt, plans the next ones in its queues. */
static void go_on_after_try(const struct waiter *tried, bool was_held,
                            int64_t now_us)
{
    for (int i = 0; i < tried->count; i++) {
        struct waiter *it = idle_contender(tried, i);
        if (it == NULL)
            continue;
        if (it->plan->is_woken && (was_held || it->plan != tried->plan))
            schedule_ready(it, it->plan->woken_by);
        else
            schedule_plan(it, now_us);
    }
}

static void go_on_after_grant(const struct waiter *granted, int64_t now_us)
{
    for (int i = 0; i < granted->count; i++) {
        struct waiter *it = idle_contender(granted, i);
        if (it == NULL)
            continue;
        it->plan->is_woken = false;
        if (granted->is_shared && it->is_shared) /* they get in together */
            schedule_ready(it, granted->plan->tried_by);
        else
            schedule_plan(it, now_us);
    }
}

/* One that waited has left: the new contender keeps the plan, if any. */
static void go_on_after_leave(const struct waiter *left, int64_t now_us)
{
    for (int i = 0; i < left->count; i++) {
        struct waiter *it = idle_contender(left, i);
        if (it == NULL)
            continue;
        if (it->plan->is_woken)
            schedule_ready(it, it->plan->woken_by);
        else if (it->plan->try_us == 0)
            schedule_plan(it, now_us);
        else
            schedule_timer(it);
    }
}

/* ---- the end of waiting ------------------------------------------------- */

static void leave(struct waiter *it, int64_t now_us)
{
    struct waits *waits = it->waits;
    /* one that has settled is in no queue, and its timer finds it so */
    assert(it->state != WAITER_SETTLED && waits->count > 0);
    schedule_not_ready(it);
    look_end(it);
    waitqueues_leave(&waits->queues, it);
    waits->count--;
    waits->env->metrics->waiters--;
    metrics_observe_wait(waits->env->metrics, now_us - it->since_us);
    it->state = WAITER_SETTLED;
    schedule_timer_at(it, 0);
    for (int i = 0; i < it->count; i++)
        if (it->places[i].queue->count == 0)
            it->places[i].queue->empty_us = now_us;
}

static void answer(struct waiter *it, int64_t now_us)
{
    const struct engine_port *port = &it->waits->env->port;
    it->result.waited_ms = (now_us - it->since_us) / US_PER_MS;
    port->answer(port->ctx, it->client);
}

/* An outcome without an operation. */
static void settle(struct waiter *it, const struct engine_result *result,
                   int64_t now_us)
{
    leave(it, now_us);
    it->result = *result;
    it->result.resource = it->names;
    it->result.key_hash = (struct span){0};
    it->result.owner =
        (struct span){it->owner, span_copy(it->owner, result->owner)};
    answer(it, now_us);
}

/* A result without votes. */
static struct engine_result plain_result(const struct waits *waits,
                                         enum outcome outcome)
{
    return result_plain(outcome, waits->env->settings.nodes);
}

void turns_settle(struct waiter *it, enum outcome outcome, int64_t now_us)
{
    const struct engine_result result = plain_result(it->waits, outcome);
    settle(it, &result, now_us);
}

static void settle_late(struct waiter *it, int64_t now_us)
{
    struct engine_result result = it->plan->last;
    int64_t passed_ms = (now_us - it->plan->last_us) / US_PER_MS;
    if (result.outcome == OUTCOME_PENDING ||
        (result.outcome == OUTCOME_HELD && result.remaining_ms >= 0 &&
         result.remaining_ms <= passed_ms))
        result = plain_result(it->waits, OUTCOME_HELD);
    if (result.remaining_ms >= 0)
        result.remaining_ms -= passed_ms;
    if (result.held_ms >= 0)
        result.held_ms += passed_ms;
    settle(it, &result, now_us);
}

/* ---- attempts ----------------------------------------------------------- */

static void set_trying(const struct waiter *it, struct waiter *trying)
{
    for (int i = 0; i < it->count; i++)
        it->places[i].queue->trying = trying;
}

/* Notes the holder, so that the next ones need not ask the nodes. */
static void note_grant(const struct waiter *it,
                       const struct engine_result *result, int64_t now_us)
{
    struct engine_result held = plain_result(it->waits, OUTCOME_HELD);
    held.has_holder = true;
    if (it->is_shared) {
        held.is_shared = true;
        held.holders = 1; /* at least */
    } else {
        held.number = result->number;
        held.owner = result->owner;
        held.key_hash = result->key_hash;
    }
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
    look_tell_of_grant(it);
}

/* Announcements that were wrong, as the same holder stays, count ever later. */
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
        return; /* no announcement was wrong */
    plan->hint_gap_us = at_least(plan->hint_gap_us * 2, SCHEDULE_LEAST_US);
    if (plan->hint_gap_us > most_us)
        plan->hint_gap_us = most_us;
    plan->hints_from_us = now_us + plan->hint_gap_us;
}

/* An attempt was lost. */
static void take_loss(struct waiter *it, const struct operation *operation,
                      int64_t now_us)
{
    const struct engine_result *result = &operation->result;
    bool is_held = result->outcome == OUTCOME_HELD;
    doubt_hints(it->waits, it->plan, result, now_us);
    waitplan_note(it->plan, result, now_us);
    it->state = WAITER_QUEUED;
    look_tell_of_loss(it, operation, now_us);
    if (now_us >= it->until_us)
        settle_late(it, now_us);
    else if (it->waits->is_stopped)
        turns_settle(it, OUTCOME_STOPPED, now_us);
    else if (!waiter_is_contender(it))
        schedule_timer(it);
    go_on_after_try(it, is_held, now_us);
}

static void take_outcome(struct waiter *it)
{
    int64_t now_us = environment_now(it->waits->env);
    struct operation *operation =
        operation_find(it->waits->operations, it->operation);
    const struct engine_result *result = operation_take(operation, now_us);
    set_trying(it, NULL);
    if (result->outcome == OUTCOME_GRANTED) {
        if (it->plan->tried_by != HANDOVER_CAUSES)
            it->waits->env->metrics->handovers[it->plan->tried_by]++;
        leave(it, now_us);
        note_grant(it, result, now_us);
        go_on_after_grant(it, now_us);
        answer(it, now_us);
    } else if (result->outcome == OUTCOME_KEY_REFUSED) {
        leave(it, now_us);
        go_on_after_try(it, false, now_us);
        answer(it, now_us);
    } else {
        it->operation = 0;
        take_loss(it, operation, now_us);
        operation_discard(operation);
    }
}

/* True: it has its outcome already. */
static bool begin(struct waiter *it)
{
    struct waits *waits = it->waits;
    struct waitplan *plan = it->plan;
    int64_t now_us = environment_now(waits->env);
    assert(it->state == WAITER_QUEUED && it->operation == 0);
    look_end(it);
    plan->tried_by = waiter_is_contender(it) ? plan->woken_by : HANDOVER_CAUSES;
    plan->is_woken = false;
    plan->announced = 0;
    plan->try_us = 0;
    it->state = WAITER_TRYING;
    it->begun = waits->queues.arrivals;
    it->is_answered = false;
    if (it->is_shared && it->key_hash_len > 0) /* nothing else finds its lock */
        look_date(it, now_us);
    set_trying(it, it);
    schedule_timer_at(it, 0);
    it->operation = operation_start(
        waits->operations, &(struct request){
                               .call = LOCK_ACQUIRE,
                               .resource = it->names,
                               .owner = {it->owner, it->owner_len},
                               .key_hash = {it->key_hash, it->key_hash_len},
                               .asked_us = claim_try(&it->claim, now_us),
                               .ttl_ms = it->ttl_ms,
                               .is_shared = it->is_shared,
                               .owned_by = OWNER_WAITER,
                               .client = it,
                           });
    if (it->operation != 0)
        return it->is_answered;
    it->state = WAITER_QUEUED; /* no memory: later */
    set_trying(it, NULL);
    if (it->claim.number != 0)
        claim_wait(&it->claim, now_us);
    schedule_timer(it);
    go_on_after_try(it, false, now_us);
    return false;
}

void turns_run(struct waits *waits)
{
    struct waiter *it;
    while ((it = schedule_next(waits)) != NULL)
        if (begin(it))
            take_outcome(it);
}

static void on_settled(void *client)
{
    struct waiter *it = client;
    struct waits *waits = it->waits;
    it->is_answered = true;
    if (it->operation == 0)
        return; /* it has just begun */
    take_outcome(it);
    turns_run(waits);
}

/* ---- looks -------------------------------------------------------------- */

static void take_look(struct waiter *it, int64_t now_us)
{
    look_take(it, now_us);
    schedule_claim(it, now_us);
}

static void on_looked(void *client)
{
    struct waiter *it = client;
    if (it->look == 0)
        return; /* it has just begun */
    take_look(it, environment_now(it->waits->env));
    turns_run(it->waits);
}

static void look(struct waiter *it, int64_t now_us)
{
    it->claim.try_us = 0;
    if (look_begin(it, now_us))
        take_look(it, now_us);
    else
        schedule_timer(it);
}

/* ---- events ------------------------------------------------------------- */

void turns_wake(struct waiter *it, enum metrics_handover by)
{
    schedule_ready(it, by);
    turns_run(it->waits);
}

void turns_claim(struct waiter *it)
{
    int64_t now_us = environment_now(it->waits->env);
    if (it->claim.number == 0)
        look(it, now_us);
    else
        schedule_claim(it, now_us);
    turns_run(it->waits);
}

void turns_refuse(struct waiter *it, enum outcome outcome)
{
    const struct engine_port *port = &it->waits->env->port;
    it->state = WAITER_SETTLED;
    it->result = plain_result(it->waits, outcome);
    it->result.resource = it->names;
    port->answer(port->ctx, it->client);
}

void turns_begin(struct waiter *it, int64_t now_us)
{
    struct waits *waits = it->waits;
    waitqueues_join(&waits->queues, it);
    waits->count++;
    waits->env->metrics->waiters++;
    it->state = WAITER_QUEUED;
    look_remember(it, now_us);
    if (waiter_is_contender(it))
        schedule_ready(it, HANDOVER_CAUSES);
    else if (waits->is_stopped)
        turns_settle(it, OUTCOME_STOPPED, now_us);
    else if (look_is_needed(
                 it)) /* behind others, but the lock may be its own */
        look(it, now_us);
    else
        schedule_claim(it, now_us);
    if (!it->is_ready)
        schedule_timer(it);
    turns_run(waits);
}

void turns_abandon(struct waiter *it, bool has_asked, int64_t now_us)
{
    if (it->state == WAITER_TRYING)
        set_trying(it, NULL);
    if (it->state != WAITER_SETTLED)
        leave(it, now_us);
    for (int i = 0; has_asked && i < it->count; i++) {
        struct waiter *next = it->places[i].queue->contender;
        if (next != NULL)
            schedule_ready(next, HANDOVER_RELEASE);
    }
    go_on_after_leave(it, now_us);
    turns_run(it->waits);
}

void turns_settle_late(struct waiter *it, int64_t now_us)
{
    settle_late(it, now_us);
    go_on_after_leave(it, now_us);
    turns_run(it->waits);
}

void turns_init(struct waits *waits)
{
    TAILQ_INIT(&waits->ready);
    waits->operations->on_settled[OWNER_WAITER] = on_settled;
    waits->operations->on_settled[OWNER_LOOK] = on_looked;
}
