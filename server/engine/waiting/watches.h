/*
 * Clients that wait until a lock has another holder than the one they know.
 *
 * A lock that is watched is inspected once a second, however many watch it. (Of
 * more than a thousand locks, a thousand are inspected in a second.) It is also
 * inspected soon after each event that may have changed its holder: a grant or
 * a release that passed through this server, an announcement, or a client that
 * has just come. A client is answered by the first inspection that began after
 * it came and found another holder, or by the last one when its time is up.
 * Pure.
 */
#ifndef REDLOCKD_WATCHES_H
#define REDLOCKD_WATCHES_H

#include "waits.h"

struct watches {
    const struct environment *env;
    const struct waits *waits;
    struct operations *operations;
    struct slots slots;                     /* clients, until they are closed */
    void *index;                            /* of the locks, for tsearch(3) */
    TAILQ_HEAD(watched_list, watched) list; /* of the locks */
    int locks;                              /* how many these are */
    int count;                              /* clients that wait */
    bool is_stopped;                        /* nobody waits any more */
};

void watches_init(struct watches *watches, const struct waits *waits,
                  struct operations *operations);
void watches_fini(struct watches *watches);

/*
 * As engine_watch. Returns a handle, for which watches_owns is true; 0: no
 * memory. May call port.answer before it returns.
 */
uint64_t watches_start(struct watches *watches, struct span resource,
                       int64_t known, int64_t wait_ms, void *client);
bool watches_owns(uint64_t handle);

/* As engine_take and engine_peek; as engine_close and engine_abandon. */
const struct engine_result *watches_take(struct watches *watches,
                                         uint64_t handle);
const struct engine_result *watches_peek(const struct watches *watches,
                                         uint64_t handle);
void watches_close(struct watches *watches, uint64_t handle);
void watches_abandon(struct watches *watches, uint64_t handle);

/* As engine_stop_waiting. */
void watches_stop(struct watches *watches);

/* The holder of the resource, or of one of several, may have changed. */
void watches_touch(struct watches *watches, struct span resource);

/* Inspects what is due, and answers those whose time is up. */
void watches_tick(struct watches *watches, int64_t now_us);

#endif
