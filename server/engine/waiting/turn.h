/*
 * The turns that servers take with a lock for which clients of several of them
 * wait. Pure; each server counts for itself. All of it is best effort: it
 * decides when a server tries, never what is granted.
 *
 * A turn begins with a grant that no release through this server led to. It
 * ends when all that waited here at that moment have had the lock. Then the
 * server yields: its waiters try a little later than those of others. It goes
 * on as soon as it notices that another server has had the lock.
 *
 * If no other server uses that, as one that is paused, or has no waiters any
 * more, the next yields are ever further apart.
 *
 * With several other servers, the same one might always be the quickest. So
 * each is behind by a moment, which is shorter the more grants it has seen go
 * elsewhere, for each of its waiters.
 */
#ifndef REDLOCKD_TURN_H
#define REDLOCKD_TURN_H

#include "../../base/types.h"

/* Zeroed at first. */
struct turn {
    uint64_t arrivals;       /* until it began: these have their turn */
    int64_t begun_us;        /* the last one */
    int64_t elsewhere;       /* grants of others since the last one here, that
                                attempts found */
    int64_t others;          /* other servers whose clients wait */
    int64_t others_until_us; /* so long they count */
    int64_t yield_until_us;  /* 0: it does not yield */
    int64_t gap_us;          /* from a yield that was no use to the next */
    int64_t rest_until_us;   /* no yield before */
};

/* A node told so many other servers of a release. */
void turn_on_others(struct turn *turn, int64_t others, int64_t now_us);

/*
 * The lock was released through this server. next: the number, in the order of
 * arrival, of the waiter that comes next; 0: nobody waits. trip_us: a slow
 * round trip to the nodes.
 */
void turn_on_release(struct turn *turn, uint64_t next, int64_t trip_us,
                     int64_t now_us);

/* One of its waiters was granted the lock; follows: by a release through this
 * server. arrivals: of the latest waiter. */
void turn_on_grant(struct turn *turn, bool follows, uint64_t arrivals,
                   int64_t now_us);

/* A yield ends: others have had the lock, or an attempt was made. */
void turn_end_yield(struct turn *turn, bool was_used);

/* How much later than at once one of so many waiters tries, after a release
 * through another server. */
int64_t turn_behind_us(const struct turn *turn, int waiters, int64_t now_us);

#endif
