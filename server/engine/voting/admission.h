/*
 * The permission to vote of each node, as this server sees and manages it.
 * Pure: events come in, and the caller asks for the next action.
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

/* An action on a node. */
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
                    const struct engine_settings *settings);

/*
 * The next action at now_us; false: there is none. It counts as begun: the
 * caller reports its end by admission_on_look, admission_on_done,
 * admission_on_failure or admission_on_down.
 */
bool admission_next(struct admission *admission, int64_t now_us,
                    struct admission_action *action);

/*
 * The events.
 *
 * up           a handshake succeeded, and told this
 * down         the connection broke
 * look         the answer to a probe or look that was sent at sent_us
 * done         the answer to another action, carried out or not
 * failure      an action got no answer, or an error
 * quarantined  a vote found no admission
 * step         its clock stepped: its locks may have ended too early
 * durable      a later check of whether it is durable
 * beat         a reply carried its beat
 * clock        the node's clock is good, or not
 * median       the median of the clocks minus ours; repeated while it is known
 */
void admission_on_up(struct admission *admission, int node,
                     const struct node_facts *facts, int64_t now_us);
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

/* True if this server objects to any first start. */
bool admission_is_objecting(const struct admission *admission, int64_t now_us);

/* Asks for a look as soon as no other action is under way on the node. */
void admission_want_look(struct admission *admission, int node, int64_t now_us);

/* Why the node is not asked for votes; STATE_NONE: it is. */
enum node_state admission_refusal(const struct admission *admission, int node);

/* True while its admission is unknown: after a connection, an action or a
 * refusal. */
bool admission_is_unseen(const struct admission *admission, int node);

/*
 * True if the node's answers in this life still count: it was not admitted anew
 * since, and no later birth became known under its name.
 */
bool admission_has_memory(const struct admission *admission, int node,
                          uint32_t life);

#endif
