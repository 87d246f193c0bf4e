/*
 * Permits: at most so many holders of one resource, its limit.
 *
 * A permit is a lock on a slot of the pool, or several: "pool#0" to
 * "pool#limit - 1" are locks like all others, so a permit has all that a lock
 * has. What is new is to find a free slot: serving.h tells how.
 */
#ifndef REDLOCKD_PERMITS_H
#define REDLOCKD_PERMITS_H

#include "serving.h"

void permits_init(struct permits *permits, struct nodes *nodes,
                  struct operations *operations, struct waits *waits);
void permits_fini(struct permits *permits);

/* What is asked for, beside the request, whose resource is the pool's name. */
struct permits_wish {
    int limit;
    int count;       /* of slots, all or none */
    int64_t wait_ms; /* 0: it does not wait */
};

/* As operation_start. permits_owns is true for its handle. */
uint64_t permits_start(struct permits *permits, const struct request *asked,
                       const struct permits_wish *wish);
bool permits_owns(uint64_t handle);

/* As engine_take, engine_peek, engine_close, engine_abandon. */
const struct engine_result *permits_take(struct permits *permits,
                                         uint64_t handle, int64_t now_us);
const struct engine_result *permits_peek(const struct permits *permits,
                                         uint64_t handle);
void permits_close(struct permits *permits, uint64_t handle);
bool permits_abandon(struct permits *permits, uint64_t handle);

/* As engine_stop_waiting. */
void permits_stop(struct permits *permits);

/* How many permits of the pool wait; name: without its "#". */
int permits_waiting(const struct permits *permits, struct span name);

/*
 * A release of these locks was just sent to the nodes: calls that are sent now
 * arrive behind it.
 */
void permits_on_release(struct permits *permits, struct span names);

/* A node announced a release to so many connections, of all servers. */
void permits_on_listeners(struct permits *permits, struct span names,
                          int64_t listeners);

/* The events of port.h; resource: a slot's name. */
void permits_on_announced(struct permits *permits, int node,
                          struct span resource, int64_t number);

/* The port's timers, by the index of a permit and of a pool. */
void permits_on_timer(struct permits *permits, uint32_t index);
void permits_on_pool_timer(struct permits *permits, uint32_t index);

void permits_tick(struct permits *permits, int64_t now_us);

#endif
