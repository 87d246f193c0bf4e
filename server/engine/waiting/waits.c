#include "waits.h"

#include <assert.h>

#include "../../lock/names.h"
#include "../port/tag.h"
#include "turns.h"

enum {
    RUN_MAX = 16,            /* grants in a row, while other servers wait */
    YIELD_US = 5000,         /* the time that they get then */
    RIVALS_US = 1000000,     /* they count as waiting for so long */
    HANDLE_BIT = 1,          /* in the user's bits of a waiter's handle */
    SLOTS = 2 * WAITERS_MAX, /* also for those that have their outcome */
};

/* ---- calls of clients --------------------------------------------------- */

void waits_init(struct waits *waits, struct nodes *nodes,
                struct operations *operations)
{
    *waits = (struct waits){
        .env = nodes->env,
        .operations = operations,
        .announcements = {.env = nodes->env, .queues = &waits->queues},
    };
    waitqueues_init(&waits->queues);
    slots_init(&waits->slots, sizeof(struct waiter), SLOTS);
    turns_init(waits);
    waits->env->metrics->waiters_max =
        (uint64_t)waits->env->settings.waiters_max;
}

void waits_fini(struct waits *waits)
{
    for (uint32_t i = 0; i < waits->slots.count; i++) {
        struct waiter *it = slots_at(&waits->slots, i);
        if (it != NULL)
            waitqueues_dismiss(&waits->queues, it);
    }
    waitqueues_fini(&waits->queues);
    slots_fini(&waits->slots);
}

static struct waiter *must_find(const struct waits *waits, uint64_t handle)
{
    struct waiter *it = slots_find(&waits->slots, handle);
    assert(it != NULL); /* a request ends its operation once: exchange.c */
    return it;
}

/* NULL: no memory. */
static struct waiter *make_waiter(struct waits *waits, struct span names)
{
    const struct engine_port *port = &waits->env->port;
    struct waiter *it = slots_take(&waits->slots);
    if (it == NULL)
        return NULL;
    if (!waitqueues_enrol(&waits->queues, it, names)) {
        slots_give(&waits->slots, it);
        return NULL;
    }
    if (!port->timer(port->ctx, timer_slot(TIMER_WAITER, it->head.index), 0)) {
        waitqueues_dismiss(&waits->queues, it);
        slots_give(&waits->slots, it);
        return NULL;
    }
    return it;
}

static bool is_full(const struct waits *waits, const struct waiter *it)
{
    for (int i = 0; i < it->count; i++)
        if (it->places[i].queue->count >= WAITERS_EACH_MAX)
            return true;
    return waits->count >= waits->env->settings.waiters_max;
}

uint64_t waits_start(struct waits *waits, const struct request *asked,
                     int64_t wait_ms)
{
    assert(wait_ms > 0);
    int64_t now_us = environment_now(waits->env);
    struct waiter *it = make_waiter(waits, asked->resource);
    if (it == NULL)
        return 0;
    it->client = asked->client;
    it->waits = waits;
    it->is_ready = false;
    it->operation = 0;
    it->look = 0;
    claim_init(&it->claim);
    claim_date(
        &it->claim, asked->asked_us,
        clocks_apart_us(&waits->operations->means.nodes->clocks, now_us));
    it->result = (struct engine_result){.resource = it->names};
    it->ttl_ms = asked->ttl_ms;
    it->is_shared = asked->is_shared;
    it->since_us = now_us;
    it->until_us = now_us + wait_ms * US_PER_MS;
    it->owner_len = span_copy(it->owner, asked->owner);
    it->key_hash_len = span_copy(it->key_hash, asked->key_hash);
    uint64_t handle = slots_handle(it, HANDLE_BIT);
    if (is_full(waits, it))
        turns_refuse(it, OUTCOME_TOO_MANY_WAITERS);
    else
        turns_begin(it, now_us);
    return handle;
}

bool waits_owns(uint64_t handle)
{
    return slots_user_bits(handle) == HANDLE_BIT;
}

