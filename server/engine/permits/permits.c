/* SPDX-License-Identifier: MIT */
#include "permits.h"

#include <assert.h>

#include "../../lock/names.h"
#include "../port/port.h"

enum {
    /* Grants in a row, while other servers wait. A lock has turns for that
       (waits.h). They begin with a grant that no release through this
       server led to; a pool has such grants among the others all the time. */
    RUN_MAX = 16,
    GAP_US = 2000,    /* between two queries because of announcements … */
    GAP_SLOT_US = 20, /* … and more for each slot: they cost the nodes time */
    LOSSES_MAX = 20,  /* of one that does not wait, but may pause */
    LOSSES_AT_ONCE = 3,    /* without a pause after them */
    PAUSE_US = 1000,       /* the longest after the first loss */
    DISTRUST_US = 1000000, /* after a wrong announcement */
};

/* One that is asked for. */
struct permit {
    struct ticket ticket; /* its name: the pool's */
    struct permits *permits;
    struct pool *pool;
    TAILQ_ENTRY(permit) link;
    int limit;             /* of the pool, as it was asked */
    int wanted;            /* slots */
    struct line *line;     /* of who asks */
    int64_t asked_us;      /* as in struct request */
    int64_t not_before_us; /* it does not try again before */
    uint64_t event;        /* a query after this one informs it */
    int losses;
    bool is_blind;        /* it tries without a query or a release */
    bool is_blocked;      /* none was free, and it was woken since or will be */
    bool has_waited;      /* it was blocked before */
    bool is_informed;     /* it knows from its key hash whether it has slots */
    bool only_repeats;    /* takes no others */
    int losses_max;       /* of one that does not wait */
    struct slotset slots; /* that it tries, or was granted */
    enum metrics_handover woken_by;
    struct engine_result last; /* of a try or query that decided nothing */
};

/* ---- timers ------------------------------------------------------------- */

/* The earlier of two moments; 0: never. */
static int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* To its next try, or the end of its wait. */
static void permit_set_timer(const struct permit *it)
{
    bool pauses = it->not_before_us > environment_now(it->permits->env);
    ticket_set_timer(&it->ticket, earlier(it->ticket.until_us,
                                          pauses ? it->not_before_us : 0));
}

/* To what the pool waits for. False: no memory for a timer. */
static bool permit_set_pool_timer(const struct permits *permits,
                                  const struct pool *pool)
{
    const struct engine_port *port = &permits->env->port;
    bool has_later = slotset_next(&pool->later, 0) >= 0;
    int64_t at_us = pool->is_queried ? pool->deadline_us : turns_from_us(pool);
    at_us = earlier(at_us, pool->retry_us);
    at_us = earlier(at_us, has_later ? pool->later_us : 0);
    return port->timer(port->ctx, timer_id(TIMER_POOL, pool->head.index),
                       at_us);
}

/* ---- joining and leaving ------------------------------------------------ */

/* Its turn may have come; NULL: nobody's. */
static void call_next(const struct permits *permits, const struct pool *next)
{
    if (next != NULL)
        (void)permit_set_pool_timer(permits, next);
}

/* It does not stand in line for a query any more. */
static void leave_line(const struct permits *permits, struct pool *pool)
{
    call_next(permits, turns_leave(pool));
}

static void permit_join(struct permit *it)
{
    struct permits *permits = it->permits;
    struct pool *pool = it->pool;
    ticket_join(&it->ticket);
    it->event = ++permits->pools.events;
    TAILQ_INSERT_TAIL(&pool->queue, it, link);
    if (!ticket_waits(&it->ticket))
        return;
    if (pool->waiting++ == 0)
        TAILQ_INSERT_TAIL(&permits->pools.waited_for, pool, link);
    pool->waits->count++;
    pool_want_news(pool, it->limit);
    permit_set_timer(it);
}

static void permit_leave(struct ticket *ticket, int64_t now_us)
{
    struct permit *it = (struct permit *)ticket;
    struct pool *pool = it->pool;
    TAILQ_REMOVE(&pool->queue, it, link);
    if (TAILQ_EMPTY(&pool->queue))
        leave_line(it->permits, pool);
    if (!ticket_waits(ticket))
        return;
    pool->waits->count--;
    if (--pool->waiting > 0)
        return;
    TAILQ_REMOVE(&it->permits->pools.waited_for, pool, link);
    pool->waits->empty_us = now_us;
    pool->retry_us = 0;
    pool->later = (struct slotset){{0}};
    pool_drop_news(pool);
}

