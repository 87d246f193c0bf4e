/* SPDX-License-Identifier: MIT */
/*
 * The engine's parts: for engine.c and the two parts beside it, and for tests
 * that read them.
 */
#ifndef REDLOCKD_PARTS_H
#define REDLOCKD_PARTS_H

#include "page.h"
#include "permits/permits.h"
#include "port/port.h"
#include "rounds/operation.h"
#include "rounds/releases.h"
#include "rounds/spreads.h"
#include "voting/nodes.h"
#include "waiting/ticket.h"
#include "waiting/waits.h"

/* ---- watches: watches.c -------------------------------------------------- */

struct watches {
    const struct environment *env;
    struct tickets *tickets;
    const struct waits *waits;              /* how many wait for a lock */
    void *index;                            /* of the locks, for tsearch(3) */
    TAILQ_HEAD(watched_list, watched) list; /* of the locks */
    int names;                              /* how many these have */
};

void watches_init(struct watches *watches, struct tickets *tickets,
                  const struct waits *waits);
void watches_fini(struct watches *watches);

/* As engine_watch; it has a ticket. */
uint64_t watches_start(struct watches *watches, struct span resource,
                       struct span known, int64_t wait_ms, void *client);

/* The version of the resource, or of one of several, may have changed. */
void watches_touch(struct watches *watches, struct span resource);

/* Inspects what is due, and answers those whose time is up. */
void watches_tick(struct watches *watches, int64_t now_us);

/* ---- lists: listing.c ---------------------------------------------------- */

struct listings {
    struct nodes *nodes;
    struct operations *operations;
    struct entries entries;
    TAILQ_HEAD(, listing) list; /* the longest without a turn comes first */
    struct listing *active;     /* has the turn; NULL: none */
    bool is_held;               /* turns are not given now */
};

void listings_init(struct listings *listings, struct nodes *nodes,
                   struct operations *operations);
void listings_fini(struct listings *listings);

/* As engine_list. */
uint64_t listing_start(struct listings *listings,
                       const struct engine_list *list, void *client);

/* Of one that is open: its page, the inspection of the page's n-th lock. */
const struct engine_page *listing_page(const struct listings *listings,
                                       uint64_t handle);
struct operation *listing_lock(const struct listings *listings, uint64_t handle,
                               int n);

/* Ends it, in any state. */
void listing_close(struct listings *listings, uint64_t handle);

/* A node's reply to a scan. */
void listings_on_reply(struct listings *listings, uint64_t tag,
                       const struct call_reply *reply);

/* Gives up scans that get no reply. */
void listings_tick(struct listings *listings, int64_t now_us);

/* ---- all of them --------------------------------------------------------- */

struct engine {
    struct environment env;
    struct nodes nodes;
    struct spreads spreads;
    struct releases releases;
    struct operations operations;
    struct tickets tickets;
    struct waits waits;
    struct permits permits;
    struct watches watches;
    struct listings listings;
    bool is_resting; /* the next tick comes when a probe of a node is due */
};

#endif
