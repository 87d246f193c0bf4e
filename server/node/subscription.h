/* Apart from world.c, which alone includes it and wires all. */
/*
 * The second connection to a node, on which it announces releases. An
 * announcement is a hint: it may be missing, late, repeated or a lie.
 *
 * The heartbeats of listen calls come on it, too: an open subscription that
 * hears nothing for silence_us connects again.
 */
#ifndef REDLOCKD_SUBSCRIPTION_H
#define REDLOCKD_SUBSCRIPTION_H

#include "line.h"

struct engine;
struct subscription;

/*
 * Called in the loop, never from within the functions below. They may call any
 * of them but subscription_free. The resource is borrowed in the callback.
 *
 * up          connected; nothing is subscribed to yet
 * down        what was subscribed to is forgotten; only after up
 * subscribed  the node confirmed a subscription_set, in its order: from then on
 *             releases of this resource are announced; empty: heartbeats
 * announced   somebody says that the lock with this number was released, 0: it
 *             is not known; empty: a heartbeat
 */
struct subscription_events {
    void (*up)(struct engine *engine, int node);
    void (*down)(struct engine *engine, int node);
    void (*subscribed)(struct engine *engine, int node, struct span resource);
    void (*announced)(struct engine *engine, int node, struct span resource,
                      int64_t number);
    struct engine *engine; /* who is told */
};

/*
 * Closed at first. Takes all of setup but has_script and beside; a node that
 * says nothing for its silence_us, which is longer than the interval of listen
 * calls, is reconnected. prefix and all that setup points to are borrowed until
 * subscription_free. NULL: no memory.
 */
struct subscription *subscription_new(int node, const struct line_setup *setup,
                                      const char *prefix,
                                      const struct subscription_events *events);

/* Connects in the next turn, and again whenever it breaks. No-op if open. */
void subscription_open(struct subscription *subscription);

/* Disconnects, without an event. No-op if closed. */
void subscription_close(struct subscription *subscription);

/*
 * Begins or ends to hear of a resource; leaves with the next
 * subscription_flush. Ignored while not up: ask again at the next up.
 */
void subscription_set(struct subscription *subscription, struct span resource,
                      bool is_on);

/*
 * Writes what is queued, as far as the socket takes it. To be called at the end
 * of each turn.
 */
void subscription_flush(struct subscription *subscription);

/* Closes; NULL is ignored. */
void subscription_free(struct subscription *subscription);

#endif
