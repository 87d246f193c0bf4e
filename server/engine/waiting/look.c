#include "look.h"

#include <assert.h>

void look_date(struct waiter *it, int64_t now_us)
{
    const struct clocks *clocks = &it->waits->operations->means.nodes->clocks;
    claim_date(&it->claim, clocks_median_at(clocks, it->ticket.since_us),
               clocks_apart_us(clocks, now_us));
}

static void find(struct waiter *it, int64_t number, int64_t now_us)
{
    look_date(it, now_us);
    claim_find(&it->claim, number, now_us);
}

/* ---- arrival ------------------------------------------------------------ */

static void remember(struct waiter *it, const struct waitplan *plan,
                     int64_t now_us)
{
    if (plan->last.outcome == OUTCOME_HELD &&
        waiter_has_key(it, plan->last.key_hash))
        claim_know(&it->claim, plan->last.number, now_us);
}

void look_remember(struct waiter *it, int64_t now_us)
{
    for (int i = 0; i < it->count; i++) {
        const struct waitqueue *queue = it->places[i].queue;
        remember(it, &queue->plan, now_us);
        if (queue->contender != NULL)
            remember(it, queue->contender->plan, now_us);
    }
}

bool look_is_needed(const struct waiter *it)
{
    if (it->ticket.key_hash_len == 0 || it->is_shared || it->claim.number != 0)
        return false;
    for (int i = 0; i < it->count; i++) {
        const struct waiter *contender = it->places[i].queue->contender;
        if (contender != NULL && contender->count == 1)
            return false;
    }
    return true;
}

/* ---- a look of its own -------------------------------------------------- */

/*
 * The number of the lock with its key that was found, if need be on a minority;
 * 0: there is none.
 */
static int64_t own_number(const struct waiter *it,
                          const struct operation *operation)
{
    const struct engine_result *result = &operation->result;
    const struct span key_hash = {it->ticket.key_hash, it->ticket.key_hash_len};
    if (!result->has_holder)
        return round_repeated_number(&operation->attempt.round, key_hash);
    return waiter_has_key(it, result->key_hash) ? result->number : 0;
}

bool look_begin(struct waiter *it, int64_t now_us)
{
    struct waits *waits = it->waits;
    assert(it->look == 0);
    it->look =
        operation_start(waits->operations, &(struct request){
                                               .call = LOCK_INSPECT,
                                               .resource = it->ticket.name,
                                               .owned_by = OWNER_LOOK,
                                               .client = it,
                                           });
    const struct operation *operation =
        operation_find(waits->operations, it->look);
    if (operation == NULL) /* no memory: later */
        claim_wait(&it->claim, now_us);
    return operation != NULL && operation->state == OPERATION_SETTLED;
}

void look_take(struct waiter *it, int64_t now_us)
{
    const struct operation *operation =
        operation_find(it->waits->operations, it->look);
    const struct engine_result *result = &operation->result;
    int64_t number = own_number(it, operation);
    if (number != 0)
        find(it, number, now_us);
    else if (result->has_holder || result->outcome == OUTCOME_NOT_FOUND)
        claim_miss(&it->claim);
    else
        claim_wait(&it->claim, now_us);
    look_end(it);
}

void look_end(struct waiter *it)
{
    struct operation *operation =
        operation_find(it->waits->operations, it->look);
    if (operation != NULL)
        operation_discard(operation);
    it->look = 0;
}

/* ---- attempts ----------------------------------------------------------- */

/* Others with its key came too late; those that arrived before its attempt had
 * no lock either, unless they share one: it may be among others. */
void look_tell_of_grant(const struct waiter *granted)
{
    const struct span key_hash = {granted->ticket.key_hash,
                                  granted->ticket.key_hash_len};
    for (int i = 0; i < granted->count; i++) {
        struct place *place = TAILQ_FIRST(&granted->places[i].queue->places);
        for (; place != NULL; place = TAILQ_NEXT(place, link))
            if (!place->waiter->is_shared &&
                (place->waiter->arrival <= granted->begun ||
                 waiter_has_key(place->waiter, key_hash)))
                claim_miss(&place->waiter->claim);
    }
}

static void tell_of_loss(const struct waiter *tried, struct waiter *it,
                         const struct operation *operation, int64_t now_us)
{
    bool is_about_it = it == tried || tried->count == 1;
    int64_t number = own_number(it, operation);
    if (it->is_shared)
        return; /* the lock of readers does not tell whose it is */
    if (number != 0) {
        find(it, number, now_us);
        schedule_claim(it, now_us);
    } else if (operation->result.has_holder && is_about_it &&
               it->arrival <= tried->begun) {
        claim_miss(&it->claim); /* it had none when it came */
    }
}

void look_tell_of_loss(struct waiter *tried, const struct operation *operation,
                       int64_t now_us)
{
    const struct attempt *attempt = &operation->attempt;
    const struct engine_result *result = &operation->result;
    for (int i = 0; i < tried->count; i++) {
        struct place *place = TAILQ_FIRST(&tried->places[i].queue->places);
        for (; place != NULL; place = TAILQ_NEXT(place, link))
            tell_of_loss(tried, place->waiter, operation, now_us);
    }
    /* a lost repeat may have left keys on some nodes: its own lock */
    if (attempt->is_repeat && !tried->is_shared &&
        (!result->has_holder || result->number == attempt->replaces))
        claim_know(&tried->claim, attempt->replaces, now_us + CLAIM_ANEW_US);
    else if (!result->has_holder && tried->claim.number != 0)
        claim_wait(&tried->claim, now_us);
}
