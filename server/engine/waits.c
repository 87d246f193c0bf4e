#include "waits.h"

#include <assert.h>

#include "timer.h"
#include "turns.h"

enum {
    RUN_MAX = 16,            /* grants in a row, while other servers wait */
    YIELD_US = 5000,         /* what they have then */
    RIVALS_US = 1000000,     /* how long ago they were seen */
    HANDLE_BIT = 1,          /* in the user's bits of a waiter's handle */
    SLOTS = 2 * WAITERS_MAX, /* some have their outcome */
};

/* ---- what clients ask --------------------------------------------------- */

void waits_init(struct waits *waits, struct nodes *nodes,
                struct operations *operations)
{
    *waits = (struct waits){.env = nodes->env, .operations = operations};
    waitqueues_init(&waits->queues);
    announcements_init(&waits->announcements, nodes->env, &waits->queues);
    slots_init(&waits->slots, sizeof(struct waiter), SLOTS);
    turns_init(waits);
}

void waits_fini(struct waits *waits)
{
    waitqueues_fini(&waits->queues);
    slots_fini(&waits->slots);
}

static struct waiter *must_find(const struct waits *waits, uint64_t handle)
{
    struct waiter *it = slots_find(&waits->slots, handle);
    assert(it != NULL);
    return it;
}

/* NULL: no memory. */
static struct waiter *make_waiter(struct waits *waits, struct span resource)
{
    const struct engine_port *port = &waits->env->port;
    struct waiter *it = slots_take(&waits->slots);
    if (it == NULL)
        return NULL;
    struct waitqueue *queue = waitqueues_make(&waits->queues, resource);
    if (queue == NULL ||
        !port->timer(port->ctx, timer_slot(TIMER_WAITER, it->head.index), 0)) {
        if (queue != NULL)
            waitqueues_drop(&waits->queues, queue);
        slots_give(&waits->slots, it);
        return NULL;
    }
    it->queue = queue;
    queue->users++;
    return it;
}

static void enqueue(struct waits *waits, struct waiter *it)
{
    waitqueue_add(it->queue, it);
    waits->count++;
    waits->env->metrics->waiters++;
}

uint64_t waits_start(struct waits *waits, const struct operation_order *order,
                     int64_t wait_ms)
{
    int64_t now_us = environment_now(waits->env);
    struct waiter *it = make_waiter(waits, order->resource);
    if (it == NULL)
        return 0;
    struct waitqueue *queue = it->queue;
    bool is_full = waits->count >= waits->env->settings.waiters_max ||
                   queue->count >= WAITERS_EACH_MAX;
    it->client = order->client;
    it->operation = 0;
    it->result = (struct engine_result){0};
    it->ttl_ms = order->ttl_ms;
    it->since_us = now_us;
    it->until_us = now_us + wait_ms * US_PER_MS;
    it->owner_len = span_copy(it->owner, order->owner);
    uint64_t handle = slots_handle(it, HANDLE_BIT);
    enqueue(waits, it);
    if (is_full)
        turns_settle_plainly(waits, it, OUTCOME_TOO_MANY_WAITERS, now_us);
    else if (it == waitqueue_first(queue))
        turns_try(waits, queue, HANDOVER_CAUSES);
    else if (waits->is_stopped)
        turns_settle_plainly(waits, it, OUTCOME_STOPPED, now_us);
    else
        turns_set_timer(waits, it, it->until_us);
    return handle;
}

bool waits_owns(uint64_t handle)
{
    return slots_user_bits(handle) == HANDLE_BIT;
}

const struct engine_result *waits_take(struct waits *waits, uint64_t handle,
                                       int64_t now_us)
{
    struct waiter *it = must_find(waits, handle);
    struct operation *operation =
        operation_find(waits->operations, it->operation);
    if (it->state != WAITER_SETTLED || operation == NULL)
        return &it->result;
    int64_t waited_ms = it->result.waited_ms;
    it->result = *operation_take(waits->operations, operation, now_us);
    it->result.waited_ms = waited_ms;
    return &it->result;
}

static void end(struct waits *waits, struct waiter *it)
{
    struct waitqueue *queue = it->queue;
    queue->users--;
    waitqueues_drop(&waits->queues, queue);
    slots_give(&waits->slots, it);
}

static void count_outcome(const struct waits *waits, const struct waiter *it)
{
    waits->env->metrics->outcomes[LOCK_ACQUIRE][it->result.outcome]++;
}

void waits_close(struct waits *waits, uint64_t handle)
{
    struct waiter *it = must_find(waits, handle);
    struct operation *operation =
        operation_find(waits->operations, it->operation);
    assert(it->state == WAITER_SETTLED);
    if (operation != NULL)
        operation_close(waits->operations, operation);
    else
        count_outcome(waits, it);
    end(waits, it);
}

