/*
 * The engine: locks over N masters, behind a port. It does no I/O and reads no
 * clock, so the simulator runs it whole.
 *
 * Six lifetimes, each with its own owner:
 *
 *   request        one HTTP request; owned by api/http/connection, driven by
 *     │            api/exchange; awaits its operation
 *     └ operation  acquire, extend, release, force or inspect: one or more
 *         │        rounds; from engine_acquire… to engine_close or
 *         │        engine_abandon
 *         └ round  one call to all nodes; ends with its verdict. Later replies
 *             │    are recognised by their tag, and do not count
 *             └ vote  one reply that a node owes; in the link's queue
 *
 *   release        a key to delete after a lost or abandoned grant, or for a
 *                  client; outlives its operation, until every node has
 *                  answered or the TTL has passed
 *   repair         a key to set where an extend found none; outlives its
 *                  operation by two node timeouts
 */
#ifndef REDLOCKD_ENGINE_H
#define REDLOCKD_ENGINE_H

#include "../lock/lock.h"
#include "page.h"
#include "rounds/result.h"

struct engine; /* made by engine_new of port.h */

/* A handle on an operation: slot and generation; 0 is none. */
typedef uint64_t engine_op;

/* ---- what clients ask -------------------------------------------------- */

/* An acquire. */
struct engine_acquire {
    struct span resource; /* one name, or several: see names.h */
    struct span owner;    /* may be empty */
    struct span key_hash; /* of an idempotency key, base64url; empty: none */
    int64_t ttl_ms;       /* within the limits */
    int64_t wait_ms;      /* waits for so long while the lock is held, at most
                             WAIT_MAX_MS; 0: not at all */
};

/*
 * Each starts an operation for client; port.answer is called exactly once when
 * it has its outcome. All spans are copied. 0: no memory, or too many
 * operations; then answer is not called.
 *
 * acquire  if the resource is held by a lock with this key hash that was
 * granted before, its holder gets it again: with another token, and the old one
 *          ends
 * extend   the token must have our form (token_is_ours), and is compared as
 *          bytes; ttl_ms as for acquire
 * release  the token as for extend
 * force    releases the lock with this fencing number, whoever holds it; what a
 *          minority of nodes still has of it, too
 */
engine_op engine_acquire(struct engine *engine,
                         const struct engine_acquire *acquire, void *client);
engine_op engine_extend(struct engine *engine, struct span resource,
                        struct span token, int64_t ttl_ms, void *client);
engine_op engine_release(struct engine *engine, struct span resource,
                         struct span token, void *client);
engine_op engine_force(struct engine *engine, struct span resource,
                       int64_t number, void *client);
engine_op engine_inspect(struct engine *engine, struct span resource,
                         void *client);

/*
 * Begins a page of the locks that a majority has, each alone: of a lock of
 * several resources each is shown. Operation, answer and 0 as above. For such
 * an operation engine_take_page and engine_page_lock take the place of
 * engine_take; the lock lives as long.
 *
 * What is held from the first page to the last is shown, unless a repair sets
 * it meanwhile on a node that was scanned before. Nothing is shown twice,
 * unless a node's table of keys shrinks meanwhile.
 */
engine_op engine_list(struct engine *engine, const struct engine_list *list,
                      void *client);
const struct engine_page *engine_take_page(const struct engine *engine,
                                           engine_op op);
const struct engine_result *engine_page_lock(struct engine *engine,
                                             engine_op op, int n);

/*
 * The final result, as of now_us; OUTCOME_PENDING before port.answer. If a
 * grant or extension has no time left by then, the result is
 * OUTCOME_VALIDITY_EXHAUSTED, and the grant is released. op must be open; the
 * result lives as long.
 */
const struct engine_result *engine_take(struct engine *engine, engine_op op,
                                        int64_t now_us);

/*
 * The same without a look at the time: as it was when it was decided. Before
 * that, only the resource is known.
 */
const struct engine_result *engine_peek(const struct engine *engine,
                                        engine_op op);

/* The client has its answer: the operation ends. */
void engine_close(struct engine *engine, engine_op op);

/*
 * The client left without an answer: the operation ends, and what it was or may
 * still be granted is released. True: it had been granted.
 */
bool engine_abandon(struct engine *engine, engine_op op);

/*
 * Answers every acquire that waits, and those that would wait from now on:
 * OUTCOME_STOPPED. What is granted at this moment stays granted.
 */
void engine_stop_waiting(struct engine *engine);

/* ---- what operators see ------------------------------------------------ */

struct engine_node_view {
    const char *state;            /* "voting", "unreachable", "loading", … */
    char detail[NODE_DETAIL_MAX]; /* one sentence */
    int64_t quarantine_us;        /* it will not vote for this long; 0: none */
    bool is_voting;
    int64_t since_us; /* in this state since, clock_now_us() */
    bool has_clock;
    int64_t clock_offset_us; /* node's clock minus the median of all */
    uint64_t clock_steps;    /* seen so far */
    int64_t rtt_us;          /* last round trip; 0 unknown */
    bool is_connected;
    bool is_durable; /* while connected: it forgets nothing when it restarts */
};

void engine_view_node(const struct engine *engine, int node,
                      struct engine_node_view *view);

/* Nodes that may vote now, and the majority that is needed. */
int engine_voting(const struct engine *engine);
int engine_quorum(const struct engine *engine);

/*
 * How long until a quorum may vote, as quarantines end, µs; 0: it may now, or
 * that is unknown.
 */
int64_t engine_quorum_in_us(const struct engine *engine);

/* Acquires that may wait at once. */
int engine_waiters_max(const struct engine *engine);

/* Operations that have no outcome yet. */
int engine_in_flight(const struct engine *engine);

#endif
