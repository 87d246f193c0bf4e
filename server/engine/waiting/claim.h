/*
 * What an acquire that waits may take the place of: the lock of an earlier one
 * with the same key. Pure.
 *
 * Of two that are under way together only one has the lock: so a grant counts
 * as earlier only if it was made before this acquire was asked. These tell:
 *
 *   what was known   this server knew of the grant before: it is earlier
 *   its number       a time by the clocks of the server that made it. If it is
 *                    below the time at which this acquire was asked, by our
 *                    clocks, the grant is earlier; if it is above that by more
 *                    than such times differ among servers, it is later
 *   a look           the nodes were asked since, and it was not there: later
 *
 * If none of them decides, the client may have lost its answer just before it
 * asked here, or its request has arrived twice. Then the acquire waits for
 * CLAIM_ANEW_US and asks anew, as its client would. Until then the client can
 * withdraw it, if it has the other answer.
 */
#ifndef REDLOCKD_CLAIM_H
#define REDLOCKD_CLAIM_H

#include "../../base/types.h"

enum { CLAIM_ANEW_US = 500000 };

struct claim {
    int64_t asked_us;  /* a grant with a lower number is earlier … */
    int64_t latest_us; /* … and later with this one or a higher one */
    int64_t number;    /* of the lock that it found; 0: none */
    int64_t try_us;    /* when it tries to have that one; 0: not planned */
};

/* Nobody knows yet when it was asked, by the nodes' clocks. */
void claim_init(struct claim *claim);

/*
 * Now it is known, unless asked_us is 0. By apart_us the times of servers may
 * differ. Later dates change nothing.
 */
void claim_date(struct claim *claim, int64_t asked_us, int64_t apart_us);

/*
 * From try_us on it is to have the lock with this number: that was known before
 * it was asked, or is what it has set itself in vain.
 */
void claim_know(struct claim *claim, int64_t number, int64_t try_us);

/* Somebody who asked the nodes has found a lock with its key. */
void claim_find(struct claim *claim, int64_t number, int64_t now_us);

/*
 * It has no lock: it asked the nodes, and found none; or this server has
 * granted another acquire with its key. All grants from now on are later.
 */
void claim_miss(struct claim *claim);

/* It does not know, or has tried and lost: again in a while. */
void claim_wait(struct claim *claim, int64_t now_us);

static inline bool claim_is_due(const struct claim *claim, int64_t now_us)
{
    return claim->try_us != 0 && now_us >= claim->try_us;
}

/* It tries now: what to order as request.asked_us. */
int64_t claim_try(struct claim *claim, int64_t now_us);

#endif
