/*
 * Who may vote: the permission of each node, as this server sees and manages
 * it. Pure: events come in, and the caller asks what to do next.
 *
 * The permission is stored on the node, in the field admit of its state hash.
 * Acquire and extend compare it; it is lost with the node's memory. A node
 * without it is marked, and waits until everything that it may have forgotten
 * has ended, as the Redlock text asks after a crash. docs/guarantees.md has the
 * rules and the reasons.
 *
 *            up              look
 *   DOWN ────────→ UNSEEN ─────────┬→ EMPTY ──┐ all nodes are: first start
 *    ↑ down          ↑             │          ↓
 *    └── from any    │ a vote says ├→ MARKED ───→ admit, readmit ──┐
 *                    │ quarantined │   eligibility.h says when     │
 *                    │             ├→ FOREIGN, SUPERSEDED, MISNAMED│
 *                    │             ↓                               │
 *                    └────────── ADMITTED ←────────────────────────┘
 *                    └─ revoke ←───┘  its clock stepped
 */
#ifndef REDLOCKD_ADMISSION_H
#define REDLOCKD_ADMISSION_H

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

/* What to do on a node. */
enum admission_action_kind {
    ADMISSION_PROBE, /* a look that marks nothing */
    ADMISSION_LOOK,
    ADMISSION_ADMIT,
    ADMISSION_READMIT,
    ADMISSION_REVOKE,
};

struct admission_action {
    enum admission_action_kind kind;
    int node;
};

/* settings are copied. No node is connected yet. */
void admission_init(struct admission *admission,
                    const struct admission_settings *settings);

/*
 * The next action at now_us; false: nothing to do. It counts as begun: the
 * caller reports its end by admission_on_look, admission_on_done,
 * admission_on_failure or admission_on_down.
 */
bool admission_next(struct admission *admission, int64_t now_us,
                    struct admission_action *action);

/*
 * The events.
 *
 * up           a handshake succeeded with the server of this run_id
 * down         the connection broke
 * look         the answer to a probe or look that was sent at sent_us
 * done         the answer to another action, carried out or not
 * failure      an action got no answer, or an error
 * quarantined  a vote found no admission
 * step         its clock stepped: its locks may have ended too early
 * durable      whether it is durable, checked again
 * beat         a reply carried its beat
 * clock        whether the node's clock is known well
 * median       of the clocks minus ours; repeated while a majority is known
 */
void admission_on_up(struct admission *admission, int node, const char *run_id,
                     bool is_durable, int64_t now_us);
void admission_on_down(struct admission *admission, int node);
void admission_on_look(struct admission *admission, int node,
                       const struct call_look *look, int64_t sent_us,
                       int64_t now_us);
void admission_on_done(struct admission *admission,
                       const struct admission_action *action, int64_t now_us);
void admission_on_failure(struct admission *admission,
                          const struct admission_action *action,
                          int64_t now_us);
void admission_on_quarantined(struct admission *admission, int node,
                              int64_t now_us);
void admission_on_step(struct admission *admission, int node);
void admission_on_durable(struct admission *admission, int node,
                          bool is_durable, int64_t now_us);
void admission_on_beat(struct admission *admission, int node, int64_t beat);
void admission_on_clock(struct admission *admission, int node, bool is_good);
void admission_on_median(struct admission *admission, bool is_known,
                         int64_t ahead_us);

/* Whether this server objects to any first start. */
bool admission_is_objecting(const struct admission *admission, int64_t now_us);

/* Looks at a node as soon as no other action is under way there. */
void admission_want_look(struct admission *admission, int node, int64_t now_us);

/* Why the node is not asked for votes; STATE_NONE: it is. */
enum node_state admission_refusal(const struct admission *admission, int node);

/* What it carries is not known now: it came up, was acted upon or refused. */
bool admission_is_unseen(const struct admission *admission, int node);

/*
 * Whether what the node answered in this life still counts: it was not admitted
 * anew since, and no later birth became known under its name.
 */
bool admission_has_memory(const struct admission *admission, int node,
                          uint32_t life);

#endif
