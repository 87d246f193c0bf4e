/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <assert.h>

#include "../../lock/names.h"

enum {
    HINT_GAP_US = 1000,  /* after the first announcement that was wrong */
    LEAST_US = 1000,     /* between two tries that no event woke */
    SLOW_US = 5000000,   /* the same, while a quorum announces */
    LISTEN_US = 1000000, /* between two listen calls */
    LINGER_US = 2000000, /* an empty queue stays subscribed */
    UNUSED_US = 4000000, /* unused connections stay open */
};

static int waits_nodes(const struct waits *waits)
{
    return waits->env->settings.nodes;
}

/* ---- announcements ------------------------------------------------------- */

static void waits_subscribe(const struct waits *waits, int node,
                            const struct waitqueue *queue, bool is_on)
{
    const struct engine_port *port = &waits->env->port;
    port->subscribe(port->ctx, node, queue->resource, is_on);
}

static void waits_send_listen(const struct waits *waits, int node)
{
    const struct engine_port *port = &waits->env->port;
    const struct call call = {.kind = CALL_LISTEN, .listen_us = CALL_LISTEN_US};
    (void)port->send(port->ctx, node, &call, tag_plain(TAG_RELEASE));
}

static void waits_listen(struct waits *waits, int64_t now_us)
{
    for (int i = 0; i < waits_nodes(waits); i++)
        waits_send_listen(waits, i);
    waits->listen_us = now_us + LISTEN_US;
}

void waits_want(struct waits *waits, struct waitqueue *queue, int64_t now_us)
{
    const struct engine_port *port = &waits->env->port;
    waits->wanted_us = now_us;
    if (!waits->is_listening) {
        waits->is_listening = true;
        port->listen(port->ctx, true);
        waits_listen(waits, now_us);
    }
    if (queue->is_subscribed)
        return;
    queue->is_subscribed = true;
    queue->users++;
    TAILQ_INSERT_TAIL(&waits->queues.listened, queue, listened);
    for (int i = 0; i < waits_nodes(waits); i++)
        waits_subscribe(waits, i, queue, true);
}

static void waits_unsubscribe(struct waits *waits, struct waitqueue *queue)
{
    for (int i = 0; i < waits_nodes(waits); i++)
        waits_subscribe(waits, i, queue, false);
    TAILQ_REMOVE(&waits->queues.listened, queue, listened);
    queue->is_subscribed = queue->is_covered = false;
    queue->subscribed = 0;
    waitqueues_unuse(&waits->queues, queue);
}

static bool waits_hears(const struct waits *waits, int node, int64_t now_us)
{
    return waits->heard_us[node] != 0 &&
           now_us - waits->heard_us[node] < CALL_LISTEN_US;
}

/* True if a quorum announces releases of the queue's resource. */
static bool waits_cover(const struct waits *waits,
                        const struct waitqueue *queue, int64_t now_us)
{
    int announcing = 0;
    for (int i = 0; i < waits_nodes(waits); i++)
        announcing +=
            (queue->subscribed & 1u << i) != 0 && waits_hears(waits, i, now_us);
    return announcing >= quorum_of(waits_nodes(waits));
}

int64_t waits_pause_us(const struct waits *waits, bool is_announced)
{
    uint64_t delays = (uint64_t)waits->env->settings.retry_delay_us + 1;
    int64_t delay_us = (int64_t)(environment_random(waits->env) % delays);
    return is_announced ? SLOW_US + delay_us : at_least(delay_us, LEAST_US);
}

/* Its connection for announcements has ended. */
static void waits_forget_node(struct waits *waits, int node)
{
    struct waitqueue *queue;
    waits->heard_us[node] = 0;
    for (queue = TAILQ_FIRST(&waits->queues.listened); queue != NULL;
         queue = TAILQ_NEXT(queue, listened))
        queue->subscribed &= (uint16_t) ~(1u << node);
}

/* Mostly the first queue tells. */
static bool somebody_waits(const struct waitqueues *queues)
{
    const struct waitqueue *queue = TAILQ_FIRST(&queues->list);
    while (queue != NULL && queue->count == 0)
        queue = TAILQ_NEXT(queue, link);
    return queue != NULL;
}