/* No slot was free. */
static void permit_settle_held(struct permit *it)
{
    struct permits *permits = it->permits;
    int64_t now_us = environment_now(permits->env);
    int64_t free_us = it->pool->free_from_us;
    struct engine_result result =
        result_plain(OUTCOME_HELD, permits->env->settings.nodes);
    if (free_us > now_us)
        result.remaining_ms = (free_us - now_us) / US_PER_MS;
    permits->env->metrics->permit_refusals++;
    ticket_settle(&it->ticket, &result);
}

static void permits_settle_late(struct ticket *ticket, int64_t now_us)
{
    struct permit *it = (struct permit *)ticket;
    (void)now_us;
    if (it->last.outcome == OUTCOME_PENDING)
        permit_settle_held(it);
    else
        ticket_settle(ticket, &it->last);
}

/* What it tried or asked was not decided: it tries again after a while. */
static void permit_put_off(struct permit *it,
                           const struct engine_result *result, int64_t now_us)
{
    it->last = *result;
    it->last.resource = it->last.token = it->last.owner = it->last.key_hash =
        (struct span){0};
    it->not_before_us = now_us + waits_pause_us(it->permits->waits, false);
    permit_set_timer(it);
}

/* The first of the queue that waits, and is not trying; NULL: none does. */
static struct permit *permit_first_waiting(const struct pool *pool)
{
    struct permit *it;
    for (it = TAILQ_FIRST(&pool->queue); it != NULL; it = TAILQ_NEXT(it, link))
        if (it->ticket.state == TICKET_QUEUED && ticket_waits(&it->ticket))
            break;
    return it;
}

/* ---- queries ------------------------------------------------------------ */

/* What it must ask, so that each of the queue is informed; and whose key hash
 * it asks for: that of who pays for it, if it has to query, or the first's;
 * NULL: nobody's. */
static const struct permit *choose_query(const struct pool *pool,
                                         const struct permit *payer, int *count,
                                         int *wanted)
{
    const struct permit *asking = payer->is_informed ? NULL : payer;
    const struct permit *it;
    for (it = TAILQ_FIRST(&pool->queue); it != NULL;
         it = TAILQ_NEXT(it, link)) {
        *count = (int)at_least(*count, it->limit);
        *wanted = (int)at_least(*wanted, it->wanted);
        if (asking == NULL && it->ticket.state == TICKET_QUEUED &&
            !it->is_informed)
            asking = it;
    }
    return asking;
}

/* After too few answers, or a refusal. */
static void note_failure(struct permits *permits, struct pool *pool,
                         enum query_outcome outcome, int64_t now_us)
{
    struct permit *it = TAILQ_FIRST(&pool->queue), *next;
    struct engine_result result = result_plain(
        outcome == QUERY_REFUSED ? OUTCOME_KEY_REFUSED : OUTCOME_NO_QUORUM,
        permits->env->settings.nodes);
    memcpy(result.votes, pool->query.votes, sizeof result.votes);
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        if (it->ticket.state != TICKET_QUEUED || it->event > pool->queried)
            continue;
        if (!ticket_waits(&it->ticket) || outcome == QUERY_REFUSED)
            ticket_settle(&it->ticket, &result);
        else
            permit_put_off(it, &result, now_us);
    }
}

/* The one whose key hash the query asks for; NULL: it has left. */
static struct permit *find_asking(const struct pool *pool)
{
    struct permit *it;
    for (it = TAILQ_FIRST(&pool->queue); it != NULL; it = TAILQ_NEXT(it, link))
        if (pool->asking == entries_handle(it, 0))
            break;
    return it;
}

/* All of the queue are informed, and one knows which slots it has. */
static void note_reported(struct pool *pool, int64_t now_us)
{
    struct permit *it, *asking = find_asking(pool);
    pool_note_query(pool, now_us);
    for (it = TAILQ_FIRST(&pool->queue); it != NULL;
         it = TAILQ_NEXT(it, link)) {
        it->last.outcome = OUTCOME_PENDING;
    }
    if (asking == NULL || asking->ticket.state != TICKET_QUEUED)
        return;
    asking->is_informed = true;
    asking->slots = query_own(&pool->query);
}

