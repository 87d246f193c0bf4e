#include "waitqueue.h"

#include <search.h>

static int compare(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return memcmp(a->ptr, b->ptr, a->len);
}

void waitqueues_init(struct waitqueues *queues)
{
    queues->index = NULL;
    TAILQ_INIT(&queues->list);
}

static void free_queue(struct waitqueues *queues, struct waitqueue *queue)
{
    (void)tdelete(queue, &queues->index, compare);
    TAILQ_REMOVE(&queues->list, queue, link);
    free(queue);
}

void waitqueues_fini(struct waitqueues *queues)
{
    while (!TAILQ_EMPTY(&queues->list))
        free_queue(queues, TAILQ_FIRST(&queues->list));
}

struct waitqueue *waitqueues_find(const struct waitqueues *queues,
                                  struct span resource)
{
    void *const *found = tfind(&resource, &queues->index, compare);
    return found != NULL ? *found : NULL;
}

struct waitqueue *waitqueues_make(struct waitqueues *queues,
                                  struct span resource)
{
    struct waitqueue *queue = waitqueues_find(queues, resource);
    if (queue != NULL)
        return queue;
    queue = calloc(1, sizeof *queue + resource.len);
    if (queue == NULL)
        return NULL;
    queue->resource =
        (struct span){queue->text, span_copy(queue->text, resource)};
    TAILQ_INIT(&queue->waiters);
    if (tsearch(queue, &queues->index, compare) == NULL) {
        free(queue);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&queues->list, queue, link);
    return queue;
}

void waitqueues_drop(struct waitqueues *queues, struct waitqueue *queue)
{
    if (queue->users == 0 && !queue->is_subscribed)
        free_queue(queues, queue);
}

void waitqueue_add(struct waitqueue *queue, struct waiter *waiter)
{
    waiter->state = WAITER_QUEUED;
    TAILQ_INSERT_TAIL(&queue->waiters, waiter, link);
    queue->count++;
}

void waitqueue_remove(struct waitqueue *queue, struct waiter *waiter)
{
    TAILQ_REMOVE(&queue->waiters, waiter, link);
    queue->count--;
}

void waitqueue_note(struct waitqueue *queue, const struct engine_result *result,
                    int64_t now_us)
{
    queue->last = *result;
    queue->last.resource = queue->last.token = (struct span){0};
    queue->last.owner = (struct span){
        queue->last_owner, span_copy(queue->last_owner, result->owner)};
    queue->last_us = now_us;
}

int waitqueue_announce(struct waitqueue *queue, int node)
{
    queue->announced |= (uint16_t)(1u << node);
    return __builtin_popcount(queue->announced);
}

void waitqueue_try_at(struct waitqueue *queue, int64_t at_us,
                      enum metrics_handover by)
{
    if (at_us >= queue->try_us)
        return;
    queue->try_us = at_us;
    queue->try_by = by;
}
