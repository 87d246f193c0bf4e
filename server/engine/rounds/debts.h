/*
 * Releases that a node did not answer at once, and still owes. They are sent
 * while the node is connected, in order and a few hundred at a time, until it
 * answers or the TTL has passed.
 *
 * A disconnected node has only locks that were acquired before it disconnected,
 * unless another server still reaches it. The token's number tells when that
 * was. Older locks are surely there and come first; the others may use only
 * half of the memory.
 *
 * So a node has two queues. They are compact, as they grow to millions while
 * the node is unreachable for long.
 *
 *       ┌─ oldest            ┌─ next to send           ┌─ newest
 *   ────┴────────────────────┴─────────────────────────┴────
 *         sent: at most DEBTS_WINDOW, answered or not
 *
 * An answered release leaves the queue. A refused one goes to its end, as the
 * node may refuse it for long. If the connection breaks, the unanswered ones
 * are next again.
 */
#ifndef REDLOCKD_DEBTS_H
#define REDLOCKD_DEBTS_H

#include "../../lock/lock.h"
#include "../voting/nodes.h"

/* At most this many at once, so that no other call waits long. */
enum { DEBTS_WINDOW = 512, DEBTS_BLOCK = 64 * 1024 };

enum debt_kind { DEBT_SURE, DEBT_UNLIKELY, DEBT_KINDS };

struct debt_block;
struct debt_head;

struct debt_queue {
    struct debt_block *first, *last;
    struct debt_block *next_block;
    size_t first_at, next_at; /* bytes into the blocks */
    uint32_t first_number, next_number;
    uint32_t in_flight;
    struct debt_head *sent[DEBTS_WINDOW]; /* by number */
};

struct debts {
    const struct environment *env;
    struct nodes *nodes;
    size_t limit; /* of the bytes; a multiple of DEBTS_BLOCK is used */
    size_t bytes; /* of all queues */
    uint64_t items;
    struct debt_queue queue[NODES_MAX][DEBT_KINDS];
    int64_t seen_us[NODES_MAX];   /* last connected */
    int64_t paused_us[NODES_MAX]; /* sends nothing before, after a refusal */
    uint64_t told;                /* drops that the log has reported */
    int64_t told_us;              /* time of the last report */
};

void debts_init(struct debts *debts, struct nodes *nodes);
void debts_fini(struct debts *debts);

/* The node owes the release of this lock until then. Nothing can set the key
 * there any more. */
void debts_add(struct debts *debts, int node, struct span resource,
               struct span token, int64_t until_us);

/* A reply to a call with a tag that tag_is_debt. */
void debts_on_reply(struct debts *debts, int node, uint64_t tag, enum vote vote,
                    int64_t now_us);

/* The node is connected again: sends what it owes. */
void debts_on_up(struct debts *debts, int node, int64_t now_us);

void debts_tick(struct debts *debts, int64_t now_us);

#endif
