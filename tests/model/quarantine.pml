/* SPDX-License-Identifier: MIT */
/* Quarantine records of a higher epoch, and servers of the same names with different ones:
 * rule 12 of docs/internals/guarantees.md.
 *
 * Servers 0 and 2 have the old names, of nodes 0, 1, 2, and the epochs 1 and 3;
 * servers 1 and 3 the new ones, of nodes 1, 2, 3, and the epochs 2 and 4. Those
 * of the same names may be one server that follows the epoch of the nodes, or
 * one of them was started by mistake. Each examines nodes at any time or never,
 * and at all of its own, one after the other, just before an ADMIT. Clients ask
 * ONE and OTHER. Node 1 or 2 forgets once, but for KEEPS.
 *
 * A server quarantines nodes that carry a lower epoch, whichever it is. It replaces a
 * quarantine record of a higher one if that is of its own names, and either the node has never
 * voted or a majority of its nodes is admitted with its own epoch.
 *
 * With LATE a quarantine record is replaced at any time after a probe that found this true.
 *
 * Rules that can be switched off:
 *   LOWERS_ALL  replaces quarantine records on nodes that have voted, too
 *   BY_QUARANTINES    replaces them once a majority of its nodes has quarantines or
 *               admissions of its epoch
 */
#define NODES 4
#include "common.pml"

#ifndef OLD
#define OLD 1 /* the epoch that the nodes have at first, or 3 */
#endif
#ifndef ONE
#define ONE 2
#define OTHER 3
#endif
#define LEAST(s) ((s) & 1) /* of its nodes */
#define IS_OF(s, n) ((n) >= LEAST(s) && (n) < LEAST(s) + 3)
#define EPOCH(s) ((s) + 1)
#define SERVER_OF(c) (((c) == 0) == is_swapped -> OTHER : ONE)

/* Each node has an admission or a quarantine record, or neither. The epoch tells whose it
 * is. */
byte admit[NODES], quarantine[NODES];
byte timer[NODES];  /* ticks since its quarantine record was written */
byte voted;         /* the nodes that were admitted, in this data */
byte probed[4];     /* each server at so many of its nodes, in this tick: none of
                       them has a higher epoch */
byte established;   /* these servers have seen an admission */
bit has_forgotten, is_swapped;

#define IS_ADMITTED(s, n) (admit[n] == EPOCH(s))
#define IS_QUARANTINED(s, n) (quarantine[n] == EPOCH(s))
#define CARRIES(s, n) (IS_ADMITTED(s, n) || IS_QUARANTINED(s, n))
#define MOST(s, of) (of(s, LEAST(s)) + of(s, LEAST(s) + 1) + \
                     of(s, LEAST(s) + 2) >= QUORUM)
#define IS_ABOVE(s, n) (admit[n] > EPOCH(s) || quarantine[n] > EPOCH(s))

/* Whether the quarantine record is of its names. */
#define IS_OURS(s, n) ((quarantine[n] & 1) != LEAST(s))
#define HAS_VOTED(n) ((voted & BIT(n)) != 0)
#if defined(LOWERS_ALL)
#define MAY_LOWER(s, n) true
#elif defined(BY_QUARANTINES)
#define MAY_LOWER(s, n) (!HAS_VOTED(n) || MOST(s, CARRIES))
#else
#define MAY_LOWER(s, n) (!HAS_VOTED(n) || MOST(s, IS_ADMITTED))
#endif

#ifdef LATE
byte found[2]; /* servers 0 and 1: that these quarantine records may be replaced */
#define PROBE(s, n) \
    :: d_step { s < 2 && (found[s] & BIT(n)) == 0 && quarantine[n] > EPOCH(s) && \
                IS_OURS(s, n) && MAY_LOWER(s, n) -> \
                found[s] = found[s] | BIT(n) }
#define LOWERS(s, n) (s < 2 && (found[s] & BIT(n)) != 0)
#define FORGET_FOUND(s, n) \
    if \
    :: s < 2 -> found[s] = found[s] & (15 - BIT(n)) \
    :: else \
    fi;
