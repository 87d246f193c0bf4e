/* SPDX-License-Identifier: MIT */
/*
 * One round: the votes of all nodes on one call, and their verdict. Pure.
 *
 * The Redlock text (redis.io, "Distributed locks with Redis"): the client
 * asks all instances for the lock; if and only if a majority of them granted
 * it, and the time elapsed is less than the lock's validity, it is acquired;
 * if not, all instances are unlocked.
 *
 * A verdict is given as soon as no outstanding reply could change it, and at
 * the round's deadline at the latest: nobody waits for a slow minority.
 */
#ifndef REDLOCKD_ROUND_H
#define REDLOCKD_ROUND_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../port/call.h"

enum verdict {
    VERDICT_OPEN,      /* an outstanding reply may decide */
    VERDICT_WON,       /* acquire, extend, release: as asked; force: there
                          are tokens to release */
    VERDICT_HELD,      /* acquire: another holder has a majority */
    VERDICT_STALE,     /* acquire: a higher number was accepted */
    VERDICT_SPLIT,     /* acquire: the votes are split */
    VERDICT_FOUND,     /* inspect: one value on a majority */
    VERDICT_BUSY,      /* inspect: keys in the way, no common value */
    VERDICT_NOT_OWNER, /* extend, release, force: another value */
    VERDICT_NOT_FOUND, /* extend, release, inspect, force: no such lock */
    VERDICT_REFUSED,   /* a majority's ACL denies the key */
    VERDICT_NO_QUORUM, /* too few nodes vote */
};

/* One node's vote. */
struct round_vote {
    enum vote vote;
    enum node_state state; /* unfit: why */
    uint32_t life;         /* of the node, when it was sent */
    int64_t pttl_ms;       /* held: -1 no TTL */
    int64_t holders;       /* held: of a shared lock; 0: it is none */
    int64_t reader;        /* held: see round_reader_number */
    size_t value_len;      /* held; 0: a shared lock, or another type */
};

static inline struct ballot round_ballot(const struct round_vote *vote)
{
    return (struct ballot){vote->vote, vote->state};
}

struct round {
    enum lock_call kind;
    int total;  /* configured nodes */
    int quorum; /* majority of them */
    int pending;
    /* A bit per node: */
    uint16_t unasked;  /* pending, but not asked yet */
    uint16_t sent;     /* the call was handed to the connection … */
    uint16_t broken;   /* … which broke after that */
    uint16_t refused;  /* its admission is being read: asked again then */
    uint16_t repeated; /* it had lost our script, and was asked again */
    int64_t start_us;
    int64_t deadline_us;
    int64_t highest; /* greatest number in a STALE vote */
    int found;       /* force: tokens to release, set by the caller */
    bool hears_all;  /* force: waits for each node; set by the caller */
    int64_t won_us;  /* time of a won verdict, set by the caller; 0: none */
    struct round_vote votes[NODES_MAX];
    /* Values of held votes. Kept apart, so that the votes of thousands of
       rounds, which are read often, fit into the processor's caches; last, so
       that round_init need not clear them. */
    char values[NODES_MAX][VALUE_MAX];
};

/* The lock that a round is about, and how long its calls may have run behind
 * their deadline. */
struct round_lock {
    struct span resource;
    struct span token;
    int64_t ttl_ms;
    int64_t uncertainty_us;
};

/* Starts with all votes pending. Times are CLOCK_BOOTTIME in µs. */
void round_init(struct round *round, enum lock_call kind, int total,
                int64_t start_us, int64_t deadline_us);

/*
 * True if the nodes that are not asked yet should be: the others cannot decide
 * alone, or one of them gave no answer. For an open round.
 */
bool round_wants_rest(const struct round *round);

/* True if a node that was asked gave no answer. */
bool round_is_broken(const struct round *round);

/* The nodes that may have carried out what the call asks for. */
uint16_t round_may_be_set(const struct round *round);

/* The call was sent to this node, in this life of it. */
void round_note_sent(struct round *round, int node, uint32_t life);

/* The node's pending vote is this one: the call was not sent, or is answered.
 */
void round_note_ballot(struct round *round, int node, struct ballot ballot);

/*
 * A reply of this node; a second one is ignored. It counts however late it is
 * read: the round's validity is measured from its start.
 */
void round_note_reply(struct round *round, int node,
                      const struct call_reply *reply);

/* The node's data is outdated: its vote no longer counts. */
void round_note_outdated(struct round *round, int node);

/* All pending votes are this one: UNANSWERED at the deadline, STALLED if no
 * call could be sent. */
void round_note_rest(struct round *round, enum vote vote);

/* A new deadline: votes of silent nodes are pending again. */
void round_wait_on(struct round *round, int64_t deadline_us);

enum verdict round_verdict(const struct round *round);

/*
 * For a round without a quorum: true if the calls that got no answer, or were
 * too late, could have made one.
 */
bool round_is_lost_to_time(const struct round *round);

/* The value of a node with the vote HELD; borrowed. */
static inline struct span round_value(const struct round *round, int node)
{
    return (struct span){round->values[node], round->votes[node].value_len};
}

/* The nodes with this vote; how many. */
uint16_t round_with(const struct round *round, enum vote vote);

static inline int round_count(const struct round *round, enum vote vote)
{
    return nodeset_count(round_with(round, vote));
}

/* How many nodes have the value that most have; *node: one of them, -1: no node
 * reported a value. */
int round_common_value(const struct round *round, int *node);

/* How many nodes have values that are no tokens of ours. */
int round_foreign(const struct round *round);

/* The nodes whose token has this key hash; *number: the greatest one of these
 * tokens, 0: there is none. */
uint16_t round_repeated(const struct round *round, struct span key_hash,
                        int64_t *number);

/* True if a lock with this key hash may be on a majority: on the nodes that
 * reported it, and on those that have not voted. */
bool round_may_have(const struct round *round, struct span key_hash);

/* The greatest number of the readers with the key of this acquire that nodes
 * did not let it replace; 0: there is none. */
int64_t round_reader_number(const struct round *round);

/*
 * The time to live, ms, of the common value on a majority, or otherwise of
 * values that are not our tokens: the quorum-th largest. -1: there is no end,
 * or no majority.
 */
int64_t round_remaining_ms(const struct round *round);

/*
 * How many hold a shared lock, at least: young locks are on a majority only; 0:
 * it is none, or no majority tells.
 */
int64_t round_holders(const struct round *round);

/*
 * Redlock: validity = TTL - elapsed - clock drift, rounded down to ms; drift =
 * ttl_ms * drift_factor + 2 ms. The greatest step of a node's clock that may go
 * unnoticed is subtracted, too: the flight time of the majority's votes, at
 * least 5 ms. -1: none is left, or the round was not won.
 */
int64_t round_validity_ms(const struct round *round, int64_t ttl_ms,
                          int64_t now_us, double drift_factor);

#endif
