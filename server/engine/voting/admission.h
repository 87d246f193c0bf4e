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

#include "eligibility.h"

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
