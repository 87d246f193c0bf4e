/*
 * One operation: what a client asked, its rounds, its outcome.
 *
 *                    start
 *                      │
 *                      ▼   split votes           ┌─────────┐
 *   stale, late ┌─── ROUND ───────────────────→  │  PAUSE  │
 *   or silent:  └──→ │ ↑                         └────┬────┘
 *   again at once    │ └──── random delay ────────────┘
 *                    │ verdict, or no rounds left
 *                    ▼
 *                 SETTLED ──→ close | abandon
 *                    │ close of an extension
 *                    ▼
 *                  CLOSED ──→ the last votes are in: repairs.h
 *
 * Each lost acquire round is released on all nodes that may have set the key;
 * each round has a token of its own, so that such a release, however late,
 * never deletes a later round's lock.
 */
#ifndef REDLOCKD_OPERATION_H
#define REDLOCKD_OPERATION_H

#include "../base/slots.h"
#include "nodes.h"
#include "releases.h"
#include "repairs.h"
#include "result.h"
#include "round.h"

enum operation_state {
    OPERATION_ROUND,
    OPERATION_PAUSE,
    OPERATION_SETTLED,
    OPERATION_CLOSED,
};

struct operation {
    struct slots_head head;
    enum operation_state state;
    enum lock_call kind;
    bool is_probe; /* extend: held too long, only asks whether it was */
    bool was_held; /* acquire: some node had another value */
    int rounds;    /* begun so far */
    int64_t ttl_ms;
    int64_t seen_number; /* acquire: a node accepted this number */
    int64_t doubt_us;    /* the round's calls may run later by that */
    void *client;
    size_t resource_len;
    size_t owner_len;
    size_t token_len;
    struct engine_result result;
    struct round round;
    char resource[RESOURCE_MAX];
    char owner[OWNER_MAX];
    char token[TOKEN_MAX];
};

struct operations {
    const struct environment *env;
    struct nodes *nodes;
    struct releases *releases;
    struct repairs *repairs;
    struct slots slots;
    int in_flight; /* without an outcome */
};

/* What a client asks; the spans are borrowed, and copied. */
struct operation_order {
    enum lock_call kind;
    struct span resource;
    struct span token;
    struct span owner;
    int64_t ttl_ms;
    void *client;
};

void operations_init(struct operations *operations, struct nodes *nodes,
                     struct releases *releases, struct repairs *repairs);
void operations_fini(struct operations *operations);

/*
 * Begins an operation and returns its handle, 0 if there is no memory. May
 * call port.answer before it returns.
 */
uint64_t operation_start(struct operations *operations,
                         const struct operation_order *order);

struct operation *operation_find(const struct operations *operations,
                                 uint64_t handle);

/* A node's reply to the call of the round that tag names. */
void operation_on_reply(struct operations *operations, int node, uint64_t tag,
                        const struct call_reply *reply);

/* A node's reply to the release of a client's. */
void operation_on_release(struct operations *operations, int node,
                          uint64_t handle, const struct call_reply *reply);

/* The port's timer with this slot; slot 0 is not for operations. */
void operation_on_timer(struct operations *operations, uint32_t slot);

/* As engine_validity_ms, engine_close, engine_abandon. */
int64_t operation_validity_ms(struct operations *operations,
                              struct operation *it, int64_t now_us);
void operation_close(struct operations *operations, struct operation *it);
void operation_abandon(struct operations *operations, struct operation *it);

#endif
