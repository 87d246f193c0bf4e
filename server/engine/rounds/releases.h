/* SPDX-License-Identifier: MIT */
/*
 * Releases under way: keys to delete on the nodes, after a lost or abandoned
 * grant, or for a client.
 *
 * A release is sent at once, after the acquire on the same connections. A node
 * that was unreachable, or answered an error, still owes it, and gets it again
 * until it answers or the TTL has passed (struct debts). That begins when no
 * command of the acquire can run any more: the socket of a broken connection
 * may still hold one, until its deadline has passed.
 *
 * After a client's release, a spread of another server (spreads.h) may set the
 * key again, where it was missing. A majority that deleted the key in time ends
 * that: a spread checks twice for a majority that has the key before it creates
 * it. So only the nodes that did not delete the key are asked again, once no
 * creation behind an earlier check, no acquire and no early replication can run
 * any longer. Without such a majority all nodes are asked again, until none of
 * them has the key. An asking ends when each node has answered it or lost its
 * connection.
 */
#ifndef REDLOCKD_RELEASES_H
#define REDLOCKD_RELEASES_H

#include <sys/queue.h>

#include "../../base/entries.h"
#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../voting/nodes.h"
#include "round.h"

/* ---- what nodes owe ------------------------------------------------------ */

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
 * So a node has two queues. They may grow to millions while it is unreachable
 * for long, so an item is no larger than its texts need.
 *
 *   due ──→ sent: at most DEBTS_WINDOW ──→ answered: it is gone
 *    ↑ ↑     │ │
 *    │ └─────┘ │ refused: to the end, as the node may refuse it for long
 *    └─────────┘ the connection broke: the next ones, when no answer is missing
 */

/* At most this many at once, so that no other call waits long. */
enum { DEBTS_WINDOW = 512 };

enum debt_kind { DEBT_SURE, DEBT_UNLIKELY, DEBT_KINDS };

TAILQ_HEAD(debt_list, debt);

struct debt_queue {
    struct debt_list due, sent;
    uint32_t in_flight; /* of those that are sent; the others are lost */
    uint32_t number;    /* of the next one to send */
};

struct debts {
    const struct environment *env;
    struct nodes *nodes;
    size_t limit; /* of the bytes */
    size_t bytes; /* of all queues */
    uint64_t items;
    struct debt_queue queue[NODES_MAX][DEBT_KINDS];
    int64_t seen_us[NODES_MAX];   /* last connected */
    int64_t paused_us[NODES_MAX]; /* sends nothing before, after a refusal */
    uint64_t reported;            /* drops that the log has reported */
    int64_t reported_us;          /* time of the last report */
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

/* ---- releases ------------------------------------------------------------ */

struct release {
    struct entries_head head;
    TAILQ_ENTRY(release) link;
    uint64_t operation; /* the client's, which counts the votes; 0: none */
    uint16_t owed;      /* bit per node: has not answered this asking */
    uint16_t in_flight; /* bit per node: sent, reply outstanding */
    /* of a client's release: */
    uint16_t asked;    /* bit per node: so far */
    uint16_t deleted;  /* bit per node: had the key, by the first asking */
    uint16_t in_time;  /* bit per node: answered by in_time_us */
    uint16_t again;    /* bit per node: may have the key later */
    bool is_again;     /* not the first asking */
    uint16_t repeated; /* bit per node: had lost our script, and was sent the
                          call once more */
    int64_t tombstone_ms;
    int64_t in_time_us;
    int64_t set_ends_us; /* from then on neither an acquire can set the key, nor
                            a replication that found it before this asking */
    int64_t until_us;    /* end of the TTL: no longer needed */
    struct texts texts;  /* resource and token */
};

/* Which nodes a client's release asks. */
struct release_scope {
    uint16_t nodes;     /* a bit each: those that may have the key */
    int64_t in_time_us; /* no check for a replication begins before that */
};

/* A client's release. */
struct release_ask {
    struct span resource;
    struct span token;
    uint64_t operation;        /* counts the votes */
    const struct round *round; /* when it began, and when it ends */
    struct release_scope scope;
    int64_t tombstone_ms; /* by force: for so long no spread sets the key where
                             the first asking came; 0: it may */
    struct ballot ballots[NODES_MAX]; /* reported by node; PENDING: it was sent;
 STALLED: no memory */
};

struct releases {
    const struct environment *env;
    struct nodes *nodes;
    struct entries entries;
    TAILQ_HEAD(, release) list;
    struct debts debts;
};

void releases_init(struct releases *releases, struct nodes *nodes);
void releases_fini(struct releases *releases);

/*
 * After a lost acquire round: releases the lock on these nodes. Without memory
 * the release is sent once; a node that misses it keeps the key until the TTL
 * ends.
 */
void releases_undo(struct releases *releases, const struct round *round,
                   uint16_t nodes, const struct round_lock *lock);

/*
 * For a client: releases, and tells which nodes were asked. releases_on_reply
 * passes the answers on to the operation. False: no memory, and nothing was
 * sent.
 */
bool releases_ask(struct releases *releases, struct release_ask *ask);

/*
 * A reply to a call with a tag of kind TAG_RELEASE, read at received_us.
 * Returns the operation that counts the vote, or 0.
 */
uint64_t releases_on_reply(struct releases *releases, int node, uint64_t tag,
                           const struct call_reply *reply, int64_t received_us);

/* Whether nodes may have to be asked again for what a client released. */
bool releases_are_open(const struct releases *releases);

/* Repeats what connected nodes owe, drops what has expired. */
void releases_tick(struct releases *releases, int64_t now_us);

#endif
