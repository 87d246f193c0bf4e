#include "watches.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>

#include "../../lock/names.h"

enum {
    HANDLE_BITS = 4,         /* in the user's bits of a client's handle */
    SLOTS = 2 * WAITERS_MAX, /* also for those that have their outcome */
    EACH_US = 1000000,       /* between two inspections, without an event */
    SHARE_US = 1000,   /* for each lock: a thousand of them share EACH_US */
    LEAST_US = 20000,  /* between two inspections in any case */
    LATE_US = 5000000, /* without memory for an inspection */
    KNOWN_NOT = -2,    /* what is there cannot be known */
};

/* A client. */
struct watcher {
    struct slots_head head;
    TAILQ_ENTRY(watcher) link;
    struct watched *watched;
    bool is_settled;
    void *client;
    int64_t known;
    int64_t since_us, until_us;
    char owner[OWNER_MAX]; /* of the result */
    struct engine_result result;
};

/* A lock that is watched. */
struct watched {
    struct span resource; /* first: the key of the index */
    struct watches *watches;
    TAILQ_ENTRY(watched) link;
    /* cppcheck-suppress unusedStructMember; the macros use them */
    TAILQ_HEAD(watcher_list, watcher) waiting;
    int users;        /* clients that are not closed */
    uint64_t look;    /* the inspection under way; 0: none */
    int64_t next_us;  /* when the next one is due */
    int64_t began_us; /* the last that has ended; 0: none has */
    int64_t look_us;  /* when the one under way began */
    int64_t until_us; /* when the first client's time is up, at the earliest */
    bool was_unnamed; /* the last one found a holder without number */
    char owner[OWNER_MAX]; /* of the result */
    struct engine_result result;
    char text[];
};

/* ---- locks -------------------------------------------------------------- */

static struct watched *find(const struct watches *watches, struct span resource)
{
    struct watched *const *found =
        tfind(&resource, &watches->index, names_compare);
    return found != NULL ? *found : NULL;
}

/* NULL: no memory. */
static struct watched *find_or_make(struct watches *watches,
                                    struct span resource)
{
    struct watched *it = find(watches, resource);
    if (it != NULL)
        return it;
    it = calloc(1, sizeof *it + resource.len);
    if (it == NULL)
        return NULL;
    it->watches = watches;
    it->resource = (struct span){it->text, span_copy(it->text, resource)};
    it->next_us = it->until_us = INT64_MAX;
    TAILQ_INIT(&it->waiting);
    if (tsearch(it, &watches->index, names_compare) == NULL) {
        free(it);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&watches->list, it, link);
    watches->locks++;
    return it;
}

static void end_look(struct watched *it)
{
    struct operation *operation =
        operation_find(it->watches->operations, it->look);
    if (operation != NULL)
        operation_discard(operation);
    it->look = 0;
}

static void forget(struct watched *it)
{
    end_look(it);
    (void)tdelete(it, &it->watches->index, names_compare);
    TAILQ_REMOVE(&it->watches->list, it, link);
    it->watches->locks--;
    free(it);
}

/* ---- clients ------------------------------------------------------------ */

static void keep_result(struct engine_result *to, char owner[OWNER_MAX],
                        const struct engine_result *from)
{
    *to = *from;
    to->owner = (struct span){owner, span_copy(owner, from->owner)};
    to->token = to->key_hash = (struct span){0};
}

static void settle(struct watcher *it, const struct engine_result *result)
{
    struct watches *watches = it->watched->watches;
    const struct environment *env = watches->env;
    int64_t now_us = environment_now(env);
    keep_result(&it->result, it->owner, result);
    it->result.resource = it->watched->resource;
    it->result.waited_ms = (now_us - it->since_us) / US_PER_MS;
    if (it->result.remaining_ms > 0) /* when that was found */
        it->result.remaining_ms =
            at_least(it->result.remaining_ms -
                         (now_us - it->watched->began_us) / US_PER_MS,
                     0);
    TAILQ_REMOVE(&it->watched->waiting, it, link);
    watches->count--;
    it->is_settled = true;
    env->port.answer(env->port.ctx, it->client);
}

