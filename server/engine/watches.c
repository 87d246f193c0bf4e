/* SPDX-License-Identifier: MIT */
/*
 * Clients that wait until a lock has another version than the one they know.
 *
 * A lock that is watched is inspected once a second, however many watch it. (If
 * the locks have more than a thousand names, a thousand of these are inspected
 * in a second.) It is also inspected soon after each event that may have
 * changed its version: a grant or a release that passed through this server, an
 * announcement, or a client that has just come. A client is answered by the
 * first inspection that began after it came and found another version, or by
 * the last one when its time is up. Pure.
 */
#include <assert.h>
#include <search.h>
#include <stdlib.h>

#include "../lock/names.h"
#include "parts.h"

enum {
    EACH_US = 1000000, /* between two inspections, without an event */
    SHARE_US = 1000,   /* for each name: a thousand of them share EACH_US */
    LEAST_US = 20000,  /* between two inspections in any case */
    LATE_US = 5000000, /* without memory for an inspection */
};

/* A client. */
struct watcher {
    struct ticket ticket; /* its name: the lock */
    TAILQ_ENTRY(watcher) link;
    struct watched *watched;
    char known[VERSION_MAX + 1];
};

/* A lock that is watched. */
struct watched {
    struct span resource; /* first: the key of the index */
    struct watches *watches;
    TAILQ_ENTRY(watched) link;
    /* cppcheck-suppress unusedStructMember; the macros use them */
    TAILQ_HEAD(watcher_list, watcher) waiting;
    int users;            /* clients that are not closed */
    uint64_t inspection;  /* the inspection under way; 0: none */
    int64_t next_us;      /* when the next one is due */
    int64_t began_us;     /* the last that has ended; 0: none has */
    int64_t inspected_us; /* when the one under way began */
    int64_t until_us; /* when the first client's time is up, at the earliest */
    bool may_pass;    /* what the last one found */
    char owner[OWNER_MAX]; /* of the result */
    struct engine_result result;
    char text[];
};

/* ---- locks --------------------------------------------------------------- */

static struct watched *watches_find(const struct watches *watches,
                                    struct span resource)
{
    struct watched *const *found =
        tfind(&resource, &watches->index, names_compare);
    return found != NULL ? *found : NULL;
}

/* NULL: no memory. */
static struct watched *find_or_make(struct watches *watches,
                                    struct span resource)
{
    struct watched *it = watches_find(watches, resource);
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
    watches->names += names_count(resource);
    return it;
}

static void watches_forget(struct watched *it)
{
    inspection_end(it->watches->tickets->operations, &it->inspection);
    (void)tdelete(it, &it->watches->index, names_compare);
    TAILQ_REMOVE(&it->watches->list, it, link);
    it->watches->names -= names_count(it->resource);
    free(it);
}

/* ---- clients ------------------------------------------------------------- */

static void watches_settle(struct watcher *it)
{
    const struct watched *watched = it->watched;
    const struct watches *watches = watched->watches;
    int64_t passed_us = environment_now(watches->env) - watched->began_us;
    struct engine_result result = watched->result;
    if (result.remaining_ms > 0) /* when that was found */
        result.remaining_ms =
            at_least(result.remaining_ms - passed_us / US_PER_MS, 0);
    result.waiters = waits_count(watches->waits, watched->resource);
    ticket_settle(&it->ticket, &result);
}

static void watches_leave(struct ticket *ticket, int64_t now_us)
{
    struct watcher *it = (struct watcher *)ticket;
    (void)now_us;
    TAILQ_REMOVE(&it->watched->waiting, it, link);
}

/* ---- inspections --------------------------------------------------------- */

/*
 * What a client has to know for no answer; NULL: none gets one. While a lock
 * changes hands, no value may have a majority: that counts from the second time
 * on.
 */
static const struct version *version_of(struct watched *it)
{
    const struct engine_result *result = &it->result;
    bool is_known = result->outcome == OUTCOME_FOUND ||
                    result->outcome == OUTCOME_NOT_FOUND;
    bool may_pass = is_known && version_may_pass(&result->version);
    bool may_have_passed = it->may_pass;
    it->may_pass = may_pass;
    return is_known && (!may_pass || may_have_passed) ? &result->version : NULL;
}

static void watches_answer(struct watched *it, const struct version *version)
{
    bool is_refused = it->result.outcome == OUTCOME_KEY_REFUSED;
    struct watcher *one = TAILQ_FIRST(&it->waiting), *next;
    for (; one != NULL; one = next) {
        next = TAILQ_NEXT(one, link);
        if (one->ticket.since_us <= it->began_us &&
            (is_refused ||
             (version != NULL && !version_is(version, span_of(one->known)))))
            watches_settle(one);
    }
}

static void take_inspection(struct watched *it)
{
    struct operations *operations = it->watches->tickets->operations;
    const struct operation *operation =
        operation_find(operations, it->inspection);
    result_keep(&it->result, it->owner, &operation->result);
    it->began_us = it->inspected_us;
    inspection_end(operations, &it->inspection);
    watches_answer(it, version_of(it));
}

