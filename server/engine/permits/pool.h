/* Apart from permits.h: what is believed of a pool, without I/O. */
/* SPDX-License-Identifier: MIT */
/*
 * The pools whose permits are asked for on this server: what it believes of
 * their slots, and the permits that want one.
 *
 * What is believed is a hint. It comes from grants and releases here, and from
 * queries; others take and free slots, and TTLs end. A slot that is believed
 * free is tried; only a query tells that none is free.
 */
#ifndef REDLOCKD_POOL_H
#define REDLOCKD_POOL_H

#include <sys/queue.h>

#include "../../base/entries.h"
#include "../../lock/lock.h"
#include "../../lock/metrics.h"
#include "../port/call.h"

struct permit;
struct waitqueue;

/* ---- sets of slots ------------------------------------------------------- */

enum { SLOTSET_WORDS = (POOL_SLOTS_MAX + 63) / 64 };

/* All zero: empty. */
struct slotset {
    uint64_t words[SLOTSET_WORDS];
};

static inline bool slotset_has(const struct slotset *set, int slot)
{
    return set->words[slot / 64] >> slot % 64 & 1;
}

static inline void slotset_add(struct slotset *set, int slot)
{
    set->words[slot / 64] |= UINT64_C(1) << slot % 64;
}

static inline void slotset_drop(struct slotset *set, int slot)
{
    set->words[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

/* Adds those of other; keeps those that are in other, or are not. */
void slotset_join(struct slotset *set, const struct slotset *other);
void slotset_keep(struct slotset *set, const struct slotset *other);
void slotset_remove(struct slotset *set, const struct slotset *other);

/* The slots below limit. */
struct slotset slotset_below(int limit);

int slotset_count(const struct slotset *set);

/* The first from this slot on; -1: there is none. */
int slotset_next(const struct slotset *set, int from);

/* The n-th, from 0; it must be there. */
int slotset_nth(const struct slotset *set, int n);

/* ---- queries ------------------------------------------------------------- */

/*
 * Which slots of a pool are free, as the nodes report when each is asked once.
 * An acquire decides who gets a slot: this only tells which are worth a try.
 *
 * A slot is free if a majority of the configured nodes has no key there. It is
 * taken if no answer that is still to come could make it free.
 *
 * A query may ask for the slots that a client has already, by its key hash. A
 * lock that is held shows in the answers of any quorum, be it on one node. So
 * does what a lost try left behind on an unreachable node. If more slots show
 * than the client wants, those that most nodes have are its own, and answers
 * that are still to come are waited for.
 */
enum query_outcome {
    QUERY_OPEN, /* an answer that is still to come may matter */
    QUERY_REPORTED,
    QUERY_REFUSED,   /* a majority's ACL denies the keys */
    QUERY_NO_QUORUM, /* too few nodes answered */
};

struct query {
    int total;  /* configured nodes */
    int count;  /* slots */
    int wanted; /* so many free ones are enough */
    int answers;
    struct ballot votes[NODES_MAX];
    int64_t rest_ms[NODES_MAX]; /* of an answer: until a slot there is free, as
                                   its TTL ends; -1: none does */
    int own_limit;   /* the key hash is that of a permit below this … */
    int own_wanted;  /* … of so many slots; 0: it asks for no key hash */
    bool must_prove; /* only those that a majority has are its own */
    uint8_t taken[POOL_SLOTS_MAX]; /* on so many nodes */
    uint8_t own[POOL_SLOTS_MAX];   /* with the key hash, on so many nodes */
};

/* Starts with all votes pending. */
void query_init(struct query *query, int total, int count, int wanted);

/* It asks for a key hash: what this is for stands at the members. */
void query_judge(struct query *query, int limit, int wanted, bool must_prove);

/* The node's pending vote is this one, or its answer; others are ignored. */
void query_note_ballot(struct query *query, int node, struct ballot ballot);
void query_note_reply(struct query *query, int node,
                      const struct call_reply *reply);

/* No more answers come. */
void query_note_rest(struct query *query);

enum query_outcome query_outcome(const struct query *query);

/* Of one that is told: the slots that are free. */
struct slotset query_free(const struct query *query);

/* The slots that the key hash has already: as many as are wanted, or none. */
struct slotset query_own(const struct query *query);

/* How long until a slot may be free on a majority because TTLs end, ms; -1:
 * unknown. */
int64_t query_rest_ms(const struct query *query);

/* ---- pools --------------------------------------------------------------- */

/* What is known of one slot while permits wait for the pool. */
struct slotnews {
    int64_t number;   /* of the latest lock known; 0: none */
    int64_t released; /* of the one whose release nodes announce; 0: none */
    uint16_t nodes;   /* bit per node: announced it */
};

struct pool {
    struct entries_head head;
    struct span name;       /* as clients know it; in the index */
    struct span prefix;     /* of its slots' names: with NAMES_SLOT */
    TAILQ_ENTRY(pool) link; /* of the idle ones, or those waited for */
    int users;              /* permits that are not closed; 0: it is idle */
    TAILQ_HEAD(, permit) queue;
    bool is_running;                /* its queue is being served */
    enum metrics_handover woken_by; /* the latest event */

    /* hints */
    struct slotset taken;   /* believed so; those tried from here are */
    struct slotset trying;  /* from here, and not decided */
    struct slotset touched; /* from here, since the query began */
    int trust;              /* in them: grows with each first try that wins */

    /* the query: of all that has happened before it, permits are informed */
    struct query query;
    bool is_queried;        /* it is open */
    unsigned queries;       /* number of the latest */
    uint16_t repeated;      /* bit per node: had lost our script, and was asked
                               once more */
    struct line *line;      /* that it stands in for the next; NULL: none */
    struct line *payer;     /* for the latest query */
    TAILQ_ENTRY(pool) turn; /* in its line */
    int64_t query_us, deadline_us;
    uint64_t queried;     /* its place in the order of events */
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
    int64_t retry_us;    /* the next query, if nothing happens; 0: none */
    int64_t distrust_us; /* until then announcements lead to a query */
    int run;             /* grants in a row, woken by releases here */

    char text[RESOURCE_MAX];
};

/* Of one identity: the pools that it wants to know about, see below. */
struct line {
    TAILQ_HEAD(, pool) pools;
    int64_t until_us; /* its queries so far may take the nodes */
    int open;         /* slots that the nodes are being asked about */
};

struct pools {
    void *index; /* for tsearch(3) */
    struct entries entries;
    TAILQ_HEAD(, pool) idle; /* kept for their hints; the oldest first */
    TAILQ_HEAD(, pool) waited_for;
    int idle_count;
    uint64_t events; /* the order in which things happen */
    struct line lines[ASKERS_MAX];
};

void pools_init(struct pools *pools);
void pools_fini(struct pools *pools);

/* NULL: nothing is known of it. */
struct pool *pools_find(const struct pools *pools, struct span name);

/* Finds or makes it, for one user more. NULL: no memory. */
struct pool *pools_use(struct pools *pools, struct span name);

/* One user less: without any, it is idle, and may be forgotten. */
void pools_unuse(struct pools *pools, struct pool *pool);

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

/* The query was told. */
void pool_note_query(struct pool *pool, int64_t now_us);

/* Makes room for news of so many slots; without memory there are fewer. Forgets
 * them. */
void pool_want_news(struct pool *pool, int count);
void pool_drop_news(struct pool *pool);

/* A slot is believed free from this moment on. */
void pool_free_later(struct pool *pool, int slot, int64_t at_us);

/* ---- whose query is next ----------------------------------------------- */

/*
 * Queries of large pools cost the nodes time, and clients cause them: so all of
 * them together ask about one slot in 10 µs at most, in the long run, and each
 * identity that asks has an equal share of that. One that has asked little of
 * late asks at once, whatever the others do. No identity has more under way
 * than one query of a large pool: on slow nodes, others would wait behind it.
 *
 * The pools that an identity wants to know about stand in its line, first come,
 * first served; no pool is in two lines.
 */

/* The pool is in no line, and goes to the end of this one. */
void turns_join(struct line *line, struct pool *pool);

/*
 * It leaves its line, if it is in one. Returns the pool that is now the first,
 * whose turn comes at a time that was not known before; NULL: there is none.
 */
struct pool *turns_leave(struct pool *pool);

/* From when on the pool may be queried; 0: not as it is, since it is not the
 * first of a line, or enough is under way. */
int64_t turns_from_us(const struct pool *pool);

/* A query of so many slots begins, for this line. */
void turns_begin(struct pools *pools, struct line *line, int slots,
                 int64_t now_us);

/* It has ended. Returns the pool whose turn may have come; NULL: none. */
struct pool *turns_end(struct line *line, int slots);

#endif
