/* SPDX-License-Identifier: MIT */
/*
 * The engine: locks over N masters, behind a port. It does no I/O and reads no
 * clock, so the simulator runs it whole.
 *
 * CONTRIBUTING.md tells its lifetimes, and who owns each.
 * Each may end while something that it began is under way. A reply or a timer
 * finds what it is for by handle or index, and is ignored if that is gone:
 *
 *   ends      under way     then
 *
 *   client    round, pause  operation_abandon: an acquire is undone wherever it
 *                           may be set; a lost repeat stays, CLOSED, until its
 *                           last votes tell where. Other calls are abandoned
 *                           only by a process that ends: exchange.h
 *             last votes    of an extension: CLOSED until they tell which nodes
 *                           lack the lock
 *             grant         not delivered: it is released
 *   ticket    try           as the client's; another contender goes on, or the
 *                           slots may be tried again
 *             inspection    of a wait: discarded; of a watch: it is the lock's,
 *                           and goes on for others; without others the next
 *                           tick discards it
 *             query         it is the pool's, and goes on: a pool without users
 *                           takes hints from it and serves nobody, and is not
 *                           forgotten before it ends
 *   listing   scan          ignored; the turn is the next listing's
 *             inspections   discarded
 *   ticket, pool            timer: stopped, or it finds nothing due
 *
 *   node      calls         its link has answered each before
 *                           engine_on_node_down: VOTE_DISCONNECTED
 *   server    tickets       engine_stop_waiting: those that are queued leave at
 *                           once; a try ends first, and grants, or they leave
 *             anything      engine_free calls nobody back
 *
 * Inspections change nothing on the nodes, so they are discarded in any state.
 * Releases and spreads are nobody's: no one can leave them.
 */
#ifndef REDLOCKD_ENGINE_H
#define REDLOCKD_ENGINE_H

#include "../lock/lock.h"
#include "page.h"
#include "rounds/result.h"

struct engine; /* made by engine_new of port.h */

/* A handle on an operation: index and generation; 0 is none. */
typedef uint64_t engine_op;

/* ---- what clients ask ---------------------------------------------------- */

/* An acquire. */
struct engine_acquire {
    struct span resource; /* one name, or several: see names.h */
    struct span owner;    /* may be empty */
    struct span key_hash; /* of an idempotency key, base64url; empty: none */
    int64_t ttl_ms;       /* within the limits */
    int64_t wait_ms;      /* how long to wait while the lock is held, at most
                             WAIT_MAX_MS; 0: do not wait */
    bool is_shared;       /* others may hold it as well, with the same mode */
    int limit;            /* of the resource as a pool: any of so many slots,
                             names.h; 0: the resource itself */
    int permits;          /* so many of them, with a limit: 1 … NAMES_MAX */
    int asker;            /* with a limit: the number of the identity, below
                             ASKERS_MAX; the nodes' time is shared out by it */
    bool is_tried_once;   /* others wait for its outcome: after split votes it
                             is held or without a quorum at once, instead of
                             pausing before another try */
    bool only_repeats;    /* with a limit, a key hash and no wait: grants only
                             what an earlier acquire with this key hash was
                             granted, or the outcome is held */
};

/*
 * Each starts an operation for client and calls port.answer exactly once, when
 * the outcome is known. All spans are copied. Returns 0 if there is no memory,
 * or too many operations; then answer is not called.
 *
 * acquire  a lock that an earlier acquire with the same key hash was granted is
 *          granted again, with a new token; the old token ends
 *          Without a wait, it ends the wait of all that wait here with its key
 *          hash: their client has given them up
 *          With a limit, the result's resource tells which locks were granted;
 *          otherwise it is that of the acquire.
 * extend   the token must have our form (token_is_ours), and is compared as
 *          bytes; ttl_ms as for acquire. is_shared: an exclusive lock becomes
 *          a shared one, and the result has another token
 * release  the token as for extend
 * force    releases the lock with this fencing token, whoever holds it, also
 *          where only a minority of the nodes has it; 0: the locks of all
 *          readers that are there, but no writer's. What is granted after its
 *          answer stays
 */
engine_op engine_acquire(struct engine *engine,
                         const struct engine_acquire *acquire, void *client);