/* After a vote was noted. True: the query has ended. */
static bool query_end(struct permits *permits, struct pool *pool)
{
    int64_t now_us = environment_now(permits->env);
    enum query_outcome outcome = query_outcome(&pool->query);
    if (outcome == QUERY_OPEN)
        return false;
    pool->is_queried = false;
    call_next(permits, turns_end(pool->payer, pool->query.count));
    if (outcome == QUERY_REPORTED)
        note_reported(pool, now_us);
    else
        note_failure(permits, pool, outcome, now_us);
    return true;
}

/* False: it is not the turn of who pays yet, and the pool stands in line. */
static bool query_may_begin(const struct permits *permits, struct pool *pool,
                            const struct permit *payer)
{
    if (pool->line != payer->line) {
        leave_line(permits, pool);
        turns_join(payer->line, pool);
    }
    int64_t from_us = turns_from_us(pool);
    return from_us != 0 && environment_now(permits->env) >= from_us;
}

static struct ballot query_send(const struct permits *permits,
                                const struct pool *pool, int node)
{
    const struct permit *asking = find_asking(pool);
    struct call call = {.kind = CALL_SLOTS,
                        .resource = pool->prefix,
                        .count = pool->query.count};
    if (asking != NULL)
        call.key_hash = asking->ticket.key_hash;
    return nodes_send(permits->tickets->operations->nodes, node, &call,
                      pool->deadline_us,
                      entries_handle(pool, tag_bits(TAG_SLOTS, pool->queries)));
}

/*
 * Asks the nodes which of the pool's slots are free, for all in its queue. It
 * may end at once. Those that need not wait are answered if it fails.
 */
static void query_begin(struct permits *permits, struct pool *pool,
                        const struct permit *payer)
{
    int total = permits->env->settings.nodes, count = 0, wanted = 1;
    const struct permit *asking = choose_query(pool, payer, &count, &wanted);
    pool->asking = asking != NULL ? entries_handle(asking, 0) : 0;
    query_init(&pool->query, total, count, wanted);
    if (asking != NULL)
        query_judge(&pool->query, asking->limit, asking->wanted,
                    asking->only_repeats || asking->losses > 0);
    pool->queries++;
    pool->repeated = 0;
    pool->is_queried = true;
    pool->query_us = environment_now(permits->env);
    pool->deadline_us = pool->query_us + permits->env->settings.node_timeout_us;
    pool->queried = permits->pools.events;
    turns_begin(&permits->pools, payer->line, count, pool->query_us);
    pool->payer = payer->line;
    leave_line(permits, pool);
    pool->touched = (struct slotset){{0}};
    permits->env->metrics->permit_queries++;
    for (int i = 0; i < total; i++) {
        enum node_state refusal =
            nodes_refusal(permits->tickets->operations->nodes, i, CALL_ACQUIRE);
        query_note_ballot(&pool->query, i,
                          refusal != STATE_NONE ? ballot_unfit(refusal)
                                                : query_send(permits, pool, i));
    }
    (void)query_end(permits, pool);
}

/* ---- tries -------------------------------------------------------------- */

/* A number from the key hash, so that a repeat tries the same slots. */
static uint32_t hash_key(const struct permit *it)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < it->ticket.key_hash.len; i++)
        hash = (hash ^ (unsigned char)it->ticket.key_hash.ptr[i]) * 16777619U;
    return hash;
}

/* So many of these as it wants, mostly at random: others choose, too. */
static struct slotset permits_pick(const struct permit *it, struct slotset open)
{
    struct slotset slots = {{0}};
    for (int i = 0; i < it->wanted; i++) {
        int slot;
        if (it->ticket.key_hash.len > 0) {
            slot =
                slotset_next(&open, (int)(hash_key(it) % (uint32_t)it->limit));
            slot = slot >= 0 ? slot : slotset_next(&open, 0);
        } else {
            uint64_t count = (uint64_t)slotset_count(&open);
            slot = slotset_nth(
                &open, (int)(environment_random(it->permits->env) % count));
        }
        slotset_add(&slots, slot);
        slotset_drop(&open, slot);
    }
    return slots;
}

