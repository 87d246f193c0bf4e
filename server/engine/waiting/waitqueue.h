/*
 * The queue of the waiters for one resource, first come, first served, with the
 * last known holder. waits.h decides when they try.
 *
 * A waiter for several resources has a place in each of their queues. The
 * contender of a queue may try next: it is the first in the order of arrival
 * that is also the contender of all its other queues. So a waiter that also
 * waits for another resource holds up no one that could go.
 */
#ifndef REDLOCKD_WAITQUEUE_H
#define REDLOCKD_WAITQUEUE_H

#include <sys/queue.h>

#include "claim.h"
#include "ticket.h"
#include "turn.h"

/* When a contender tries, and the last known holder. */
struct waitplan {
    struct engine_result last; /* of the last attempt, or the last grant */
    int64_t last_us;
    char last_owner[OWNER_MAX];
    char last_key_hash[KEY_HASH_LEN];

    int64_t try_us; /* at the latest; 0: not planned */
    enum metrics_handover try_by;
    enum metrics_handover tried_by; /* HANDOVER_CAUSES: no event, it came first
                                       or is a repeat */
    bool is_woken;                  /* while it was barred: tries next */
    enum metrics_handover woken_by;

    uint16_t announced;    /* bit per node: a release, since the last attempt */
    int64_t released;      /* the number of that lock, if it was told */
    int64_t hints_from_us; /* announcements wake no one before */
    int64_t hint_gap_us;   /* grows while announcements are wrong */
};

/* A waiter's place in a queue. */
struct place {
    TAILQ_ENTRY(place) link;
    struct waiter *waiter;
    struct waitqueue *queue;
};

struct waiter {
    struct ticket ticket; /* its name: the resources that it waits for */
    struct waits *waits;
    TAILQ_ENTRY(waiter) ready;
    bool is_ready;      /* in the list of those that are ready to try */
    bool is_shared;     /* others may hold the lock as well */
    uint64_t arrival;   /* number in the order of arrival */
    uint64_t begun;     /* the latest arrival when its attempt began */
    struct claim claim; /* with a key: to a lock that it has already */
    uint64_t look;      /* the inspection that looks for it; 0: none */
    int count;          /* of places */
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
    int writers;              /* of these, those for an exclusive lock */
    int users;                /* waiters that are not closed */
    struct waiter *contender; /* NULL: none contends in all of its queues */
    struct waiter *trying;    /* has an attempt under way; NULL: none */
    struct waiter *due;   /* a repeat that goes before all others; or NULL */
    struct waitplan plan; /* of contenders with no other queue */

    bool is_subscribed;
    bool is_covered;     /* a quorum announces */
    uint16_t subscribed; /* bit per node: it confirmed */

    struct turn turn; /* of this server */
    int64_t empty_us; /* when the last waiter left */
    TAILQ_ENTRY(waitqueue) vacant;
    bool is_vacant; /* in the list of queues that need a contender */
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

/* NULL: there is no queue for it. */
struct waitqueue *waitqueues_find(const struct waitqueues *queues,
                                  struct span resource);

/* The queue of the first of these names that has one. Takes this name and those
 * before it off names; NULL: none is left. */
struct waitqueue *waitqueues_next(const struct waitqueues *queues,
                                  struct span *names);

/*
 * One user more or less of a queue that has no places for it: who waits there
 * counts in count, and is woken by announcements only. NULL: no memory.
 */
struct waitqueue *waitqueues_use(struct waitqueues *queues,
                                 struct span resource);
void waitqueues_unuse(struct waitqueues *queues, struct waitqueue *queue);

/* Frees it if it has neither users nor a subscription. */
void waitqueues_drop(struct waitqueues *queues, struct waitqueue *queue);

/*
 * Makes the waiter's places in the queues of these names, which it does not
 * take yet, and its plan. False: no memory, and nothing has changed.
 */
bool waitqueues_enrol(struct waitqueues *queues, struct waiter *waiter,
                      struct span names);

/* Frees its places: it must have left the queues. */
void waitqueues_dismiss(struct waitqueues *queues, struct waiter *waiter);

/*
 * It takes its places, at the end, or leaves them. Both may change the
 * contenders of other queues.
 */
void waitqueues_join(struct waitqueues *queues, struct waiter *waiter);
void waitqueues_leave(struct waitqueues *queues, struct waiter *waiter);

static inline bool waiter_is_contender(const struct waiter *waiter)
{
    return waiter->places[0].queue->contender == waiter;
}

/* True while another attempt for one of its resources is under way, or goes
 * before. */
bool waiter_is_barred(const struct waiter *waiter);

/* True if a quorum announces releases of all its resources. */
bool waiter_is_covered(const struct waiter *waiter);

/* True if its key hash is this one; false if that is empty. */
bool waiter_has_key(const struct waiter *waiter, struct span key_hash);

/* Remembers the result of an attempt, without resource and token. */
void waitplan_note(struct waitplan *plan, const struct engine_result *result,
                   int64_t now_us);

/* Plans an attempt for this moment, unless one is planned before. */
void waitplan_try_at(struct waitplan *plan, int64_t at_us,
                     enum metrics_handover by);

#endif