static void waits_listen_on(struct waits *waits, int64_t now_us)
{
    const struct engine_port *port = &waits->env->port;
    struct waitqueue *queue = TAILQ_FIRST(&waits->queues.listened), *next;
    if (!waits->is_listening)
        return;
    if (somebody_waits(&waits->queues))
        waits->wanted_us = now_us;
    for (; queue != NULL; queue = next) {
        next = TAILQ_NEXT(queue, listened);
        if (queue->count == 0 && now_us - queue->empty_us >= LINGER_US)
            waits_unsubscribe(waits, queue);
    }
    if (now_us - waits->wanted_us > UNUSED_US) {
        waits->is_listening = false;
        port->listen(port->ctx, false);
        for (int i = 0; i < waits_nodes(waits); i++)
            waits_forget_node(waits, i);
    } else if (now_us >= waits->listen_us) {
        waits_listen(waits, now_us);
    }
}

/* ---- plans --------------------------------------------------------------- */

/* Remembers the result of an attempt, without resource and token. */
static void waitplan_note(struct waitplan *plan,
                          const struct engine_result *result, int64_t now_us)
{
    result_keep(&plan->last, plan->last_owner, result);
    plan->last.key_hash = (struct span){
        plan->last_key_hash, span_copy(plan->last_key_hash, result->key_hash)};
    plan->last_us = now_us;
}

/* Plans an attempt for this moment, unless one is planned before. */
static void waitplan_try_at(struct waitplan *plan, int64_t at_us,
                            enum metrics_handover by)
{
    if (plan->try_us != 0 && at_us >= plan->try_us)
        return;
    plan->try_us = at_us;
    plan->try_by = by;
}

/* ---- later --------------------------------------------------------------- */

/* Sets the waiter's timer: to its next attempt, or the end of its wait. */
static void schedule_timer(const struct waiter *it)
{
    int64_t at_us = it->ticket.until_us;
    if (it->ticket.state != TICKET_QUEUED)
        return;
    if (waiter_is_contender(it) && it->plan->try_us < at_us)
        at_us = at_least(it->plan->try_us, 1); /* not planned: at once */
    if (it->claim.try_us != 0 && it->claim.try_us < at_us)
        at_us = it->claim.try_us;
    ticket_set_timer(&it->ticket, at_us);
}

/* A release was announced: when the contender tries. */
static int64_t announced_us(const struct waiter *it,
                            const struct waitqueue *queue, int64_t now_us)
{
    bool is_enough =
        nodeset_count(it->plan->announced) >= quorum_of(waits_nodes(it->waits));
    int64_t at_us =
        now_us + (is_enough ? turn_behind_us(&queue->turn, queue->count, now_us)
                            : ANNOUNCEMENTS_ENOUGH_US);
    at_us = at_least(at_us, queue->turn.yield_until_us);
    return at_least(at_us, it->plan->hints_from_us);
}

/* Plans the contender's next attempt. */
static void schedule_plan(struct waiter *it, int64_t now_us)
{
    struct waits *waits = it->waits;
    struct waitplan *plan = it->plan;
    const struct engine_result *last = &plan->last;
    /* of a shared lock only the last release is announced: it tries soon, which
       keeps other readers out meanwhile if it is a writer */
    bool is_announced = last->outcome == OUTCOME_HELD && last->has_holder &&
                        last->number != 0 && waiter_is_covered(it);
    plan->try_by = HANDOVER_RETRY;
    plan->try_us = now_us + waits_pause_us(waits, is_announced);
    for (int i = 0; i < it->count; i++)
        waits_want(waits, it->places[i].queue, now_us);
    if (last->outcome == OUTCOME_HELD && last->remaining_ms >= 0)
        waitplan_try_at(
            plan, plan->last_us + last->remaining_ms * US_PER_MS + EXPIRY_US,
            HANDOVER_EXPIRY);
    if (plan->announced != 0)
        waitplan_try_at(plan, announced_us(it, it->places[0].queue, now_us),
                        HANDOVER_ANNOUNCEMENT);
    schedule_timer(it);
}

/* ---- now ----------------------------------------------------------------- */

static void put_ready(struct waiter *it)
{
    if (it->is_ready)
        return;
    it->is_ready = true;
    TAILQ_INSERT_TAIL(&it->waits->ready, it, ready);
}

/* The contender tries as soon as nothing is in its way, by reason of this
 * event. */
static void schedule_ready(struct waiter *it, enum metrics_handover by)
{
    it->plan->woken_by = by;
    if (it->ticket.state != TICKET_QUEUED || waiter_is_barred(it))
        it->plan->is_woken = true;
    else
        put_ready(it);
}

/* Its claim has changed: it may be ready now, or later. */
static void schedule_claim(struct waiter *it, int64_t now_us)
{
    if (it->ticket.state != TICKET_QUEUED ||
        !claim_is_due(&it->claim, now_us)) {
        schedule_timer(it);
        return;
    }
    put_ready(it);
    /* before all others: their attempts might be in its way, one after the
     * other */
    for (int i = 0; i < it->count; i++)
        if (it->places[i].queue->due == NULL)
            it->places[i].queue->due = it;
}

