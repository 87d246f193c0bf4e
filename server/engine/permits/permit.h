/*
 * A permit that is asked for: its place in the queue of its pool, its timer,
 * and the answer. serving.h tells what becomes of it.
 */
#ifndef REDLOCKD_PERMIT_H
#define REDLOCKD_PERMIT_H

#include "../rounds/operation.h"
#include "../waiting/waits.h"
#include "pool.h"

enum permit_state { PERMIT_QUEUED, PERMIT_TRYING, PERMIT_SETTLED };

struct permit {
    struct slots_head head;
    struct permits *permits;
    struct pool *pool;
    TAILQ_ENTRY(permit) link;
    enum permit_state state;
    bool is_answered;   /* its operation settled while it was being started */
    uint64_t operation; /* the try under way, or the grant; 0: none */
    void *client;
    int limit;  /* of the pool, as it was asked */
    int wanted; /* slots */
    int64_t ttl_ms;
    int64_t asked_us; /* as in struct request */
    int64_t since_us;
    int64_t until_us;      /* 0: it does not wait */
    int64_t not_before_us; /* it does not try again before */
    uint64_t event;        /* a survey after this one informs it */
    int losses;
    bool is_blind;        /* it tries without a survey or a release */
    bool is_blocked;      /* none was free, and it was woken since or will be */
    bool has_waited;      /* it was blocked before */
    bool is_looked;       /* whether it has slots already, from its key hash */
    struct slotset slots; /* that it tries, or was granted */
    enum metrics_handover woken_by;
    size_t owner_len, key_hash_len;
    char owner[OWNER_MAX];
    char key_hash[KEY_HASH_LEN];
    struct engine_result last;   /* of a try or survey that decided nothing */
    struct engine_result result; /* without an operation */
};

struct permits {
    const struct environment *env;
    struct nodes *nodes;
    struct operations *operations;
    struct waits *waits;       /* announcements, how many wait */
    struct slots slots;        /* permits */
    int64_t surveyed_until_us; /* the surveys so far may take the nodes */
    struct pools pools;
};

static inline int64_t permits_now_us(const struct permits *permits)
{
    return environment_now(permits->env);
}

/* At random, up to that. */
int64_t permits_random_us(const struct permits *permits, int64_t most_us);

/* It joins its pool's queue, at the end; it leaves it, and is settled. */
void permit_join(struct permit *it);
void permit_leave(struct permit *it, int64_t now_us);

/* Its client is told: the permit may be gone after that. */
void permit_answer(struct permit *it, int64_t now_us);

/* It leaves, and is answered with this result, which has no texts. */
void permit_settle(struct permit *it, const struct engine_result *result);

/* The same with only an outcome; with that of its last try, as its time is up.
 */
void permit_settle_as(struct permit *it, enum outcome outcome);
void permit_settle_late(struct permit *it);

/* The first of the queue that waits, and is not trying; NULL: none does. */
struct permit *permit_first_waiting(const struct pool *pool);

/* Sets the timer of a permit: to its next try, or the end of its wait; to this
 * moment, 0 stops it. */
void permit_set_timer(const struct permit *it);
void permit_set_timer_at(const struct permit *it, int64_t at_us);

/* Sets that of a pool: to what it waits for. */
bool permit_set_pool_timer(const struct permits *permits,
                           const struct pool *pool);

#endif
