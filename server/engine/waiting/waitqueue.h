/*
 * Those that wait for one resource, first come, first served, and what is known
 * of it. waits.h decides what happens to them.
 *
 * Who waits for several resources has a place in each of their queues. The
 * contender of a queue is the one that may try next: the first in the order of
 * arrival that is the contender of all its other queues, too. So nobody who can
 * go is held up by one that waits for something else as well.
 */
#ifndef REDLOCKD_WAITQUEUE_H
#define REDLOCKD_WAITQUEUE_H

#include <sys/queue.h>

#include "../../base/slots.h"
#include "../../lock/lock.h"
#include "../../lock/metrics.h"
#include "../rounds/result.h"
#include "claim.h"

enum waiter_state { WAITER_QUEUED, WAITER_TRYING, WAITER_SETTLED };

/* When a contender tries, and what it knows by then. */
struct waitplan {
    struct engine_result last; /* of the last attempt, or of who was granted */
    int64_t last_us;
    char last_owner[OWNER_MAX];
    char last_key_hash[KEY_HASH_LEN];

    int64_t try_us; /* unless it is woken before; 0: not known */
    enum metrics_handover try_by;
    enum metrics_handover tried_by; /* HANDOVER_CAUSES: nothing, it came first,
                                       or as a repeat */
    bool is_woken;                  /* while it could not try */
    enum metrics_handover woken_by;

    uint16_t announced;    /* bit per node: since the last attempt */
    int64_t hints_from_us; /* announcements wake nobody before */
    int64_t hint_gap_us;   /* grows while they are wrong */
};

/* A waiter's place in a queue. */
struct place {
    TAILQ_ENTRY(place) link;
    struct waiter *waiter;
    struct waitqueue *queue;
};

struct waiter {
    struct slots_head head;
    TAILQ_ENTRY(waiter) ready;
    bool is_ready; /* to try, in a list */
    enum waiter_state state;
    bool is_answered;   /* while it starts: its operation is settled */
    uint64_t operation; /* that tries, or was granted; 0: none */
    void *client;
    int64_t ttl_ms;
    int64_t since_us;
    int64_t until_us;
    uint64_t arrival;   /* rises from one to the next */
    uint64_t begun;     /* the latest arrival when its attempt began */
    struct claim claim; /* with a key: to what it was granted before … */
    uint64_t look;      /* … and the operation that asks for it; 0: none */
    char key_hash[KEY_HASH_LEN];
    size_t key_hash_len;
    size_t owner_len;
    char owner[OWNER_MAX]; /* its own; once settled: of the result */
    struct span names;     /* what it waits for */
    struct engine_result result;

    int count; /* of places */
    struct place *places;
    struct waitplan *plan; /* of its queue; its own if it has several */
    struct place only;
    struct several *several; /* NULL: it has one place */
};

struct waitqueue {
    struct span resource; /* first: the key of the index */
    TAILQ_ENTRY(waitqueue) link;
    TAILQ_HEAD(, place) places;
    int count;                /* of them */
    int users;                /* waiters that are not closed */
    struct waiter *contender; /* NULL: all wait for something else as well */
    struct waiter *trying;    /* has an attempt under way; NULL: nobody has */
    struct waiter *due;       /* repeats next, before all others; NULL: none */
    struct waitplan plan;     /* of contenders that wait for nothing else */

    bool is_subscribed;
    bool is_covered;     /* a quorum announces */
    uint16_t subscribed; /* bit per node: it confirmed */

    int run;                 /* grants in a row that releases woke */
    int64_t rivals_until_us; /* other servers were seen to wait, too */
    int64_t empty_us;        /* since when nobody waits */
    TAILQ_ENTRY(waitqueue) vacant;
    bool is_vacant; /* its contender is to be found, in a list */
    char text[];
};

struct waitqueues {
    void *index; /* for tsearch(3) */
    TAILQ_HEAD(, waitqueue) list;
    TAILQ_HEAD(, waitqueue) vacant; /* empty between two calls */
    uint64_t arrivals;
};

void waitqueues_init(struct waitqueues *queues);
void waitqueues_fini(struct waitqueues *queues);

/* NULL: nobody waits for it. */
struct waitqueue *waitqueues_find(const struct waitqueues *queues,
                                  struct span resource);

/* Frees it if it has neither users nor a subscription. */
void waitqueues_drop(struct waitqueues *queues, struct waitqueue *queue);

/*
 * Gives the waiter places, not yet in a row, in the queues of these names, and
 * a plan. False: no memory, and nothing has changed.
 */
bool waitqueues_enrol(struct waitqueues *queues, struct waiter *waiter,
                      struct span names);

/* Takes its places away: it must have left the queues. */
void waitqueues_dismiss(struct waitqueues *queues, struct waiter *waiter);

/*
 * It takes its places, at the end, or leaves them. Then some may have become
 * contenders, and others no longer be.
 */
void waitqueues_join(struct waitqueues *queues, struct waiter *waiter);
void waitqueues_leave(struct waitqueues *queues, struct waiter *waiter);

bool waiter_is_contender(const struct waiter *waiter);

/* Whether an attempt for one of its resources is under way, or due before. */
bool waiter_is_barred(const struct waiter *waiter);

/* A quorum announces releases of all its resources. */
bool waiter_is_covered(const struct waiter *waiter);

/* Whether it asks with this key hash, which may be empty: then it does not. */
bool waiter_has_key(const struct waiter *waiter, struct span key_hash);

/* Remembers what an attempt found, without resource and token. */
void waitplan_note(struct waitplan *plan, const struct engine_result *result,
                   int64_t now_us);

/* An attempt at this moment, if not before. */
void waitplan_try_at(struct waitplan *plan, int64_t at_us,
                     enum metrics_handover by);

#endif
