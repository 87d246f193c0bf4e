/* SPDX-License-Identifier: MIT */
/* Clocks: rule 9 of docs/internals/guarantees.md.
 *
 * The clock of node 0 steps, forward so far that all its keys expire early, or
 * back; again after the servers that know it have seen the last step. All other
 * clocks are treated as one. Two servers hear of the nodes, at any time or
 * never, promptly or late: late if the node or the server was paused. Client c
 * asks server c. Server 1 restarts as a process without history, or its own
 * clock steps, by another width than the node's and while it knows all nodes.
 * There is no drift, and a judgement hears all nodes.
 *
 * Rules that can be switched off:
 *   NO_STEP_TEST       votes are not compared with the baseline
 *   TRUST_AT_SIGHT     without a history every clock is trusted
 *   SHORT_WATCH        ... after being watched for less than max_ttl
 *   POINTS             a reply gives a point, not an interval
 *   SUSPECT_NOBODY     nodes are revoked even if a majority stepped
 * And if the other clocks may be as far ahead as it steps (SPREAD), with
 * servers that have a history:
 *   BASELINE_PER_CONNECTION  each connection learns it anew
 *   NO_HISTORY               the servers restart: not a rule, but what remains
 */
#include "common.pml"

#ifndef T
#define T 2 /* max_ttl, in ticks */
#endif
#define Q T /* if this is safe, more is */
#ifdef SHORT_WATCH
#define WATCH (T - 1)
#else
#define WATCH T
#endif

/* A late reply is one unit late. Steps are wider: 2 for nodes, 4 for a server's
 * own clock. A step that is less than a reply's delay cannot be seen. */
#define STEP 2
#define OWN_STEP 4
byte ahead[NODES]; /* the nodes' clocks */
byte own[SERVERS]; /* how much time the server's clock lost */
#define OFFSET(s, n) (2 + ahead[n] + own[s])

bit admit = 1;     /* of node 0 */
byte away;         /* how long its quarantine record has been watched */

/* The baselines: from high - wide to high. 0: none. */
byte high[SERVERS * NODES];
bit wide[SERVERS * NODES];
bit is_good[SERVERS * NODES];
byte watched[SERVERS * NODES];
bit unseen[SERVERS]; /* node 0 stepped since its baseline was learned */

#define SEEN_LOW(s, n, late) (OFFSET(s, n) - (late))
#ifdef POINTS
#define SEEN_HIGH(s, n, late) SEEN_LOW(s, n, late)
#else
#define SEEN_HIGH(s, n, late) OFFSET(s, n)
#endif
#define LOW(i) (high[i] - wide[i])

#ifdef NO_STEP_TEST
#define IS_STEP(s, n, late) false
#else
#define IS_STEP(s, n, late) \
    (high[AT(s, n)] != 0 && (SEEN_LOW(s, n, late) > high[AT(s, n)] || \
                             SEEN_HIGH(s, n, late) < LOW(AT(s, n))))
#endif

/* Agrees with a majority, itself one of them, whose replies were all prompt. */
#define IS_SAME(i, j) \
    (high[i] != 0 && high[j] == high[i] && !wide[i] && !wide[j])
#define AGREES(s, n) \
    (IS_SAME(AT(s, n), AT(s, 0)) + IS_SAME(AT(s, n), AT(s, 1)) + \
     IS_SAME(AT(s, n), AT(s, 2)) >= QUORUM)
#define KNOWN(s) \
    ((high[AT(s, 0)] != 0) + (high[AT(s, 1)] != 0) + (high[AT(s, 2)] != 0))

inline forget(s, n)
{
    high[AT(s, n)] = 0;
    wide[AT(s, n)] = 0;
    is_good[AT(s, n)] = 0;
    watched[AT(s, n)] = 0;
    unseen[s] = (n == 0 -> 0 : unseen[s])
}

inline forget_all(s)
{
    forget(s, 0); forget(s, 1); forget(s, 2)
}

inline learn(s, n, late)
{
    forget(s, n);
    high[AT(s, n)] = SEEN_HIGH(s, n, late);
    wide[AT(s, n)] = SEEN_HIGH(s, n, late) - SEEN_LOW(s, n, late)
}

