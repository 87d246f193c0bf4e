/* SPDX-License-Identifier: MIT */
/* Spreads and a release ("Spread" in docs/internals/guarantees.md).
 *
 * Three nodes, one lock. A client releases it through one server; others spread
 * the lock, any number of times each, as they granted or extended it. Commands
 * take any time. The connection to one node may break. One node may lack the
 * key; the acquire, or its early replication, may still be under way there. Or the lock is
 * young: the release goes through the server that granted it and has not sent
 * the early replication, and asks only nodes 0 and 1. In the end no node may have the key.
 *
 * A release is closed if a majority deleted the key in time: then only nodes
 * without the key are asked again, once. Otherwise all are, until none has it.
 *
 * A spread checks twice. Where the key was missing at its first check, it creates
 * the key once the second one has found it on a majority, and leaves a
 * tombstone there. No numbers are compared: so a reader's member is as a key.
 *
 * With PARTS the lock has another part, which node 2 lacks, and which is not
 * released. With OTHERS somebody else has a key on some node now and then.
 *
 * With FORCED the release is one by force, and no acquire is under way: once a
 * majority has answered within 3 T, no majority may have the key again.
 *
 * With SMALL the lock is old, node 2 lacks it, nothing breaks, and two
 * spreads may be under way.
 *
 * Answers are read at once: read later, they only delay what follows.
 *
 * A tombstone that no spread under way can meet is lost: fewer states, and
 * later spreads may do more.
 *
 * Rules that can be switched off:
 *   NO_TOMB      a creation leaves no tombstone
 *   TOMB=…       it lasts so long, less than 4 T
 *   NO_BURY      nor does a forced release
 *   NO_GATE      a spread may check before T after the grant
 *   NO_WAIT      the second check does not wait for T after the first one
 *   LATE_CHECK    it may begin later than 3 T after the first one
 *   NO_CHECK      there is no second check: the first one tells who has it
 *   NO_DEADLINE  a creation has no deadline
 *   WINDOW=…     it has one, later than T after the second check began
 *   ANY_PART     a creation sets all that is missing then
 *   OVERWRITES   a creation does not mind what is there
 *   NO_END       an acquire, or its early replication, has no deadline
 *   NO_CANCEL    the early replication of a young lock is sent after the release
 *   FROM_RELEASE the release of a young lock is in time until T after it began,
 *                not after the grant
 *   LATE         a majority that deleted the key late closes it, too
 *   EMPTY        so does one that answered in time, with the key or without
 *   ONCE         if it is closed, no node is asked again
 *   SOME         if it is not, only nodes without the key are asked again
 *   SAME         … only the nodes that were asked first
 *   TWICE        … no node is asked a third time, whatever was found
 *   AT_ONCE      nodes are asked again as soon as all have answered
 *   FIXED        … or 2 T after the release began, whenever they answered
 * And what remains:
 *   MOST_BREAK   the connections to two nodes may break
 */
#define NO_LOCKS
#ifdef SMALL
#define T 1
#define FAULTS 0
#define SPREADS 2
#endif
#include "common.pml"

#ifndef T
#define T 2 /* the node timeout */
#endif
#ifndef SPREADS
#define SPREADS 1 /* under way at once */
#endif
#ifndef TOMB
#define TOMB (4 * T)
#endif
#ifndef WINDOW
#define WINDOW T
#endif

bool leftover, overwritten, revived;

byte key[NODES];    /* 1: ours, 2: somebody else's */
bit coming[NODES];  /* the acquire, or its early replication */
byte young;         /* ticks since the grant began, up to T */

#define HAS(n) (key[n] == 1)

/* ---- the release -------------------------------------------------------- */

mtype = { IDLE, UNDER_WAY, ANSWERED, BROKEN, FIRST, SECOND };

mtype asked[NODES];
bit is_young;       /* the early replication was not sent before the release, and never is */
bit is_again;       /* nodes are asked again */
byte closing;       /* bit per node: it deleted the key in time */
byte again;         /* bit per node: it lacked the key, or had it when asked
                       again */
