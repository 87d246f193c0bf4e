/*
 * Lists the locks that a majority of the nodes has, a page at a time. Nothing
 * is kept between two pages: the cursor says how far the listing is.
 *
 *   start ──→ SCANNING a node ──→ INSPECTING what it has ──→ SETTLED ──→ close
 *               ↑                           │
 *               └───── the next node ←──────┘ if it has no more, and the page
 *                                             is not full
 *
 * A lock on q of N nodes is on at least one of any N - q + 1. So these are
 * scanned one after the other, and each name that is found is inspected on all
 * nodes, like a client's inspection. What an earlier one of them has, too, was
 * shown there.
 *
 * One listing at a time is active, with one scan or a few inspections; then it
 * is the next one's turn. So many lists delay other calls no more than one
 * does, and a short list is not behind the long ones.
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
    TAILQ_ENTRY(listing) link;
    enum listing_state state;
    void *client;
    struct engine_list wish; /* its prefix is in the text below */
    char prefix[RESOURCE_MAX];
    int64_t deadline_us; /* of the scan */
    uint16_t earlier;    /* bit per node: scanned before this one */
    struct list_cursor cursor;
    struct engine_page page;
    char *names;          /* malloc'ed: what the last scan found */
    struct span left;     /* … of which these are not inspected yet */
    bool is_starting;     /* inspections */
    int pending;          /* of them */
    int shown;            /* the first of the operations are of locks … */
    int count;            /* … that are shown; then those of this node */
    uint64_t *operations; /* malloc'ed: a handle each */
};

struct listings {
    struct nodes *nodes;
    struct operations *operations;
    struct slots slots;
    TAILQ_HEAD(, listing) list; /* those that had no turn for longest first */
    struct listing *active;     /* NULL: none */
    bool is_held;               /* no listing becomes active */
};

void listings_init(struct listings *listings, struct nodes *nodes,
                   struct operations *operations);
void listings_fini(struct listings *listings);

/* As engine_list; the handle is one for which listings_owns is true. */
uint64_t listing_start(struct listings *listings,
                       const struct engine_list *list, void *client);
bool listings_owns(uint64_t handle);

struct listing *listing_find(const struct listings *listings, uint64_t handle);

/* Ends it, in any state. */
void listing_end(struct listings *listings, struct listing *it);

/* A node's reply to a scan. */
void listings_on_reply(struct listings *listings, uint64_t tag,
                       const struct call_reply *reply);

/* Gives up scans that get no reply. */
void listings_tick(struct listings *listings, int64_t now_us);

#endif
