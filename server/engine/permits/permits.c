#include "permits.h"

#include <assert.h>

#include "../../lock/names.h"
#include "../port/tag.h"

enum {
    RUN_MAX = 16,        /* grants in a row, while other servers wait */
    RIVALS_US = 1000000, /* they count as waiting for so long */
    GAP_US = 2000,       /* between two surveys because of announcements … */
    GAP_SLOT_US = 20, /* … and more for each slot: they cost the nodes time */
    HANDLE_BITS = 3,  /* in the user's bits of a permit's handle */
    SLOTS = 100000,
};

void permits_init(struct permits *permits, struct nodes *nodes,
                  struct operations *operations, struct waits *waits)
{
    *permits = (struct permits){
        .env = nodes->env,
        .nodes = nodes,
        .operations = operations,
        .waits = waits,
    };
    slots_init(&permits->slots, sizeof(struct permit), SLOTS);
    pools_init(&permits->pools);
    serving_init(permits);
}

static void drop_waits(struct permits *permits, struct pool *pool)
{
    struct waitqueue *queue = pool->waits;
    if (--pool->waits_users == 0)
        pool->waits = NULL;
    waitqueues_unuse(&permits->waits->queues, queue);
}

void permits_fini(struct permits *permits)
{
    for (uint32_t i = 0; i < permits->slots.count; i++) {
        const struct permit *it = slots_at(&permits->slots, i);
        if (it != NULL && it->until_us != 0)
            drop_waits(permits, it->pool);
    }
    pools_fini(&permits->pools);
    slots_fini(&permits->slots);
}

/* ---- calls of clients --------------------------------------------------- */

static bool make_timers(const struct permits *permits, const struct permit *it)
{
    const struct engine_port *port = &permits->env->port;
    return port->timer(port->ctx, timer_slot(TIMER_PERMIT, it->head.index),
                       0) &&
           permit_set_pool_timer(permits, it->pool); /* others may need it */
}

/* NULL: no memory. */
static struct permit *make_permit(struct permits *permits, struct span name,
                                  bool waits)
{
    struct permit *it = slots_take(&permits->slots);
    if (it == NULL)
        return NULL;
    memset((char *)it + sizeof it->head, 0, sizeof *it - sizeof it->head);
    it->permits = permits;
    it->pool = pools_use(&permits->pools, name);
    if (it->pool == NULL) {
        slots_give(&permits->slots, it);
        return NULL;
    }
    struct waitqueue *queue =
        waits ? waitqueues_use(&permits->waits->queues, it->pool->prefix)
              : NULL;
    if (queue != NULL) {
        it->pool->waits = queue;
        it->pool->waits_users++;
    }
    if ((waits && queue == NULL) || !make_timers(permits, it)) {
        if (queue != NULL)
            drop_waits(permits, it->pool);
        pools_leave(&permits->pools, it->pool);
        slots_give(&permits->slots, it);
        return NULL;
    }
    return it;
}

static bool is_full(const struct permits *permits, const struct pool *pool)
{
    return pool->waits->count >= WAITERS_EACH_MAX ||
           permits->waits->count >= permits->env->settings.waiters_max;
}

/* It is answered at once, without having joined. */
static void refuse(struct permit *it, enum outcome outcome)
{
    const struct engine_port *port = &it->permits->env->port;
    it->state = PERMIT_SETTLED;
    it->result = result_plain(outcome, it->permits->env->settings.nodes);
    it->result.resource = it->pool->name;
    port->answer(port->ctx, it->client);
}

uint64_t permits_start(struct permits *permits, const struct request *asked,
                       const struct permits_wish *wish)
{
    assert(wish->limit > 0 && wish->limit <= POOL_SLOTS_MAX);
    assert(wish->count > 0 && wish->count <= wish->limit &&
           wish->count <= NAMES_MAX);
    struct permit *it =
        make_permit(permits, asked->resource, wish->wait_ms > 0);
    if (it == NULL)
        return 0;
    it->client = asked->client;
    it->limit = wish->limit;
    it->wanted = wish->count;
    it->ttl_ms = asked->ttl_ms;
    it->asked_us = asked->asked_us;
    it->since_us = environment_now(permits->env);
    it->until_us =
        wish->wait_ms > 0 ? it->since_us + wish->wait_ms * US_PER_MS : 0;
    it->owner_len = span_copy(it->owner, asked->owner);
    it->key_hash_len = span_copy(it->key_hash, asked->key_hash);
    it->is_looked = it->key_hash_len == 0;
    it->result = (struct engine_result){.resource = it->pool->name};
    uint64_t handle = slots_handle(it, HANDLE_BITS);
    struct pool *pool = it->pool;
    if (it->until_us != 0 && permits->waits->is_stopped) {
        refuse(it, OUTCOME_STOPPED);
    } else if (it->until_us != 0 && is_full(permits, pool)) {
        refuse(it, OUTCOME_TOO_MANY_WAITERS);
    } else {
        permit_join(it);
        serving_run(permits, pool);
    }
    return handle;
}

bool permits_owns(uint64_t handle)
{
    return slots_user_bits(handle) == HANDLE_BITS;
}

static struct permit *must_find(const struct permits *permits, uint64_t handle)
{
    struct permit *it = slots_find(&permits->slots, handle);
    assert(it != NULL); /* a request ends its operation once: exchange.c */
    return it;
}

/* The operation that has its outcome; NULL: the permit has it itself, or none.
 */
static struct operation *settled_by(const struct permit *it)
{
    return it->state == PERMIT_SETTLED
               ? operation_find(it->permits->operations, it->operation)
               : NULL;
}