static void settle_plainly(struct watcher *it, enum outcome outcome)
{
    const struct engine_result result =
        result_plain(outcome, it->watched->watches->env->settings.nodes);
    settle(it, &result);
}

/* ---- inspections -------------------------------------------------------- */

/*
 * What a client would have to know for no answer. While a lock changes hands,
 * no value may have a majority: a holder without a number counts from the
 * second time on.
 */
static int64_t holder_of(struct watched *it)
{
    const struct engine_result *result = &it->result;
    bool is_unnamed = result->outcome == OUTCOME_FOUND && result->number == 0 &&
                      !result->is_shared;
    bool was_unnamed = it->was_unnamed;
    it->was_unnamed = is_unnamed;
    if (result->outcome == OUTCOME_NOT_FOUND)
        return NOBODY;
    if (result->outcome != OUTCOME_FOUND || (is_unnamed && !was_unnamed))
        return KNOWN_NOT;
    return result->number;
}

static void answer(struct watched *it, int64_t holder)
{
    bool is_refused = it->result.outcome == OUTCOME_KEY_REFUSED;
    struct watcher *one = TAILQ_FIRST(&it->waiting), *next;
    for (; one != NULL; one = next) {
        next = TAILQ_NEXT(one, link);
        if (one->since_us <= it->began_us &&
            (is_refused || (holder != KNOWN_NOT && holder != one->known)))
            settle(one, &it->result);
    }
}

static void take_look(struct watched *it)
{
    const struct operation *operation =
        operation_find(it->watches->operations, it->look);
    keep_result(&it->result, it->owner, &operation->result);
    it->began_us = it->look_us;
    end_look(it);
    answer(it, holder_of(it));
}

static void on_looked(void *client)
{
    struct watched *it = client;
    if (it->look != 0) /* or it has just begun */
        take_look(it);
}

static void look(struct watched *it, int64_t now_us)
{
    struct operations *operations = it->watches->operations;
    int64_t share_us = it->watches->locks * (int64_t)SHARE_US;
    it->look_us = now_us;
    it->next_us = now_us + at_least(EACH_US, share_us);
    it->look = operation_start(operations, &(struct request){
                                               .call = LOCK_INSPECT,
                                               .resource = it->resource,
                                               .owned_by = OWNER_WATCH,
                                               .client = it,
                                           });
    const struct operation *operation = operation_find(operations, it->look);
    if (operation != NULL && operation->state == OPERATION_SETTLED)
        take_look(it);
}

/* Soon, but not too soon after the last one. */
static void look_soon(struct watched *it, int64_t now_us)
{
    int64_t at_us = at_least(now_us, it->look_us + LEAST_US);
    it->next_us = at_most(it->next_us, at_us);
}

/* ---- the module --------------------------------------------------------- */

void watches_init(struct watches *watches, const struct waits *waits,
                  struct operations *operations)
{
    *watches = (struct watches){
        .env = waits->env, .waits = waits, .operations = operations};
    TAILQ_INIT(&watches->list);
    slots_init(&watches->slots, sizeof(struct watcher), SLOTS);
    operations->on_settled[OWNER_WATCH] = on_looked;
}

void watches_fini(struct watches *watches)
{
    struct watched *it = TAILQ_FIRST(&watches->list), *next;
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        forget(it);
    }
    slots_fini(&watches->slots);
}

uint64_t watches_start(struct watches *watches, struct span resource,
                       int64_t known, int64_t wait_ms, void *client)
{
    assert(known >= NOBODY && wait_ms > 0 && wait_ms <= WAIT_MAX_MS);
    int64_t now_us = environment_now(watches->env);
    struct watched *watched = find_or_make(watches, resource);
    if (watched == NULL)
        return 0;
    struct watcher *it = slots_take(&watches->slots);
    if (it == NULL)
        return 0;
    watched->users++;
    it->watched = watched;
    it->is_settled = false;
    it->client = client;
    it->known = known;
    it->since_us = now_us;
    it->until_us = now_us + wait_ms * US_PER_MS;
    it->result = (struct engine_result){.resource = watched->resource};
    uint64_t handle = slots_handle(it, HANDLE_BITS);
    TAILQ_INSERT_TAIL(&watched->waiting, it, link);
    watches->count++;
    watched->until_us = at_most(watched->until_us, it->until_us);
    look_soon(watched, now_us);
    if (watches->is_stopped)
        settle_plainly(it, OUTCOME_STOPPED);
    else if (watches->count > watches->env->settings.waiters_max)
        settle_plainly(it, OUTCOME_TOO_MANY_WAITERS);
    return handle;
}