/* It does not try. */
static void schedule_not_ready(struct waiter *it)
{
    if (it->is_ready)
        TAILQ_REMOVE(&it->waits->ready, it, ready);
    it->is_ready = false;
    for (int i = 0; i < it->count; i++)
        if (it->places[i].queue->due == it)
            it->places[i].queue->due = NULL;
}

/*
 * Takes a waiter that may try at once from the list; NULL: there is none. A
 * contender with something in its way leaves the list, and is woken when that
 * ends; others stay.
 */
static struct waiter *schedule_next(struct waits *waits)
{
    struct waiter *it = TAILQ_FIRST(&waits->ready), *next;
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, ready);
        bool is_barred = waiter_is_barred(it);
        if (is_barred && !waiter_is_contender(it))
            continue;
        schedule_not_ready(it);
        if (!is_barred)
            return it;
        it->plan->is_woken = true; /* barred by one that was ready before */
    }
    return NULL;
}

/* ---- claims -------------------------------------------------------------- */

/*
 * How a waiter with a key learns that it has the lock already: from what this
 * server knew when it arrived, from the attempts of all that wait for the
 * resource, or from an inspection of its own, which takes no lock, and so
 * overtakes nobody.
 */

/* The nodes' clocks may have been unknown when it came. */
static void inspection_date(struct waiter *it, int64_t now_us)
{
    const struct clocks *clocks = &it->waits->operations->nodes->clocks;
    claim_date(&it->claim, clocks_median_at(clocks, it->ticket.since_us),
               clocks_apart_us(clocks, now_us));
}

static void waits_find(struct waiter *it, int64_t number, int64_t now_us)
{
    inspection_date(it, now_us);
    claim_find(&it->claim, number, now_us);
}

static void waits_remember(struct waiter *it, const struct waitplan *plan,
                           int64_t now_us)
{
    if (plan->last.outcome == OUTCOME_HELD &&
        waiter_has_key(it, plan->last.key_hash))
        claim_know(&it->claim, plan->last.number, now_us);
}

/* It has just arrived: others may have found its lock before. */
static void inspection_remember(struct waiter *it, int64_t now_us)
{
    for (int i = 0; i < it->count; i++) {
        const struct waitqueue *queue = it->places[i].queue;
        waits_remember(it, &queue->plan, now_us);
        if (queue->contender != NULL)
            waits_remember(it, queue->contender->plan, now_us);
    }
}

/*
 * True if no attempt would find its lock: all contenders wait for several
 * resources, and their attempts may report the holder of another one.
 */
static bool inspection_is_needed(const struct waiter *it)
{
    if (it->ticket.key_hash.len == 0 || it->is_shared || it->claim.number != 0)
        return false;
    for (int i = 0; i < it->count; i++) {
        const struct waiter *contender = it->places[i].queue->contender;
        if (contender != NULL && contender->count == 1)
            return false;
    }
    return true;
}

/* ---- an inspection of its own -------------------------------------------- */

/*
 * The number of the lock with its key that was found, if need be on a minority;
 * 0: there is none.
 */
static int64_t own_number(const struct waiter *it,
                          const struct operation *operation)
{
    const struct engine_result *result = &operation->result;
    const struct round *round = &operation->round;
    if (it->is_shared) /* the lock of readers does not tell whose it is */
        return waiter_has_key(it, operation->request.key_hash)
                   ? round_reader_number(round)
                   : 0;
    int64_t number;
    if (result->has_holder)
        return waiter_has_key(it, result->key_hash) ? result->number : 0;
    (void)round_repeated(round, it->ticket.key_hash, &number);
    return number;
}

/* It has its outcome: the claim changes. */
static void inspection_take(struct waiter *it, int64_t now_us)
{
    struct operations *operations = it->waits->operations;
    const struct operation *operation =
        operation_find(operations, it->inspection);
    const struct engine_result *result = &operation->result;
    int64_t number = own_number(it, operation);
    if (number != 0)
        waits_find(it, number, now_us);
    else if (result->has_holder || result->outcome == OUTCOME_NOT_FOUND)
        claim_miss(&it->claim);
    else
        claim_wait(&it->claim, now_us);
    inspection_end(operations, &it->inspection);
    schedule_claim(it, now_us);
}

