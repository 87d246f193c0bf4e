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

struct resolver_address {
    socklen_t len; /* 0: no address */
    struct sockaddr_storage storage;
};

/*
 * address: borrowed in the callback; if the name has several, the one whose
 * turn it is. Its lookup began at began_us. NULL: there is none; error says why
 * (static text).
 */
typedef void resolver_fn(void *arg, const struct resolver_address *address,
                         int64_t began_us, const char *error);

/* loop and config, which are borrowed, are given; all else is zero at first. */
struct resolver {
    struct loop *loop;
    const struct address_node *config;
    struct loop_lookup *lookup; /* NULL: none runs */
    int64_t began_us;           /* when the last lookup began */
    /*
     * Of the open question; NULL: none. Whoever sets it to NULL gives the
     * question up: its lookup goes on, and the next one gets what it finds.
     */
    resolver_fn *fn;
    void *arg;
    struct resolver_address late; /* found after the question was given up */
    /* for the users of the address: */
    unsigned turn; /* which of the name's to try; add 1 after a failure */
    struct resolver_address good; /* that could be connected to last */
};

/* Gives up what is under way. */
void resolver_fini(struct resolver *resolver);

/*
 * Resolves, and calls fn once, maybe before it returns. Joins the lookup of a
 * question that was given up. Only one question may be open.
 */
void resolver_ask(struct resolver *resolver, resolver_fn *fn, void *arg);

#endif