bool watches_owns(uint64_t handle)
{
    return slots_user_bits(handle) == HANDLE_BITS;
}

static struct watcher *must_find(const struct watches *watches, uint64_t handle)
{
    struct watcher *it = slots_find(&watches->slots, handle);
    assert(it != NULL); /* a request ends its operation once: exchange.c */
    return it;
}

const struct engine_result *watches_take(struct watches *watches,
                                         uint64_t handle)
{
    struct watcher *it = must_find(watches, handle);
    it->result.waiters = waits_count(watches->waits, it->result.resource);
    return &it->result;
}

const struct engine_result *watches_peek(const struct watches *watches,
                                         uint64_t handle)
{
    return &must_find(watches, handle)->result;
}

static void end(struct watcher *it)
{
    assert(it->watched->users > 0);
    it->watched->users--; /* without any, the next tick forgets the lock */
    slots_give(&it->watched->watches->slots, it);
}

void watches_close(struct watches *watches, uint64_t handle)
{
    struct watcher *it = must_find(watches, handle);
    assert(it->is_settled); /* closed when answered: exchange_on_end */
    watches->env->metrics->outcomes[LOCK_INSPECT][it->result.outcome]++;
    end(it);
}

void watches_abandon(struct watches *watches, uint64_t handle)
{
    struct watcher *it = must_find(watches, handle);
    if (it->is_settled) {
        watches_close(watches, handle);
        return;
    }
    TAILQ_REMOVE(&it->watched->waiting, it, link);
    watches->count--;
    end(it);
}

void watches_touch(struct watches *watches, struct span resource)
{
    int64_t now_us = environment_now(watches->env);
    bool is_several = names_are_several(resource);
    struct watched *it = find(watches, resource);
    if (it != NULL)
        look_soon(it, now_us);
    while (is_several && resource.len > 0) {
        it = find(watches, names_next(&resource));
        if (it != NULL)
            look_soon(it, now_us);
    }
}

/* Those whose time is up, and for whom an inspection has told something. */
static void expire(struct watched *it, int64_t now_us)
{
    struct watcher *one = TAILQ_FIRST(&it->waiting), *next;
    int64_t until_us = INT64_MAX;
    for (; one != NULL; one = next) {
        bool is_told = one->since_us <= it->began_us;
        next = TAILQ_NEXT(one, link);
        if (now_us >= one->until_us && is_told)
            settle(one, &it->result);
        else if (now_us >= one->until_us + LATE_US)
            settle_plainly(one, OUTCOME_NO_QUORUM);
        else
            until_us = at_most(until_us, one->until_us);
    }
    it->until_us = until_us;
}

void watches_stop(struct watches *watches)
{
    struct watched *it;
    watches->is_stopped = true;
    for (it = TAILQ_FIRST(&watches->list); it != NULL;
         it = TAILQ_NEXT(it, link)) {
        struct watcher *one;
        while ((one = TAILQ_FIRST(&it->waiting)) != NULL)
            settle_plainly(one, OUTCOME_STOPPED);
    }
}

void watches_tick(struct watches *watches, int64_t now_us)
{
    struct watched *it = TAILQ_FIRST(&watches->list), *next;
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        if (it->users == 0) {
            forget(it);
            continue;
        }
        if (it->look == 0 && now_us >= it->next_us &&
            !TAILQ_EMPTY(&it->waiting))
            look(it, now_us);
        if (now_us >= it->until_us)
            expire(it, now_us);
    }
}