/* The names of its slots' locks, joined. */
static struct span join_names(const struct permit *it, char text[NAMES_LEN_MAX])
{
    struct span pool = it->pool->name, list[NAMES_MAX];
    char names[NAMES_LEN_MAX], *end = names + sizeof names, *at = names;
    int count = 0;
    for (int slot = slotset_next(&it->slots, 0); slot >= 0;
         slot = slotset_next(&it->slots, slot + 1)) {
        /* body.c refuses a pool or a count whose names do not fit */
        assert(count < NAMES_MAX &&
               pool.len + NAMES_SLOT_MAX <= (size_t)(end - at));
        list[count] = (struct span){at, names_put_slot(at, pool, slot)};
        at += list[count++].len;
    }
    return (struct span){text, names_join(text, list, count)};
}

static void queue_again(struct permit *it)
{
    it->ticket.operation = 0;
    it->ticket.state = TICKET_QUEUED;
    it->event = ++it->permits->pools.events;
    it->slots = (struct slotset){{0}};
}

/* Its try could not be decided. */
static void try_later(struct permit *it, const struct engine_result *result,
                      int64_t now_us)
{
    queue_again(it);
    permit_put_off(it, result, now_us);
    (void)ticket_goes_on(&it->ticket, now_us);
}

static void permits_lose(struct permit *it, bool is_split, int64_t now_us)
{
    const struct environment *env = it->permits->env;
    queue_again(it);
    it->last.outcome = OUTCOME_PENDING;
    it->losses++;
    it->is_blocked = false;
    if (it->woken_by == HANDOVER_ANNOUNCEMENT)
        it->pool->distrust_us = now_us + DISTRUST_US;
    /* several that want the last one would meet again and again */
    if (is_split || it->losses > LOSSES_AT_ONCE) {
        int64_t pause_us =
            at_most(PAUSE_US << (it->losses < 8 ? it->losses - 1 : 7),
                    env->settings.retry_delay_us);
        it->not_before_us = now_us + (int64_t)(environment_random(env) %
                                               ((uint64_t)pause_us + 1));
    }
    if (!ticket_waits(&it->ticket) && it->losses >= it->losses_max)
        permit_settle_held(it);
    else if (!ticket_waits(&it->ticket) || ticket_goes_on(&it->ticket, now_us))
        permit_set_timer(it);
}

static void permits_note_grant(struct permit *it,
                               const struct engine_result *result)
{
    struct pool *pool = it->pool;
    struct metrics *metrics = it->permits->env->metrics;
    metrics->permit_grants++;
    if (it->has_waited)
        metrics->handovers[it->woken_by]++;
    pool->run += it->woken_by == HANDOVER_RELEASE;
    for (int slot = slotset_next(&it->slots, 0);
         slot >= 0 && slot < pool->news_count;
         slot = slotset_next(&it->slots, slot + 1))
        pool->news[slot].number = result->number;
}

static void permits_take_outcome(struct permit *it)
{
    struct pool *pool = it->pool;
    int64_t now_us = environment_now(it->permits->env);
    struct operation *operation =
        operation_find(it->permits->tickets->operations, it->ticket.operation);
    const struct engine_result *result = operation_take(operation, now_us);
    enum outcome outcome = result->outcome;
    bool is_won = outcome == OUTCOME_GRANTED;
    bool is_held = outcome == OUTCOME_HELD;
    if (is_won && it->only_repeats && !result->is_repeat) {
        /* what it would have repeated has just expired */
        operation_refuse(operation);
        it->permits->env->metrics->permit_refusals++;
        is_won = false;
    }
    pool_note_tried(pool, &it->slots, is_won || (is_held && it->wanted == 1));
    if (it->is_blind && (is_won || is_held))
        pool_note_first_try(pool, is_won);
    if (is_won)
        permits_note_grant(it, result);
    if (is_won || outcome == OUTCOME_KEY_REFUSED ||
        (!ticket_waits(&it->ticket) && !is_held)) {
        ticket_leave(&it->ticket, now_us);
        ticket_answer(&it->ticket, now_us);
        return;
    }
    if (is_held)
        permits_lose(it, round_count(&operation->round, VOTE_GRANTED) > 0,
                     now_us);
    else
        try_later(it, result, now_us);
    operation_discard(operation);
}