byte age;           /* since the release began */
byte quiet;         /* since the last answer, or the release began */
byte frail;         /* the node whose connection may break */

#ifdef FORCED
bit is_told;        /* the client was answered */
#endif
#define HAS_BEGUN (asked[0] != IDLE)
#define IS(n, what) (asked[n] == what -> 1 : 0)
#define ALL(what) (IS(0, what) + IS(1, what) + IS(2, what))

#ifdef FIXED
#define AGE_MAX (2 * T)
#define IS_TIME (age >= 2 * T)
#else
#ifdef FORCED
#define AGE_MAX (3 * T)
#else
#define AGE_MAX T
#endif
#define IS_TIME (quiet >= T)
#endif
#define IS_ANSWERED (HAS_BEGUN && ALL(UNDER_WAY) == 0)
#define IS_LATE (IS_TIME && ALL(ANSWERED) >= QUORUM)

#ifdef LATE
#define IS_IN_TIME true
#else
#ifdef FROM_RELEASE
#define IS_IN_TIME (age < T)
#else
#define IS_IN_TIME ((is_young -> young : age) < T)
#endif
#endif
#ifdef EMPTY
#define CLOSES(n) IS_IN_TIME
#else
#define CLOSES(n) (HAS(n) && IS_IN_TIME)
#endif
#define IS_CLOSED (COUNT(closing) >= QUORUM)

/* Whom the release must ask again, a bit each. */
#define ALL_NODES 7
#ifdef ONCE
#define DUE_IF_CLOSED 0
#else
#define DUE_IF_CLOSED (is_again -> 0 : again)
#endif
#if defined(SOME)
#define DUE_IF_OPEN again
#elif defined(SAME)
#define DUE_IF_OPEN (!is_again || again -> (is_young -> 3 : ALL_NODES) : 0)
#elif defined(TWICE)
#define DUE_IF_OPEN (is_again -> 0 : ALL_NODES)
#else
#define DUE_IF_OPEN (!is_again || again -> ALL_NODES : 0)
#endif
#define DUE (IS_CLOSED -> DUE_IF_CLOSED : DUE_IF_OPEN)

inline begin()
{
    asked[0] = UNDER_WAY;
    asked[1] = UNDER_WAY;
    asked[2] = (is_young -> IDLE : UNDER_WAY);
#ifdef NO_CANCEL
    coming[2] = coming[2] || is_young;
#endif
}

inline answer(n)
{
    if
    :: is_again ->
        again = (HAS(n) && !IS_CLOSED -> ALL_NODES : again);
#ifdef REACH_EARLY
        is_reached = IS_CLOSED && HAS(n);
        assert(!is_reached)
#endif
    :: else ->
        closing = (CLOSES(n) -> closing | BIT(n) : closing);
        again = (!HAS(n) && !IS_LATE -> again | BIT(n) : again)
    fi;
    quiet = 0;
    asked[n] = ANSWERED;
    key[n] = (HAS(n) -> 0 : key[n]);
#ifdef FORCED
    is_told = is_told || (age < AGE_MAX && ALL(ANSWERED) >= QUORUM);
#ifndef NO_BURY
    tomb[n] = (is_again -> tomb[n] : TOMB)
#endif
#endif
}

inline ask_again()
{
    for (n : 0 .. NODES - 1) {
        asked[n] = (DUE & BIT(n) -> UNDER_WAY : asked[n])
    }
    n = 0;
    is_again = 1;
    closing = (IS_CLOSED -> ALL_NODES : 0); /* fewer states */
    again = 0
}

#ifdef AT_ONCE
#define MAY_ASK_AGAIN IS_ANSWERED
#else
#define MAY_ASK_AGAIN (IS_ANSWERED && IS_TIME)
#endif

#define RELEASE(n) \
    :: d_step { asked[n] == UNDER_WAY -> answer(n) }

#ifdef MOST_BREAK
#define MAY_BREAK(n) (asked[n] == UNDER_WAY)
#else
#define MAY_BREAK(n) (asked[n] == UNDER_WAY && frail == n)
#endif
#define BREAK(n) \
    FAULT(MAY_BREAK(n), asked[n] = BROKEN) \
    FAULT(MAY_BREAK(n) && HAS(n), asked[n] = BROKEN; key[n] = 0)

