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
 * The next round begins at once after a stale number, after too many late or
 * silent nodes, to repeat an earlier acquire, and of a force to release what
 * was found, or to look for more. A force also pauses before its outcome
 * (attempt.h).
 *
 * After each lost attempt to acquire, the key is released on all nodes that may
 * have set it; attempt.h tells which these are after a repeat.
 */
#ifndef REDLOCKD_OPERATION_H
#define REDLOCKD_OPERATION_H

#include "../../base/slots.h"
#include "../../base/types.h"
#include "../../lock/lock.h"
#include "attempt.h"
#include "result.h"

enum operation_state {
    OPERATION_ROUND,
    OPERATION_PAUSE,
    OPERATION_SETTLED,
    OPERATION_CLOSED,
};

struct operation {
    struct slots_head head;
    struct operations *operations;
    enum operation_state state;
    bool was_held; /* acquire: a node had another value */
    struct request request;
    struct attempt attempt;
    struct engine_result result;
    struct texts texts; /* resource and owner */
    char key_hash[KEY_HASH_LEN];
};

struct operations {
    struct attempt_means means;
    struct slots slots;
    int in_flight; /* without an outcome */
    /* called with the client; NULL: port.answer is */
    void (*on_settled[OWNERS])(void *client);
};

void operations_init(struct operations *operations, struct nodes *nodes,
                     struct spreads *spreads, struct releases *releases);
void operations_fini(struct operations *operations);

/*
 * Begins an operation. Copies the request, and decides only_looks. Returns its
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
void operations_on_looked(struct operations *operations, int node);

/* A node's reply to a client's release. */
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
