/* SPDX-License-Identifier: MIT */
/*
 * Brings each lock that is held to all nodes. A record here is a lock that this
 * server granted or extended, and that is not known to be on each node.
 *
 *   young ──────→ resting ───────→ checking ──→ all have it, or it is lost here
 *     │ early: the  ↑ ↑ a lacking     │
 *     │ acquire,    │ │ node votes    │ a majority has it: create it where it
 *     │ once more   │ │               │ lacked at the check before
 *     └─────────────┘ └───────────────┘
 *
 * Young is a lock whose acquire asked a quorum only. The others get the same
 * acquire a moment later, with the rest of the TTL: the early replication. It
 * has the deadline of its round, so to a node it is a call of that round that
 * was long on its way; but it is not undone, so the deadline is by the earliest
 * time that the node's clock may show.
 *
 * A check is an extend with the rest of the TTL. No client waits for it, and no
 * vote counts. docs/internals/guarantees.md tells why creations do not bring
 * back what was released: why two checks, what is between them, and which
 * deadlines.
 *
 * While no node that lacks the lock votes, nothing is sent.
 */
#ifndef REDLOCKD_SPREADS_H
#define REDLOCKD_SPREADS_H

#include <sys/queue.h>

#include "../../base/entries.h"
#include "../../base/types.h"
#include "releases.h"
#include "round.h"

enum {
    SPREADS_EARLY_US = 100000, /* or less, see spreads_may_follow */
    SPREADS_BUCKETS = 4096,
};

enum spread_step { SPREAD_YOUNG, SPREAD_RESTING, SPREAD_CHECKING };

struct spread {
    struct entries_head head;
    TAILQ_ENTRY(spread) link;
    LIST_ENTRY(spread) in_bucket;
    enum spread_step step;
    struct spread_list *in; /* the list that it is in */
    int64_t at_us;       /* young: is sent to all; resting: of the next check */
    int64_t start_us;    /* of the round; the TTL counts from it */
    int64_t deadline_us; /* of the early replication */
    int64_t ttl_ms;
    int64_t until_us; /* end of the validity that the client was told */
    int64_t gate_us;  /* no acquire and no early replication comes after it */
    uint16_t asked;   /* bit per node: the acquire was sent there */
    uint16_t has;     /* bit per node: has the lock, as far as is known */
    int tries;        /* checks behind which it was still missing */
    /* of the check under way, or the last one: */
    unsigned check; /* how many there were */
    int64_t check_us;
    int64_t before_us;   /* of the check before */
    int64_t answered_us; /* its last answer; 0: there was no check */
    int64_t sent_end_us; /* the end that it, or the early replication, told the
                            nodes */
    uint16_t sent;       /* bit per node: it was sent there */
    uint16_t answered;   /* bit per node: it was answered */
    uint16_t found;      /* bit per node: has the lock */
    uint16_t lacks;      /* bit per node: has it not */
    uint16_t before;     /* bit per node: nor had it at the check before */
    uint16_t created;    /* bit per node: is to get it */
    uint16_t again;      /* bit per node: something else was there */
    uint16_t missing[NODES_MAX];        /* bit per name: it was missing */
    uint16_t missing_before[NODES_MAX]; /* at the check before */
    struct texts texts;                 /* resource and token */
};

struct spread_list {
    TAILQ_HEAD(spread_queue, spread) all;
    int count;
};

LIST_HEAD(spread_bucket, spread);

struct spreads {
    const struct environment *env;
    struct nodes *nodes;
    struct entries entries;
    struct spread_list young;   /* what is due first is the first */
    struct spread_list active;  /* each tick goes through all */
    struct spread_list waiting; /* each tick goes through a few */
    struct spread_bucket buckets[SPREADS_BUCKETS]; /* by token */
};

void spreads_init(struct spreads *spreads, struct nodes *nodes);
void spreads_fini(struct spreads *spreads);

/*
 * True if the round's deadline leaves time for an early replication. A round
 * for which it does not asks all nodes at once.
 */
bool spreads_may_follow(const struct round *round);

/* The client was told of a grant. */
void spreads_on_granted(struct spreads *spreads, const struct round *round,
                        const struct round_lock *lock);

/* The last nodes have answered a round that was granted. */
void spreads_on_stragglers(struct spreads *spreads, const struct round *round,
                           const struct round_lock *lock);

/* The client was told of an extension, and all votes are known. */
void spreads_on_extended(struct spreads *spreads, const struct round *round,
                         const struct round_lock *lock);

/* Before an extend: the early replication of this lock, or of one that has a
 * resource of it, is sent at once. */
void spreads_hurry(struct spreads *spreads, struct span resource,
                   struct span token);

/* Which nodes may have this lock, or one that has a resource of it, if its
 * early replication was not sent; otherwise the scope stays. */
void spreads_scope(struct spreads *spreads, struct span resource,
                   struct span token, struct release_scope *scope);

/* Behind a release that was sent, or a repeat: this lock, or one that has a
 * resource of it, is left as it is; an early replication that was not sent
 * never is. */
void spreads_cancel(struct spreads *spreads, struct span resource,
                    struct span token);

/*
 * How long a tombstone lasts: longer than any spread that has checked may take
 * from then on. more: node timeouts for which a release may wait for the other
 * nodes; a spread that finds the lock there meanwhile must not create it
 * either.
 */
int64_t spreads_tombstone_ms(const struct spreads *spreads, int more);

/* A reply to a call with a tag of kind TAG_SPREAD, as judged. */
void spreads_on_reply(struct spreads *spreads, int node, uint64_t tag,
                      const struct call_reply *reply, int64_t sent_us);

/* Sends what is due. */
void spreads_tick(struct spreads *spreads, int64_t now_us);

/* Sends all early replications: the server stops. */
void spreads_flush(struct spreads *spreads);

#endif
