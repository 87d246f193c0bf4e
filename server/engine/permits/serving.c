#include "serving.h"

#include <assert.h>

#include "../../lock/names.h"
#include "../port/tag.h"
#include "asking.h"

enum {
    LOSSES_MAX = 20,       /* of one that does not wait */
    LOSSES_AT_ONCE = 3,    /* without a pause after them */
    PAUSE_US = 1000,       /* the longest after the first loss */
    LEAST_US = 1000,       /* between two surveys that no event causes */
    SLOW_US = 5000000,     /* the same, while a quorum announces */
    EXPIRY_US = 1000,      /* a node rounds a TTL */
    DISTRUST_US = 1000000, /* after a wrong announcement */
};

/* ---- tries -------------------------------------------------------------- */

/* A number from the key hash, so that a repeat tries the same slots. */
static uint32_t hash_key(const struct permit *it)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < it->key_hash_len; i++)
        hash = (hash ^ (unsigned char)it->key_hash[i]) * 16777619U;
    return hash;
}

/* So many of these as it wants, mostly at random: others choose, too. */
static struct slotset pick(const struct permit *it, struct slotset open)
{
    struct slotset slots = {{0}};
    for (int i = 0; i < it->wanted; i++) {
        int slot;
        if (it->key_hash_len > 0) {
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
    char names[NAMES_LEN_MAX];
    struct span list[NAMES_MAX];
    size_t len = 0;
    int count = 0;
    for (int slot = slotset_next(&it->slots, 0); slot >= 0;
         slot = slotset_next(&it->slots, slot + 1)) {
        char digits[DIGITS_MAX];
        struct span number = span_of_number(digits, (uint64_t)slot);
        /* body.c refuses a pool or a count whose names do not fit */
        assert(count < NAMES_MAX &&
               len + it->pool->prefix.len + number.len <= sizeof names);
        struct span name = {names + len, 0};
        name.len = span_copy(names + len, it->pool->prefix);
        name.len += span_copy(names + len + name.len, number);
        len += name.len;
        list[count++] = name;
    }
    return (struct span){text, names_join(text, list, count)};
}

static void lose(struct permit *it, bool is_split, int64_t now_us)
{
    struct permits *permits = it->permits;
    struct pool *pool = it->pool;
    int64_t most_us = permits->env->settings.retry_delay_us;
    it->state = PERMIT_QUEUED;
    it->last.outcome = OUTCOME_PENDING;
    it->event = ++permits->pools.events;
    it->slots = (struct slotset){{0}};
    it->losses++;
    it->is_blocked = false;
    if (it->woken_by == HANDOVER_ANNOUNCEMENT)
        pool->distrust_us = now_us + DISTRUST_US;
    /* several that want the last one would meet again and again */
    if (is_split || it->losses > LOSSES_AT_ONCE) {
        int64_t pause_us = PAUSE_US << (it->losses < 8 ? it->losses - 1 : 7);
        it->not_before_us =
            now_us +
            permits_random_us(permits, pause_us < most_us ? pause_us : most_us);
    }
    if (it->until_us != 0 && now_us >= it->until_us)
        permit_settle_late(it);
    else if (it->until_us != 0 && permits->waits->is_stopped)
        permit_settle_as(it, OUTCOME_STOPPED);
    else if (it->until_us == 0 && it->losses >= LOSSES_MAX)
        permit_settle_as(it, OUTCOME_HELD);
    else
        permit_set_timer(it);
}

/* It could not be decided: one that waits tries again after a while. */
static void put_off(struct permit *it, const struct engine_result *result,
                    int64_t now_us)
{
    struct permits *permits = it->permits;
    struct engine_result last = *result;
    last.resource = last.token = last.owner = last.key_hash = (struct span){0};
    it->last = last;
    it->state = PERMIT_QUEUED;
    it->event = ++permits->pools.events;
    it->slots = (struct slotset){{0}};
    it->not_before_us =
        now_us + at_least(permits_random_us(
                              permits, permits->env->settings.retry_delay_us),
                          LEAST_US);
    if (now_us >= it->until_us)
        permit_settle_late(it);
    else if (permits->waits->is_stopped)
        permit_settle_as(it, OUTCOME_STOPPED);
    else
        permit_set_timer(it);
}

static void note_grant(struct permit *it, const struct engine_result *result)
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

static void take_outcome(struct permit *it)
{
    struct pool *pool = it->pool;
    int64_t now_us = permits_now_us(it->permits);
    struct operation *operation =
        operation_find(it->permits->operations, it->operation);
    const struct engine_result *result = operation_take(operation, now_us);
    enum outcome outcome = result->outcome;
    bool is_won = outcome == OUTCOME_GRANTED;
    bool is_held = outcome == OUTCOME_HELD;
    pool_note_tried(pool, &it->slots, is_won || (is_held && it->wanted == 1));
    if (it->is_blind && (is_won || is_held))
        pool_note_first_try(pool, is_won);
    if (is_won)
        note_grant(it, result);
    if (is_won || outcome == OUTCOME_KEY_REFUSED ||
        (it->until_us == 0 && !is_held)) {
        permit_leave(it, now_us);
        permit_answer(it, now_us);
        return;
    }
    it->operation = 0;
    if (is_held) {
        bool is_split =
            round_count(&operation->attempt.round, VOTE_GRANTED) > 0;
        operation_discard(operation);
        lose(it, is_split, now_us);
    } else {
        const struct engine_result last = *result;
        operation_discard(operation);
        put_off(it, &last, now_us);
    }
}

static void try(struct permit *it, const struct slotset *slots)
{
    struct permits *permits = it->permits;
    char text[NAMES_LEN_MAX];
    it->slots = *slots;
    it->woken_by = it->has_waited ? it->pool->woken_by : HANDOVER_CAUSES;
    it->is_blind = it->event > it->pool->informed && !it->is_blocked;
    it->state = PERMIT_TRYING;
    it->is_answered = false;
    permit_set_timer_at(it, 0);
    pool_try(it->pool, slots);
    permits->env->metrics->permit_tries++;
    it->operation = operation_start(
        permits->operations, &(struct request){
                                 .call = LOCK_ACQUIRE,
                                 .resource = join_names(it, text),
                                 .owner = {it->owner, it->owner_len},
                                 .key_hash = {it->key_hash, it->key_hash_len},
                                 .asked_us = it->asked_us,
                                 .ttl_ms = it->ttl_ms,
                                 .is_choice = true,
                                 .owned_by = OWNER_PERMIT,
                                 .client = it,
                             });
    if (it->operation != 0) {
        if (it->is_answered)
            take_outcome(it);
        return;
    }
    const struct engine_result none = /* no memory */
        result_plain(OUTCOME_NO_QUORUM, permits->env->settings.nodes);
    pool_note_tried(it->pool, slots, false);
    if (it->until_us != 0)
        put_off(it, &none, permits_now_us(permits));
    else
        permit_settle(it, &none);
}

static void on_settled(void *client)
{
    struct permit *it = client;
    struct permits *permits = it->permits;
    struct pool *pool = it->pool;
    it->is_answered = true;
    if (it->operation == 0)
        return;       /* it has just begun */
    pools_hold(pool); /* the permit may end */
    take_outcome(it);
    serving_run(permits, pool);
    pools_leave(&permits->pools, pool);
}

void serving_init(struct permits *permits)
{
    permits->operations->on_settled[OWNER_PERMIT] = on_settled;
}

/* ---- the queue ---------------------------------------------------------- */

enum act { ACT_NONE, ACT_TRY, ACT_REFUSE, ACT_SURVEY };

/* What is to be done next: with *who, and *slots. */
static enum act choose(const struct permits *permits, struct pool *pool,
                       struct permit **who, struct slotset *slots)
{
    int64_t now_us = permits_now_us(permits);
    struct slotset open = slotset_below(POOL_SLOTS_MAX);
    bool needs_survey = false, is_any_blocked = false;
    struct permit *it = TAILQ_FIRST(&pool->queue);
    slotset_remove(&open, &pool->taken);
    for (; it != NULL; it = TAILQ_NEXT(it, link)) {
        bool is_informed = it->event <= pool->informed;
        if (it->state != PERMIT_QUEUED || it->not_before_us > now_us)
            continue;
        *who = it;
        *slots = it->slots;
        if (slotset_count(&it->slots) == it->wanted)
            return ACT_TRY; /* it has them already, says its key hash */
        if (!it->is_looked) {
            needs_survey = true;
            continue;
        }
        struct slotset mine = slotset_below(it->limit);
        slotset_keep(&mine, &open);
        bool is_open = slotset_count(&mine) >= it->wanted;
        if (is_open && (is_informed || it->is_blocked ||
                        (it->losses == 0 && pool_is_trusted(pool)))) {
            *slots = pick(it, mine);
            return ACT_TRY;
        }
        if (is_informed && it->until_us == 0)
            return ACT_REFUSE;
        needs_survey |=
            !is_informed && (is_open || it->until_us == 0 || !is_any_blocked);
        is_any_blocked |= it->until_us != 0;
        it->is_blocked = it->until_us != 0 && !is_open;
        it->has_waited |= it->is_blocked;
        slotset_remove(&open, &mine);
    }
    return needs_survey && !pool->is_surveyed ? ACT_SURVEY : ACT_NONE;
}

void serving_retry_at(struct permits *permits, struct pool *pool, int64_t at_us)
{
    if (pool->waiting == 0 || (pool->retry_us != 0 && pool->retry_us <= at_us))
        return;
    pool->retry_us = at_us;
    (void)permit_set_pool_timer(permits, pool);
}

static void plan_retry(struct permits *permits, struct pool *pool)
{
    int64_t now_us = permits_now_us(permits);
    int64_t delay_us =
        permits_random_us(permits, permits->env->settings.retry_delay_us);
    announcements_want(&permits->waits->announcements, pool->waits, now_us);
    if (pool->retry_us == 0)
        pool->retry_us =
            now_us + (pool->waits->is_covered ? SLOW_US + delay_us
                                              : at_least(delay_us, LEAST_US));
    if (pool->free_from_us > now_us &&
        pool->free_from_us + EXPIRY_US < pool->retry_us)
        pool->retry_us = pool->free_from_us + EXPIRY_US;
}

void serving_run(struct permits *permits, struct pool *pool)
{
    struct permit *it;
    struct slotset slots;
    enum act act;
    /* Without users the pool is idle already, though a survey that they asked
       for may still be under way; and what is to be done in a run that is under
       way is done there. */
    if (pool->users == 0 || pool->is_running)
        return;
    pool->is_running = true;
    pool->survey_from_us = 0;
    pools_hold(pool);
    while ((act = choose(permits, pool, &it, &slots)) != ACT_NONE) {
        if (act == ACT_TRY)
            try(it, &slots);
        else if (act == ACT_REFUSE)
            permit_settle_as(it, OUTCOME_HELD);
        else if (asking_may_begin(permits, pool))
            asking_begin(permits, pool);
        else
            break;
    }
    pool->is_running = false;
    if (!pool->is_surveyed && permit_first_waiting(pool) != NULL)
        plan_retry(permits, pool);
    (void)permit_set_pool_timer(permits, pool);
    pools_leave(&permits->pools, pool);
}

void serving_on_reply(struct permits *permits, int node, uint64_t tag,
                      const struct call_reply *reply)
{
    struct pool *pool = slots_find(&permits->pools.slots, tag);
    if (pool == NULL || !pool->is_surveyed ||
        tag_bits(TAG_SLOTS, pool->surveys) != slots_user_bits(tag))
        return;
    survey_note_reply(&pool->survey, node, reply);
    if (asking_end(permits, pool))
        serving_run(permits, pool);
}

void serving_abandon(struct permit *it, bool has_asked)
{
    struct pool *pool = it->pool;
    if (has_asked) {
        pool_note_tried(pool, &it->slots, false);
        pool->woken_by = HANDOVER_RELEASE;
    }
    if (it->state != PERMIT_SETTLED)
        permit_leave(it, permits_now_us(it->permits));
    serving_run(it->permits, pool);
}

void serving_on_timer(struct permits *permits, struct pool *pool)
{
    int64_t now_us = permits_now_us(permits);
    if (pool->is_surveyed && now_us >= pool->deadline_us) {
        survey_note_rest(&pool->survey);
        (void)asking_end(permits, pool);
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
    serving_run(permits, pool);
}
