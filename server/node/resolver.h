/*
 * Where a node is: the addresses of its name, each time resolved anew.
 *
 * One lookup a node at a time, however often it is asked for and given up: a
 * few threads resolve for all, and a name server that hangs over one node's
 * name would soon have taken all of them from the others.
 */
#ifndef REDLOCKD_RESOLVER_H
#define REDLOCKD_RESOLVER_H

#include "../base/config.h"
#include "../base/loop.h"

enum { RESOLVER_ADDRESS_MAX = 64 }; /* numeric, with an interface's name */

struct resolver;

/* config is borrowed until resolver_free. NULL: no memory. */
struct resolver *resolver_new(struct loop *loop,
                              const struct config_node *config);
void resolver_free(struct resolver *resolver);

/*
 * address: numeric; of a name with several the one whose turn it is. It was
 * asked for at began_us. NULL: there is none; error says why (static text).
 */
typedef void resolver_fn(void *arg, const char *address, int64_t began_us,
                         const char *error);

/*
 * Resolves, and calls fn once, maybe before it returns. Joins a lookup that
 * resolver_leave left behind. One asks at a time.
 */
void resolver_ask(struct resolver *resolver, resolver_fn *fn, void *arg);

/*
 * fn is not called any more. The lookup goes on, and whoever asks next gets
 * what it found.
 */
void resolver_leave(struct resolver *resolver);

/* It could not be connected to: the next of the name's addresses has its turn.
 */
void resolver_skip(struct resolver *resolver);

/* It could: kept as the last good one. */
void resolver_keep(struct resolver *resolver, const char *address);

/* The last good address; NULL: none yet. */
const char *resolver_last(const struct resolver *resolver);

#endif