static void permits_try(struct permit *it, const struct slotset *slots)
{
    struct permits *permits = it->permits;
    char text[NAMES_LEN_MAX];
    it->slots = *slots;
    it->woken_by = it->has_waited ? it->pool->woken_by : HANDOVER_NONE;
    it->is_blind = it->event > it->pool->informed && !it->is_blocked;
    pool_try(it->pool, slots);
    permits->env->metrics->permit_tries++;
    struct request try = {
        .resource = join_names(it, text),
        .asked_us = it->asked_us,
        .is_choice = true,
        .owned_by = OWNER_PERMIT,
    };
    bool is_tried = ticket_try(&it->ticket, &try);
    if (is_tried)
        permits_take_outcome(it);
    if (is_tried || it->ticket.operation != 0)
        return;
    const struct engine_result none = /* no memory */
        result_plain(OUTCOME_NO_QUORUM, permits->env->settings.nodes);
    pool_note_tried(it->pool, slots, false);
    if (ticket_waits(&it->ticket))
        try_later(it, &none, environment_now(permits->env));
    else
        ticket_settle(&it->ticket, &none);
}

/* ---- the queue ---------------------------------------------------------- */

enum act { ACT_NONE, ACT_TRY, ACT_REFUSE, ACT_QUERY };

/* Of two that need a query, the one whose identity has asked less. */
static struct permit *choose_payer(struct permit *payer, struct permit *it)
{
    return payer != NULL && payer->line->until_us <= it->line->until_us ? payer
                                                                        : it;
}

/* What is to be done next: with *who, who pays for a query, and *slots. */
static enum act permits_choose(const struct permits *permits, struct pool *pool,
                               struct permit **who, struct slotset *slots)
{
    int64_t now_us = environment_now(permits->env);
    struct slotset open = slotset_below(POOL_SLOTS_MAX);
    bool is_any_blocked = false;
    struct permit *it, *payer = NULL;
    slotset_remove(&open, &pool->taken);
    for (it = TAILQ_FIRST(&pool->queue); it != NULL;
         it = TAILQ_NEXT(it, link)) {
        bool is_informed = it->event <= pool->informed;
        if (it->ticket.state != TICKET_QUEUED || it->not_before_us > now_us)
            continue;
        *who = it;
        *slots = it->slots;
        if (slotset_count(&it->slots) == it->wanted) {
            /* It has them already, says its key hash. If it loses this try, it
               checks again: it may have them nevertheless. */
            it->is_informed = it->only_repeats;
            return ACT_TRY;
        }
        if (!it->is_informed) {
            payer = choose_payer(payer, it);
            continue;
        }
        if (it->only_repeats)
            return ACT_REFUSE;
        struct slotset mine = slotset_below(it->limit);
        slotset_keep(&mine, &open);
        bool is_open = slotset_count(&mine) >= it->wanted;
        if (is_open && (is_informed || it->is_blocked ||
                        (it->losses == 0 && pool_is_trusted(pool)))) {
            *slots = permits_pick(it, mine);
            return ACT_TRY;
        }
        if (is_informed && !ticket_waits(&it->ticket))
            return ACT_REFUSE;
        if (!is_informed &&
            (is_open || !ticket_waits(&it->ticket) || !is_any_blocked))
            payer = choose_payer(payer, it);
        is_any_blocked |= ticket_waits(&it->ticket);
        it->is_blocked = ticket_waits(&it->ticket) && !is_open;
        it->has_waited |= it->is_blocked;
        slotset_remove(&open, &mine);
    }
    *who = payer;
    return payer != NULL && !pool->is_queried ? ACT_QUERY : ACT_NONE;
}

static void retry_at(struct permits *permits, struct pool *pool, int64_t at_us)
{
    if (pool->waiting == 0 || (pool->retry_us != 0 && pool->retry_us <= at_us))
        return;
    pool->retry_us = at_us;
    (void)permit_set_pool_timer(permits, pool);
}

static void plan_retry(struct permits *permits, struct pool *pool)
{
    int64_t now_us = environment_now(permits->env);
    int64_t pause_us = waits_pause_us(permits->waits, pool->waits->is_covered);
    waits_want(permits->waits, pool->waits, now_us);
    if (pool->retry_us == 0)
        pool->retry_us = now_us + pause_us;
    if (pool->free_from_us > now_us)
        pool->retry_us =
            at_most(pool->retry_us, pool->free_from_us + EXPIRY_US);
}