static void waits_inspect(struct waiter *it, int64_t now_us)
{
    struct operations *operations = it->waits->operations;
    it->claim.try_us = 0;
    assert(it->inspection == 0);
    if (inspection_begin(operations, &it->inspection, it->ticket.name,
                         OWNER_INSPECTION, it)) {
        inspection_take(it, now_us);
        return;
    }
    if (it->inspection == 0) /* no memory: later */
        claim_wait(&it->claim, now_us);
    schedule_timer(it);
}

/* ---- attempts ------------------------------------------------------------ */

static void notify_loss(const struct waiter *tried, struct waiter *it,
                        const struct operation *operation, int64_t now_us)
{
    bool is_about_it = it == tried || tried->count == 1;
    int64_t number = own_number(it, operation);
    if (number != 0) {
        waits_find(it, number, now_us);
        schedule_claim(it, now_us);
    } else if (operation->result.has_holder && is_about_it && !it->is_shared &&
               it->arrival <= tried->begun) {
        claim_miss(&it->claim); /* it had none when it came */
    }
}

static void inspection_notify_loss(struct waiter *tried,
                                   const struct operation *operation,
                                   int64_t now_us)
{
    const struct engine_result *result = &operation->result;
    for (int i = 0; i < tried->count; i++) {
        struct place *place = TAILQ_FIRST(&tried->places[i].queue->places);
        for (; place != NULL; place = TAILQ_NEXT(place, link))
            notify_loss(tried, place->waiter, operation, now_us);
    }
    /* a lost repeat may have left keys on some nodes: its own lock */
    if (operation->is_repeat && !tried->is_shared &&
        (!result->has_holder || result->number == operation->replaces))
        claim_know(&tried->claim, operation->replaces, now_us + CLAIM_ANEW_US);
    else if (!result->has_holder &&
             (tried->claim.number != 0 || operation->request.only_repeats))
        claim_wait(&tried->claim, now_us);
}

/* ---- the next turn ------------------------------------------------------- */

/* What happened to a waiter. */
enum event {
    EVENT_LOST,      /* its attempt, or it was refused the key */
    EVENT_LOST_HELD, /* the same: another has the lock */
    EVENT_GRANTED,
    EVENT_LEFT, /* it waits no more */
};

/* Lets the contenders of its queues try, or plans that, unless they do so
 * already. After one that left, a contender keeps the plan, if there is one. */
static void waits_go_on(const struct waiter *after, enum event event,
                        int64_t now_us)
{
    for (int i = 0; i < after->count; i++) {
        struct waiter *it = after->places[i].queue->contender;
        if (it == NULL || it->ticket.state != TICKET_QUEUED || it->is_ready)
            continue;
        struct waitplan *plan = it->plan;
        if (event == EVENT_GRANTED)
            plan->is_woken = false;
        if (event == EVENT_GRANTED && after->is_shared && it->is_shared)
            schedule_ready(it, after->plan->tried_by); /* both get in */
        else if (plan->is_woken && (event != EVENT_LOST || plan != after->plan))
            schedule_ready(it, plan->woken_by);
        else if (event == EVENT_LEFT && plan->try_us != 0)
            schedule_timer(it);
        else
            schedule_plan(it, now_us);
    }
}

/* ---- the end of waiting -------------------------------------------------- */

static void set_trying(const struct waiter *it, struct waiter *trying)
{
    for (int i = 0; i < it->count; i++)
        it->places[i].queue->trying = trying;
}

static void waits_leave(struct ticket *ticket, int64_t now_us)
{
    struct waiter *it = (struct waiter *)ticket;
    schedule_not_ready(it);
    inspection_end(ticket->all->operations, &it->inspection);
    if (ticket->state == TICKET_TRYING)
        set_trying(it, NULL);
    waitqueues_leave(&it->waits->queues, it);
    for (int i = 0; i < it->count; i++)
        if (it->places[i].queue->count == 0)
            it->places[i].queue->empty_us = now_us;
}

static void waits_settle_late(struct ticket *ticket, int64_t now_us)
{
    const struct waitplan *plan = ((struct waiter *)ticket)->plan;
    struct engine_result result = plan->last;
    int64_t passed_ms = (now_us - plan->last_us) / US_PER_MS;
    if (result.outcome == OUTCOME_PENDING ||
        (result.outcome == OUTCOME_HELD && result.remaining_ms >= 0 &&
         result.remaining_ms <= passed_ms))
        result = result_plain(OUTCOME_HELD, ticket->all->env->settings.nodes);
    if (result.remaining_ms >= 0)
        result.remaining_ms -= passed_ms;
    if (result.held_ms >= 0)
        result.held_ms += passed_ms;
    ticket_settle(ticket, &result);
}

