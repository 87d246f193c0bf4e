/*
 * Who may vote: the permission of each node, as this server sees and manages
 * it. Pure: events come in, and the caller asks what to do next.
 *
 * The permission lies on the node, in the field admit of its state hash, which
 * acquire and extend compare; it is lost with the node's memory. A node without
 * it is marked, and waits in quarantine until whatever it has forgotten is
 * over: a bit more than the greatest TTL, as the Redlock text asks after a
 * crash. server/GUARANTEES.md has the rules and the reasons.
 *
 *            up              look
 *   DOWN ────────→ UNSEEN ─────────┬→ EMPTY ──┐ all nodes are: first start
 *    ↑ down          ↑             │          ↓
 *    └── from any    │ a vote says ├→ MARKED ───→ admit, readmit ──┐
 *                    │ quarantined │   a timer for each mark       │
 *                    │             ├→ FOREIGN                      │
 *                    │             ↓                               │
 *                    └────────── ADMITTED ←────────────────────────┘
 *                    └─ revoke ←───┘  its clock stepped, its beat fell back
 */
#ifndef REDLOCKD_GUARD_H
#define REDLOCKD_GUARD_H

#include "fingerprint.h"
#include "firststart.h"
#include "script.h"
#include "types.h"
#include "vote.h"

enum {
    GUARD_STATE_MAX = SCRIPT_STATE_MAX, /* of an admission or a mark */
    GUARD_DETAIL_MAX = 200,
};

struct guard_settings {
    int nodes;
    int lead;  /* the node that is marked first: of the least name */
    int epoch; /* at least 1 */
    char fingerprint[FINGERPRINT_LEN + 1];
    int64_t max_ttl_ms;
    int64_t node_timeout_us;
    enum first_start first_start; /* auto: durable nodes only */
    bool has_take_over; /* a node that cannot be marked is dead for good */
    bool is_off;        /* admit at sight */
};

enum guard_phase {
    GUARD_DOWN,
    GUARD_UNSEEN,
    GUARD_EMPTY,
    GUARD_MARKED,
    GUARD_ADMITTED,
    GUARD_FOREIGN,
};

struct guard_node {
    enum guard_phase phase;
    bool is_durable;      /* now, as the handshake has seen it */
    bool is_clock_good;   /* for a readmission */
    bool is_busy;         /* a call of the guard is on its way */
    bool is_mute;         /* the last look at it failed */
    bool must_revoke;     /* lost locks before their time */
    bool is_foreign;      /* when it was last looked at */
    bool is_of_epoch;     /* was seen with our epoch */
    bool may_readmit;     /* what was found tells so; not tried yet */
    bool is_beat_of_life; /* the beat was seen under this run_id */
    char admit[GUARD_STATE_MAX + 1]; /* what it must carry */
    char found[GUARD_STATE_MAX + 1]; /* another admission that it has */
    char mark[GUARD_STATE_MAX + 1];  /* in quarantine under it; "": none */
    char spent[GUARD_STATE_MAX + 1]; /* a mark that led to an admission */
    int64_t marked_us;               /* first sight of the mark */
    int64_t look_due_us;
    int64_t not_before_us; /* the last action failed */
    int64_t looked_us; /* when the last answered look had left; 0: none did */
    int64_t beat_us;   /* highest seen; node's clock */
};

struct guard {
    struct guard_settings settings;
    struct guard_node node[NODES_MAX];
    struct firststart start;
    int64_t max_ttl_ms;  /* greatest seen on any node */
    int64_t entered_us;  /* when the last node was first seen in our epoch */
    int superseded_by;   /* a higher epoch was seen; 0: none */
    bool is_established; /* somebody admitted in our epoch */
};

/* What is to be done on a node. */
enum guard_action_kind {
    GUARD_PEEK, /* a look that marks nothing */
    GUARD_LOOK,
    GUARD_ADMIT,
    GUARD_READMIT,
    GUARD_REVOKE,
};

struct guard_action {
    enum guard_action_kind kind;
    int node;
};

/* settings are copied. No node is connected yet. */
void guard_init(struct guard *guard, const struct guard_settings *settings);

/*
 * The next thing to do at now_us; false: nothing. It counts as begun: its end
 * is to be told by one of guard_on_look, guard_on_done and guard_on_failure,
 * or by guard_on_down.
 */
bool guard_next(struct guard *guard, int64_t now_us,
                struct guard_action *action);

/*
 * The events.
 *
 * up           a handshake succeeded with the server of this run_id
 * down         its connection is gone
 * look         the answer to a peek or look that had left at sent_us
 * done         that to another action: true done, false the state was another
 * failure      no answer to an action, or an error
 * quarantined  a vote found the admission gone
 * step         its clock stepped: what it holds may have ended too early
 * durable      whether it is, seen again; clock: whether it is known well
 */
void guard_on_up(struct guard *guard, int node, const char *run_id,
                 bool is_durable, int64_t now_us);
void guard_on_down(struct guard *guard, int node);
void guard_on_look(struct guard *guard, int node,
                   const struct script_look *look, int64_t node_now_us,
                   int64_t sent_us, int64_t now_us);
void guard_on_done(struct guard *guard, const struct guard_action *action,
                   bool is_done, int64_t node_now_us, int64_t now_us);
void guard_on_failure(struct guard *guard, const struct guard_action *action,
                      int64_t now_us);
void guard_on_quarantined(struct guard *guard, int node, int64_t now_us);
void guard_on_step(struct guard *guard, int node);
void guard_on_durable(struct guard *guard, int node, bool is_durable,
                      int64_t now_us);
void guard_on_clock(struct guard *guard, int node, bool is_good);

/* Looks at a node as soon as nothing else is on its way there. */
void guard_want_look(struct guard *guard, int node, int64_t now_us);

/* Why the node may not be asked for votes; VOTE_DONE: it may. */
enum vote guard_refusal(const struct guard *guard, int node);

/* Q: how long a node that lost its memory does not vote, µs. */
int64_t guard_quarantine_us(const struct guard *guard);

/*
 * How long the node's quarantine lasts on, at most, with the wait for a first
 * start before it; 0: it is in none, or it is over.
 */
int64_t guard_remaining_us(const struct guard *guard, int node, int64_t now_us);

/* Why no node is admitted: another configuration was seen on some node · not
 * all nodes carry our epoch yet, and that is how a new one begins. */
bool guard_has_foreign(const struct guard *guard);
bool guard_has_taken_over(const struct guard *guard);

#endif
