/* SPDX-License-Identifier: MIT */
/*
 * Counters and histograms, and their text form (Prometheus exposition format
 * 0.0.4). Resources, tokens and owners are never labels.
 */
#ifndef REDLOCKD_METRICS_H
#define REDLOCKD_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include "../base/types.h"
#include "lock.h"

/* The call that a request counts as: an enum lock_call, or one of these. */
enum metrics_call {
    METRICS_LIST = LOCK_CALLS, /* a page of the locks */
    METRICS_BATCH,             /* many of the calls above */
    METRICS_PROBE,             /* /livez, /readyz */
    METRICS_SCRAPE,            /* /metrics */
    METRICS_OTHER,             /* everything else */
    METRICS_CALLS
};

/* The event that woke a waiting acquire, which was granted then. */
enum metrics_handover {
    HANDOVER_NONE = -1,    /* no event woke it */
    HANDOVER_RELEASE,      /* through this server */
    HANDOVER_ANNOUNCEMENT, /* of a release, by the nodes */
    HANDOVER_EXPIRY,       /* the holder's TTL ended */
    HANDOVER_RETRY,        /* nothing: it tried again after a while */
    HANDOVER_CAUSES
};

/* What a client waits for. */
enum metrics_waiting {
    WAITING_LOCK, /* one, or several */
    WAITING_PERMIT,
    WAITING_WATCH, /* that a lock has another version */
    WAITING_KINDS
};

/* Why a round asked the nodes that it had not asked at first. */
enum metrics_widening {
    WIDENING_SPLIT,     /* those that it had asked could not decide */
    WIDENING_NO_ANSWER, /* one of them gave no answer */
    WIDENING_SLOW,      /* they took longer than most rounds */
    WIDENING_CAUSES
};

/* Results of a client's TLS handshake. */
enum metrics_handshake {
    HANDSHAKE_DONE,
    HANDSHAKE_CLOSED,          /* the client sent nothing */
    HANDSHAKE_NOT_TLS,         /* the client does not speak TLS */
    HANDSHAKE_BAD_CERTIFICATE, /* the client has none that we trust */
    HANDSHAKE_FAILED,          /* nothing in common, or the client left */
    HANDSHAKE_RESULTS
};

/* A file that is read again on SIGHUP. */
enum metrics_file { FILE_AUTH, FILE_CERTIFICATES, FILE_CRL, METRICS_FILES };

enum { METRICS_BUCKETS = 14 };

/* Durations, in buckets: each counts those up to its bound. */
struct metrics_histogram {
    uint64_t buckets[METRICS_BUCKETS + 1]; /* the last: above all bounds */
    uint64_t sum_us;
    uint64_t count;
};

enum { METRICS_OUTCOMES = 16, METRICS_VOTES = 64, METRICS_STATUSES = 600 };

/*
 * The engine's names of outcomes and votes. NULL: the call cannot have this
 * outcome; no such vote exists.
 */
struct metrics_names {
    const char *(*outcome)(enum lock_call call, int outcome);
    const char *(*vote)(int vote);
};

struct metrics {
    const struct metrics_names *names; /* set by the engine; static */
    int64_t started_us;                /* by the wall clock */

    /* HTTP: every accepted request is answered or abandoned once */
    uint64_t requests_accepted;
    uint64_t requests_answered;
    uint64_t requests_abandoned; /* the client left before its answer */
    uint64_t responses[METRICS_CALLS][METRICS_STATUSES]; /* by status */
    struct metrics_histogram request_duration[METRICS_CALLS];
    uint64_t connections;     /* open now */
    uint64_t connections_max; /* that may be open */
    uint64_t connections_cut; /* by a deadline of ours */
    uint64_t audit_lost;      /* lines that the audit log did not take */

    /* files */
    int64_t file_read_s[METRICS_FILES];  /* with success, Unix time; 0: never */
    bool file_is_refused[METRICS_FILES]; /* the last time: that before counts */

    /* TLS for clients */
    uint64_t tls_handshakes[HANDSHAKE_RESULTS];
    int64_t tls_until_s; /* the certificate ends, Unix time; 0: no TLS */
    int64_t crl_until_s; /* the CRL ends, Unix time; 0: there is none */

    /* operations and rounds */
    uint64_t outcomes[LOCK_CALLS][METRICS_OUTCOMES]; /* by enum outcome */
    struct metrics_histogram round_duration[LOCK_CALLS];
    uint64_t widenings[WIDENING_CAUSES];
    uint64_t early_replications; /* locks that got onto the nodes not asked at
                                    first */
    uint64_t locks_thin; /* ended while a voting node lacked them, or had no
                            place among those that nodes lack */
    uint64_t undelivered_grants; /* released: the client had left */
    uint64_t releases_pending;   /* now: on their way, and owed by nodes */
    uint64_t releases_dropped;   /* given up, for one node or for all */
    uint64_t releases_forgone;   /* given up: the node hardly has the key */

    /* clients that wait */
    uint64_t waiting[WAITING_KINDS]; /* now */
    uint64_t waiters_max;
    struct metrics_histogram wait_duration;
    uint64_t handovers[HANDOVER_CAUSES];

    /* permits */
    uint64_t permit_tries;   /* of slots, by a round or more each */
    uint64_t permit_queries; /* of slots, by a round each */
    uint64_t permit_grants;
    uint64_t permit_refusals; /* no slot was free */

    /* nodes */
    int nodes;
    int quorum;
    const char *node_names[NODES_MAX];        /* borrowed */
    const char *node_addresses[NODES_MAX];    /* borrowed */
    bool node_is_voting[NODES_MAX];           /* now */
    uint64_t votes[NODES_MAX][METRICS_VOTES]; /* by ballot_number */
    struct metrics_histogram node_rtt[NODES_MAX];
    int64_t clock_offset_us[NODES_MAX]; /* now: ahead of the median */
    int64_t quarantine_us[NODES_MAX];   /* now: until it may vote */
    bool node_is_known[NODES_MAX];      /* whether it is durable */
    bool node_is_durable[NODES_MAX];    /* as it said last */
    bool node_is_new[NODES_MAX];        /* now: it never voted, nor does yet */
    bool node_is_restarted[NODES_MAX];  /* now: it has the data from before */
    uint64_t clock_steps[NODES_MAX];
    int64_t node_certificate_until_s[NODES_MAX]; /* ends then, Unix time; 0: no
                                                    TLS, or not known yet */
    uint64_t reconnects[NODES_MAX];
};

extern const char *const metrics_call_names[METRICS_CALLS];

void metrics_observe(struct metrics_histogram *histogram, int64_t duration_us);

/* A file was read, or could not be. */
void metrics_note_file(struct metrics *metrics, enum metrics_file file,
                       bool is_read, int64_t wall_us);

/* An acquire that may wait: from the ask to its outcome, whatever that is. */
void metrics_observe_wait(struct metrics *metrics, int64_t duration_us);

/* Clients that wait now, whatever they wait for. */
uint64_t metrics_waiters(const struct metrics *metrics);

/* Writes all metrics; false: some are missing. */
bool metrics_print(const struct metrics *metrics, FILE *stream);

#endif