#else
#define PROBE(s, n)
#define LOWERS(s, n) MAY_LOWER(s, n)
#define FORGET_FOUND(s, n)
#endif

#define MAY_QUARANTINE(s, n) \
    (!CARRIES(s, n) && admit[n] < EPOCH(s) && \
     (quarantine[n] < EPOCH(s) || (IS_OURS(s, n) && LOWERS(s, n))))

inline write_quarantine(s, n)
{
#ifdef REACH_CHANGE
    was_lowered = was_lowered || quarantine[n] > EPOCH(s);
#endif
    FORGET_FOUND(s, n)
    admit[n] = 0;
    quarantine[n] = EPOCH(s);
    timer[n] = 0
}

#define IS_OVER(s, n) \
    (IS_ADMITTED(s, n) || (IS_QUARANTINED(s, n) && timer[n] == 1))
#define HAS_TAKEN_OVER(s) ((established & BIT(s)) != 0 || \
    (IS_OVER(s, LEAST(s)) && IS_OVER(s, LEAST(s) + 1) && \
     IS_OVER(s, LEAST(s) + 2)))
#define MAY_ADMIT(s, n) \
    (probed[s] == 3 && IS_QUARANTINED(s, n) && IS_OVER(s, n) && HAS_TAKEN_OVER(s))

inline send_admit(s, n)
{
    quarantine[n] = 0;
    timer[n] = 0;
    admit[n] = EPOCH(s);
    voted = voted | BIT(n);
    established = established | BIT(s);
#ifdef REACH_CHANGE
    is_reached = (was_lowered && MOST(1, IS_ADMITTED));
    assert(!is_reached);
#endif
}

inline forget(n)
{
    has_forgotten = 1;
    lock[n] = 0;
    admit[n] = 0;
    quarantine[n] = 0;
    timer[n] = 0;
    voted = voted & (15 - BIT(n))
}

inline tick()
{
    for (n : 0 .. NODES - 1) {
        timer[n] = (quarantine[n] != 0 -> 1 : 0);
        probed[n] = 0 /* as many servers as nodes */
    }
    n = 0;
    tick_clients()
}

#ifdef REACH_CHANGE
bit was_lowered;
#endif

#define SERVER(s, n) \
    PROBE(s, n) \
    :: d_step { MAY_QUARANTINE(s, n) -> write_quarantine(s, n) } \
    :: d_step { probed[s] == n - LEAST(s) && !IS_ABOVE(s, n) -> probed[s]++ } \
    :: d_step { MAY_ADMIT(s, n) -> send_admit(s, n) }

#define CLIENT(c, n) \
    :: d_step { VOTES(c, n, IS_OF(SERVER_OF(c), n) && \
                IS_ADMITTED(SERVER_OF(c), n)) -> grant(c, n) }

active proctype world()
{
    byte n;
    if :: is_swapped = 0 :: is_swapped = 1 fi;
    d_step {
        admit[0] = OLD; admit[1] = OLD; admit[2] = OLD;
        voted = 7;
        established = BIT(OLD - 1);
#ifdef KEEPS
        has_forgotten = 1 /* it will not */
#endif
    }
    do
    SERVER(0, 0) SERVER(0, 1) SERVER(0, 2)
    SERVER(1, 1) SERVER(1, 2) SERVER(1, 3)
    SERVER(2, 0) SERVER(2, 1) SERVER(2, 2)
    SERVER(3, 1) SERVER(3, 2) SERVER(3, 3)
    CLIENT(0, 0) CLIENT(0, 1) CLIENT(0, 2) CLIENT(0, 3)
    CLIENT(1, 0) CLIENT(1, 1) CLIENT(1, 2) CLIENT(1, 3)
    :: d_step { left == 0 -> left = 1 }
    :: d_step { !has_forgotten -> forget(1) }
    :: d_step { !has_forgotten -> forget(2) }
    :: d_step { tick() }
    od
}
