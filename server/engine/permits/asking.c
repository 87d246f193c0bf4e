#include "asking.h"

#include "../port/tag.h"

enum {
    LEAST_US = 1000,  /* until a permit that was put off goes on */
    SLOT_US = 10,     /* for each slot that is asked about, in the long run */
    BURST_US = 20000, /* so much of it at once */
};

/* What it must ask, so that each of the queue is informed. */
static void choose_survey(struct pool *pool, struct call *call, int *wanted)
{
    struct permit *it = TAILQ_FIRST(&pool->queue);
    for (; it != NULL; it = TAILQ_NEXT(it, link)) {
        if (it->limit > call->count)
            call->count = it->limit;
        if (it->wanted > *wanted)
            *wanted = it->wanted;
        if (it->ticket.state != TICKET_QUEUED || it->is_looked ||
            pool->asking != 0)
            continue;
        pool->asking = slots_handle(it, 0);
        call->key_hash =
            (struct span){it->ticket.key_hash, it->ticket.key_hash_len};
    }
}

/* After too few answers, or a refusal. */
static void note_failure(struct permits *permits, struct pool *pool,
                         enum survey_outcome outcome, int64_t now_us)
{
    int64_t delay_us = permits->env->settings.retry_delay_us;
    struct permit *it = TAILQ_FIRST(&pool->queue), *next;
    struct engine_result result = result_plain(
        outcome == SURVEY_REFUSED ? OUTCOME_KEY_REFUSED : OUTCOME_NO_QUORUM,
        permits->env->settings.nodes);
    memcpy(result.votes, pool->survey.votes, sizeof result.votes);
    for (; it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        if (it->ticket.state != TICKET_QUEUED || it->event > pool->surveyed)
            continue;
        if (!ticket_waits(&it->ticket) || outcome == SURVEY_REFUSED) {
            ticket_settle(&it->ticket, &result);
        } else {
            it->last = result;
            it->not_before_us =
                now_us +
                at_least(permits_random_us(permits, delay_us), LEAST_US);
            permit_set_timer(it);
        }
    }
}

static void note_own(struct permits *permits, struct pool *pool)
{
    struct permit *it = slots_find(&permits->tickets->slots, pool->asking);
    if (it == NULL || it->ticket.state != TICKET_QUEUED || it->pool != pool)
        return;
    struct slotset own = slotset_below(it->limit);
    slotset_keep(&own, &pool->survey.own);
    it->is_looked = true;
    if (slotset_count(&own) == it->wanted)
        it->slots = own;
}

/* Those that were put off have an answer now. */
static void note_told(const struct pool *pool)
{
    struct permit *it = TAILQ_FIRST(&pool->queue);
    for (; it != NULL; it = TAILQ_NEXT(it, link))
        it->last.outcome = OUTCOME_PENDING;
}

bool asking_end(struct permits *permits, struct pool *pool)
{
    int64_t now_us = permits_now_us(permits);
    enum survey_outcome outcome = survey_outcome(&pool->survey);
    if (outcome == SURVEY_OPEN)
        return false;
    pool->is_surveyed = false;
    if (outcome != SURVEY_TOLD) {
        note_failure(permits, pool, outcome, now_us);
    } else {
        pool_note_survey(pool, now_us);
        note_own(permits, pool);
        note_told(pool);
    }
    return true;
}

bool asking_may_begin(const struct permits *permits, struct pool *pool)
{
    int64_t from_us = permits->surveyed_until_us - BURST_US;
    pool->survey_from_us = permits_now_us(permits) < from_us ? from_us : 0;
    return pool->survey_from_us == 0;
}

void asking_begin(struct permits *permits, struct pool *pool)
{
    struct nodes *nodes = permits->nodes;
    int total = permits->env->settings.nodes, wanted = 1;
    struct call call = {.kind = CALL_SLOTS, .resource = pool->prefix};
    pool->asking = 0;
    choose_survey(pool, &call, &wanted);
    survey_init(&pool->survey, total, call.count, wanted);
    pool->surveys++;
    pool->is_surveyed = true;
    pool->survey_us = permits_now_us(permits);
    pool->deadline_us =
        pool->survey_us + permits->env->settings.node_timeout_us;
    pool->surveyed = permits->pools.events;
    permits->surveyed_until_us =
        at_least(permits->surveyed_until_us, pool->survey_us) +
        (int64_t)SLOT_US * call.count;
    pool->touched = (struct slotset){{0}};
    permits->env->metrics->permit_surveys++;
    for (int i = 0; i < total; i++) {
        enum node_state refusal = nodes_refusal(nodes, i, CALL_ACQUIRE);
        struct ballot ballot =
            refusal != STATE_NONE
                ? ballot_unfit(refusal)
                : nodes_send(
                      nodes, i, &call, pool->deadline_us,
                      slots_handle(pool, tag_bits(TAG_SLOTS, pool->surveys)));
        survey_note_ballot(&pool->survey, i, ballot);
    }
    (void)asking_end(permits, pool);
}
