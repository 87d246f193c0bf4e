/* SPDX-License-Identifier: MIT */
/* Configurations: rules 3 and 12 of docs/internals/guarantees.md.
 *
 * Server 0 has the old configuration, of nodes 0, 1, 2, which votes; server 1
 * the new one, of nodes 1, 2, 3 and with a lower max_ttl: their majorities need
 * not share a node. Both examine nodes at any time or never, and at all of
 * theirs just before an ADMIT. Client 0 asks the old server and client 1 the new
 * one, or the other way round. Node 1 forgets once. With SAME_EPOCH the new
 * configuration has no higher epoch.
 *
 * With FOLLOWS server 0 is restarted once, and given epoch 1 or 3: so its nodes
 * may come back after those of server 1. It follows the epoch that its nodes
 * carry.
 *
 * Rules that can be switched off:
 *   NO_FINGERPRINT     rule 3: `admit` does not name the configuration
 *   FOREIGN_ELSEWHERE  rule 3: admits although a foreign node was seen
 *   NO_EPOCHS          rule 3: revokes admissions of another configuration
 *   SOME_QUARANTINES         rule 12: nodes are admitted before all are quarantined
 *   OWN_QUARANTINE           rule 12: Q is counted from each node's own quarantine record
 *   OWN_TTL            by time: Q by this server's max_ttl, not the greatest
 *   ADMITS_ON          rule 3: admits although it saw a higher epoch
 *   ONE_STOPS          rule 3: no vote at all once it saw a higher epoch
 *   STAYS_ESTABLISHED  rule 12: an admission of the epoch before counts as one
 *                      of the epoch that is followed
 * And what remains, not rules:
 *   CUT_OFF            a server does not reach all nodes before an ADMIT
 *   ALL_EMPTY          with SAME_EPOCH: no node was ever admitted, both race
 */
#define NODES 4
#include "common.pml"

#ifndef OLD_T
#define OLD_T 2 /* max_ttl, in ticks */
#endif
#define NEW_T 1
#define MAX_TTL(s) (s == 0 -> OLD_T : NEW_T)
#define LONGEST OLD_T
#define IS_OF(s, n) ((s) == 0 -> (n) < 3 : (n) > 0)

/* What is stored on the nodes: a configuration, by its server + 1; 0: none. A
 * quarantine record names only its epoch: with SAME_EPOCH both have the same. */
byte admit[NODES], quarantine[NODES], greatest[NODES];

/* What the servers know. */
bit is_watched[SERVERS * NODES]; /* the node's quarantine record */
byte timer[SERVERS * NODES];
bit is_foreign[SERVERS * NODES];
byte probed[SERVERS];            /* at these nodes, in this tick */
byte max_ttl[SERVERS];           /* the greatest seen */
bit is_above[SERVERS * NODES];   /* the node has a higher epoch */
byte took[SERVERS];              /* admissions of the other one */
bit has_forgotten;               /* node 1, once */
bit is_swapped;                  /* client 0 asks server 1 */
#define SERVER_OF(c) (is_swapped -> 1 - (c) : (c))

#ifdef FOLLOWS
/* An epoch tells whose it is: that of server 1 is even. */
byte epoch[SERVERS];
bit is_known[SERVERS], is_established[SERVERS], is_restarted;
byte carried[SERVERS * NODES];   /* an epoch of our nodes, as last seen */
#define EPOCH(s) epoch[s]
#define IS_TAKING_OVER(s) (epoch[s] > 1 && !is_established[s])
#elif defined(SAME_EPOCH) || defined(NO_EPOCHS) || defined(NO_FINGERPRINT)
#define EPOCH(s) 1
#define IS_TAKING_OVER(s) false
#else
#define EPOCH(s) ((s) + 1)
#define IS_TAKING_OVER(s) (s == 1)
#endif
#ifdef FOLLOWS
#define EPOCH_OF(admission) (admission)
#define ADMISSION(s) epoch[s]
#else
#define EPOCH_OF(admission) (admission == 0 -> 0 : EPOCH(admission - 1))
#define ADMISSION(s) (s + 1)
#endif

#ifdef NO_FINGERPRINT
#define IS_OURS(s, n) (admit[n] != 0)
#else
#define IS_OURS(s, n) (admit[n] == ADMISSION(s))
#endif

#ifdef NO_EPOCHS
#define IS_FOREIGN(s, n) false
#else
#define IS_FOREIGN(s, n) \
    (admit[n] != 0 && !IS_OURS(s, n) && EPOCH_OF(admit[n]) == EPOCH(s))
#endif

/* Deletes the admission of the other configuration. */
inline take(s, n)
{
    admit[n] = 0;
    quarantine[n] = 0;
    is_watched[AT(1 - s, n)] = 0;
    timer[AT(1 - s, n)] = 0;
#ifdef NO_EPOCHS
    took[s] = (took[s] < 2 -> took[s] + 1 : 2);
    livelock = (took[0] == 2 && took[1] == 2);
    assert(!livelock)
#endif
}

