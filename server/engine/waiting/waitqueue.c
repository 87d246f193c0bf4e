/* SPDX-License-Identifier: MIT */
/*
 * The queue of the waiters for one resource, first come, first served, with the
 * last known holder. waits.h decides when they try.
 *
 * A waiter for several resources has a place in each of their queues. The
 * contender of a queue may try next: it is the first in the order of arrival
 * that is also the contender of all its other queues. So a waiter holds up
 * nobody until it contends. From then on it holds up all later ones, even where
 * only another of its resources is held: otherwise they might take the free
 * ones in turns, and it would never find all of them free.
 */
#include <assert.h>
#include <search.h>

#include "../../lock/names.h"
#include "waits.h"

enum {
    OTHERS_US = 1000000, /* they count as waiting for so long */
    YIELD_US = 5000,     /* at least */
    YIELD_MOST_US = 50000,
    YIELD_TRIPS = 2, /* a release, its announcement and an attempt */
    GAP_MOST_US = 1000000,
    BEHIND_US = 2000, /* at most, and at most this part of the time that */
    BEHIND_PART = 32, /* has passed since its turn began */
};

/* Plan and places of a waiter for several resources. */
struct several {
    struct waitplan plan;
    struct place places[];
};

/* ---- queues -------------------------------------------------------------- */

void waitqueues_init(struct waitqueues *queues)
{
    *queues = (struct waitqueues){.checks = WAITQUEUES_CHECKS};
    TAILQ_INIT(&queues->list);
    TAILQ_INIT(&queues->listened);
    TAILQ_INIT(&queues->vacant);
}

static void waitqueue_free(struct waitqueues *queues, struct waitqueue *queue)
{
    (void)tdelete(queue, &queues->index, names_compare);
    TAILQ_REMOVE(&queues->list, queue, link);
    if (queue->is_vacant)
        TAILQ_REMOVE(&queues->vacant, queue, vacant);
    free(queue);
}

