/*
 * Decides from what is known of all nodes when one gets its permission to vote.
 * Pure.
 *
 *   asked    a majority of all, without it, knew of its mark, and told then
 *            when all that they have promised ends; this has ended
 *   in time  fewer can be asked, and Q has passed since the mark was seen
 *   back     its memory is durable, and no server has reported a later one,
 *            though each had two heartbeats for it
 *
 * In any case no later birth is known under the node's name. Why this is
 * enough: docs/guarantees.md.
 */
#ifndef REDLOCKD_ELIGIBILITY_H
#define REDLOCKD_ELIGIBILITY_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../port/call.h"
#include "../port/fingerprint.h"
#include "../port/vote.h"
#include "firststart.h"
#include "witness.h"

enum {
    ADMISSION_STATE_MAX = CALL_STATE_MAX, /* bytes of an admission or a mark */
    HEARTBEAT_US = 1000000,               /* between two looks at a node */
};

struct admission_settings {
    int nodes;
    int quorum;
    const char
        *names[NODES_MAX]; /* of the nodes; read by admission_init only */
    int leader; /* the node to mark first: the one with the least name */
    int epoch;  /* at least 1 */
    char fingerprint[FINGERPRINT_LEN + 1];
    int64_t max_ttl_ms;
    int64_t node_timeout_us;
    enum first_start first_start; /* auto: durable nodes only */
    bool has_take_over; /* nodes that cannot be marked are gone for good */
    bool is_off;        /* admit without quarantine */
};

enum admission_phase {
    ADMISSION_DOWN,
    ADMISSION_UNSEEN,
    ADMISSION_EMPTY,
    ADMISSION_MARKED,
    ADMISSION_ADMITTED,
    ADMISSION_FOREIGN,
    ADMISSION_SUPERSEDED,
    ADMISSION_MISNAMED,
};

/*
 * A marked node asks the others what they have promised: those that carry its
 * birth, after a moment at which all of these did.
 */
struct admission_asked {
    uint32_t joins;   /* as in witness at that moment */
    int64_t since_us; /* that moment */
    uint16_t again;   /* a bit for each that answered a look sent since then;
                         a majority of all: the answers are in */
    int64_t end_us;   /* by then all that they promised has ended */
    int64_t number;   /* they have accepted none above this one */
};

struct admission_node {
    enum admission_phase phase;
    bool is_durable;    /* now, according to the handshake */
    bool was_durable;   /* ever since its admission, according to its memory */
    bool is_clock_good; /* for a readmission */
    bool is_busy;       /* an action is under way */
    bool is_mute;       /* the last look at it failed */
    bool must_revoke;   /* its locks may have ended too early */
    bool is_of_epoch;   /* was seen with our epoch */
    bool is_restarted;  /* found is its own admission, from before a restart */
    bool is_outdated;   /* a later birth than this one is known of it */
    char admit[ADMISSION_STATE_MAX +
               1]; /* what it must carry, without the replication ID */
    char found[ADMISSION_STATE_MAX + 1]; /* the admission that it has */
    char mark[ADMISSION_STATE_MAX + 1];  /* of its quarantine; "": none */
    char birth[CALL_BIRTH_LEN + 1]; /* of its admission or mark; "": none */
    uint32_t life;                  /* counts the births that were seen here */
    struct admission_asked asked;   /* while it is marked */
    int64_t sighted_us;             /* when the mark was first seen */
    int64_t news_us; /* when the others were last to be told, or asked, of it */
    int64_t look_due_us;
    int64_t not_before_us; /* the last action failed: none before then */
    int64_t looked_us;     /* when the last answered look was sent; 0: none */
    int64_t foreign_us;    /* last seen with another configuration; 0: never */
    int64_t epoch_above;   /* … of this epoch */
    int64_t max_ttl_ms;    /* as stored on the node; 0: none */
    int64_t beat;          /* of its memory, at the last look */
};

struct admission {
    struct admission_settings settings;
    struct admission_node node[NODES_MAX];
    struct firststart start;
    struct witness witness;
    int64_t entered_us;     /* when the last node was first seen in our epoch */
    int64_t established_us; /* first saw an admission of our epoch; 0: never */
    bool has_median;        /* a majority of the clocks is known: … */
    int64_t median_ahead_us; /* … their median minus our clock */
};

/* The greatest TTL that any server is known to allow, ms. */
int64_t eligibility_greatest_ttl_ms(const struct admission *admission);

/* Q: how long a node that lost its memory does not vote if too few others can
 * be asked, µs. */
int64_t eligibility_quarantine_us(const struct admission *admission);

/*
 * For how much longer the node is in quarantine, at most, including the wait
 * for a first start before it; 0: it is in none, or it has ended.
 */
int64_t eligibility_remaining_us(const struct admission *admission, int node,
                                 int64_t now_us);

/*
 * Why no node is admitted: another configuration was seen on some node within
 * Q · a new configuration is not on all nodes yet.
 */
bool eligibility_has_foreign(const struct admission *admission, int64_t now_us);
bool eligibility_has_taken_over(const struct admission *admission);

/*
 * Whether a later birth is known under its name than that of its admission or
 * mark: another machine answers to it, and this one does not count · whether
 * the other one is silent for so long that this one may be marked anew.
 */
bool eligibility_is_outdated(const struct admission *admission, int node);
bool eligibility_may_renew(const struct admission *admission, int node,
                           int64_t now_us);

/* A look at an admitted node told this of its promises, and, through witness,
 * of the births of others. */
void eligibility_on_told(struct admission *admission, int node,
                         const struct call_look *look, int64_t now_us);

/*
 * Each connected node was looked at since then; INT64_MAX: none is connected.
 * A node that answers with errors counts as not connected.
 */
int64_t eligibility_looked_us(const struct admission *admission);

/* Whether a marked node should be admitted · readmitted. */
bool eligibility_is_due(const struct admission *admission, int node,
                        int64_t now_us);
bool eligibility_is_back(const struct admission *admission, int node,
                         int64_t now_us);

#endif