/*
 * Those that do not wait, and that no query under way will inform: it asks for
 * another key hash, or has to wait for its turn; or they pause after a loss.
 */
static void count_lingering(struct pool *pool)
{
    struct permit *it = TAILQ_FIRST(&pool->queue), *next;
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        bool is_served =
            pool->is_queried &&
            (it->is_informed || pool->asking == entries_handle(it, 0));
        if (!is_served && it->ticket.state == TICKET_QUEUED &&
            !ticket_waits(&it->ticket))
            ticket_linger(&it->ticket);
    }
}

static void permits_run(struct permits *permits, struct pool *pool)
{
    struct permit *it;
    struct slotset slots;
    enum act act;
    /* Without users the pool is idle already, though a query that they asked
       for may still be under way; and what is to be done in a run that is under
       way is done there. */
    if (pool->users == 0 || pool->is_running)
        return;
    pool->is_running = true;
    pool->users++; /* its last permit may leave meanwhile */
    while ((act = permits_choose(permits, pool, &it, &slots)) != ACT_NONE) {
        if (act == ACT_TRY)
            permits_try(it, &slots);
        else if (act == ACT_REFUSE)
            permit_settle_held(it);
        else if (query_may_begin(permits, pool, it))
            query_begin(permits, pool, it);
        else
            break;
    }
    if (act == ACT_NONE)
        leave_line(permits, pool);
    count_lingering(pool);
    pool->is_running = false;
    if (!pool->is_queried && permit_first_waiting(pool) != NULL)
        plan_retry(permits, pool);
    (void)permit_set_pool_timer(permits, pool);
    pools_unuse(&permits->pools, pool);
}

static void permits_on_tried(struct ticket *ticket)
{
    struct permit *it = (struct permit *)ticket;
    permits_take_outcome(it);
    permits_run(it->permits, it->pool);
}

/*
 * A node that had lost our script did nothing: it is asked the same once more.
 * False: it was, or cannot be asked.
 */
static bool query_repeat(struct permits *permits, struct pool *pool, int node)
{
    if (pool->repeated & nodeset_of(node))
        return false;
    if (pool->asking != 0 && find_asking(pool) == NULL)
        return false; /* its client has left */
    pool->repeated |= nodeset_of(node);
    return query_send(permits, pool, node).vote == VOTE_PENDING;
}

void permits_on_reply(struct permits *permits, int node, uint64_t tag,
                      const struct call_reply *reply)
{
    struct pool *pool = entries_find(&permits->pools.entries, tag);
    if (pool == NULL || !pool->is_queried ||
        tag_bits(TAG_SLOTS, pool->queries) != entries_user_bits(tag))
        return;
    if (reply->state == STATE_NO_SCRIPT && query_repeat(permits, pool, node))
        return;
    query_note_reply(&pool->query, node, reply);
    if (query_end(permits, pool))
        permits_run(permits, pool);
}

/* ---- calls of clients --------------------------------------------------- */

static void permits_dismiss(struct ticket *ticket)
{
    const struct permit *it = (struct permit *)ticket;
    struct pools *pools = &it->permits->pools;
    struct waitqueue *queue = it->pool->waits;
    if (ticket_waits(ticket)) {
        if (--it->pool->waits_users == 0)
            it->pool->waits = NULL;
        waitqueues_unuse(&it->permits->waits->queues, queue);
    }
    pools_unuse(pools, it->pool);
}

/* Its pool, and what tells of releases if it waits. False: no memory, and
 * nothing has changed. */
static bool enrol(struct permit *it, struct span name)
{
    struct permits *permits = it->permits;
    struct pool *pool = it->pool = pools_use(&permits->pools, name);
    if (pool == NULL)
        return false;
    if (permit_set_pool_timer(permits, pool)) { /* others may need it */
        if (!ticket_waits(&it->ticket))
            return true;
        struct waitqueue *queue =
            waitqueues_use(&permits->waits->queues, pool->prefix);
        if (queue != NULL) {
            pool->waits = queue;
            pool->waits_users++;
            return true;
        }
    }
    pools_unuse(&permits->pools, pool);
    return false;
}