/* ---- attempts ------------------------------------------------------------ */

/*
 * Others with its key came too late. Of readers each would get a token of its
 * own, as they do not exclude each other: so they are answered, and may ask
 * again, as a repeat. And those that arrived before its attempt had no lock
 * either, unless they share one: it may be among others.
 */
static void notify_grant(const struct waiter *granted)
{
    for (int i = 0; i < granted->count; i++) {
        const struct waitqueue *queue = granted->places[i].queue;
        struct place *place = TAILQ_FIRST(&queue->places), *next;
        for (; place != NULL; place = next) {
            struct waiter *it = place->waiter;
            bool has_key = waiter_has_key(it, granted->ticket.key_hash);
            next = TAILQ_NEXT(place, link);
            if (!it->is_shared && (has_key || it->arrival <= granted->begun))
                claim_miss(&it->claim);
            else if (granted->is_shared && it->is_shared && has_key &&
                     it->ticket.state == TICKET_QUEUED)
                ticket_settle(&it->ticket, &queue->plan.last);
        }
    }
}

/* Notes the holder, so that the next ones need not ask the nodes. */
static void waits_note_grant(const struct waiter *it,
                             const struct engine_result *result, int64_t now_us)
{
    struct engine_result held =
        result_plain(OUTCOME_HELD, it->waits->env->settings.nodes);
    if (it->plan->tried_by != HANDOVER_NONE)
        it->waits->env->metrics->handovers[it->plan->tried_by]++;
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
        turn_on_grant(&queue->turn, it->plan->tried_by == HANDOVER_RELEASE,
                      it->waits->queues.arrivals, now_us);
        queue->plan.hint_gap_us = 0;
        queue->plan.announced = 0;
        waitplan_note(&queue->plan, &held, now_us);
    }
    notify_grant(it);
}

/* Announcements that were wrong, as the same holder stays, count ever later. */
static void doubt_hints(struct waits *waits, struct waitplan *plan,
                        const struct engine_result *result, int64_t now_us)
{
    int64_t most_us = waits->env->settings.retry_delay_us;
    if (plan->released != 0 && result->number > plan->released)
        plan->announced = 0; /* it was the release of an earlier lock */
    if (!result->has_holder) /* split votes: not again at the same time */
        plan->hints_from_us =
            now_us +
            (int64_t)(environment_random(waits->env) % ANNOUNCEMENTS_ENOUGH_US);
    if (result->outcome != OUTCOME_HELD ||
        result->number != plan->last.number) {
        plan->hint_gap_us = 0;
        return;
    }
    if (plan->tried_by != HANDOVER_ANNOUNCEMENT)
        return; /* no announcement was wrong */
    plan->hint_gap_us = at_least(plan->hint_gap_us * 2, HINT_GAP_US);
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
    bool is_elsewhere = is_held && result->number > it->plan->last.number;
    doubt_hints(it->waits, it->plan, result, now_us);
    waitplan_note(it->plan, result, now_us);
    for (int i = 0; i < it->count; i++) {
        struct turn *turn = &it->places[i].queue->turn;
        turn_end_yield(turn, is_elsewhere);
        turn->elsewhere += is_elsewhere;
    }
    it->ticket.state = TICKET_QUEUED;
    inspection_notify_loss(it, operation, now_us);
    if (ticket_goes_on(&it->ticket, now_us) && !waiter_is_contender(it))
        schedule_timer(it);
    waits_go_on(it, is_held ? EVENT_LOST_HELD : EVENT_LOST, now_us);
}

static void waits_take_outcome(struct waiter *it)
{
    int64_t now_us = environment_now(it->waits->env);
    struct operation *operation =
        operation_find(it->waits->operations, it->ticket.operation);
    const struct engine_result *result = operation_take(operation, now_us);
    set_trying(it, NULL);
    bool is_granted = result->outcome == OUTCOME_GRANTED;
    if (is_granted || result->outcome == OUTCOME_KEY_REFUSED) {
        ticket_leave(&it->ticket, now_us);
        if (is_granted)
            waits_note_grant(it, result, now_us);
        waits_go_on(it, is_granted ? EVENT_GRANTED : EVENT_LOST, now_us);
        ticket_answer(&it->ticket, now_us);
    } else {
        it->ticket.operation = 0;
        it->own = operation->own; /* for the next try */
        it->has_nonce = operation->has_nonce;
        memcpy(it->nonce, operation->nonce, sizeof it->nonce);
        take_loss(it, operation, now_us);
        operation_discard(operation);
    }
}

