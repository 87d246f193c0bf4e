/*
 * The pools whose permits are asked for on this server: what it believes of
 * their slots, and the permits that want one.
 *
 * What is believed is a hint. It comes from grants and releases here, and from
 * surveys; others take and free slots, and TTLs end. A slot that is believed
 * free is tried; only a survey tells that none is free.
 */
#ifndef REDLOCKD_POOL_H
#define REDLOCKD_POOL_H

#include <sys/queue.h>

#include "../../base/slots.h"
#include "../../lock/lock.h"
#include "../../lock/metrics.h"
#include "slotset.h"
#include "survey.h"

struct line;
struct permit;
struct waitqueue;

/* What is known of one slot while permits wait for the pool. */
struct slotnews {
    int64_t number;   /* of the latest lock known; 0: none */
    int64_t released; /* of the one whose release nodes announce; 0: none */
    uint16_t nodes;   /* bit per node: announced it */
};

struct pool;

/* In the index. */
struct poolkey {
    struct span name; /* first: the key */
    struct pool *pool;
};

struct pool {
    struct slots_head head;
    struct poolkey key;
    struct span name;       /* as clients know it */
    struct span prefix;     /* of its slots' names: with "#" */
    TAILQ_ENTRY(pool) link; /* of the idle ones, or those waited for */
    int users;              /* permits that are not closed; 0: it is idle */
    TAILQ_HEAD(, permit) queue;
    bool is_running;                /* its queue is being served */
    enum metrics_handover woken_by; /* the latest event */

    /* hints */
    struct slotset taken;   /* believed so; those tried from here are */
    struct slotset trying;  /* from here, and not decided */
    struct slotset touched; /* from here, since the survey began */
    int trust;              /* in them: grows with each first try that wins */

    /* the survey: of all that has happened before it, permits are informed */
    struct survey survey;
    bool is_surveyed;       /* it is open */
    unsigned surveys;       /* number of the latest */
    struct line *line;      /* that it stands in for the next; NULL: none */
    struct line *payer;     /* for the latest survey */
    TAILQ_ENTRY(pool) turn; /* in its line */
    int64_t survey_us, deadline_us;
    uint64_t surveyed;    /* its place in the order of events */
    uint64_t informed;    /* the place of the last that was told */
    uint64_t asking;      /* the permit whose key hash it asks for; 0: none */
    int64_t free_from_us; /* when a TTL ends that it was told; 0: unknown */

    /* while permits wait */
    int waiting;
    int waits_users;
    struct waitqueue *waits; /* for announcements; NULL: it has no users */
    bool was_covered;
    int news_count;
    struct slotnews *news; /* malloc'ed; of each slot, or NULL */
    struct slotset later;  /* believed free from later_us on */
    int64_t later_us;
    int64_t retry_us;    /* the next survey, if nothing happens; 0: none */
    int64_t distrust_us; /* until then announcements lead to a survey */
    int run;             /* grants in a row, woken by releases here */

    char text[RESOURCE_MAX];
};

struct pools {
    void *index; /* for tsearch(3) */
    struct slots slots;
    TAILQ_HEAD(, pool) idle; /* kept for their hints; the oldest first */
    TAILQ_HEAD(, pool) waited_for;
    int idle_count;
    uint64_t events; /* the order in which things happen */
};

void pools_init(struct pools *pools);
void pools_fini(struct pools *pools);

/* NULL: nothing is known of it. */
struct pool *pools_find(const struct pools *pools, struct span name);

/* Finds or makes it, for one user more. NULL: no memory. */
struct pool *pools_use(struct pools *pools, struct span name);

/* The same for a pool that has users: while its queue is served, which may end
 * the last of them. */
void pools_hold(struct pool *pool);

/* One user less: without any, it is idle, and may be forgotten. */
void pools_leave(struct pools *pools, struct pool *pool);

/* Its hints are right more often than not. */
bool pool_is_trusted(const struct pool *pool);

/* A permit tried slots without having been informed. */
void pool_note_first_try(struct pool *pool, bool is_won);

/* Slots are tried from here; the try has ended. */
void pool_try(struct pool *pool, const struct slotset *slots);
void pool_note_tried(struct pool *pool, const struct slotset *slots,
                     bool is_taken);

/* A slot was freed, as far as this server knows. */
void pool_note_free(struct pool *pool, int slot);

/* The survey was told. */
void pool_note_survey(struct pool *pool, int64_t now_us);

/* Makes room for news of so many slots; without memory there are fewer. Forgets
 * them. */
void pool_want_news(struct pool *pool, int count);
void pool_drop_news(struct pool *pool);

/* A slot is believed free from this moment on. */
void pool_free_later(struct pool *pool, int slot, int64_t at_us);

/* ---- whose survey is next ----------------------------------------------- */

/*
 * Surveys of large pools cost the nodes time, and clients cause them: so all of
 * them together ask about one slot in 10 µs at most, in the long run, and each
 * identity that asks has an equal share of that. One that has asked little of
 * late asks at once, whatever the others do. No identity has more under way
 * than one survey of a large pool: on slow nodes, others would wait behind it.
 *
 * The pools that an identity wants to know about stand in its line, first come,
 * first served; no pool is in two lines.
 */

/* Of one identity. */
struct line {
    TAILQ_HEAD(, pool) pools;
    int64_t until_us;        /* its surveys so far may take the nodes */
    int open;                /* slots that the nodes are being asked about */
    TAILQ_ENTRY(line) owing; /* in the list of this name, if it is_owing */
    bool is_owing;
};

struct turns {
    struct line lines[ASKERS_MAX];
    TAILQ_HEAD(, line) owing; /* whose until_us has not been seen to pass */
};

void turns_init(struct turns *turns);

/* The pool is in no line, and goes to the end of this one. */
void turns_join(struct line *line, struct pool *pool);

/*
 * It leaves its line, if it is in one. Returns the pool that is now the first,
 * whose turn comes at a time that was not known before; NULL: there is none.
 */
struct pool *turns_leave(struct pool *pool);

/* From when on the pool may be surveyed; 0: not as it is, since it is not the
 * first of a line, or enough is under way. */
int64_t turns_from_us(const struct pool *pool);

/* A survey of so many slots begins, for this line. */
void turns_begin(struct turns *turns, struct line *line, int slots,
                 int64_t now_us);

/* It has ended. Returns the pool whose turn may have come; NULL: none. */
struct pool *turns_end(struct line *line, int slots);

#endif