uint64_t permits_start(struct permits *permits, const struct request *asked,
                       const struct permits_request *request)
{
    assert(request->limit > 0 && request->limit <= POOL_SLOTS_MAX);
    assert(request->count > 0 && request->count <= request->limit &&
           request->count <= NAMES_MAX);
    assert(request->asker >= 0 && request->asker < ASKERS_MAX);
    struct permit *it =
        ticket_new(permits->tickets, WAITING_PERMIT, asked, request->wait_ms);
    if (it == NULL)
        return 0;
    it->permits = permits;
    if (!enrol(it, asked->resource)) {
        ticket_drop(&it->ticket);
        return 0;
    }
    it->limit = request->limit;
    it->wanted = request->count;
    it->line = &permits->pools.lines[request->asker];
    it->asked_us = asked->asked_us;
    it->is_informed = it->ticket.key_hash.len == 0;
    it->only_repeats = request->only_repeats;
    it->losses_max = request->is_tried_once ? LOSSES_AT_ONCE : LOSSES_MAX;
    it->ticket.name = it->ticket.result.resource = it->pool->name;
    uint64_t handle = ticket_handle(&it->ticket);
    if (!ticket_is_stopped(&it->ticket) &&
        !ticket_is_refused(&it->ticket, ticket_waits(&it->ticket)
                                            ? it->pool->waits->count
                                            : 0)) {
        permit_join(it);
        permits_run(permits, it->pool);
    }
    return handle;
}

static void permits_on_left(struct ticket *ticket, bool has_asked,
                            int64_t now_us)
{
    struct permit *it = (struct permit *)ticket;
    (void)now_us;
    if (has_asked) {
        pool_note_tried(it->pool, &it->slots, false);
        it->pool->woken_by = HANDOVER_RELEASE;
    }
    permits_run(it->permits, it->pool);
}

void permits_withdraw(struct permits *permits, struct span name,
                      struct span key_hash)
{
    const struct pool *pool = pools_find(&permits->pools, name);
    int64_t now_us = environment_now(permits->env);
    struct permit *it = pool != NULL ? TAILQ_FIRST(&pool->queue) : NULL;
    while (it != NULL) {
        bool is_its = ticket_waits(&it->ticket) &&
                      span_is_same(it->ticket.key_hash, key_hash);
        if (is_its)
            ticket_withdraw(&it->ticket, now_us);
        /* it has left, and others may have */
        it = is_its ? TAILQ_FIRST(&pool->queue) : TAILQ_NEXT(it, link);
    }
}

int permits_waiting(const struct permits *permits, struct span name)
{
    const struct pool *pool = pools_find(&permits->pools, name);
    return pool != NULL ? pool->waiting : 0;
}

/* ---- wake-ups ----------------------------------------------------------- */

/* NULL: it is no slot, or nothing is known of its pool. */
static struct pool *find_pool(const struct permits *permits, struct span name,
                              int *slot)
{
    struct span pool;
    *slot = names_slot(name, &pool);
    return *slot >= 0 ? pools_find(&permits->pools, pool) : NULL;
}

static int64_t gap_us(const struct pool *pool)
{
    return GAP_US + GAP_SLOT_US * pool->news_count;
}

void permits_on_release(struct permits *permits, struct span names)
{
    while (names.len > 0) {
        int slot;
        struct pool *pool = find_pool(permits, names_next(&names), &slot);
        if (pool == NULL)
            continue;
        int64_t now_us = environment_now(permits->env);
        /* clients of other servers wait, too, and had no turn for long */
        bool is_others_turn = pool->waiting > 0 && pool->run >= RUN_MAX &&
                              now_us < pool->waits->turn.others_until_us;
        pool->woken_by = HANDOVER_RELEASE;
        if (is_others_turn) {
            pool->run = 0;
            pool_free_later(pool, slot, now_us + gap_us(pool) * 2);
        } else {
            pool_note_free(pool, slot);
        }
        if (!TAILQ_EMPTY(&pool->queue))
            permits_run(permits, pool);
    }
}

/*
 * True if this is news: of the present lock of the slot, or of a later one. It
 * counts the nodes that announced this release.
 */
static bool permits_is_news(const struct pool *pool, int slot, int64_t number,
                            int node)
{
    struct slotnews *news = &pool->news[slot];
    if ((number != 0 && number < news->number) ||
        slotset_has(&pool->trying, slot))
        return false;
    if (number != news->released)
        news->nodes = 0;
    news->released = number;
    news->nodes |= (uint16_t)(1u << node);
    return true;
}