const struct engine_result *permits_take(struct permits *permits,
                                         uint64_t handle, int64_t now_us)
{
    struct permit *it = must_find(permits, handle);
    struct operation *operation = settled_by(it);
    if (operation != NULL) {
        int64_t waited_ms = it->result.waited_ms;
        it->result = *operation_take(operation, now_us);
        it->result.waited_ms = waited_ms;
        if (it->result.outcome != OUTCOME_GRANTED)
            it->result.resource = it->pool->name;
    }
    return &it->result;
}

const struct engine_result *permits_peek(const struct permits *permits,
                                         uint64_t handle)
{
    const struct permit *it = must_find(permits, handle);
    const struct operation *operation = settled_by(it);
    return operation != NULL ? &operation->result : &it->result;
}

static void end(struct permit *it)
{
    struct permits *permits = it->permits;
    struct pool *pool = it->pool;
    if (it->until_us != 0)
        drop_waits(permits, pool);
    slots_give(&permits->slots, it);
    pools_leave(&permits->pools, pool);
}

static void count_outcome(const struct permit *it)
{
    it->permits->env->metrics->outcomes[LOCK_ACQUIRE][it->result.outcome]++;
}

void permits_close(struct permits *permits, uint64_t handle)
{
    struct permit *it = must_find(permits, handle);
    struct operation *operation =
        operation_find(permits->operations, it->operation);
    assert(it->state == PERMIT_SETTLED); /* closed when answered */
    if (operation != NULL)
        operation_close(operation);
    else
        count_outcome(it);
    end(it);
}

bool permits_abandon(struct permits *permits, uint64_t handle)
{
    struct permit *it = must_find(permits, handle);
    struct operation *operation =
        operation_find(permits->operations, it->operation);
    bool is_granted = false;
    if (operation != NULL)
        is_granted = operation_abandon(operation);
    else if (it->state == PERMIT_SETTLED)
        count_outcome(it);
    serving_abandon(it, operation != NULL);
    end(it);
    return is_granted;
}

void permits_stop(struct permits *permits)
{
    for (uint32_t i = 0; i < permits->slots.count; i++) {
        struct permit *it = slots_at(&permits->slots, i);
        if (it != NULL && it->state == PERMIT_QUEUED && it->until_us != 0)
            permit_settle_as(it, OUTCOME_STOPPED);
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

static void on_release(struct permits *permits, struct pool *pool, int slot)
{
    int64_t now_us = environment_now(permits->env);
    /* clients of other servers wait, too, and had no turn for long */
    bool is_others_turn = pool->waiting > 0 && pool->run >= RUN_MAX &&
                          now_us < pool->rivals_until_us;
    pool->woken_by = HANDOVER_RELEASE;
    if (is_others_turn) {
        pool->run = 0;
        pool_free_later(pool, slot, now_us + gap_us(pool) * 2);
    } else {
        pool_note_free(pool, slot);
    }
    if (!TAILQ_EMPTY(&pool->queue))
        serving_run(permits, pool);
}

void permits_on_release(struct permits *permits, struct span names)
{
    while (names.len > 0) {
        int slot;
        struct pool *pool = find_pool(permits, names_next(&names), &slot);
        if (pool != NULL)
            on_release(permits, pool, slot);
    }
}

void permits_on_listeners(struct permits *permits, struct span names,
                          int64_t listeners)
{
    if (listeners <= 1) /* only ours */
        return;
    int64_t until_us = environment_now(permits->env) + RIVALS_US;
    while (names.len > 0) {
        int slot;
        struct pool *pool = find_pool(permits, names_next(&names), &slot);
        if (pool != NULL)
            pool->rivals_until_us = until_us;
    }
}

/*
 * True if this is news: of the present lock of the slot, or of a later one. It
 * counts the nodes that told of this release.
 */
static bool is_news(const struct pool *pool, int slot, int64_t number, int node)
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
        !is_news(pool, slot, number, node))
        return;
    int64_t now_us = environment_now(permits->env);
    int told = __builtin_popcount(pool->news[slot].nodes);
    int quorum = quorum_of(permits->env->settings.nodes);
    if (now_us < pool->distrust_us) {
        int64_t at_us = now_us + (told < quorum ? SCHEDULE_ENOUGH_US : 0);
        if ((told == 1 || told == quorum) &&
            permit_first_waiting(pool) != NULL) {
            pool->woken_by = HANDOVER_ANNOUNCEMENT;
            serving_retry_at(permits, pool,
                             at_least(at_us, pool->survey_us + gap_us(pool)));
        }
    } else if (told == quorum) {
        pool->woken_by = HANDOVER_ANNOUNCEMENT;
        pool_note_free(pool, slot);
        serving_run(permits, pool);
    } else if (told == 1) {
        pool_free_later(pool, slot, now_us + SCHEDULE_ENOUGH_US);
        (void)permit_set_pool_timer(permits, pool);
    }
}

/* ---- time --------------------------------------------------------------- */

void permits_on_timer(struct permits *permits, uint32_t index)
{
    struct permit *it = slots_at(&permits->slots, index);
    if (it == NULL || it->state != PERMIT_QUEUED)
        return;
    struct pool *pool = it->pool;
    pools_hold(pool); /* the permit may end */
    if (it->until_us != 0 && environment_now(permits->env) >= it->until_us)
        permit_settle_late(it);
    else
        permit_set_timer(it);
    serving_run(permits, pool);
    pools_leave(&permits->pools, pool);
}

void permits_on_pool_timer(struct permits *permits, uint32_t index)
{
    struct pool *pool = slots_at(&permits->pools.slots, index);
    if (pool != NULL && pool->users > 0)
        serving_on_timer(permits, pool);
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
        serving_retry_at(permits, pool, now_us);
    }
}
