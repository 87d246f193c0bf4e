/*
 * Releases on their way: what must be deleted on the nodes behind a lost or
 * abandoned grant, or because a client asked.
 *
 * A release goes to the nodes at once, behind the acquire on the same
 * connections. A node that was out of reach, or answered with an error, still
 * owes it and gets it again, until it answers or the TTL would have passed.
 * A repetition waits until no command of the acquire can run any more: the old
 * connection's socket may still hold one, and its deadline must pass first.
 */
#ifndef REDLOCKD_RELEASES_H
#define REDLOCKD_RELEASES_H

#include <sys/queue.h>

#include "nodes.h"
#include "slots.h"

/* Thousands may be pending at once while a node lags behind: kept compact. */
enum { RELEASE_SMALL = 160 };

struct release {
    struct slots_head head;
    TAILQ_ENTRY(release) link;
    uint64_t operation;    /* handle of who wants the votes; 0: nobody */
    uint16_t owed;         /* bit per node: has not answered yet */
    uint16_t in_flight;    /* bit per node: sent, reply outstanding */
    bool is_lasting;       /* false: too many already, one attempt only */
    int64_t not_before_us; /* no repetition before: the acquire may still run */
    int64_t repeat_at_us;  /* next repetition */
    int64_t until_us;      /* the TTL has passed: no longer needed */
    size_t resource_len;
    size_t token_len;
    char *text; /* resource and token: small, or malloc'ed for long ones */
    char small[RELEASE_SMALL];
};

struct releases {
    struct nodes *nodes;
    struct slots slots;
    TAILQ_HEAD(, release) list;
};

void releases_init(struct releases *releases, struct nodes *nodes);
void releases_fini(struct releases *releases);

/* What to release: borrowed, copied by releases_start. */
struct release_order {
    struct span resource;
    struct span token;
    uint16_t nodes;          /* bit per node: is to be asked */
    uint16_t not_at_once;    /* of them: their connection broke, repeat later */
    int64_t acquire_ends_us; /* then the acquire can run nowhere any more */
    int64_t until_us;        /* until then owed to nodes out of reach */
    uint64_t operation;      /* handle that the votes are passed to; or 0 */
};

/*
 * Sends it. Each node's answer to this first attempt that can be told at once
 * goes to unsent[node]: VOTE_PENDING if its vote will come through
 * releases_on_reply, else why not. False: no memory, nothing was sent.
 */
bool releases_start(struct releases *releases,
                    const struct release_order *order,
                    enum vote unsent[NODES_MAX]);

/*
 * A reply to a call with a tag of kind TAG_RELEASE. Returns the operation that
 * wants to know the vote, or 0.
 */
uint64_t releases_on_reply(struct releases *releases, int node, uint64_t tag,
                           const struct script_reply *reply);

/* Repeats what is owed to nodes that are there, forgets what is over. */
void releases_tick(struct releases *releases, int64_t now_us);

/* A node is back: it gets what it owes. */
void releases_on_up(struct releases *releases, int node, int64_t now_us);

#endif