static void watches_on_inspected(void *client)
{
    struct watched *it = client;
    if (it->inspection != 0) /* or it has just begun */
        take_inspection(it);
}

static void watches_inspect(struct watched *it, int64_t now_us)
{
    int64_t share_us = it->watches->names * (int64_t)SHARE_US;
    it->inspected_us = now_us;
    it->next_us = now_us + at_least(EACH_US, share_us);
    if (inspection_begin(it->watches->tickets->operations, &it->inspection,
                         it->resource, OWNER_WATCH, it))
        take_inspection(it);
}

/* Soon, but not too soon after the last one. */
static void watches_inspect_soon(struct watched *it, int64_t now_us)
{
    int64_t at_us = at_least(now_us, it->inspected_us + LEAST_US);
    it->next_us = at_most(it->next_us, at_us);
}

/* ---- the module ---------------------------------------------------------- */

uint64_t watches_start(struct watches *watches, struct span resource,
                       struct span known, int64_t wait_ms, void *client)
{
    assert(known.len <= VERSION_MAX && wait_ms > 0 && wait_ms <= WAIT_MAX_MS);
    struct watched *watched = find_or_make(watches, resource);
    struct watcher *it =
        watched == NULL
            ? NULL
            : ticket_new(watches->tickets, WAITING_WATCH,
                         &(struct request){.client = client}, wait_ms);
    if (it == NULL)
        return 0; /* the next tick forgets the lock */
    watched->users++;
    it->watched = watched;
    it->known[span_copy(it->known, known)] = '\0';
    it->ticket.name = it->ticket.result.resource = watched->resource;
    uint64_t handle = ticket_handle(&it->ticket);
    if (!ticket_is_stopped(&it->ticket) && !ticket_is_refused(&it->ticket, 0)) {
        ticket_join(&it->ticket);
        TAILQ_INSERT_TAIL(&watched->waiting, it, link);
        watched->until_us = at_most(watched->until_us, it->ticket.until_us);
        watches_inspect_soon(watched, it->ticket.since_us);
    }
    return handle;
}

static void watches_dismiss(struct ticket *ticket)
{
    const struct watcher *it = (struct watcher *)ticket;
    assert(it->watched->users > 0);
    it->watched->users--; /* without any, the next tick forgets the lock */
}

void watches_init(struct watches *watches, struct tickets *tickets,
                  const struct waits *waits)
{
    /* the lock is inspected for others, too, and the tick answers */
    static const struct ticket_rules rules = {.leave = watches_leave,
                                              .dismiss = watches_dismiss};
    *watches = (struct watches){
        .env = tickets->env, .tickets = tickets, .waits = waits};
    TAILQ_INIT(&watches->list);
    tickets_add_kind(tickets, WAITING_WATCH, sizeof(struct watcher), &rules);
    tickets->operations->on_settled[OWNER_WATCH] = watches_on_inspected;
}

void watches_fini(struct watches *watches)
{
    struct watched *it = TAILQ_FIRST(&watches->list), *next;
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        watches_forget(it);
    }
}

void watches_touch(struct watches *watches, struct span resource)
{
    int64_t now_us = environment_now(watches->env);
    bool is_several = names_are_several(resource);
    struct watched *it = watches_find(watches, resource);
    if (it != NULL)
        watches_inspect_soon(it, now_us);
    while (is_several && resource.len > 0) {
        it = watches_find(watches, names_next(&resource));
        if (it != NULL)
            watches_inspect_soon(it, now_us);
    }
}

/* Whether the last inspection tells a client, whose time is up, how the lock
 * was in its last second. */
static bool is_reported(const struct watched *it, const struct ticket *ticket)
{
    return it->began_us >=
           at_least(ticket->since_us, ticket->until_us - EACH_US);
}

/* Those whose time is up; an inspection comes first if the last one is old. */
static void watches_expire(struct watched *it, int64_t now_us)
{
    struct watcher *one = TAILQ_FIRST(&it->waiting), *next;
    int64_t until_us = INT64_MAX;
    for (; one != NULL; one = next) {
        next = TAILQ_NEXT(one, link);
        if (now_us >= one->ticket.until_us && is_reported(it, &one->ticket)) {
            watches_settle(one);
            continue;
        }
        if (now_us >= one->ticket.until_us + LATE_US) {
            ticket_settle_plainly(&one->ticket, OUTCOME_NO_QUORUM);
            continue;
        }
        if (now_us >= one->ticket.until_us)
            watches_inspect_soon(it, now_us);
        until_us = at_most(until_us, one->ticket.until_us);
    }
    it->until_us = until_us;
}

void watches_tick(struct watches *watches, int64_t now_us)
{
    struct watched *it = TAILQ_FIRST(&watches->list), *next;
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        if (it->users == 0) {
            watches_forget(it);
            continue;
        }
        if (it->inspection == 0 && now_us >= it->next_us &&
            !TAILQ_EMPTY(&it->waiting))
            watches_inspect(it, now_us);
        if (now_us >= it->until_us)
            watches_expire(it, now_us);
    }
}
