/*
 * The socket address of a node. Each question resolves its name anew.
 *
 * A node has at most one lookup at a time, however many questions are asked
 * and given up: a few threads resolve the names of all nodes, and a name server
 * that hangs must not block them all for one node.
 */
#ifndef REDLOCKD_RESOLVER_H
#define REDLOCKD_RESOLVER_H

#include <sys/socket.h>

#include "../base/address.h"
#include "../base/loop.h"

struct resolver;

struct resolver_address {
    socklen_t len; /* 0: no address */
    struct sockaddr_storage storage;
};

/* config is borrowed until resolver_free. NULL: no memory. */
struct resolver *resolver_new(struct loop *loop,
                              const struct address_node *config);
void resolver_free(struct resolver *resolver);

/*
 * address: borrowed in the callback; if the name has several, the one whose
 * turn it is. Its lookup began at began_us. NULL: there is none; error says why
 * (static text).
 */
typedef void resolver_fn(void *arg, const struct resolver_address *address,
                         int64_t began_us, const char *error);

/*
 * Resolves, and calls fn once, maybe before it returns. Joins the lookup of a
 * question that was given up. Only one question may be open.
 */
void resolver_ask(struct resolver *resolver, resolver_fn *fn, void *arg);

/*
 * Gives the question up: fn is not called. Its lookup goes on, and the next
 * question gets what it finds.
 */
void resolver_leave(struct resolver *resolver);

/* Connecting failed: the name's next address has its turn. */
void resolver_skip(struct resolver *resolver);

/* Connecting succeeded: keeps address as the last good one. */
void resolver_keep(struct resolver *resolver,
                   const struct resolver_address *address);

/* The last good address; NULL: none yet. */
const struct resolver_address *resolver_last(const struct resolver *resolver);

#endif
