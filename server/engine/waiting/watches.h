/*
 * Clients that wait until a lock has another version than the one they know.
 *
 * A lock that is watched is inspected once a second, however many watch it. (If
 * the locks have more than a thousand names, a thousand of these are looked at
 * in a second.) It is also inspected soon after each event that may have
 * changed its version: a grant or a release that passed through this server, an
 * announcement, or a client that has just come. A client is answered by the
 * first inspection that began after it came and found another version, or by
 * the last one when its time is up. Pure.
 */
#ifndef REDLOCKD_WATCHES_H
#define REDLOCKD_WATCHES_H

#include "waits.h"

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

#endif