inline watch(s, n)
{
    if
    :: admit[n] != 0 -> take(s, n)
    :: else
    fi;
    quarantine[n] = EPOCH(s);
    is_watched[AT(s, n)] = 1
}

#define IS_ABOVE(s, n) (EPOCH_OF(admit[n]) > EPOCH(s) || quarantine[n] > EPOCH(s))

#ifdef FOLLOWS
#define IS_OF_SERVER(s, e) ((e) != 0 && ((e) & 1) != (s))
#define CARRIES(s, e) \
    ((carried[AT(s, 0)] == (e)) + (carried[AT(s, 1)] == (e)) + \
     (carried[AT(s, 2)] == (e)) + (carried[AT(s, 3)] == (e)))
#define IS_OTHER_ABOVE(s, n, e) \
    ((!IS_OF_SERVER(s, admit[n]) && admit[n] > (e)) || \
     (!IS_OF_SERVER(s, quarantine[n]) && quarantine[n] > (e)))
#define HAS_OTHER(s, e) \
    (IS_OTHER_ABOVE(s, 0, e) || IS_OTHER_ABOVE(s, 1, e) || \
     IS_OTHER_ABOVE(s, 2, e))
#define IS_CERTAIN(s, e) (CARRIES(s, e) >= QUORUM)

/* What a server knew of the nodes is by another epoch. */
inline forget_views(s)
{
    max_ttl[s] = OLD_T;
    probed[s] = 0;
#ifndef STAYS_ESTABLISHED
    is_established[s] = 0;
#endif
    for (k : 0 .. NODES - 1) {
        is_watched[AT(s, k)] = 0;
        timer[AT(s, k)] = 0;
        is_foreign[AT(s, k)] = 0;
        is_above[AT(s, k)] = 0
    }
    k = 0
}

/* The higher one of 1 and 3, unless more nodes carry the lower one. */
#define COMMON(s) (CARRIES(s, 1) > CARRIES(s, 3) -> 1 : 3)

inline follow(s, n)
{
    carried[AT(s, n)] = (IS_OF_SERVER(s, admit[n]) -> admit[n] :
                         (IS_OF_SERVER(s, quarantine[n]) -> quarantine[n] : 0));
    if
    :: s == 0 && CARRIES(s, COMMON(s)) > 0 && COMMON(s) != epoch[s] &&
       (IS_CERTAIN(s, COMMON(s)) && (!is_known[s] || COMMON(s) > epoch[s]) ||
        !is_known[s] && !HAS_OTHER(s, COMMON(s))) ->
        epoch[s] = COMMON(s);
        forget_views(s)
    :: else
    fi;
    is_known[s] = is_known[s] || IS_CERTAIN(s, epoch[s]);
    is_established[s] = is_established[s] || admit[n] == epoch[s]
}

inline restart()
{
    is_restarted = 1;
    is_known[0] = 0;
    for (k : 0 .. NODES - 1) {
        carried[k] = 0
    }
    forget_views(0)
}
#endif

/* Rule 3. */
inline probe(s, n)
{
#ifdef FOLLOWS
    follow(s, n);
#endif
    probed[s] = probed[s] | BIT(n);
    is_foreign[AT(s, n)] = IS_FOREIGN(s, n);
    is_above[AT(s, n)] = IS_ABOVE(s, n);
#ifndef OWN_TTL
    max_ttl[s] = (greatest[n] > max_ttl[s] -> greatest[n] : max_ttl[s]);
#endif
    if
    :: IS_ABOVE(s, n) ->
        is_watched[AT(s, n)] = 0;
        timer[AT(s, n)] = 0
    :: else ->
        if
        :: IS_OURS(s, n) || IS_FOREIGN(s, n) ->
            is_watched[AT(s, n)] = 0;
            timer[AT(s, n)] = 0
        :: else -> watch(s, n)
        fi
    fi
}

/* Rule 12. */
#define IS_QUARANTINED(s, n) (is_watched[AT(s, n)] || IS_OURS(s, n))
#define IS_OVER(s, n) \
    (IS_OURS(s, n) || (is_watched[AT(s, n)] && timer[AT(s, n)] >= max_ttl[s]))
#if defined(SOME_QUARANTINES)
#define HAS_TAKEN_OVER(s) true
#elif defined(OWN_QUARANTINE)
#define HAS_TAKEN_OVER(s) (!IS_TAKING_OVER(s) || \
    (IS_QUARANTINED(s, 1) && IS_QUARANTINED(s, 2) && IS_QUARANTINED(s, (s == 0 -> 0 : 3))))
#else
#define HAS_TAKEN_OVER(s) (!IS_TAKING_OVER(s) || \
    (IS_OVER(s, 1) && IS_OVER(s, 2) && IS_OVER(s, (s == 0 -> 0 : 3))))
#endif

