/* SPDX-License-Identifier: MIT */
/*
 * One operation: a client's request, its attempts, its outcome.
 *
 *                start
 *                  │
 *                  ▼      split votes
 *   at once  ┌── ROUND ────────────────→ PAUSE
 *            └──→ │ ↑                      │
 *                 │ └──── random delay ────┘
 *                 │ verdict, or no attempts left
 *                 ▼
 *              SETTLED ──→ ends by close, abandon or discard
 *                 │
 *                 │ an extension or a grant is closed, or a lost repeat ends
 *                 ▼
 *              CLOSED ──→ ends when the last votes are known: they tell which
 *                         nodes lack the lock (spreads.h), or undo the repeat
 *
 * Each attempt sends the calls of one round. The next one begins at once after
 * a stale number, after too many late or silent nodes, to repeat an earlier
 * acquire, and of a force to release what was found, or to search for more.
 *
 * Each attempt to acquire has its own token, so that the release of a lost
 * attempt, however late, never deletes the lock of a later one. After a lost
 * attempt the key is released on all nodes that may have set it.
 *
 * An acquire that finds the lock held with its own key hash repeats an earlier
 * acquire, whose answer may be lost or in use. (A shared one finds no other
 * holders, so each of its attempts may be a repeat; where a reader with its key
 * is later, nodes report the number.) The next attempt replaces the earlier
 * tokens, and is not undone where it did so: that would take the lock from a
 * client that relies on the earlier answer. If it is lost, the keys that it set
 * expire with their TTL, unless a later attempt replaces them: of a shared lock
 * the attempts of one request have tokens that begin alike, by which nodes
 * distinguish them from those of other requests with its key.
 */
#ifndef REDLOCKD_OPERATION_H
#define REDLOCKD_OPERATION_H

#include "../../base/entries.h"
#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../port/port.h"
#include "../port/token.h"
#include "../voting/nodes.h"
#include "forced.h"
#include "releases.h"
#include "result.h"
#include "round.h"
#include "spreads.h"

/* Who asks, and learns the outcome. */
enum request_owner {
    OWNER_CLIENT, /* port.answer */
    OWNER_WAITER,
    OWNER_INSPECTION, /* a waiter's inspection */
    OWNER_LISTING,
    OWNER_PERMIT,
    OWNER_WATCH, /* the inspection of a lock that is watched */
    OWNERS
};

/* What is asked for. An operation keeps its own copy. */
struct request {
    enum lock_call call;
    bool only_checks; /* extend: checks the token, does not lengthen */
    struct span resource;
    struct span token; /* extend, release */
    struct span owner;
    struct span key_hash;
    int64_t ttl_ms;
    bool is_shared;    /* acquire: others may hold it as well; extend: from
                          now on */
    bool only_repeats; /* acquire of a shared lock with a key: in place of an
                          earlier reader, or not at all */
    bool is_choice;    /* acquire: after split votes its owner goes on, or its
                          outcome is due at once */
    int64_t number;    /* force: of the lock; 0: of all readers */
    int64_t asked_us; /* time of the request by the nodes' clocks; 0: unknown */
    /* acquire of a shared lock with a key: TOKEN_NONCE_BYTES with which the
       tokens of its earlier tries begin; NULL: there were none */
    const unsigned char *nonce;
    uint16_t own;     /* bit per node: an earlier try may be there */
    uint16_t awaited; /* bit per node: no verdict before its answer */
    enum request_owner owned_by;
    void *client;
};

enum operation_state {
    OPERATION_ROUND,
    OPERATION_PAUSE,
    OPERATION_SETTLED,
    OPERATION_CLOSED,
};

struct operation {
    struct entries_head head;
    struct operations *operations;
    enum operation_state state;
    bool was_held; /* acquire: a node had another value */
    struct request request;
    struct forced *forced; /* force; otherwise NULL */

    /* the newest attempt; of earlier ones only seen_number remains */
    int attempts;           /* its number, from 1 on; 0: none has begun */
    int64_t seen_number;    /* acquire: the number of the round under way, or a
                               higher one that nodes have accepted since */
    bool is_repeat;         /* acquire: replaces earlier tokens with its key
                               hash */
    int64_t replaces;       /* the greatest number that the next round replaces
                             */
    int64_t replacing;      /* the same, of the round under way */
    uint16_t fresh;         /* bit per node: set there, without replacing
                               anything, and not undone yet */
    uint16_t own;           /* bit per node: an earlier attempt may be there, or
                               may have been until this one came */
    int64_t uncertainty_us; /* its calls may run so long after the deadline */
    bool has_nonce;         /* of a shared lock with a key: known by now */
    unsigned char nonce[TOKEN_NONCE_BYTES];
    struct round round;
    size_t token_len;
    char token[TOKEN_MAX];

    struct engine_result result;
    struct texts texts; /* resource and owner */
    char key_hash[KEY_HASH_LEN];
};

struct operations {
    const struct environment *env;
    struct nodes *nodes;
    struct spreads *spreads;
    struct releases *releases;
    struct entries entries;
    int in_flight; /* without an outcome */
    /* called with the client; NULL: port.answer is */
    void (*on_settled[OWNERS])(void *client);
};

void operations_init(struct operations *operations, struct nodes *nodes,
                     struct spreads *spreads, struct releases *releases);
void operations_fini(struct operations *operations);

/*
 * Begins an operation. Copies the request, and decides only_checks. Returns its
 * handle; 0: no memory. May call port.answer before it returns.
 */
uint64_t operation_start(struct operations *operations,
                         const struct request *asked);

struct operation *operation_find(const struct operations *operations,
                                 uint64_t handle);

/* A node's reply to a call with this tag, of kind TAG_OPERATION. */
void operation_on_reply(struct operations *operations, int node, uint64_t tag,
                        const struct call_reply *reply);

/* The node's admission may have been read, or its connection is broken. */
void operations_on_probed(struct operations *operations, int node);

/* A node's reply to a client's release, or to one of many that are forced. */
void operation_on_release(struct operations *operations, int node,
                          uint64_t handle, const struct call_reply *reply);

/* The port's timer of the operation with this index. */
void operation_on_timer(struct operations *operations, uint32_t index);

/* As engine_take, engine_close, engine_abandon. */
const struct engine_result *operation_take(struct operation *it,
                                           int64_t now_us);
void operation_close(struct operation *it);
bool operation_abandon(struct operation *it);

/* Its grant is not wanted: it is released, and the outcome is that the lock is
 * held. */
void operation_refuse(struct operation *it);

/*
 * Ends an operation that does not count in the metrics: the lost attempt of a
 * waiter or a permit, or an inspection of this server's own in any state, as it
 * changes nothing on the nodes.
 */
void operation_discard(struct operation *it);

#endif
