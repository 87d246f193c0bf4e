/* SPDX-License-Identifier: MIT */
#include "ticket.h"

#include <assert.h>

enum { TICKETS_MAX = 100000 }; /* the connections are fewer */

/* ---- lists --------------------------------------------------------------- */

/* NULL: it does not count any more. */
static void move(struct ticket *it, struct ticket_list *to)
{
    struct tickets *all = it->all;
    assert(all != NULL); /* from its first moment on */
    if (it->list != NULL) {
        TAILQ_REMOVE(&it->list->tickets, it, link);
        it->list->count--;
    }
    it->list = to;
    if (to != NULL) {
        TAILQ_INSERT_TAIL(&to->tickets, it, link);
        to->count++;
    }
    all->env->metrics->waiting[it->kind] =
        (uint64_t)all->waiting[it->kind].count;
}

static const struct ticket_rules *rules_of(const struct ticket *it)
{
    return it->all->rules[it->kind];
}

static void ticket_end(struct ticket *it)
{
    rules_of(it)->dismiss(it);
    ticket_drop(it);
}

static void ticket_on_settled(void *client)
{
    struct ticket *it = client;
    if (it->operation != 0) /* or it has just begun */
        rules_of(it)->on_tried(it);
}

void tickets_init(struct tickets *tickets, struct operations *operations)
{
    const struct environment *env = operations->env;
    *tickets = (struct tickets){.env = env, .operations = operations};
    entries_init(&tickets->entries, sizeof(struct ticket), TICKETS_MAX);
    for (int i = 0; i < WAITING_KINDS; i++)
        TAILQ_INIT(&tickets->waiting[i].tickets);
    env->metrics->waiters_max = (uint64_t)env->settings.waiters_max;
}

void tickets_add_kind(struct tickets *tickets, enum metrics_waiting kind,
                      size_t size, const struct ticket_rules *rules)
{
    tickets->rules[kind] = rules;
    if (rules->on_tried != NULL)
        tickets->operations->on_settled[rules->tries_as] = ticket_on_settled;
    if (size > tickets->entries.object_size)
        entries_init(&tickets->entries, size, TICKETS_MAX);
}

void tickets_fini(struct tickets *tickets)
{
    for (uint32_t i = 0; i < tickets->entries.count; i++) {
        struct ticket *it = entries_at(&tickets->entries, i);
        if (it != NULL)
            ticket_end(it);
    }
    entries_fini(&tickets->entries);
}

/* ---- its life ------------------------------------------------------------ */

void *ticket_new(struct tickets *tickets, enum metrics_waiting kind,
                 const struct request *asked, int64_t wait_ms)
{
    const struct engine_port *port = &tickets->env->port;
    struct ticket *it = entries_take(&tickets->entries);
    if (it == NULL)
        return NULL;
    if (!port->timer(port->ctx, timer_id(TIMER_TICKET, it->head.index), 0)) {
        entries_give(&tickets->entries, it);
        return NULL;
    }
    memset((char *)it + sizeof it->head, 0,
           tickets->entries.object_size - sizeof it->head);
    it->all = tickets;
    it->kind = kind;
    it->client = asked->client;
    it->ttl_ms = asked->ttl_ms;
    it->since_us = environment_now(tickets->env);
    if (wait_ms > 0)
        it->until_us = it->since_us + wait_ms * US_PER_MS;
    it->owner_len = span_copy(it->owner, asked->owner);
    it->key_hash = (struct span){it->key_hash_text,
                                 span_copy(it->key_hash_text, asked->key_hash)};
    return it;
}

void ticket_drop(struct ticket *it)
{
    move(it, NULL);
    entries_give(&it->all->entries, it);
}

void ticket_join(struct ticket *it)
{
    assert(it->state == TICKET_NEW);
    it->state = TICKET_QUEUED;
    if (ticket_waits(it))
        move(it, &it->all->waiting[it->kind]);
}

void ticket_set_timer(const struct ticket *it, int64_t at_us)
{
    const struct engine_port *port = &it->all->env->port;
    /* cannot fail: ticket_new made the timer */
    (void)port->timer(port->ctx, timer_id(TIMER_TICKET, it->head.index), at_us);
}