#ifdef FOREIGN_ELSEWHERE
#define SEES_FOREIGN(s) false
#else
#define SEES_FOREIGN(s) (is_foreign[AT(s, 0)] || is_foreign[AT(s, 1)] || \
                         is_foreign[AT(s, 2)] || is_foreign[AT(s, 3)])
#endif

#define SEES_HIGHER(s) (is_above[AT(s, 0)] || is_above[AT(s, 1)] || \
                        is_above[AT(s, 2)] || is_above[AT(s, 3)])
#ifdef ADMITS_ON
#define IS_BELOW(s) false
#else
#define IS_BELOW(s) SEES_HIGHER(s)
#endif

/* By time alone, after a probe of all nodes. */
#if defined(SOME_QUARANTINES) || defined(CUT_OFF)
#define HAS_PROBED(s) true
#else
#define HAS_PROBED(s) (COUNT(probed[s]) == 3)
#endif
#define MAY_ADMIT(s, n) \
    (HAS_PROBED(s) && !SEES_FOREIGN(s) && !IS_BELOW(s) && \
     is_watched[AT(s, n)] && IS_OVER(s, n) && HAS_TAKEN_OVER(s))

inline send_admit(s, n)
{
    is_watched[AT(s, n)] = 0;
    timer[AT(s, n)] = 0;
    if
    :: quarantine[n] == EPOCH(s) ->
        quarantine[n] = 0;
        admit[n] = ADMISSION(s);
        greatest[n] = (greatest[n] > MAX_TTL(s) -> greatest[n] : MAX_TTL(s));
#ifdef REACH_RETURN
        is_reached = (admit[0] == 3 && admit[1] == 3 && admit[2] == 3);
        assert(!is_reached);
#endif
#ifdef REACH_CHANGE
        is_reached = (admit[1] == 2 && admit[2] == 2 && admit[3] == 2);
        assert(!is_reached);
#endif
    :: else
    fi
}

/* Rule 2. */
#ifdef ONE_STOPS
#define MAY_VOTE(s, n) (!SEES_HIGHER(s) && IS_OF(s, n) && IS_OURS(s, n))
#else
#define MAY_VOTE(s, n) (IS_OF(s, n) && IS_OURS(s, n))
#endif

inline ask(c, n)
{
    grant(c, n);
#ifdef REACH_GO_ON
    is_reached = (IS_HOLDER(c) && SERVER_OF(c) == 0 && SEES_HIGHER(0));
    assert(!is_reached);
#endif
}

inline forget(n)
{
    has_forgotten = 1;
    lock[n] = 0;
    admit[n] = 0;
    quarantine[n] = 0;
    greatest[n] = 0;
    is_watched[AT(0, n)] = 0;
    timer[AT(0, n)] = 0;
    is_watched[AT(1, n)] = 0;
    timer[AT(1, n)] = 0
}

inline tick()
{
    for (n : 0 .. SERVERS * NODES - 1) {
        timer[n] = (is_watched[n] && timer[n] < LONGEST -> timer[n] + 1 :
                    timer[n])
    }
    probed[0] = 0;
    probed[1] = 0;
    tick_clients()
}

#define SERVER(s, n) \
    :: d_step { probe(s, n) } \
    :: d_step { MAY_ADMIT(s, n) -> send_admit(s, n) }

#define CLIENT(c, n) \
    :: d_step { VOTES(c, n, MAY_VOTE(SERVER_OF(c), n)) -> ask(c, n) }

active proctype world()
{
    byte n, k;
    if :: is_swapped = 0 :: is_swapped = 1 fi;
    d_step {
        max_ttl[0] = OLD_T;
        max_ttl[1] = NEW_T;
#ifdef KEEPS
        has_forgotten = 1; /* it will not */
#endif
#ifdef ALL_EMPTY
        has_forgotten = 1; /* like all others */
#else
#ifdef FOLLOWS
        epoch[0] = 1;
        epoch[1] = 2;
#endif
        admit[0] = 1; admit[1] = 1; admit[2] = 1;
        greatest[0] = OLD_T; greatest[1] = OLD_T; greatest[2] = OLD_T;
#endif
    }
    do
    SERVER(0, 0) SERVER(0, 1) SERVER(0, 2)
    SERVER(1, 1) SERVER(1, 2) SERVER(1, 3)
    CLIENT(0, 0) CLIENT(0, 1) CLIENT(0, 2) CLIENT(0, 3)
    CLIENT(1, 0) CLIENT(1, 1) CLIENT(1, 2) CLIENT(1, 3)
    :: d_step { left == 0 -> left = MAX_TTL(SERVER_OF(0)) }
    :: d_step { !has_forgotten -> forget(1) }
    :: d_step { tick() }
#ifdef FOLLOWS
    :: d_step { !is_restarted -> restart(); epoch[0] = 1 }
    :: d_step { !is_restarted -> restart(); epoch[0] = 3 }
#endif
    od
}