/*
 * Ends the waits here for the resource, or for a permit of this pool, with this
 * key hash: their client has asked again without a wait, and so has given them
 * up. An acquire without a wait does so by itself; this is for one that cannot
 * begin. key_hash empty: does nothing.
 */
void engine_withdraw(struct engine *engine, struct span resource,
                     struct span key_hash, bool is_permit);
engine_op engine_extend(struct engine *engine, struct span resource,
                        struct span token, int64_t ttl_ms, bool is_shared,
                        void *client);
engine_op engine_release(struct engine *engine, struct span resource,
                         struct span token, void *client);
engine_op engine_force(struct engine *engine, struct span resource,
                       int64_t number, void *client);
engine_op engine_inspect(struct engine *engine, struct span resource,
                         void *client);

/* An inspection that is answered when the lock has another version than the one
 * that is known, or after wait_ms, at most WAIT_MAX_MS. */
engine_op engine_watch(struct engine *engine, struct span resource,
                       struct span known, int64_t wait_ms, void *client);

/*
 * Begins a page of the locks that a majority of the nodes has. A lock of
 * several resources appears once for each. Operation, answer and 0 as above;
 * the result is read by engine_take_page and engine_page_lock instead of
 * engine_take, and lives until engine_close.
 *
 * A lock that is held from the first page to the last appears, unless a
 * replication sets it meanwhile on a node that was already scanned. None
 * appears twice, unless a node's hash table shrinks meanwhile.
 */
engine_op engine_list(struct engine *engine, const struct engine_list *list,
                      void *client);
/* Permits of this pool that are waited for here. */
int engine_pool_waiters(const struct engine *engine, struct span pool);

const struct engine_page *engine_take_page(struct engine *engine, engine_op op);
const struct engine_result *engine_page_lock(struct engine *engine,
                                             engine_op op, int n);

/*
 * The final result, as of now_us; OUTCOME_PENDING before port.answer. If no
 * validity is left by then, the outcome is OUTCOME_VALIDITY_EXHAUSTED, and a
 * grant is released. op must be open; the result lives until it is closed.
 */
const struct engine_result *engine_take(struct engine *engine, engine_op op,
                                        int64_t now_us);

/* The result as it was decided, without a check of the time. Before that, only
 * the resource is known. */
const struct engine_result *engine_peek(const struct engine *engine,
                                        engine_op op);

/* Ends the operation; the client has its answer. */
void engine_close(struct engine *engine, engine_op op);

/* Ends the operation of a client that left without an answer, and releases its
 * grant, or what may still become one. True: the lock had been granted. */
bool engine_abandon(struct engine *engine, engine_op op);

/* Answers OUTCOME_STOPPED to every acquire or watch that waits, or would wait
 * from now on. Grants stay. */
void engine_stop_waiting(struct engine *engine);

/* Whether a release, which was answered, may have to be sent once more: a
 * server that ends before leaves a key to its TTL. */
bool engine_is_releasing(const struct engine *engine);

/* Before engine_free: sends at once what is to be sent later. */
void engine_stop(struct engine *engine);

/* ---- what operators see -------------------------------------------------- */

struct engine_node_view {
    const char *name, *address;   /* as in the settings */
    const char *state;            /* "voting", "unreachable", "loading", … */
    char detail[NODE_DETAIL_MAX]; /* one sentence */
    int64_t quarantine_us;        /* until it votes again, at most; 0: none */
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

/* The number of nodes that may vote now. */
int engine_voting(const struct engine *engine);

/*
 * False while too few nodes for a majority vote, or are above maxmemory and
 * vote for what is held. It must have lasted for a second, or a request failed
 * for it: where a node restarts, the votes of others may be back a reply later.
 */
bool engine_has_quorum(const struct engine *engine);

/* How long until enough quarantines have ended for a quorum, µs; 0: there is
 * one, or the time is unknown. */
int64_t engine_quorum_in_us(const struct engine *engine);

/* As outlook_make of voting/outlook.h, for an engine that only observes. */
struct outlook;
void engine_outlook(const struct engine *engine, int64_t since_us,
                    struct outlook *outlook);

/* Clients that may wait at once. */
int engine_waiters_max(const struct engine *engine);

/* Operations that have no outcome yet. */
int engine_in_flight(const struct engine *engine);

#endif
