/* SPDX-License-Identifier: MIT */
/*
 * The engine's port to the outside world, and its settings. The service
 * connects it to links, clock and timers (world.c), the simulator to simulated
 * nodes.
 */
#ifndef REDLOCKD_PORT_H
#define REDLOCKD_PORT_H

#include "../../base/entries.h"
#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../../lock/metrics.h"
#include "call.h"

/* ---- hashes -------------------------------------------------------------- */

/* FNV-1a, 64 bits: finds mistakes and changes, not attacks. Goes on from a
 * hash, at first HASH_BASIS. */
#define HASH_BASIS UINT64_C(0xcbf29ce484222325)
uint64_t hash_go_on(uint64_t hash, struct span bytes);

enum { FINGERPRINT_LEN = 16 };

/*
 * Of a configuration, on which all servers of the same nodes must agree: a hash
 * in hex digits, the last two of which are the number of nodes in decimal.
 * names: of each node, in any order, at most NODES_MAX; they say nothing of
 * TLS, so that it can be switched on in a running service.
 */
void fingerprint_make(char hex[FINGERPRINT_LEN + 1], const char *const names[],
                      int count, int quorum);

/* How many nodes a configuration has; 0: this is no fingerprint of ours. */
int fingerprint_names(const char *hex);

/* The hash of one node's name, in hex digits. */
void fingerprint_of_name(char hex[FINGERPRINT_LEN + 1], const char *name);

/* ---- the port ------------------------------------------------------------ */

/*
 * The functions that the engine calls. ctx is the first argument of each.
 *
 * send    queues the call for a node; contract as link_send
 * now     CLOCK_BOOTTIME in µs, fresh
 * random  writes unpredictable bytes to a buffer
 * timer   calls engine_on_timer(id) once, not before at_us; 0 stops it;
 *         setting it again replaces it. Ids are small dense integers. Only
 *         the first call for an id may fail (false: no memory)
 * answer  tells this client that the outcome is known; may be called before
 *         engine_acquire and its like have returned. May call engine_take, but
 *         neither begin nor end an operation
 *
 * listen     opens, or closes, to all nodes the connections on which releases
 *            are announced
 * subscribe  asks a node to announce releases of the resource, or no longer;
 *            ignored while that connection is not up
 */
struct engine_port {
    void *ctx;
    enum vote (*send)(void *ctx, int node, const struct call *call,
                      uint64_t tag);
    int64_t (*now)(void *ctx);
    void (*random)(void *ctx, void *buf, size_t len);
    bool (*timer)(void *ctx, uint32_t id, int64_t at_us);
    void (*answer)(void *ctx, void *client);
    void (*listen)(void *ctx, bool is_on);
    void (*subscribe)(void *ctx, int node, struct span resource, bool is_on);
};

struct engine_settings {
    int nodes;
    const char *node_names[NODES_MAX];     /* borrowed */
    const char *node_addresses[NODES_MAX]; /* for people; borrowed, or NULL */
    int64_t node_timeout_us;
    int64_t max_ttl_ms;
    int64_t max_hold_ms; /* by extending a lock; 0: without limit */
    int readers_max;     /* of one lock, as far as acquires add to them */
    int64_t retry_delay_us;
    int retry_count; /* rounds after the first */
    int waiters_max; /* clients that wait at once, up to WAITERS_MAX */
    double drift_factor;
    char fingerprint[FINGERPRINT_LEN + 1]; /* of the configuration */
    int config_epoch;                      /* at least 1 */
    enum first_start first_start;
    enum ask_mode ask;
    bool has_take_over;
    bool is_guard_off;
    bool is_observer; /* only examines the nodes, and changes nothing there */
};

/* What all parts of the engine share. */
struct environment {
    struct engine_settings settings;
    struct engine_port port;
    struct metrics *metrics; /* borrowed */
};

static inline int64_t environment_now(const struct environment *environment)
{
    return environment->port.now(environment->port.ctx);
}

/* An unpredictable number. */
static inline uint64_t environment_random(const struct environment *environment)
{
    uint64_t random;
    environment->port.random(environment->port.ctx, &random, sizeof random);
    return random;
}

struct engine;

/* Copies settings and port; metrics is borrowed. NULL: no memory. */
struct engine *engine_new(const struct engine_settings *settings,
                          const struct engine_port *port,
                          struct metrics *metrics);
void engine_free(struct engine *engine);

/* ---- events of the nodes and the loop ------------------------------------ */

