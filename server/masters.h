/*
 * The connections to all nodes of the configuration: calls go out through the
 * links, and what comes in goes to the engine.
 */
#ifndef REDLOCKD_MASTERS_H
#define REDLOCKD_MASTERS_H

#include "base/loop.h"
#include "engine/engine.h"
#include "engine/port/call.h"
#include "node/trust.h"

struct masters;

/*
 * Connects in the next turn. All are borrowed until masters_free. NULL: error
 * says which file of TLS cannot be used, or is as it was: no memory.
 */
struct masters *masters_new(struct loop *loop, const struct config *config,
                            struct engine *engine, char error[TRUST_TEXT_MAX]);

/* NULL is ignored. */
void masters_free(struct masters *masters);

/* As link_send. */
enum vote masters_send(struct masters *masters, int node,
                       const struct call *call, uint64_t tag);

/* Opens or closes all subscriptions. */
void masters_listen(struct masters *masters, bool is_on);

/* As subscription_set. */
void masters_subscribe(struct masters *masters, int node, struct span resource,
                       bool is_on);

/* At the end of each turn: writes what is queued. */
void masters_flush(struct masters *masters);

/* The same for calls alone; NULL is ignored. */
void masters_flush_calls(struct masters *masters);

/*
 * Reads the files of TLS again, for connections that begin from now on. If they
 * are bad, the old ones stay. Logs both.
 */
void masters_reload(struct masters *masters);

#endif
