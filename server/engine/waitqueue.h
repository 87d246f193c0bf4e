/*
 * Those that wait for one resource, first come, first served, and what is known
 * of it. waits.h decides what happens to them.
 */
#ifndef REDLOCKD_WAITQUEUE_H
#define REDLOCKD_WAITQUEUE_H

#include <sys/queue.h>

#include "../base/metrics.h"
#include "../base/slots.h"
#include "result.h"

enum waiter_state { WAITER_QUEUED, WAITER_TRYING, WAITER_SETTLED };

struct waiter {
    struct slots_head head;
    TAILQ_ENTRY(waiter) link;
    struct waitqueue *queue;
    enum waiter_state state;
    bool is_answered;   /* while it starts: its operation is settled */
    uint64_t operation; /* that tries, or was granted; 0: none */
    void *client;
    int64_t ttl_ms;
    int64_t since_us;
    int64_t until_us;
    size_t owner_len;
    char owner[OWNER_MAX]; /* its own; once settled: of the result */
    struct engine_result result;
};

struct waitqueue {
    struct span resource; /* first: the key of the index */
    TAILQ_ENTRY(waitqueue) link;
    TAILQ_HEAD(, waiter) waiters;
    int count; /* of them */
    int users; /* waiters that are not closed */

    struct engine_result last; /* of the last attempt, or of who was granted */
    int64_t last_us;
    char last_owner[OWNER_MAX];

    int64_t try_us; /* when the head tries next, unless it is woken before */
    enum metrics_handover try_by;
    enum metrics_handover tried_by; /* HANDOVER_CAUSES: nothing, it was first */
    bool is_woken;                  /* while it tried */
    enum metrics_handover woken_by;

    bool is_subscribed;
    bool is_covered;       /* a quorum announces */
    uint16_t subscribed;   /* bit per node: it confirmed */
    uint16_t announced;    /* bit per node: since the head tried last */
    int64_t hints_from_us; /* announcements wake nobody before */
    int64_t hint_gap_us;   /* grows while they are wrong */

    int run;                 /* grants in a row that releases woke */
    int64_t rivals_until_us; /* other servers were seen to wait, too */
    int64_t empty_us;        /* since when nobody waits */
    char text[];
};

struct waitqueues {
    void *index; /* for tsearch(3) */
    TAILQ_HEAD(, waitqueue) list;
};

void waitqueues_init(struct waitqueues *queues);
void waitqueues_fini(struct waitqueues *queues);

/* NULL: nobody waits for it. */
struct waitqueue *waitqueues_find(const struct waitqueues *queues,
                                  struct span resource);

/* The same, or a new one. NULL: no memory. */
struct waitqueue *waitqueues_make(struct waitqueues *queues,
                                  struct span resource);

/* Frees it if it has neither users nor a subscription. */
void waitqueues_drop(struct waitqueues *queues, struct waitqueue *queue);

/* NULL: nobody waits. */
static inline struct waiter *waitqueue_first(const struct waitqueue *queue)
{
    return TAILQ_FIRST(&queue->waiters);
}

void waitqueue_add(struct waitqueue *queue, struct waiter *waiter);
void waitqueue_remove(struct waitqueue *queue, struct waiter *waiter);

/* Remembers what an attempt found, without resource and token. */
void waitqueue_note(struct waitqueue *queue, const struct engine_result *result,
                    int64_t now_us);

/* The node announced a release. Returns how many did since the last attempt. */
int waitqueue_announce(struct waitqueue *queue, int node);

/* The head tries at this moment, if not before. */
void waitqueue_try_at(struct waitqueue *queue, int64_t at_us,
                      enum metrics_handover by);

#endif
