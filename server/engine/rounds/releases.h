/*
 * Releases under way: what must be deleted on the nodes after a lost or
 * abandoned grant, or because a client asked.
 *
 * A release goes to the nodes at once, after the acquire on the same
 * connections. A node that was unreachable, or answered with an error, still
 * owes it. It gets it again, until it answers or the TTL has passed: debts.h.
 * That waits until no command of the acquire can run any more: the socket of a
 * broken connection may still hold one, until its deadline has passed.
 *
 * After a client's release, the repair of an extend that is still under way may
 * set the key again. If all nodes had the key, and a majority answered so in
 * time, no such repair exists. Otherwise all nodes are asked again, when no
 * repair can run any longer, until none of them has the key. An asking ends
 * when each node has answered it or lost its connection.
 */
#ifndef REDLOCKD_RELEASES_H
#define REDLOCKD_RELEASES_H

#include <sys/queue.h>

#include "../../base/slots.h"
#include "../../base/texts.h"
#include "debts.h"
#include "round.h"

struct release {
    struct slots_head head;
    TAILQ_ENTRY(release) link;
    uint64_t operation;  /* handle that wants the votes; 0: none */
    uint16_t owed;       /* bit per node: has yet to answer this asking */
    uint16_t in_flight;  /* bit per node: sent, reply outstanding */
    uint16_t in_time;    /* bit per node: answered by in_time_us */
    bool is_again;       /* a client's: it is asked again */
    bool is_unclean;     /* a client's: this asking is not the last */
    int64_t in_time_us;  /* a client's: by then a majority must answer */
    int64_t set_ends_us; /* then no acquire can set the key any more, and no
                            repair that found it before this asking */
    int64_t until_us;    /* the TTL has passed: no longer needed */
    struct texts texts;  /* resource and token */
};

struct releases {
    const struct environment *env;
    struct nodes *nodes;
    struct slots slots;
    TAILQ_HEAD(, release) list;
    struct debts debts;
};

void releases_init(struct releases *releases, struct nodes *nodes);
void releases_fini(struct releases *releases);

/*
 * After a lost acquire round: releases the key on each node that was asked, may
 * have set it and is not to keep it, for ttl_ms at most. uncertainty_us:
 * how much later than its deadline the acquire may have run. Without memory the
 * nodes are asked once; a node that does not get it keeps the key until its TTL
 * ends.
 */
void releases_undo(struct releases *releases, const struct round *round,
                   struct span resource, struct span token, int64_t ttl_ms,
                   int64_t uncertainty_us);

/*
 * For a client: releases on all nodes. The round learns which of them were
 * asked; operation learns their answers through releases_on_reply. False: no
 * memory, and nothing was sent.
 */
bool releases_ask(struct releases *releases, struct round *round,
                  struct span resource, struct span token, uint64_t operation);

/*
 * A reply to a call with a tag of kind TAG_RELEASE, read at received_us.
 * Returns the operation that wants the vote, or 0.
 */
uint64_t releases_on_reply(struct releases *releases, int node, uint64_t tag,
                           const struct call_reply *reply, int64_t received_us);

/* Repeats what connected nodes owe, forgets what has expired. */
void releases_tick(struct releases *releases, int64_t now_us);

/* The node is connected again: it gets what it owes. */
void releases_on_up(struct releases *releases, int node, int64_t now_us);

#endif