/* True: the operation has its outcome already. */
static bool ticket_begin(struct operations *operations, uint64_t *handle,
                         const struct request *asked)
{
    *handle = operation_start(operations, asked);
    const struct operation *operation = operation_find(operations, *handle);
    return operation != NULL && operation->state == OPERATION_SETTLED;
}

bool ticket_try(struct ticket *it, struct request *try)
{
    it->state = TICKET_TRYING;
    ticket_set_timer(it, 0);
    try->call = LOCK_ACQUIRE;
    try->owner = (struct span){it->owner, it->owner_len};
    try->key_hash = it->key_hash;
    try->ttl_ms = it->ttl_ms;
    try->client = it;
    return ticket_begin(it->all->operations, &it->operation, try);
}

bool ticket_goes_on(struct ticket *it, int64_t now_us)
{
    if (now_us < it->until_us)
        return !ticket_is_stopped(it);
    rules_of(it)->settle_late(it, now_us);
    return false;
}

void ticket_expire(struct ticket *it, int64_t now_us)
{
    rules_of(it)->settle_late(it, now_us);
    rules_of(it)->on_left(it, false, now_us);
}

void ticket_withdraw(struct ticket *it, int64_t now_us)
{
    struct operation *operation =
        operation_find(it->all->operations, it->operation);
    if (operation != NULL)
        (void)operation_abandon(operation);
    it->operation = 0;
    rules_of(it)->settle_late(it, now_us);
    rules_of(it)->on_left(it, operation != NULL, now_us);
}

void ticket_leave(struct ticket *it, int64_t now_us)
{
    /* one that has settled is in no queue, and its timer finds it so */
    assert(it->state == TICKET_QUEUED || it->state == TICKET_TRYING);
    rules_of(it)->leave(it, now_us);
    if (ticket_waits(it) && it->kind != WAITING_WATCH)
        metrics_observe_wait(it->all->env->metrics, now_us - it->since_us);
    it->state = TICKET_SETTLED;
    move(it, NULL);
    ticket_set_timer(it, 0);
}

void ticket_answer(struct ticket *it, int64_t now_us)
{
    const struct engine_port *port = &it->all->env->port;
    if (ticket_waits(it))
        it->result.waited_ms = (now_us - it->since_us) / US_PER_MS;
    port->answer(port->ctx, it->client);
}

void result_keep(struct engine_result *to, char owner[OWNER_MAX],
                 const struct engine_result *from)
{
    *to = *from;
    to->owner = (struct span){owner, span_copy(owner, from->owner)};
    to->resource = to->token = to->key_hash = (struct span){0};
}

void ticket_settle(struct ticket *it, const struct engine_result *result)
{
    int64_t now_us = environment_now(it->all->env);
    if (it->state != TICKET_NEW)
        ticket_leave(it, now_us);
    it->state = TICKET_SETTLED;
    result_keep(&it->result, it->owner, result);
    it->result.resource = it->name;
    ticket_answer(it, now_us);
}

void ticket_settle_plainly(struct ticket *it, enum outcome outcome)
{
    const struct engine_result result =
        result_plain(outcome, it->all->env->settings.nodes);
    ticket_settle(it, &result);
}

static bool is_full(const struct tickets *all)
{
    int count = 0;
    for (int i = 0; i < WAITING_KINDS; i++)
        count += all->waiting[i].count;
    return count >= all->env->settings.waiters_max;
}

bool ticket_is_stopped(struct ticket *it)
{
    if (!it->all->is_stopped || !ticket_waits(it))
        return false;
    ticket_settle_plainly(it, OUTCOME_STOPPED);
    return true;
}

bool ticket_is_refused(struct ticket *it, int same)
{
    bool is_queue_full = same >= WAITERS_EACH_MAX;
    if (!ticket_waits(it) || !(is_full(it->all) || is_queue_full))
        return false;
    struct engine_result result =
        result_plain(OUTCOME_TOO_MANY_WAITERS, it->all->env->settings.nodes);
    result.is_queue_full = is_queue_full;
    ticket_settle(it, &result);
    return true;
}

void ticket_linger(struct ticket *it)
{
    if (it->list != NULL)
        return; /* it counts already */
    if (is_full(it->all))
        ticket_settle_plainly(it, OUTCOME_TOO_MANY_WAITERS);
    else
        move(it, &it->all->waiting[it->kind]);
}