/* The operation that has its outcome; NULL: the waiter has it itself, or none.
 */
static struct operation *settled_by(const struct waiter *it)
{
    return it->state == WAITER_SETTLED
               ? operation_find(it->waits->operations, it->operation)
               : NULL;
}

const struct engine_result *waits_take(struct waits *waits, uint64_t handle,
                                       int64_t now_us)
{
    struct waiter *it = must_find(waits, handle);
    struct operation *operation = settled_by(it);
    if (operation != NULL) {
        int64_t waited_ms = it->result.waited_ms;
        it->result = *operation_take(operation, now_us);
        it->result.waited_ms = waited_ms;
    }
    return &it->result;
}

const struct engine_result *waits_peek(const struct waits *waits,
                                       uint64_t handle)
{
    const struct waiter *it = must_find(waits, handle);
    const struct operation *operation = settled_by(it);
    return operation != NULL ? &operation->result : &it->result;
}

static void end(struct waiter *it)
{
    waitqueues_dismiss(&it->waits->queues, it);
    slots_give(&it->waits->slots, it);
}

static void count_outcome(const struct waiter *it)
{
    it->waits->env->metrics->outcomes[LOCK_ACQUIRE][it->result.outcome]++;
}

void waits_close(struct waits *waits, uint64_t handle)
{
    struct waiter *it = must_find(waits, handle);
    struct operation *operation =
        operation_find(waits->operations, it->operation);
    assert(it->state == WAITER_SETTLED); /* closed when answered */
    if (operation != NULL)
        operation_close(operation);
    else
        count_outcome(it);
    end(it);
}

bool waits_abandon(struct waits *waits, uint64_t handle)
{
    struct waiter *it = must_find(waits, handle);
    struct operation *operation =
        operation_find(waits->operations, it->operation);
    bool is_granted = false;
    if (operation != NULL)
        is_granted = operation_abandon(operation);
    else if (it->state == WAITER_SETTLED)
        count_outcome(it);
    turns_abandon(it, operation != NULL, environment_now(waits->env));
    end(it);
    return is_granted;
}

void waits_stop(struct waits *waits)
{
    int64_t now_us = environment_now(waits->env);
    const struct waitqueue *queue;
    waits->is_stopped = true;
    for (queue = TAILQ_FIRST(&waits->queues.list); queue != NULL;
         queue = TAILQ_NEXT(queue, link)) {
        struct place *it = TAILQ_FIRST(&queue->places), *next;
        for (; it != NULL; it = next) {
            next = TAILQ_NEXT(it, link);
            if (it->waiter->state == WAITER_QUEUED)
                turns_settle(it->waiter, OUTCOME_STOPPED, now_us);
        }
    }
}

int waits_count(const struct waits *waits, struct span resource)
{
    int most = 0;
    while (resource.len > 0) {
        const struct waitqueue *queue =
            waitqueues_find(&waits->queues, names_next(&resource));
        if (queue != NULL && queue->count > most)
            most = queue->count;
    }
    return most;
}

/* ---- wake-ups ----------------------------------------------------------- */

static void on_release(struct waitqueue *queue, int64_t now_us)
{
    struct waiter *it = queue->contender;
    if (it == NULL)
        return;
    /* clients of other servers wait, too, and had no turn for long */
    bool is_others_turn =
        now_us < queue->rivals_until_us && queue->run >= RUN_MAX;
    if (!is_others_turn) {
        schedule_ready(it, HANDOVER_RELEASE);
        return;
    }
    queue->run = 0;
    it->plan->hints_from_us = now_us + YIELD_US;
    waitplan_try_at(it->plan, now_us + YIELD_US, HANDOVER_ANNOUNCEMENT);
    schedule_timer(it);
}