bool waits_abandon(struct waits *waits, uint64_t handle)
{
    struct waiter *it = must_find(waits, handle);
    struct operation *operation =
        operation_find(waits->operations, it->operation);
    struct waitqueue *queue = it->queue;
    bool is_granted = false;
    if (operation != NULL)
        is_granted = operation_abandon(waits->operations, operation);
    else if (it->state == WAITER_SETTLED)
        count_outcome(waits, it);
    if (it->state != WAITER_SETTLED)
        turns_leave(waits, it, environment_now(waits->env));
    if (operation != NULL) /* what it may have had is being released */
        turns_wake(waits, queue, HANDOVER_RELEASE);
    end(waits, it);
    return is_granted;
}

void waits_stop(struct waits *waits)
{
    int64_t now_us = environment_now(waits->env);
    const struct waitqueue *queue;
    waits->is_stopped = true;
    for (queue = TAILQ_FIRST(&waits->queues.list); queue != NULL;
         queue = TAILQ_NEXT(queue, link)) {
        struct waiter *it = waitqueue_first(queue), *next;
        for (; it != NULL; it = next) {
            next = TAILQ_NEXT(it, link);
            if (it->state == WAITER_QUEUED)
                turns_settle_plainly(waits, it, OUTCOME_STOPPED, now_us);
        }
    }
}

int waits_count(const struct waits *waits, struct span resource)
{
    const struct waitqueue *queue = waitqueues_find(&waits->queues, resource);
    return queue != NULL ? queue->count : 0;
}

/* ---- what wakes them ---------------------------------------------------- */

/* Clients of other servers wait too, and had no turn for long. */
static bool is_others_turn(const struct waitqueue *queue, int64_t now_us)
{
    return now_us < queue->rivals_until_us && queue->run >= RUN_MAX;
}

void waits_on_release(struct waits *waits, struct span resource)
{
    struct waitqueue *queue = waitqueues_find(&waits->queues, resource);
    int64_t now_us = environment_now(waits->env);
    if (queue == NULL || queue->count == 0)
        return;
    if (!is_others_turn(queue, now_us)) {
        turns_wake(waits, queue, HANDOVER_RELEASE);
        return;
    }
    queue->run = 0;
    queue->hints_from_us = now_us + YIELD_US;
    waitqueue_try_at(queue, now_us + YIELD_US, HANDOVER_ANNOUNCEMENT);
    turns_set_head_timer(waits, queue);
}

void waits_on_listeners(struct waits *waits, struct span resource,
                        int64_t listeners)
{
    struct waitqueue *queue = waitqueues_find(&waits->queues, resource);
    if (queue != NULL && listeners > 1) /* one of them is ours */
        queue->rivals_until_us = environment_now(waits->env) + RIVALS_US;
}

/* A quorum begins to announce, or no longer does. */
static void check_cover(struct waits *waits, struct waitqueue *queue,
                        int64_t now_us)
{
    bool was_covered = queue->is_covered;
    queue->is_covered =
        announcements_cover(&waits->announcements, queue, now_us);
    if (queue->is_covered && !was_covered)
        turns_wake(waits, queue, HANDOVER_RETRY);
    else if (was_covered && !queue->is_covered && queue->count > 0)
        turns_plan(waits, queue, now_us);
}

static void check_covers(struct waits *waits, int64_t now_us)
{
    struct waitqueue *queue;
    for (queue = TAILQ_FIRST(&waits->queues.list); queue != NULL;
         queue = TAILQ_NEXT(queue, link))
        if (queue->is_subscribed)
            check_cover(waits, queue, now_us);
}

void waits_on_listener_up(struct waits *waits, int node)
{
    announcements_on_up(&waits->announcements, node);
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
    struct waitqueue *queue = waitqueues_find(&waits->queues, resource);
    if (queue == NULL || queue->count == 0)
        return;
    if (number != 0 && number < queue->last.number)
        return; /* of a lock before the one that is in the way */
    bool is_enough = waitqueue_announce(queue, node) >=
                     quorum_of(waits->env->settings.nodes);
    int64_t at_us = at_least(is_enough ? now_us : now_us + TURNS_ENOUGH_US,
                             queue->hints_from_us);
    if (at_us <= now_us) {
        turns_wake(waits, queue, HANDOVER_ANNOUNCEMENT);
    } else if (waitqueue_first(queue)->state == WAITER_QUEUED) {
        waitqueue_try_at(queue, at_us, HANDOVER_ANNOUNCEMENT);
        turns_set_head_timer(waits, queue);
    }
}

void waits_on_timer(struct waits *waits, uint32_t index)
{
    struct waiter *it = slots_at(&waits->slots, index);
    int64_t now_us = environment_now(waits->env);
    if (it == NULL || it->state != WAITER_QUEUED)
        return;
    struct waitqueue *queue = it->queue;
    if (now_us >= it->until_us)
        turns_settle_late(waits, it, now_us);
    else if (it != waitqueue_first(queue))
        turns_set_timer(waits, it, it->until_us);
    else if (now_us >= queue->try_us)
        turns_try(waits, queue, queue->try_by);
    else
        turns_set_head_timer(waits, queue);
}

void waits_tick(struct waits *waits, int64_t now_us)
{
    announcements_tick(&waits->announcements, now_us);
    check_covers(waits, now_us);
}
