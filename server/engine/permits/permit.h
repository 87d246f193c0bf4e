/*
 * A permit that is asked for: its place in the queue of its pool, its timer,
 * and the answer. permits.h tells what becomes of it.
 */
#ifndef REDLOCKD_PERMIT_H
#define REDLOCKD_PERMIT_H

#include "../rounds/operation.h"
#include "../waiting/waits.h"
#include "pool.h"

struct permit {
    struct ticket ticket; /* its name: the pool's */
    struct permits *permits;
    struct pool *pool;
    TAILQ_ENTRY(permit) link;
    int limit;             /* of the pool, as it was asked */
    int wanted;            /* slots */
    int64_t asked_us;      /* as in struct request */
    int64_t not_before_us; /* it does not try again before */
    uint64_t event;        /* a survey after this one informs it */
    int losses;
    bool is_blind;        /* it tries without a survey or a release */
    bool is_blocked;      /* none was free, and it was woken since or will be */
    bool has_waited;      /* it was blocked before */
    bool is_looked;       /* whether it has slots already, from its key hash */
    bool only_repeats;    /* takes no others */
    struct slotset slots; /* that it tries, or was granted */
    enum metrics_handover woken_by;
    struct engine_result last; /* of a try or survey that decided nothing */
};

struct permits {
    const struct environment *env;
    struct nodes *nodes;
    struct operations *operations;
    struct tickets *tickets;
    struct waits *waits;       /* announcements, how many wait for a pool */
    int64_t surveyed_until_us; /* the surveys so far may take the nodes */
    struct pools pools;
};

static inline int64_t permits_now_us(const struct permits *permits)
{
    return environment_now(permits->env);
}

/* At random, up to that. */
int64_t permits_random_us(const struct permits *permits, int64_t most_us);

/* It joins its pool's queue, at the end; it leaves that. */
void permit_join(struct permit *it);
void permit_leave(struct ticket *ticket, int64_t now_us);

/* As ticket_settle: no slot was free; its time is up. */
void permit_settle_held(struct permit *it);
void permit_settle_late(struct permit *it);

/* The first of the queue that waits, and is not trying; NULL: none does. */
struct permit *permit_first_waiting(const struct pool *pool);

/* Sets the timer of a permit: to its next try, or the end of its wait. */
void permit_set_timer(const struct permit *it);

/* Sets that of a pool: to what it waits for. */
bool permit_set_pool_timer(const struct permits *permits,
                           const struct pool *pool);

#endif