/* True: it has its outcome already. */
static bool waits_begin(struct waiter *it)
{
    struct waits *waits = it->waits;
    struct waitplan *plan = it->plan;
    int64_t now_us = environment_now(waits->env);
    assert(it->ticket.state == TICKET_QUEUED && it->ticket.operation == 0);
    inspection_end(waits->operations, &it->inspection);
    plan->tried_by = waiter_is_contender(it) ? plan->woken_by : HANDOVER_NONE;
    plan->is_woken = false;
    plan->announced = 0;
    plan->try_us = 0;
    it->begun = waits->queues.arrivals;
    /* nothing else finds its lock */
    if (it->is_shared && it->ticket.key_hash.len > 0)
        inspection_date(it, now_us);
    set_trying(it, it);
    struct request try = {
        .resource = it->ticket.name,
        .asked_us = claim_try(&it->claim, now_us),
        .is_shared = it->is_shared,
        .only_repeats = it->is_shared && !waiter_is_contender(it),
        .is_choice = ticket_waits(&it->ticket),
        .nonce = it->has_nonce ? it->nonce : NULL,
        .own = it->own,
        .owned_by = OWNER_WAITER,
    };
    bool is_tried = ticket_try(&it->ticket, &try);
    if (it->ticket.operation != 0)
        return is_tried;
    it->ticket.state = TICKET_QUEUED; /* no memory: later */
    set_trying(it, NULL);
    if (!ticket_waits(&it->ticket)) {
        ticket_settle_plainly(&it->ticket, OUTCOME_NO_QUORUM);
        waits_go_on(it, EVENT_LEFT, now_us);
        return false;
    }
    if (it->claim.number != 0)
        claim_wait(&it->claim, now_us);
    schedule_timer(it);
    waits_go_on(it, EVENT_LOST, now_us);
    return false;
}

static void waits_run(struct waits *waits)
{
    struct waiter *it;
    while ((it = schedule_next(waits)) != NULL)
        if (waits_begin(it))
            waits_take_outcome(it);
}

static void waits_on_tried(struct ticket *ticket)
{
    struct waiter *it = (struct waiter *)ticket;
    waits_take_outcome(it);
    waits_run(it->waits);
}

static void waits_on_inspected(void *client)
{
    struct waiter *it = client;
    if (it->inspection == 0)
        return; /* it has just begun */
    inspection_take(it, environment_now(it->waits->env));
    waits_run(it->waits);
}

/* ---- events -------------------------------------------------------------- */

/* True: it lets clients of other servers try first. */
static bool yields(struct waiter *it, int64_t now_us)
{
    int64_t until_us = 0;
    for (int i = 0; i < it->count; i++)
        until_us = at_least(until_us, it->places[i].queue->turn.yield_until_us);
    if (now_us >= until_us || it->ticket.until_us <= until_us || it->is_shared)
        return false;
    waitplan_try_at(it->plan, until_us, HANDOVER_ANNOUNCEMENT);
    schedule_timer(it);
    return true;
}

/* ---- calls of clients ---------------------------------------------------- */

/* Others go first, but the lock may be its own. */
static void wait_behind(struct waiter *it, int64_t now_us)
{
    if (inspection_is_needed(it)) {
        waits_inspect(it, now_us);
        return;
    }
    if (it->is_shared && it->ticket.key_hash.len > 0)
        it->claim.try_us = now_us; /* it tries to replace that */
    schedule_claim(it, now_us);
}

/* It has just arrived: it tries at once, waits, or is answered. */
static void arrive(struct waiter *it, int64_t now_us)
{
    struct waits *waits = it->waits;
    waitqueues_join(&waits->queues, it);
    ticket_join(&it->ticket);
    inspection_remember(it, now_us);
    if (waiter_is_contender(it) && !yields(it, now_us))
        schedule_ready(it, HANDOVER_NONE);
    else if (!ticket_is_stopped(&it->ticket))
        wait_behind(it, now_us);
    if (!it->is_ready)
        schedule_timer(it);
    waits_run(waits);
    if (!ticket_waits(&it->ticket) && it->ticket.state == TICKET_QUEUED)
        ticket_expire(&it->ticket, now_us); /* it is not its turn */
}

