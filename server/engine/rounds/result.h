/* SPDX-License-Identifier: MIT */
/*
 * The result of an operation.
 */
#ifndef REDLOCKD_RESULT_H
#define REDLOCKD_RESULT_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../../lock/metrics.h"
#include "../port/call.h"
#include "../port/token.h"

struct round;

enum outcome {
    OUTCOME_PENDING,
    OUTCOME_GRANTED,
    OUTCOME_HELD,
    OUTCOME_VALIDITY_EXHAUSTED, /* no time is left */
    OUTCOME_EXTENDED,
    OUTCOME_MAX_HOLD, /* held for as long as allowed */
    OUTCOME_RELEASED,
    OUTCOME_FOUND,
    OUTCOME_NOT_OWNER,        /* another value */
    OUTCOME_NOT_FOUND,        /* no lock */
    OUTCOME_KEY_REFUSED,      /* the nodes' ACLs deny the key */
    OUTCOME_NO_QUORUM,        /* not enough nodes answered */
    OUTCOME_TOO_MANY_WAITERS, /* the queue is full */
    OUTCOME_STOPPED,          /* this server no longer waits */
    OUTCOME_KINDS
};

const char *outcome_name(enum outcome outcome);

/* True if such a call can have this outcome. */
bool outcome_is_of(enum outcome outcome, enum lock_call call);

/* The names of outcomes and votes in the metrics. */
extern const struct metrics_names result_names;

/* The result of an operation. The spans live until engine_close. */
struct engine_result {
    enum outcome outcome;
    struct span resource;   /* one name, or several: see names.h */
    struct span token;      /* granted, extended; otherwise empty */
    int64_t number;         /* fencing token; 0 unknown */
    bool is_shared;         /* granted, extended, found, held */
    int64_t holders;        /* found, held: of a shared lock; otherwise 0 */
    struct span owner;      /* empty: unknown */
    struct span key_hash;   /* granted, held: empty: none, or unknown */
    struct version version; /* found, not found by an inspection */
    bool is_repeat;         /* granted: in place of a lock with the same key */
    bool has_holder;        /* held: number, owner, remaining are known */
    int64_t remaining_ms;   /* found, held: -1 unknown */
    int64_t held_ms;        /* found, held, and with a limit to holds granted,
                               extended: since its grant; -1 unknown */
    int64_t ttl_ms;         /* granted, extended */
    int64_t validity_ms;    /* granted, extended: when taken; Redlock's TTL -
                               elapsed - drift */
    int64_t waited_ms;      /* acquire: since it was asked; 0: does not wait */
    int waiters;            /* found: clients of this server that wait */
    bool is_queue_full;     /* too many waiters: for this lock; otherwise on
                               this server */
    int64_t round_start_us; /* of the deciding round */
    int64_t barred_us;      /* no quorum: earlier numbers are ahead of the
                               clocks for this long; 0: they are not */
    int votes_for;          /* granted, extended, released, held: by kind */
    int asked;              /* nodes that were asked */
    int quorum;
    int total;
    struct ballot votes[NODES_MAX]; /* of the deciding round, by node */
};

/* One that no round decided, of a service with so many nodes. */
struct engine_result result_plain(enum outcome outcome, int total);

/* From the deciding round: its start, and the votes. */
void result_report_votes(struct engine_result *result,
                         const struct round *round);

/* Number, owner and key hash of the token, if it has our form; borrowed. */
void result_report_token(struct engine_result *result, struct span token);

/* How long a lock of this number has been held. median_us: of the nodes'
 * clocks, as in fencing tokens; 0: unknown. */
void result_report_age(struct engine_result *result, int64_t median_us);

/*
 * The remaining time of the values on a majority, of a shared lock that of its
 * last holder, and how many there are. If it is one value, also its
 * number, owner and key hash (borrowed from the round), and how long it has
 * been held. median_us: of the nodes' clocks, as in fencing tokens; 0:
 * unknown.
 */
void result_report_holder(struct engine_result *result,
                          const struct round *round, int64_t median_us);

/* What an inspection found: its version, and how many readers there are, also
 * if the nodes know different ones. */
void result_report_version(struct engine_result *result,
                           const struct round *round, bool is_free);

#endif