/* What a broken connection lost is sent once more at the end. */
#define IS_AT_END (IS_ANSWERED && IS_TIME && DUE == 0)
#define PAY(n) \
    :: d_step { IS_AT_END && asked[n] == BROKEN -> \
                asked[n] = ANSWERED; key[n] = (HAS(n) -> 0 : key[n]) }
#define IS_OVER (IS_AT_END && ALL(BROKEN) == 0)

/* ---- spreads ------------------------------------------------------------ */

mtype phase[SPREADS];
byte had[SPREADS];   /* bit per node: has it, as the second check found */
byte lacks[SPREADS]; /* bit per node: lacked it at the first check */
byte since[SPREADS]; /* ticks since this check began */
byte calm[SPREADS];  /* first check: since its last answer, up to T */
byte tomb[NODES];    /* how long the tombstone still lasts */

#ifdef PARTS
#define HAS_ALL(n) (HAS(n) && n != 2)
#else
#define HAS_ALL(n) HAS(n)
#endif
#ifdef ANY_PART
#define MAY_CREATE(n) (!HAS_ALL(n))
#else
#define MAY_CREATE(n) (!HAS(n)) /* what was missing, and nothing else */
#endif

/* Whether a spread may meet the tombstone. That of a forced release may be met
 * by one that checks later. */
#ifdef FORCED
#define MEETS(n) true
#else
#define MEETS(n) (BIT(n) & (lacks[0] | lacks[SPREADS - 1]))
#endif

inline forget_tombs()
{
    tomb[0] = (MEETS(0) -> tomb[0] : 0);
    tomb[1] = (MEETS(1) -> tomb[1] : 0);
    tomb[2] = (MEETS(2) -> tomb[2] : 0)
}

inline finish(e)
{
    phase[e] = IDLE;
    had[e] = 0;
    lacks[e] = 0;
    since[e] = 0;
    calm[e] = 0;
    forget_tombs()
}

inline ask(e, n)
{
    phase[e] = FIRST;
    lacks[e] = lacks[e] | BIT(n);
    calm[e] = 0
}

inline check(e)
{
    phase[e] = SECOND;
    since[e] = 0;
    calm[e] = 0
}

inline create(e, n)
{
    if
#ifndef OVERWRITES
    :: key[n] == 0 && tomb[n] == 0 ->
#else
    :: !HAS(n) && tomb[n] == 0 ->
        overwritten = key[n] != 0;
        assert(!overwritten);
#endif
        key[n] = 1;
#ifndef NO_TOMB
        tomb[n] = TOMB;
#endif
#ifdef FORCED
        revived = is_told && HAS(0) + HAS(1) + HAS(2) >= QUORUM;
        assert(!revived);
#endif
#ifdef REACH_CREATE
        is_reached = asked[n] == ANSWERED;
        assert(!is_reached);
#endif
        lacks[e] = lacks[e] & ~BIT(n);
        forget_tombs()
    :: else /* tried again as long as it is in time */
    fi;
    if
    :: lacks[e] == 0 -> finish(e)
    :: else
    fi
}

#ifdef NO_GATE
#define IS_OLD true
#else
#define IS_OLD (young >= T)
#endif
#ifdef NO_WAIT
#define IS_CALM(e) true
#else
#define IS_CALM(e) (calm[e] >= T)
#endif
#ifdef NO_CHECK
#define IS_FOUND(e) true
#else
#define IS_FOUND(e) (COUNT(had[e]) >= QUORUM)
#endif

/* A spread that is alone is the first one: fewer states. */
#define MAY_BEGIN(e) \
    (phase[e] == IDLE && IS_OLD && (e == 0 || phase[0] != IDLE))

#define SPREAD_ON(e, n) \
    :: d_step { (phase[e] == FIRST || MAY_BEGIN(e)) && \
                MAY_CREATE(n) && !(lacks[e] & BIT(n)) -> ask(e, n) } \
    :: d_step { phase[e] == SECOND && HAS_ALL(n) && !(had[e] & BIT(n)) -> \
                had[e] = had[e] | BIT(n) } \
    :: d_step { phase[e] == SECOND && IS_FOUND(e) && (lacks[e] & BIT(n)) -> \
                create(e, n) }