uint64_t waits_start(struct waits *waits, const struct request *asked,
                     int64_t wait_ms)
{
    struct waiter *it =
        ticket_new(waits->tickets, WAITING_LOCK, asked, wait_ms);
    if (it == NULL)
        return 0;
    if (!waitqueues_enrol(&waits->queues, it, asked->resource)) {
        ticket_drop(&it->ticket);
        return 0;
    }
    int64_t now_us = it->ticket.since_us;
    it->waits = waits;
    it->is_shared = asked->is_shared;
    it->ticket.result.resource = it->ticket.name;
    claim_init(&it->claim);
    claim_date(&it->claim, asked->asked_us,
               clocks_apart_us(&waits->operations->nodes->clocks, now_us));
    uint64_t handle = ticket_handle(&it->ticket);
    if (!ticket_is_refused(&it->ticket, waits_count(waits, it->ticket.name)))
        arrive(it, now_us);
    return handle;
}

static void waits_on_left(struct ticket *ticket, bool has_asked, int64_t now_us)
{
    const struct waiter *it = (struct waiter *)ticket;
    for (int i = 0; has_asked && i < it->count; i++) {
        struct waiter *next = it->places[i].queue->contender;
        if (next != NULL) /* behind the release of what it may have got */
            schedule_ready(next, HANDOVER_RELEASE);
    }
    waits_go_on(it, EVENT_LEFT, now_us);
    waits_run(it->waits);
}

/* One that waits, with this key; NULL: there is none. */
static struct waiter *waits_find_with_key(const struct waits *waits,
                                          struct span resource,
                                          struct span key_hash)
{
    struct waitqueue *queue = waitqueues_next(&waits->queues, &resource);
    struct place *place = queue != NULL ? TAILQ_FIRST(&queue->places) : NULL;
    for (; place != NULL; place = TAILQ_NEXT(place, link))
        if (ticket_waits(&place->waiter->ticket) &&
            waiter_has_key(place->waiter, key_hash))
            return place->waiter;
    return NULL;
}

void waits_withdraw(struct waits *waits, struct span resource,
                    struct span key_hash)
{
    int64_t now_us = environment_now(waits->env);
    struct waiter *it;
    while ((it = waits_find_with_key(waits, resource, key_hash)) != NULL)
        ticket_withdraw(&it->ticket, now_us);
}

static void waits_dismiss(struct ticket *ticket)
{
    struct waiter *it = (struct waiter *)ticket;
    waitqueues_dismiss(&it->waits->queues, it);
}

int waits_count(const struct waits *waits, struct span resource)
{
    const struct waitqueue *queue;
    int most = 0;
    while ((queue = waitqueues_next(&waits->queues, &resource)) != NULL)
        if (queue->count > most)
            most = queue->count;
    return most;
}

bool waits_has_writer(const struct waits *waits, struct span resource,
                      bool contends)
{
    const struct waitqueue *queue;
    while ((queue = waitqueues_next(&waits->queues, &resource)) != NULL)
        if (queue->writers > 0 &&
            (!contends || queue->contender != NULL || queue->is_vacant))
            return true;
    return false;
}

/* ---- wake-ups ------------------------------------------------------------ */

void waits_on_release(struct waits *waits, struct span resource)
{
    const struct nodes *nodes = waits->operations->nodes;
    int64_t now_us = environment_now(waits->env);
    struct waitqueue *queue;
    while ((queue = waitqueues_next(&waits->queues, &resource)) != NULL) {
        struct waiter *it = queue->contender;
        turn_on_release(&queue->turn, it != NULL ? it->arrival : 0,
                        nodes->pace.slow_us, now_us);
        if (it != NULL && !yields(it, now_us))
            schedule_ready(it, HANDOVER_RELEASE);
    }
    waits_run(waits);
}

static void waits_note_others(struct waits *waits, struct span name,
                              int64_t others, int64_t now_us)
{
    struct waitqueue *queue = waitqueues_find(&waits->queues, name);
    if (queue != NULL)
        turn_on_others(&queue->turn, others, now_us);
}

void waits_on_listeners(struct waits *waits, struct span resource,
                        int64_t listeners)
{
    int64_t now_us = environment_now(waits->env);
    while (listeners > 1 && resource.len > 0) { /* one is ours */
        struct span pool, name = names_next(&resource);
        waits_note_others(waits, name, listeners - 1, now_us);
        if (names_slot(name, &pool) < 0)
            continue;
        name.len = pool.len + 1; /* of its pool: permits.c waits there */
        waits_note_others(waits, name, listeners - 1, now_us);
    }
}

