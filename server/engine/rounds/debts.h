/*
 * Releases that a node did not answer at once, and still owes. They are sent
 * while the node is connected, in order and a few hundred at a time, until it
 * answers or the TTL has passed.
 *
 * A disconnected node has only locks that were acquired before it disconnected,
 * unless another server still reaches it. The token's number tells when that
 * was. Older locks are surely there and come first; the others may use only
 * half of the memory.
 */
#ifndef REDLOCKD_DEBTS_H
#define REDLOCKD_DEBTS_H

#include "../../lock/lock.h"
#include "../voting/nodes.h"
#include "owed.h"

enum debt_kind { DEBT_SURE, DEBT_UNLIKELY, DEBT_KINDS };

struct debts {
    const struct environment *env;
    struct nodes *nodes;
    struct owed_store store;
    struct owed queue[NODES_MAX][DEBT_KINDS];
    int64_t seen_us[NODES_MAX];   /* last connected */
    int64_t paused_us[NODES_MAX]; /* sends nothing before, after a refusal */
    uint64_t told;                /* drops that the log has reported */
    int64_t told_us;              /* time of the last report */
};

void debts_init(struct debts *debts, struct nodes *nodes);
void debts_fini(struct debts *debts);

/* The node owes this release. Nothing can set the key there any more. */
void debts_add(struct debts *debts, int node, const struct owed_item *item);

/* A reply to a call with a tag that tag_is_debt. */
void debts_on_reply(struct debts *debts, int node, uint64_t tag, enum vote vote,
                    int64_t now_us);

/* The node is connected again: sends what it owes. */
void debts_on_up(struct debts *debts, int node, int64_t now_us);

void debts_tick(struct debts *debts, int64_t now_us);

#endif