#define SPREAD(e) \
    SPREAD_ON(e, 0) SPREAD_ON(e, 1) SPREAD_ON(e, 2) \
    :: d_step { phase[e] == FIRST && IS_CALM(e) -> check(e) } \
    :: d_step { phase[e] != IDLE -> finish(e) }

/* ---- time --------------------------------------------------------------- */

/* At its end a deadline has passed, and a wait is over. */
inline tick()
{
    age = (HAS_BEGUN && age < AGE_MAX -> age + 1 : age);
    quiet = (HAS_BEGUN && quiet < T -> quiet + 1 : quiet);
    young = (young < T -> young + 1 : young);
    for (n : 0 .. NODES - 1) {
#ifndef NO_END
        coming[n] = (young < T -> coming[n] : 0);
#endif
        tomb[n] = (tomb[n] > 0 -> tomb[n] - 1 : 0)
    }
    for (e : 0 .. SPREADS - 1) {
        if
        :: phase[e] == FIRST ->
            calm[e] = (calm[e] < T -> calm[e] + 1 : T);
            if
            :: since[e] < 3 * T -> since[e]++
#ifndef LATE_CHECK
            :: else -> finish(e)
#else
            :: else
#endif
            fi
#ifndef NO_DEADLINE
        :: phase[e] == SECOND && since[e] + 1 < WINDOW -> since[e]++
        :: phase[e] == SECOND && since[e] + 1 >= WINDOW -> finish(e)
#endif
        :: else
        fi
    }
    n = 0;
    e = 0
}

/* ---- the world ---------------------------------------------------------- */

#define ACQUIRE(n) \
    FAULT(coming[n] && key[n] == 0, coming[n] = 0; key[n] = 1)

#ifdef OTHERS
#define OTHER(n) \
    FAULT(key[n] == 0, key[n] = 2) \
    :: d_step { key[n] == 2 -> key[n] = 0 }
#else
#define OTHER(n)
#endif

#define ARE_IDLE (phase[0] == IDLE && phase[SPREADS - 1] == IDLE)

active proctype world()
{
    byte n, e;
    d_step {
        for (n : 0 .. NODES - 1) {
            asked[n] = IDLE;
            key[n] = 1
        }
        for (e : 0 .. SPREADS - 1) {
            phase[e] = IDLE
        }
        n = 0;
        e = 0
    }
    frail = 2;
    young = T;
    if
#ifdef SMALL
    :: d_step { key[2] = 0 }
#else
    :: true
#ifndef FORCED
    :: d_step { key[0] = 0; coming[0] = 1; young = 0 }
    :: d_step { key[2] = 0; coming[2] = 1; young = 0 }
#endif
    :: d_step { key[0] = 0 }
    :: d_step { key[2] = 0 }
#ifndef FIXED
    :: d_step { key[2] = 0; is_young = 1; young = 0 }
    :: d_step { key[2] = 0; is_young = 1; young = 0; frail = 1 }
#endif
#endif
    fi;
    do
    :: d_step { !HAS_BEGUN -> begin() }
    RELEASE(0) RELEASE(1) RELEASE(2)
    BREAK(1) BREAK(2)
    PAY(1) PAY(2)
    :: d_step { MAY_ASK_AGAIN && DUE -> ask_again() }
#ifdef REACH_CLOSE
    :: d_step { IS_OVER && is_young && !is_again -> \
                is_reached = true; assert(!is_reached) }
#endif
    ACQUIRE(0) ACQUIRE(2)
    OTHER(0) OTHER(2)
    SPREAD(0)
#if SPREADS > 1
    SPREAD(1)
#endif
    :: d_step { tick() }
    :: d_step { IS_OVER && ARE_IDLE && !coming[0] && !coming[2] -> \
                leftover = HAS(0) || HAS(1) || HAS(2); assert(!leftover) }
    od
}
