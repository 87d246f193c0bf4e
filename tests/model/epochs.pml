/* Configurations: rules 3 and 11 of docs/guarantees.md.
 *
 * Server 0 has the old configuration, of nodes 0, 1, 2, which votes; server 1
 * the new one, of nodes 1, 2, 3 and with a lower max_ttl: their majorities need
 * not share a node. Both look at nodes at any time or never, and at all of
 * theirs just before an ADMIT. Client 0 asks the old server and client 1 the new
 * one, or the other way round. Node 1 forgets once. With SAME_EPOCH the new
 * configuration has no higher epoch.
 *
 * Rules that can be switched off:
 *   NO_FINGERPRINT     rule 3: `admit` does not name the configuration
 *   FOREIGN_ELSEWHERE  rule 3: admits although a foreign node was seen
 *   NO_EPOCHS          rule 3: revokes admissions of another configuration
 *   SOME_MARKS         rule 11: nodes are admitted before all are marked
 *   OWN_MARK           rule 11: Q is counted from each node's own mark
 *   OWN_TTL            rule 11: Q by this server's max_ttl, not the greatest
 *   ADMITS_ON          rule 3: admits although it saw a higher epoch
 *   ONE_STOPS          rule 3: no vote at all once it saw a higher epoch
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
 * mark names only its epoch: with SAME_EPOCH both have the same. */
byte admit[NODES], mark[NODES], greatest[NODES];

/* What the servers know. */
bit is_watched[SERVERS * NODES]; /* the node's mark */
byte timer[SERVERS * NODES];
bit is_foreign[SERVERS * NODES];
byte looked[SERVERS];            /* at these nodes, in this tick */
byte max_ttl[SERVERS];           /* the greatest seen */
bit is_above[SERVERS * NODES];   /* the node has a higher epoch */
byte took[SERVERS];              /* admissions of the other one */
bit has_forgotten;               /* node 1, once */
bit is_swapped;                  /* client 0 asks server 1 */
#define SERVER_OF(c) (is_swapped -> 1 - (c) : (c))

#if defined(SAME_EPOCH) || defined(NO_EPOCHS) || defined(NO_FINGERPRINT)
#define EPOCH(s) 1
#define IS_TAKING_OVER(s) false
#else
#define EPOCH(s) ((s) + 1)
#define IS_TAKING_OVER(s) (s == 1)
#endif
#define EPOCH_OF(admission) (admission == 0 -> 0 : EPOCH(admission - 1))

#ifdef NO_FINGERPRINT
#define IS_OURS(s, n) (admit[n] != 0)
#else
#define IS_OURS(s, n) (admit[n] == s + 1)
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
    mark[n] = 0;
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
    mark[n] = EPOCH(s);
    is_watched[AT(s, n)] = 1
}

#define IS_ABOVE(s, n) (EPOCH_OF(admit[n]) > EPOCH(s) || mark[n] > EPOCH(s))

/* Rule 3. */
inline look(s, n)
{
    looked[s] = looked[s] | BIT(n);
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

/* Rule 11. */
#define IS_MARKED(s, n) (is_watched[AT(s, n)] || IS_OURS(s, n))
#define IS_OVER(s, n) \
    (IS_OURS(s, n) || (is_watched[AT(s, n)] && timer[AT(s, n)] >= max_ttl[s]))
#if defined(SOME_MARKS)
#define HAS_TAKEN_OVER(s) true
#elif defined(OWN_MARK)
#define HAS_TAKEN_OVER(s) (!IS_TAKING_OVER(s) || \
    (IS_MARKED(s, 1) && IS_MARKED(s, 2) && IS_MARKED(s, 3)))
#else
#define HAS_TAKEN_OVER(s) (!IS_TAKING_OVER(s) || \
    (IS_OVER(s, 1) && IS_OVER(s, 2) && IS_OVER(s, 3)))
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

/* Rules 4 and 5: after a look at all nodes. */
#if defined(SOME_MARKS) || defined(CUT_OFF)
#define HAS_LOOKED(s) true
#else
#define HAS_LOOKED(s) (COUNT(looked[s]) == 3)
#endif
#define MAY_ADMIT(s, n) \
    (HAS_LOOKED(s) && !SEES_FOREIGN(s) && !IS_BELOW(s) && \
     is_watched[AT(s, n)] && IS_OVER(s, n) && HAS_TAKEN_OVER(s))

inline send_admit(s, n)
{
    is_watched[AT(s, n)] = 0;
    timer[AT(s, n)] = 0;
    if
    :: mark[n] == EPOCH(s) ->
        mark[n] = 0;
        admit[n] = s + 1;
        greatest[n] = (greatest[n] > MAX_TTL(s) -> greatest[n] : MAX_TTL(s));
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
    mark[n] = 0;
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
    looked[0] = 0;
    looked[1] = 0;
    tick_clients()
}

#define SERVER(s, n) \
    :: d_step { look(s, n) } \
    :: d_step { MAY_ADMIT(s, n) -> send_admit(s, n) }

#define CLIENT(c, n) \
    :: d_step { VOTES(c, n, MAY_VOTE(SERVER_OF(c), n)) -> ask(c, n) }

active proctype world()
{
    byte n;
    if :: is_swapped = 0 :: is_swapped = 1 fi;
    d_step {
        max_ttl[0] = OLD_T;
        max_ttl[1] = NEW_T;
#ifdef ALL_EMPTY
        has_forgotten = 1; /* like all others */
#else
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
    od
}
