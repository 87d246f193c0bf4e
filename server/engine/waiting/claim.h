/*
 * The claim of a waiting acquire to the lock of an earlier acquire with the
 * same key: it may replace that one's token. Pure.
 *
 * Of two acquires at the same time only one gets the lock: so a grant counts as
 * earlier only if it was made before this request. Three things can tell:
 *
 *   memory   this server knew the grant before the request: it is earlier
 *   number   a time by the clocks of the server that granted. Below the time of
 *            this request by our clocks, the grant is earlier; above it by more
 *            than the clocks of servers differ, it is later
 *   look     a look at the nodes after the request did not find it: it is later
 *
 * If none decides, the client may have lost its answer just before it asked
 * here, or its request has arrived twice. Then the acquire waits for
 * CLAIM_ANEW_US and asks again, as its client would. Until then a client that
 * has the other answer can withdraw it.
 */
#ifndef REDLOCKD_CLAIM_H
#define REDLOCKD_CLAIM_H

#include "../../base/types.h"

enum { CLAIM_ANEW_US = 500000 };

struct claim {
    int64_t asked_us;  /* a grant with a lower number is earlier */
    int64_t latest_us; /* a grant with this or a higher number is later */
    int64_t number;    /* of the lock that was found; 0: none */
    int64_t try_us;    /* when to try to get that lock; 0: not planned */
};

/* The time of the request by the nodes' clocks is not known yet. */
void claim_init(struct claim *claim);

/*
 * Now it is asked_us; 0: still unknown. Times of servers may differ by
 * apart_us. Only the first date counts.
 */
void claim_date(struct claim *claim, int64_t asked_us, int64_t apart_us);

/*
 * The lock with this number was known before the request, or set by a lost
 * attempt of its own: from try_us on it may be replaced.
 */
void claim_know(struct claim *claim, int64_t number, int64_t try_us);

/* A lock with its key was found on the nodes. */
void claim_find(struct claim *claim, int64_t number, int64_t now_us);

/*
 * There is no earlier grant: a look found none, or this server has granted
 * another acquire with its key. All grants from now on are later.
 */
void claim_miss(struct claim *claim);

/* A look was inconclusive, or an attempt lost: again in a while. */
void claim_wait(struct claim *claim, int64_t now_us);

static inline bool claim_is_due(const struct claim *claim, int64_t now_us)
{
    return claim->try_us != 0 && now_us >= claim->try_us;
}

/* An attempt begins now: returns its request.asked_us. */
int64_t claim_try(struct claim *claim, int64_t now_us);

#endif