void engine_on_node_up(struct engine *engine, int node,
                       const struct node_facts *facts);
void engine_on_node_down(struct engine *engine, int node,
                         enum node_state reason, const char *detail);
/* A new connection found the same server under the node's name. */
void engine_on_node_confirmed(struct engine *engine, int node,
                              const struct node_facts *facts);
void engine_on_reply(struct engine *engine, int node, uint64_t tag,
                     const struct call_reply *reply, int64_t sent_us,
                     int64_t received_us);
void engine_on_timer(struct engine *engine, uint32_t id);

/*
 * Of the connections on which releases are announced:
 *
 * up          connected; the node announces nothing yet
 * down        what was subscribed is forgotten
 * subscribed  from now on releases of the resource are announced; empty: the
 *             heartbeats
 * announced   a release of the lock with this number, 0 unknown; empty: a
 *             heartbeat
 */
void engine_on_listener_up(struct engine *engine, int node);
void engine_on_listener_down(struct engine *engine, int node);
void engine_on_subscribed(struct engine *engine, int node,
                          struct span resource);
void engine_on_announced(struct engine *engine, int node, struct span resource,
                         int64_t number);

/* ---- handles and tags ---------------------------------------------------- */

/*
 * Whose a reply is, whose a timer, and what a client's handle refers to.
 *
 * The tag that travels with a call is the handle of its sender, with the
 * purpose of the call in the user's bits.
 */

enum tag_kind {
    TAG_OPERATION,
    TAG_RELEASE,
    TAG_ADMISSION,
    TAG_SPREAD,
    TAG_SCAN,
    TAG_SLOTS
};

/* In the user's bits of the handles that clients get. */
enum handle_kind { HANDLE_OPERATION, HANDLE_TICKET, HANDLE_LISTING };

static inline enum handle_kind handle_kind_of(uint64_t handle)
{
    return (enum handle_kind)entries_user_bits(handle);
}

/* An operation's round: --retry-count is at most 100. */
enum { TAG_ROUND_BITS = 7, TAG_ROUNDS = 1 << TAG_ROUND_BITS };

static inline unsigned tag_bits(enum tag_kind kind, unsigned round)
{
    return (unsigned)kind << TAG_ROUND_BITS | round % TAG_ROUNDS;
}

static inline enum tag_kind tag_kind_of(uint64_t tag)
{
    return (enum tag_kind)(entries_user_bits(tag) >> TAG_ROUND_BITS);
}

static inline unsigned tag_round_of(uint64_t tag)
{
    return entries_user_bits(tag) % TAG_ROUNDS;
}

/*
 * A release that is repeated, from a queue of this kind. Other releases have
 * the round 0.
 */
static inline uint64_t tag_debt(unsigned kind, uint32_t number)
{
    return (uint64_t)number << 32 | (uint64_t)tag_bits(TAG_RELEASE, 1 + kind)
                                        << ENTRIES_INDEX_BITS;
}

static inline bool tag_is_debt(uint64_t tag)
{
    return tag_kind_of(tag) == TAG_RELEASE && tag_round_of(tag) != 0;
}

static inline unsigned tag_debt_kind_of(uint64_t tag)
{
    return tag_round_of(tag) - 1;
}

static inline uint32_t tag_debt_number_of(uint64_t tag)
{
    return (uint32_t)(tag >> 32);
}

/* Of a call that has no handle; TAG_RELEASE: its answer is ignored. */
static inline uint64_t tag_plain(enum tag_kind kind)
{
    return (uint64_t)tag_bits(kind, 0) << ENTRIES_INDEX_BITS;
}

/*
 * The ids of the port's timers: 0 is the engine's tick. The others belong to
 * their owners in turn, so that the numbers stay small.
 */
enum { TIMER_TICK = 0 };

enum timer_owner {
    TIMER_OPERATION,
    TIMER_TICKET,
    TIMER_POOL,
};

enum { TIMER_OWNERS = TIMER_POOL + 1 };

/* The id of the owner's object with this index. */
static inline uint32_t timer_id(enum timer_owner owner, uint32_t index)
{
    return 1 + index * TIMER_OWNERS + (uint32_t)owner;
}

static inline enum timer_owner timer_owner_of(uint32_t id)
{
    return (enum timer_owner)((id - 1) % TIMER_OWNERS);
}

static inline uint32_t timer_index_of(uint32_t id)
{
    return (id - 1) / TIMER_OWNERS;
}

#endif