/* A quorum begins to announce, or no longer does. */
static void check_cover(struct waits *waits, struct waitqueue *queue,
                        int64_t now_us)
{
    bool was_covered = queue->is_covered;
    struct waiter *it = queue->contender;
    queue->is_covered = waits_cover(waits, queue, now_us);
    if (it == NULL || queue->is_covered == was_covered)
        return;
    if (!queue->is_covered)
        schedule_plan(it, now_us);
    else if (waiter_is_covered(it))
        schedule_ready(it, HANDOVER_RETRY);
    waits_run(waits);
}

static void check_covers(struct waits *waits, int64_t now_us)
{
    struct waitqueue *queue;
    for (queue = TAILQ_FIRST(&waits->queues.listened); queue != NULL;
         queue = TAILQ_NEXT(queue, listened))
        check_cover(waits, queue, now_us);
}

void waits_on_listener_up(struct waits *waits, int node)
{
    const struct waitqueue *queue;
    for (queue = TAILQ_FIRST(&waits->queues.listened); queue != NULL;
         queue = TAILQ_NEXT(queue, listened))
        waits_subscribe(waits, node, queue, true);
}

void waits_on_listener_down(struct waits *waits, int node)
{
    waits_forget_node(waits, node);
    check_covers(waits, environment_now(waits->env));
}

void waits_on_subscribed(struct waits *waits, int node, struct span resource)
{
    if (resource.len == 0) {
        waits_send_listen(waits, node); /* its heartbeat proves it announces */
        return;
    }
    struct waitqueue *queue = waitqueues_find(&waits->queues, resource);
    if (queue == NULL || !queue->is_subscribed)
        return;
    queue->subscribed |= (uint16_t)(1u << node);
    check_cover(waits, queue, environment_now(waits->env));
}

void waits_on_announced(struct waits *waits, int node, struct span resource,
                        int64_t number)
{
    int64_t now_us = environment_now(waits->env);
    if (resource.len == 0) {
        bool was_heard = waits_hears(waits, node, now_us);
        waits->heard_us[node] = now_us;
        if (!was_heard)
            check_covers(waits, now_us);
        return;
    }
    struct waitqueue *queue = waitqueues_find(&waits->queues, resource);
    if (queue != NULL && number > queue->plan.last.number)
        turn_end_yield(&queue->turn, true); /* another server had the lock */
    if (queue == NULL || queue->contender == NULL)
        return;
    struct waiter *it = queue->contender;
    struct waitplan *plan = it->plan;
    if (number != 0 && plan == &queue->plan) {
        if (number < plan->last.number)
            return; /* release of an earlier lock than the present one */
        if (number != plan->released)
            plan->announced = 0;
        plan->released = number;
    }
    plan->announced |= (uint16_t)(1u << node);
    int64_t at_us = announced_us(it, queue, now_us);
    if (at_us <= now_us) {
        schedule_ready(it, HANDOVER_ANNOUNCEMENT);
        waits_run(waits);
    } else if (it->ticket.state == TICKET_QUEUED) {
        waitplan_try_at(plan, at_us, HANDOVER_ANNOUNCEMENT);
        schedule_timer(it);
    }
}

static void waits_on_timer(struct ticket *ticket, int64_t now_us)
{
    struct waiter *it = (struct waiter *)ticket;
    if (waiter_is_contender(it) && it->plan->is_woken && !waiter_is_barred(it))
        schedule_ready(it, it->plan->woken_by); /* contends late */
    else if (waiter_is_contender(it) && now_us >= it->plan->try_us)
        schedule_ready(it, it->plan->try_by);
    else if (!claim_is_due(&it->claim, now_us))
        schedule_timer(it);
    else if (it->claim.number == 0 && !it->is_shared)
        waits_inspect(it, now_us);
    else
        schedule_claim(it, now_us);
    waits_run(it->waits);
}

void waits_tick(struct waits *waits, int64_t now_us)
{
    waits_listen_on(waits, now_us);
    waitqueues_tick(&waits->queues);
    check_covers(waits, now_us);
}

/* ---- the module ---------------------------------------------------------- */

void waits_init(struct waits *waits, struct nodes *nodes,
                struct tickets *tickets)
{
    static const struct ticket_rules rules = {
        waits_leave,       waits_dismiss, OWNER_WAITER,   waits_on_tried,
        waits_settle_late, waits_on_left, waits_on_timer,
    };
    *waits = (struct waits){
        .env = nodes->env,
        .operations = tickets->operations,
        .tickets = tickets,
    };
    waitqueues_init(&waits->queues);
    TAILQ_INIT(&waits->ready);
    tickets_add_kind(tickets, WAITING_LOCK, sizeof(struct waiter), &rules);
    waits->operations->on_settled[OWNER_INSPECTION] = waits_on_inspected;
}