void waitqueues_fini(struct waitqueues *queues)
{
    while (!TAILQ_EMPTY(&queues->list))
        waitqueue_free(queues, TAILQ_FIRST(&queues->list));
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

static struct waitqueue *waitqueue_make(struct waitqueues *queues,
                                        struct span resource)
{
    struct waitqueue *queue = calloc(1, sizeof *queue + resource.len);
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

struct waitqueue *waitqueues_use(struct waitqueues *queues,
                                 struct span resource)
{
    struct waitqueue *queue = waitqueues_find(queues, resource);
    if (queue == NULL)
        queue = waitqueue_make(queues, resource);
    if (queue != NULL)
        queue->users++;
    return queue;
}

void waitqueues_unuse(struct waitqueues *queues, struct waitqueue *queue)
{
    assert(queue->users > 0);
    if (--queue->users == 0)
        waitqueue_free(queues, queue);
}

/* ---- places -------------------------------------------------------------- */

/* False: no memory, and nothing has changed. */
static bool make_places(struct waiter *it, struct span names)
{
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
        struct waitqueue *queue = waitqueues_use(queues, names_next(&names));
        if (queue == NULL) {
            waitqueues_dismiss(queues, waiter);
            return false;
        }
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
    for (int i = 0; i < waiter->count; i++)
        waitqueues_unuse(queues, waiter->places[i].queue);
    free(waiter->several);
}

/* ---- contenders ---------------------------------------------------------- */

static void make_vacant(struct waitqueues *queues, struct waitqueue *queue)
{
    queue->contender = NULL;
    queues->checks--;
    if (queue->is_vacant)
        return;
    queue->is_vacant = true;
    TAILQ_INSERT_TAIL(&queues->vacant, queue, vacant);
}

/* True if no earlier one contends for any of its resources. */
static bool may_contend(struct waitqueues *queues, const struct waiter *it)
{
    for (int i = 0; i < it->count; i++) {
        const struct waiter *other = it->places[i].queue->contender;
        queues->checks--;
        if (other != NULL && other->arrival < it->arrival)
            return false;
    }
    return true;
}

/*
 * It becomes the contender of its queues; later ones give way. Nobody else may
 * have a reason to examine it: its timer lets it try or plan at once.
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

/* Some time after its queue became vacant: it may have missed a release. */
static void contend_late(struct waitqueues *queues, struct waiter *it)
{
    contend(queues, it);
    it->plan->is_woken = true;
    it->plan->woken_by = HANDOVER_RETRY;
}

/* NULL: the queue has a contender, or none of its waiters may contend. */
static struct waiter *find_contender(struct waitqueues *queues,
                                     const struct waitqueue *queue)
{
    struct place *place = TAILQ_FIRST(&queue->places);
    while (place != NULL && queue->contender != place->waiter &&
           !may_contend(queues, place->waiter))
        place = TAILQ_NEXT(place, link);
    return place != NULL && queue->contender != place->waiter ? place->waiter
                                                              : NULL;
}

/*
 * Finds contenders for vacant queues, until it has checked often enough. Ends
 * in any case, as only later ones give way.
 */
static void waitqueue_complete(struct waitqueues *queues,
                               void (*begin)(struct waitqueues *,
                                             struct waiter *))
{
    struct waitqueue *queue;
    while (queues->checks > 0 &&
           (queue = TAILQ_FIRST(&queues->vacant)) != NULL) {
        TAILQ_REMOVE(&queues->vacant, queue, vacant);
        queue->is_vacant = false;
        struct waiter *it = find_contender(queues, queue);
        if (it != NULL)
            begin(queues, it);
    }
}

/* While no checks are left: without those that would have to be searched. */
static void complete_by_next(struct waitqueues *queues,
                             const struct waiter *left)
{
    for (int i = 0; i < left->count; i++) {
        const struct waitqueue *queue = left->places[i].queue;
        const struct place *place = TAILQ_FIRST(&queue->places);
        if (place != NULL && queue->contender == NULL &&
            may_contend(queues, place->waiter))
            contend_late(queues, place->waiter);
    }
}

void waitqueues_tick(struct waitqueues *queues)
{
    queues->checks = WAITQUEUES_CHECKS;
    waitqueue_complete(queues, contend_late);
}

/* True if it overtakes nobody whose turn may come once the queue is filled. */
static bool is_free(const struct waitqueue *queue)
{
    return queue->contender == NULL &&
           (!queue->is_vacant || TAILQ_EMPTY(&queue->places));
}

void waitqueues_join(struct waitqueues *queues, struct waiter *waiter)
{
    bool are_free = true;
    waiter->arrival = ++queues->arrivals;
    for (int i = 0; i < waiter->count; i++) {
        struct waitqueue *queue = waiter->places[i].queue;
        are_free &= is_free(queue);
        TAILQ_INSERT_TAIL(&queue->places, &waiter->places[i], link);
        queue->count++;
        queue->writers += !waiter->is_shared;
    }
    if (are_free)
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
    if (queues->checks > 0)
        waitqueue_complete(queues, contend);
    else
        complete_by_next(queues, waiter);
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
    return key_hash.len > 0 && span_is_same(key_hash, waiter->ticket.key_hash);
}

/* ---- claims -------------------------------------------------------------- */

void claim_init(struct claim *claim)
{
    *claim = (struct claim){.latest_us = INT64_MAX};
}

void claim_date(struct claim *claim, int64_t asked_us, int64_t apart_us)
{
    if (claim->latest_us != INT64_MAX || asked_us == 0)
        return;
    claim->asked_us = at_least(claim->asked_us, asked_us);
    claim->latest_us = asked_us + apart_us;
}

void claim_know(struct claim *claim, int64_t number, int64_t try_us)
{
    assert(number > 0); /* token_parse takes no token with 0 */
    claim->asked_us = at_least(claim->asked_us, number + 1);
    claim->number = number;
    claim->try_us = try_us;
}

void claim_find(struct claim *claim, int64_t number, int64_t now_us)
{
    assert(number > 0); /* token_parse takes no token with 0 */
    bool is_earlier = number < claim->asked_us;
    if (number == claim->number) {
        claim_wait(claim, now_us);
        return;
    }
    if (!is_earlier && number >= claim->latest_us)
        return;
    claim->number = number;
    claim->latest_us = 0; /* any other one is later than this */
    claim->try_us = is_earlier ? now_us : now_us + CLAIM_ANEW_US;
}

void claim_miss(struct claim *claim)
{
    *claim = (struct claim){0};
}

void claim_wait(struct claim *claim, int64_t now_us)
{
    if (claim->try_us == 0)
        claim->try_us = now_us + CLAIM_ANEW_US;
}

int64_t claim_try(struct claim *claim, int64_t now_us)
{
    if (claim_is_due(claim, now_us)) {
        claim->asked_us = at_least(claim->asked_us, claim->number + 1);
        claim->try_us = 0;
    }
    return claim->asked_us;
}

/* ---- turns --------------------------------------------------------------- */

void turn_on_others(struct turn *turn, int64_t others, int64_t now_us)
{
    turn->others = others;
    turn->others_until_us = now_us + OTHERS_US;
}

void turn_on_release(struct turn *turn, uint64_t next, int64_t trip_us,
                     int64_t now_us)
{
    bool is_over = next == 0 || next > turn->arrivals;
    if (!is_over || now_us >= turn->others_until_us ||
        now_us < turn->rest_until_us)
        return;
    int64_t us = at_most(YIELD_TRIPS * trip_us, YIELD_MOST_US);
    turn->yield_until_us = now_us + at_least(us, YIELD_US);
}

void turn_on_grant(struct turn *turn, bool follows, uint64_t arrivals,
                   int64_t now_us)
{
    if (!follows) {
        turn->arrivals = arrivals;
        turn->begun_us = now_us;
    }
    turn->elsewhere = 0;
    if (turn->yield_until_us == 0)
        return;
    turn->yield_until_us = 0; /* it was no use */
    turn->gap_us = at_most(at_least(turn->gap_us * 2, YIELD_US), GAP_MOST_US);
    turn->rest_until_us = now_us + turn->gap_us;
}

void turn_end_yield(struct turn *turn, bool was_used)
{
    turn->yield_until_us = 0;
    if (was_used)
        turn->gap_us = 0;
}

int64_t turn_behind_us(const struct turn *turn, int waiters, int64_t now_us)
{
    int64_t most_us = (now_us - turn->begun_us) / BEHIND_PART;
    if (turn->others < 2 || now_us >= turn->others_until_us)
        return 0;
    return at_most(most_us, BEHIND_US) / at_least(turn->elsewhere / waiters, 1);
}
