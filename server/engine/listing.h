/*
 * Lists the locks that a majority of the nodes has, a page at a time. Nothing
 * is kept between two pages: the cursor holds the position.
 *
 *   start ──→ SCANNING a node ──→ INSPECTING its keys ──→ SETTLED ──→ close
 *               ↑                        │
 *               └──── the next node ←────┘ if this one has no more keys, and
 *                                          the page is not full
 *
 * A lock on q of N nodes is on at least one of any N - q + 1. So only so many
 * nodes are scanned, one after the other. Each name found is inspected on all
 * nodes, as for a client; a lock that an earlier scanned node also has was
 * listed there, and is left out.
 *
 * Listings take turns: one at a time is active, with one scan or a few
 * inspections. So many of them delay other calls no more than one does, and a
 * short one does not wait for long ones to end.
 */
#ifndef REDLOCKD_LISTING_H
#define REDLOCKD_LISTING_H

#include <sys/queue.h>

#include "../lock/lock.h"
#include "page.h"
#include "rounds/operation.h"

enum listing_state { LISTING_SCANNING, LISTING_INSPECTING, LISTING_SETTLED };

struct listing {
    struct slots_head head;
    struct listings *listings;
    TAILQ_ENTRY(listing) link;
    enum listing_state state;
    void *client;
    struct engine_list wish; /* its prefix is in the text below */
    char prefix[RESOURCE_MAX];
    int64_t deadline_us; /* of the scan */
    bool is_repeated;    /* the node had lost our script, and was asked again */
    uint16_t earlier;    /* bit per node: scanned before this one */
    struct list_cursor cursor;
    struct engine_page page;
    char *names;          /* malloc'ed: what the last scan found */
    struct span left;     /* the rest of names: not inspected yet */
    bool is_starting;     /* inspections are being started */
    int pending;          /* inspections without an outcome */
    int shown;            /* locks on the page: the first operations */
    int count;            /* operations: also those of the current node */
    uint64_t *operations; /* malloc'ed handles of inspections */
};

struct listings {
    struct nodes *nodes;
    struct operations *operations;
    struct slots slots;
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

struct listing *listing_find(const struct listings *listings, uint64_t handle);

/* Ends it, in any state. */
void listing_end(struct listing *it);

/* A node's reply to a scan. */
void listings_on_reply(struct listings *listings, uint64_t tag,
                       const struct call_reply *reply);

/* Gives up scans that get no reply. */
void listings_tick(struct listings *listings, int64_t now_us);

#endif
