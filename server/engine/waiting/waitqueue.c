#include "waitqueue.h"

#include <assert.h>
#include <search.h>

#include "../../lock/names.h"

/* Plan and places of a waiter for several resources. */
struct several {
    struct waitplan plan;
    struct place places[];
};

/* ---- queues ------------------------------------------------------------- */

void waitqueues_init(struct waitqueues *queues)
{
    queues->index = NULL;
    queues->arrivals = 0;
    TAILQ_INIT(&queues->list);
    TAILQ_INIT(&queues->vacant);
}

static void free_queue(struct waitqueues *queues, struct waitqueue *queue)
{
    (void)tdelete(queue, &queues->index, names_compare);
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
    void *const *found = tfind(&resource, &queues->index, names_compare);
    return found != NULL ? *found : NULL;
}

struct waitqueue *waitqueues_next(const struct waitqueues *queues,
                                  struct span *names)
{
    struct waitqueue *queue = NULL;
    while (queue == NULL && names->len > 0)
        queue = waitqueues_find(queues, names_next(names));
    return queue;
}

/* Finds or makes the queue. NULL: no memory. */
static struct waitqueue *make(struct waitqueues *queues, struct span resource)
{
    struct waitqueue *queue = waitqueues_find(queues, resource);
    if (queue != NULL)
        return queue;
    queue = calloc(1, sizeof *queue + resource.len);
    if (queue == NULL)
        return NULL;
    queue->resource =
        (struct span){queue->text, span_copy(queue->text, resource)};
    TAILQ_INIT(&queue->places);
    if (tsearch(queue, &queues->index, names_compare) == NULL) {
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

struct waitqueue *waitqueues_use(struct waitqueues *queues,
                                 struct span resource)
{
    struct waitqueue *queue = make(queues, resource);
    if (queue != NULL)
        queue->users++;
    return queue;
}

void waitqueues_unuse(struct waitqueues *queues, struct waitqueue *queue)
{
    assert(queue->users > 0);
    queue->users--;
    waitqueues_drop(queues, queue);
}

/* ---- places ------------------------------------------------------------- */

/* False: no memory, and nothing has changed. */
static bool make_places(struct waiter *it, struct span names)
{
    it->count = 0;
    it->several = NULL;
    it->places = &it->only;
    if (!names_are_several(names))
        return true;
    size_t size = sizeof *it->several +
                  (size_t)names_count(names) * sizeof *it->several->places;
    it->several = calloc(1, size + names.len);
    if (it->several == NULL)
        return false;
    char *text = (char *)it->several + size;
    it->ticket.name = (struct span){text, span_copy(text, names)};
    it->places = it->several->places;
    it->plan = &it->several->plan;
    return true;
}

bool waitqueues_enrol(struct waitqueues *queues, struct waiter *waiter,
                      struct span names)
{
    if (!make_places(waiter, names))
        return false;
    while (names.len > 0) {
        struct waitqueue *queue = make(queues, names_next(&names));
        if (queue == NULL) {
            waitqueues_dismiss(queues, waiter);
            return false;
        }
        queue->users++;
        waiter->places[waiter->count++] =
            (struct place){.waiter = waiter, .queue = queue};
    }
    if (waiter->several == NULL) {
        waiter->ticket.name = waiter->only.queue->resource;
        waiter->plan = &waiter->only.queue->plan;
    }
    return true;
}

void waitqueues_dismiss(struct waitqueues *queues, struct waiter *waiter)
{
    for (int i = 0; i < waiter->count; i++) {
        waiter->places[i].queue->users--;
        waitqueues_drop(queues, waiter->places[i].queue);
    }
    free(waiter->several);
}

/* ---- contenders --------------------------------------------------------- */

static void make_vacant(struct waitqueues *queues, struct waitqueue *queue)
{
    queue->contender = NULL;
    if (queue->is_vacant)
        return;
    queue->is_vacant = true;
    TAILQ_INSERT_TAIL(&queues->vacant, queue, vacant);
}

/* True if no earlier one contends for any of its resources. */
static bool may_contend(const struct waiter *it)
{
    for (int i = 0; i < it->count; i++) {
        const struct waiter *other = it->places[i].queue->contender;
        if (other != NULL && other->arrival < it->arrival)
            return false;
    }
    return true;
}

/*
 * It becomes the contender of its queues; later ones give way. Nobody else may
 * have a reason to look at it: its timer lets it try or plan at once.
 */
static void contend(struct waitqueues *queues, struct waiter *it)
{
    for (int i = 0; i < it->count; i++) {
        const struct waiter *other = it->places[i].queue->contender;
        for (int j = 0; other != NULL && other != it && j < other->count; j++)
            make_vacant(queues, other->places[j].queue);
        it->places[i].queue->contender = it;
    }
    if (it->ticket.state == TICKET_QUEUED)
        ticket_set_timer(&it->ticket, 1);
}

/* Finds contenders for vacant queues. Ends, as only later ones give way. */
static void fill(struct waitqueues *queues)
{
    struct waitqueue *queue;
    while ((queue = TAILQ_FIRST(&queues->vacant)) != NULL) {
        TAILQ_REMOVE(&queues->vacant, queue, vacant);
        queue->is_vacant = false;
        struct place *place = TAILQ_FIRST(&queue->places);
        while (place != NULL && queue->contender != place->waiter &&
               !may_contend(place->waiter))
            place = TAILQ_NEXT(place, link);
        if (place != NULL && queue->contender != place->waiter)
            contend(queues, place->waiter);
    }
}

void waitqueues_join(struct waitqueues *queues, struct waiter *waiter)
{
    bool is_free = true;
    waiter->arrival = ++queues->arrivals;
    for (int i = 0; i < waiter->count; i++) {
        struct waitqueue *queue = waiter->places[i].queue;
        TAILQ_INSERT_TAIL(&queue->places, &waiter->places[i], link);
        queue->count++;
        queue->writers += !waiter->is_shared;
        is_free &= queue->contender == NULL;
    }
    if (is_free)
        contend(queues, waiter);
}

void waitqueues_leave(struct waitqueues *queues, struct waiter *waiter)
{
    for (int i = 0; i < waiter->count; i++) {
        struct waitqueue *queue = waiter->places[i].queue;
        TAILQ_REMOVE(&queue->places, &waiter->places[i], link);
        queue->count--;
        queue->writers -= !waiter->is_shared;
        if (queue->contender == waiter)
            make_vacant(queues, queue);
    }
    fill(queues);
}

bool waiter_is_barred(const struct waiter *waiter)
{
    for (int i = 0; i < waiter->count; i++) {
        const struct waitqueue *queue = waiter->places[i].queue;
        if (queue->trying != NULL ||
            (queue->due != NULL && queue->due != waiter))
            return true;
    }
    return false;
}

bool waiter_is_covered(const struct waiter *waiter)
{
    for (int i = 0; i < waiter->count; i++)
        if (!waiter->places[i].queue->is_covered)
            return false;
    return true;
}

bool waiter_has_key(const struct waiter *waiter, struct span key_hash)
{
    const struct ticket *ticket = &waiter->ticket;
    return key_hash.len > 0 &&
           span_is_same(key_hash,
                        (struct span){ticket->key_hash, ticket->key_hash_len});
}

/* ---- plans -------------------------------------------------------------- */

void waitplan_note(struct waitplan *plan, const struct engine_result *result,
                   int64_t now_us)
{
    plan->last = *result;
    plan->last.resource = plan->last.token = (struct span){0};
    plan->last.owner = (struct span){
        plan->last_owner, span_copy(plan->last_owner, result->owner)};
    plan->last.key_hash = (struct span){
        plan->last_key_hash, span_copy(plan->last_key_hash, result->key_hash)};
    plan->last_us = now_us;
}

void waitplan_try_at(struct waitplan *plan, int64_t at_us,
                     enum metrics_handover by)
{
    if (plan->try_us != 0 && at_us >= plan->try_us)
        return;
    plan->try_us = at_us;
    plan->try_by = by;
}