inline narrow(s, n, late)
{
    if
    :: !late -> high[AT(s, n)] = OFFSET(s, n); wide[AT(s, n)] = 0
    :: else /* it adds nothing */
    fi
}

inline prove(s, n)
{
    if
#ifdef TRUST_AT_SIGHT
    :: true ->
#else
    :: AGREES(s, n) || watched[AT(s, n)] == WATCH ->
#endif
        is_good[AT(s, n)] = 1;
        watched[AT(s, n)] = 0
    :: else
    fi
}

/* REVOKE: `admit` compared, deleted, a new quarantine record. */
inline revoke(s, n, late)
{
    if
    :: n != 0 || admit ->
        revokes_honest = (n != 0 || !unseen[s]);
        assert(!revokes_honest);
        admit = 0;
        away = 0
    :: else
    fi;
    learn(s, n, late)
}

#ifdef SUSPECT_NOBODY
#define IS_OWN(s) false
#else
#define IS_OWN(s) \
    (IS_STEP(s, 0, 0) + IS_STEP(s, 1, 0) + IS_STEP(s, 2, 0) >= QUORUM)
#endif

inline hear(s, n, late)
{
    if
    :: high[AT(s, n)] == 0 -> learn(s, n, late)
    :: IS_STEP(s, n, late) && IS_OWN(s) -> forget_all(s)
    :: IS_STEP(s, n, late) && !IS_OWN(s) -> revoke(s, n, late)
    :: else -> narrow(s, n, late)
    fi;
    if
    :: high[AT(s, n)] != 0 -> prove(s, n)
    :: else
    fi
}

#define MAY_VOTE(s, n) \
    ((n != 0 || admit) && is_good[AT(s, n)] && !IS_STEP(s, n, 0))

inline step()
{
    lock[0] = (ahead[0] == 0 -> 0 : lock[0]);
    ahead[0] = STEP - ahead[0];
    unseen[0] = (high[AT(0, 0)] != 0);
    unseen[1] = (high[AT(1, 0)] != 0)
}

inline run_admit()
{
    admit = 1;
    away = 0;
#ifdef REACH_READMIT
    is_reached = true;
    assert(!is_reached);
#endif
}

inline tick()
{
    for (n : 0 .. SERVERS * NODES - 1) {
        watched[n] = (high[n] != 0 && !is_good[n] && watched[n] < WATCH ->
                      watched[n] + 1 : watched[n])
    }
    away = (!admit && away < Q -> away + 1 : away);
    tick_clients()
}

inline learn_all(s)
{
    learn(s, 0, 0); learn(s, 1, 0); learn(s, 2, 0);
    is_good[AT(s, 0)] = 1; is_good[AT(s, 1)] = 1; is_good[AT(s, 2)] = 1
}

#define HEAR(s, n) \
    :: d_step { hear(s, n, 0) } \
    :: d_step { hear(s, n, 1) } \
    RECONNECT(s, n)

#ifdef BASELINE_PER_CONNECTION
#define RECONNECT(s, n) FAULT(true, forget(s, n))
#else
#define RECONNECT(s, n)
#endif

#if defined(SPREAD) && !defined(NO_HISTORY)
#define TROUBLE(s)
#else
#define TROUBLE(s) \
    FAULT(KNOWN(s) == NODES, own[s] = OWN_STEP - own[s]) \
    FAULT(true, forget_all(s)) /* a new process */
#endif

#define CLIENT(c, n) \
    :: d_step { VOTES(c, n, MAY_VOTE(c, n)) -> grant(c, n) }

active proctype world()
{
    byte n;
#ifdef SPREAD
    if :: ahead[1] = 0 :: ahead[1] = STEP fi;
    if :: ahead[2] = 0 :: ahead[2] = STEP fi;
#endif
    d_step { learn_all(0); learn_all(1) }
    do
    HEAR(0, 0) HEAR(0, 1) HEAR(0, 2)
    HEAR(1, 0) HEAR(1, 1) HEAR(1, 2)
    TROUBLE(1)
    CLIENT(0, 0) CLIENT(0, 1) CLIENT(0, 2)
    CLIENT(1, 0) CLIENT(1, 1) CLIENT(1, 2)
    FAULT(!unseen[0] && !unseen[1], step())
    :: d_step { away == Q -> run_admit() }
    :: d_step { left == 0 -> left = T }
    :: d_step { tick() }
    od
}
