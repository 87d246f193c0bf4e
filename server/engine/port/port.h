/*
 * The engine's port to the outside world, and its settings. The service
 * connects it to links, clock and timers (world.c), the simulator to simulated
 * nodes.
 */
#ifndef REDLOCKD_PORT_H
#define REDLOCKD_PORT_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../../lock/metrics.h"
#include "call.h"
#include "fingerprint.h"
#include "vote.h"

/*
 * The functions that the engine calls. ctx is the first argument of each.
 *
 * send    queues the call for a node; contract as link_send
 * now     CLOCK_BOOTTIME in µs, fresh
 * random  fills a buffer with unpredictable bytes
 * timer   calls engine_on_timer(slot) once, not before at_us; 0 stops it;
 *         setting it again replaces it. Slots are small dense integers. Only
 *         the first call for a slot may fail (false: no memory)
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
    bool (*timer)(void *ctx, uint32_t slot, int64_t at_us);
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
    bool is_observer; /* only looks at the nodes, and changes nothing there */
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

/* ---- events of the nodes and the loop ----------------------------------- */

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
void engine_on_timer(struct engine *engine, uint32_t slot);

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

#endif
