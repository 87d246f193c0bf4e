/*
 * Releases on their way: what must be deleted on the nodes behind a lost or
 * abandoned grant, or because a client asked.
 *
 * A release goes to the nodes at once, behind the acquire on the same
 * connections. A node that was out of reach, or answered with an error, still
 * owes it and gets it again, until it answers or the TTL would have passed:
 * debts.h. That waits until no command of the acquire can run any more: the
 * old connection's socket may still hold one, and its deadline must pass
 * first.
 *
 * Behind a client's release the key may also be set by a repair, of an extend
 * that is still on its way. If all nodes had it, and a majority said so in
 * time, no repair is; else all are asked once more when none can be any longer.
 */
#ifndef REDLOCKD_RELEASES_H
#define REDLOCKD_RELEASES_H

#include <sys/queue.h>

#include "../base/slots.h"
#include "debts.h"
#include "round.h"

enum { RELEASE_SMALL = 160 };

struct release {
    struct slots_head head;
    TAILQ_ENTRY(release) link;
    uint64_t operation;  /* handle of who wants the votes; 0: nobody */
    uint16_t owed;       /* bit per node: has not answered for good */
    uint16_t in_flight;  /* bit per node: sent, reply outstanding */
    uint16_t in_time;    /* bit per node: answered by in_time_us */
    bool asks_again;     /* a client's: the first answers settle nothing */
    int64_t in_time_us;  /* a client's: then a majority is to have answered */
    int64_t set_ends_us; /* then nothing can set the key any more */
    int64_t until_us;    /* the TTL has passed: no longer needed */
    size_t resource_len;
    size_t token_len;
    char *text; /* resource and token: small, or malloc'ed for long ones */
    char small[RELEASE_SMALL];
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
 * Behind a lost acquire round: on each node that was asked and may have set
 * the key, for ttl_ms at most. uncertainty_us: how much later than its deadline
 * the acquire may have run. Without memory the nodes are asked once, and those
 * that do not get it keep the key until its TTL ends.
 */
void releases_undo(struct releases *releases, const struct round *round,
                   struct span resource, struct span token, int64_t ttl_ms,
                   int64_t uncertainty_us);

/*
 * A client's: on all nodes. The round learns which of them were asked, and
 * operation, through releases_on_reply, what these answer. False: no memory,
 * and nothing was sent.
 */
bool releases_ask(struct releases *releases, struct round *round,
                  struct span resource, struct span token, uint64_t operation);

/*
 * A reply to a call with a tag of kind TAG_RELEASE. Returns the operation that
 * wants to know the vote, or 0.
 */
uint64_t releases_on_reply(struct releases *releases, int node, uint64_t tag,
                           const struct call_reply *reply);

/* Repeats what is owed to nodes that are there, forgets what is over. */
void releases_tick(struct releases *releases, int64_t now_us);

/* A node is back: it gets what it owes. */
void releases_on_up(struct releases *releases, int node, int64_t now_us);

#endif