/*
 * Mostly the slot is free. But where other servers have waiters, they hand it
 * over: after a try that found it taken, we ask for a while which are free.
 */
void permits_on_announced(struct permits *permits, int node,
                          struct span resource, int64_t number)
{
    int slot;
    struct pool *pool = find_pool(permits, resource, &slot);
    if (pool == NULL || pool->waiting == 0 || slot >= pool->news_count ||
        !permits_is_news(pool, slot, number, node))
        return;
    int64_t now_us = environment_now(permits->env);
    int reported = nodeset_count(pool->news[slot].nodes);
    int quorum = quorum_of(permits->env->settings.nodes);
    if (now_us < pool->distrust_us) {
        int64_t at_us =
            now_us + (reported < quorum ? ANNOUNCEMENTS_ENOUGH_US : 0);
        if ((reported == 1 || reported == quorum) &&
            permit_first_waiting(pool) != NULL) {
            pool->woken_by = HANDOVER_ANNOUNCEMENT;
            retry_at(permits, pool,
                     at_least(at_us, pool->query_us + gap_us(pool)));
        }
    } else if (reported == quorum) {
        pool->woken_by = HANDOVER_ANNOUNCEMENT;
        pool_note_free(pool, slot);
        permits_run(permits, pool);
    } else if (reported == 1) {
        pool_free_later(pool, slot, now_us + ANNOUNCEMENTS_ENOUGH_US);
        (void)permit_set_pool_timer(permits, pool);
    }
}

/* ---- time --------------------------------------------------------------- */

static void permits_on_timer(struct ticket *ticket, int64_t now_us)
{
    const struct permit *it = (struct permit *)ticket;
    (void)now_us;
    permit_set_timer(it);
    permits_run(it->permits, it->pool);
}

void permits_on_pool_timer(struct permits *permits, uint32_t index)
{
    struct pool *pool = entries_at(&permits->pools.entries, index);
    int64_t now_us = environment_now(permits->env);
    if (pool == NULL)
        return;
    if (pool->is_queried && now_us >= pool->deadline_us) {
        query_note_rest(&pool->query);
        (void)query_end(permits, pool);
    }
    int slot = slotset_next(&pool->later, 0);
    if (slot >= 0 && now_us >= pool->later_us) {
        pool->woken_by = HANDOVER_ANNOUNCEMENT;
        for (; slot >= 0; slot = slotset_next(&pool->later, slot + 1))
            pool_note_free(pool, slot);
    }
    if (pool->retry_us != 0 && now_us >= pool->retry_us) {
        struct permit *it = permit_first_waiting(pool);
        bool is_expiry =
            pool->free_from_us != 0 && now_us >= pool->free_from_us;
        pool->retry_us = 0;
        pool->woken_by = is_expiry ? HANDOVER_EXPIRY : HANDOVER_RETRY;
        if (it != NULL)
            it->event = ++permits->pools.events;
    }
    permits_run(permits, pool);
}

void permits_tick(struct permits *permits, int64_t now_us)
{
    struct pool *pool = TAILQ_FIRST(&permits->pools.waited_for), *next;
    for (; pool != NULL; pool = next) {
        next = TAILQ_NEXT(pool, link);
        if (pool->waits->is_covered == pool->was_covered)
            continue;
        /* a release may have been missed; or none is heard any more */
        pool->was_covered = pool->waits->is_covered;
        pool->woken_by = HANDOVER_RETRY;
        retry_at(permits, pool, now_us);
    }
}

/* ---- the module --------------------------------------------------------- */

void permits_init(struct permits *permits, struct tickets *tickets,
                  struct waits *waits)
{
    static const struct ticket_rules rules = {
        permit_leave,     permits_dismiss,     OWNER_PERMIT,
        permits_on_tried, permits_settle_late, permits_on_left,
        permits_on_timer,
    };
    *permits = (struct permits){
        .env = tickets->env,
        .tickets = tickets,
        .waits = waits,
    };
    pools_init(&permits->pools);
    tickets_add_kind(tickets, WAITING_PERMIT, sizeof(struct permit), &rules);
}

void permits_fini(struct permits *permits)
{
    pools_fini(&permits->pools);
}
