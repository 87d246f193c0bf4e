/*
 * Who may vote: the state of one node as this server sees it. Pure: events
 * come in, the state changes, and the caller asks what to do.
 *
 *             up                    admit done
 *   DOWN ──────────→ ADMITTING ───────────────────→ VOTING
 *     ↑                 ↑  │ refused: named, again     │
 *     │ down            │  └──── at the next heartbeat │
 *     └─────────────────┴──────────────────────────────┘
 *                         a vote came back QUARANTINED
 *
 * The permission to vote lies on the node: the field admit of its state hash,
 * which acquire and extend compare. It is lost with the node's memory.
 */
#ifndef REDLOCKD_GUARD_H
#define REDLOCKD_GUARD_H

#include "types.h"
#include "vote.h"

enum {
    GUARD_RUN_ID_LEN = 40,
    GUARD_FINGERPRINT_LEN = 16,
    GUARD_ADMIT_MAX = 20 + 1 + GUARD_FINGERPRINT_LEN + 1 + GUARD_RUN_ID_LEN,
    GUARD_DETAIL_MAX = 160,
};

enum guard_phase { GUARD_DOWN, GUARD_ADMITTING, GUARD_VOTING };

struct guard {
    enum guard_phase phase;
    enum vote refusal; /* why it does not vote; VOTE_DONE: no reason */
    char detail[GUARD_DETAIL_MAX];
    char admit[GUARD_ADMIT_MAX + 1]; /* what the node must carry */
};

/* A node nobody has tried to reach yet. */
void guard_init(struct guard *guard);

/*
 * The events; each returns true if the state that people see has changed.
 *
 * up     a handshake succeeded: epoch, fingerprint, run_id make the admission
 * down   there is no connection, for this reason
 * admit  the answer to a call that writes the admission
 * vote   any other call's vote
 */
bool guard_on_up(struct guard *guard, int epoch, const char *fingerprint,
                 const char *run_id);
bool guard_on_down(struct guard *guard, enum vote reason, const char *detail);
bool guard_on_admit(struct guard *guard, enum vote vote);
bool guard_on_vote(struct guard *guard, enum vote vote);

/* True if acquire and extend may be sent: the node carries the admission. */
bool guard_may_vote(const struct guard *guard);

/* True if it may vote and does not refuse to. */
bool guard_is_voting(const struct guard *guard);

/* Why a call that needs a vote is not sent: unreachable, quarantined. */
enum vote guard_refusal(const struct guard *guard);

/*
 * For people: "connecting", "admitting", "voting" or the name of the refusal.
 * Static.
 */
const char *guard_state(const struct guard *guard);

/*
 * The hash of what all servers on these nodes must agree on, in hex digits.
 * names: "host:port/db" of each node, in any order.
 */
void guard_fingerprint(char hex[GUARD_FINGERPRINT_LEN + 1],
                       const char *const names[], int count, int quorum,
                       int64_t max_ttl_ms);

#endif