void waits_on_release(struct waits *waits, struct span resource)
{
    int64_t now_us = environment_now(waits->env);
    while (resource.len > 0) {
        struct waitqueue *queue =
            waitqueues_find(&waits->queues, names_next(&resource));
        if (queue != NULL)
            on_release(queue, now_us);
    }
    turns_run(waits);
}

void waits_on_listeners(struct waits *waits, struct span resource,
                        int64_t listeners)
{
    if (listeners <= 1) /* only ours */
        return;
    int64_t until_us = environment_now(waits->env) + RIVALS_US;
    while (resource.len > 0) {
        struct waitqueue *queue =
            waitqueues_find(&waits->queues, names_next(&resource));
        if (queue != NULL)
            queue->rivals_until_us = until_us;
    }
}

/* A quorum begins to announce, or no longer does. */
static void check_cover(struct waits *waits, struct waitqueue *queue,
                        int64_t now_us)
{
    bool was_covered = queue->is_covered;
    struct waiter *it = queue->contender;
    queue->is_covered =
        announcements_cover(&waits->announcements, queue, now_us);
    if (it == NULL || queue->is_covered == was_covered)
        return;
    if (!queue->is_covered)
        schedule_plan(it, now_us);
    else if (waiter_is_covered(it))
        turns_wake(it, HANDOVER_RETRY);
}

static void check_covers(struct waits *waits, int64_t now_us)
{
    struct waitqueue *queue;
    for (queue = TAILQ_FIRST(&waits->queues.list); queue != NULL;
         queue = TAILQ_NEXT(queue, link))
        if (queue->is_subscribed)
            check_cover(waits, queue, now_us);
}

void waits_on_listener_down(struct waits *waits, int node)
{
    announcements_on_down(&waits->announcements, node);
    check_covers(waits, environment_now(waits->env));
}

void waits_on_subscribed(struct waits *waits, int node, struct span resource)
{
    struct waitqueue *queue =
        announcements_on_subscribed(&waits->announcements, node, resource);
    if (queue != NULL)
        check_cover(waits, queue, environment_now(waits->env));
}

void waits_on_announced(struct waits *waits, int node, struct span resource,
                        int64_t number)
{
    int64_t now_us = environment_now(waits->env);
    if (resource.len == 0) {
        if (announcements_on_heartbeat(&waits->announcements, node, now_us))
            check_covers(waits, now_us);
        return;
    }
    const struct waitqueue *queue = waitqueues_find(&waits->queues, resource);
    if (queue == NULL || queue->contender == NULL)
        return;
    struct waiter *it = queue->contender;
    struct waitplan *plan = it->plan;
    if (number != 0 && plan == &queue->plan && number < plan->last.number)
        return; /* release of an earlier lock than the present one */
    plan->announced |= (uint16_t)(1u << node);
    bool is_enough = __builtin_popcount(plan->announced) >=
                     quorum_of(waits->env->settings.nodes);
    int64_t at_us = at_least(is_enough ? now_us : now_us + SCHEDULE_ENOUGH_US,
                             plan->hints_from_us);
    if (at_us <= now_us) {
        turns_wake(it, HANDOVER_ANNOUNCEMENT);
    } else if (it->state == WAITER_QUEUED) {
        waitplan_try_at(plan, at_us, HANDOVER_ANNOUNCEMENT);
        schedule_timer(it);
    }
}

void waits_on_timer(struct waits *waits, uint32_t index)
{
    struct waiter *it = slots_at(&waits->slots, index);
    int64_t now_us = environment_now(waits->env);
    if (it == NULL || it->state != WAITER_QUEUED)
        return;
    if (now_us >= it->until_us)
        turns_settle_late(it, now_us);
    else if (waiter_is_contender(it) && now_us >= it->plan->try_us)
        turns_wake(it, it->plan->try_by);
    else if (claim_is_due(&it->claim, now_us))
        turns_claim(it);
    else
        schedule_timer(it);
}

void waits_tick(struct waits *waits, int64_t now_us)
{
    announcements_tick(&waits->announcements, now_us);
    check_covers(waits, now_us);
}