/* ---- calls of clients ---------------------------------------------------- */

static struct ticket *ticket_must_find(const struct tickets *tickets,
                                       uint64_t handle)
{
    struct ticket *it = entries_find(&tickets->entries, handle);
    assert(it != NULL); /* a request ends its operation once: exchange.c */
    return it;
}

/* The operation that has its outcome; NULL: the ticket has it, or none. */
static struct operation *settled_by(const struct ticket *it)
{
    return it->state == TICKET_SETTLED
               ? operation_find(it->all->operations, it->operation)
               : NULL;
}

const struct engine_result *ticket_take(struct tickets *tickets,
                                        uint64_t handle, int64_t now_us)
{
    struct ticket *it = ticket_must_find(tickets, handle);
    struct operation *operation = settled_by(it);
    if (operation != NULL) {
        int64_t waited_ms = it->result.waited_ms;
        it->result = *operation_take(operation, now_us);
        it->result.waited_ms = waited_ms;
        if (it->result.outcome != OUTCOME_GRANTED)
            it->result.resource = it->name;
    }
    return &it->result;
}

const struct engine_result *ticket_peek(const struct tickets *tickets,
                                        uint64_t handle)
{
    const struct ticket *it = ticket_must_find(tickets, handle);
    const struct operation *operation = settled_by(it);
    return operation != NULL ? &operation->result : &it->result;
}

static void ticket_count_outcome(const struct ticket *it)
{
    enum lock_call call =
        it->kind == WAITING_WATCH ? LOCK_INSPECT : LOCK_ACQUIRE;
    it->all->env->metrics->outcomes[call][it->result.outcome]++;
}

void ticket_close(struct tickets *tickets, uint64_t handle)
{
    struct ticket *it = ticket_must_find(tickets, handle);
    struct operation *operation = settled_by(it);
    assert(it->state == TICKET_SETTLED); /* closed when answered:
                                            exchange_on_end */
    if (operation != NULL)
        operation_close(operation);
    else
        ticket_count_outcome(it);
    ticket_end(it);
}

bool ticket_abandon(struct tickets *tickets, uint64_t handle)
{
    struct ticket *it = ticket_must_find(tickets, handle);
    struct operation *operation =
        operation_find(tickets->operations, it->operation);
    int64_t now_us = environment_now(tickets->env);
    bool is_granted = false;
    if (operation != NULL)
        is_granted = operation_abandon(operation);
    else if (it->state == TICKET_SETTLED)
        ticket_count_outcome(it);
    if (it->state != TICKET_SETTLED)
        ticket_leave(it, now_us);
    if (rules_of(it)->on_left != NULL)
        rules_of(it)->on_left(it, operation != NULL, now_us);
    ticket_end(it);
    return is_granted;
}

void tickets_stop(struct tickets *tickets)
{
    tickets->is_stopped = true;
    for (int i = 0; i < WAITING_KINDS; i++) {
        struct ticket *it = TAILQ_FIRST(&tickets->waiting[i].tickets), *next;
        for (; it != NULL; it = next) {
            next = TAILQ_NEXT(it, link);
            if (it->state == TICKET_QUEUED)
                ticket_settle_plainly(it, OUTCOME_STOPPED);
        }
    }
}

void tickets_on_timer(struct tickets *tickets, uint32_t index)
{
    struct ticket *it = entries_at(&tickets->entries, index);
    int64_t now_us = environment_now(tickets->env);
    if (it == NULL || it->state != TICKET_QUEUED)
        return;
    if (ticket_waits(it) && now_us >= it->until_us)
        ticket_expire(it, now_us);
    else
        rules_of(it)->on_timer(it, now_us);
}

/* ---- inspections --------------------------------------------------------- */

bool inspection_begin(struct operations *operations, uint64_t *inspection,
                      struct span resource, enum request_owner owner,
                      void *client)
{
    return ticket_begin(operations, inspection,
                        &(struct request){
                            .call = LOCK_INSPECT,
                            .resource = resource,
                            .owned_by = owner,
                            .client = client,
                        });
}

void inspection_end(struct operations *operations, uint64_t *inspection)
{
    struct operation *operation = operation_find(operations, *inspection);
    if (operation != NULL)
        operation_discard(operation);
    *inspection = 0;
}
