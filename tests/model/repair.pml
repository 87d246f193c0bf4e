/* Repairs and a release ("Repair" in docs/guarantees.md).
 *
 * Three nodes, one lock. A client releases it through one server; through others
 * the same lock is extended, any number of times, with a repair after each.
 * Commands take any time. The connection to one node may break. One node may
 * lack the key; the acquire, or its fill, may still be under way there. Or the
 * lock is young: the release goes through the server that granted it and has
 * not sent the fill, and asks only nodes 0 and 1. In the end no node may have
 * the key.
 *
 * A release is closed if a majority deleted the key in time: then only nodes
 * without the key are asked again, once. Otherwise all are, until none has it.
 *
 * With READER it is a reader's lock. Its acquire may have a number below the
 * highest in the slot, which it raises all the same, but not below the least.
 *
 * Answers are read at once: read later, they only delay the next asking. The
 * numbers of slots end at SLOT_MAX, and so do the repairs.
 *
 * Rules that can be switched off:
 *   NO_WAIT      a repair looks at once, not a node timeout after its extend
 *   NO_LOOK      a repair does not look again
 *   NO_DEADLINE  a repair has no deadline
 *   NO_COMPARE   a repair ignores that the slot's number has changed
 *   NO_RAISE     a repair raises the number to the token's only
 *   NO_END       an acquire, or its fill, has no deadline
 *   NO_CANCEL    the fill of a young lock is sent after the release
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
 *   KEEPS        a reader's acquire does not raise a number that is higher
 *   KEEPS_LEAST  a reader's repair does not raise the least
 * What the model may assume, not a rule:
 *   IN_TIME      no acquire comes after a look
 * And what remains:
 *   MOST_BREAK   the connections to two nodes may break
 */
#define NO_LOCKS
#include "common.pml"

#ifndef T
#define T 2 /* the node timeout */
#endif
#ifndef EXTENDS
#define EXTENDS 2
#endif
#ifndef SLOT_MAX
#define SLOT_MAX 2
#endif

bool leftover;

bit key[NODES];
byte slot[NODES];   /* 0: below the token's number, 1: that number */
#ifdef READER
bit is_stale[NODES]; /* the least is not below the token's number */
#endif
bit coming[NODES];  /* the acquire, or its fill */

/* ---- the release -------------------------------------------------------- */

mtype = { IDLE, UNDER_WAY, ANSWERED, BROKEN, ASKING, WAITING, LOOKING };

mtype asked[NODES];
bit is_young;       /* the fill was not sent before the release, and never is */
bit is_again;       /* nodes are asked again */
byte closing;       /* bit per node: it deleted the key in time */
byte again;         /* bit per node: it lacked the key, or had it when asked
                       again */
byte age;           /* since the release began; young: since the grant */
byte quiet;         /* since the last answer, or the release began */
byte frail;         /* the node whose connection may break */

#define HAS_BEGUN (asked[0] != IDLE)
#define IS(n, what) (asked[n] == what -> 1 : 0)
#define ALL(what) (IS(0, what) + IS(1, what) + IS(2, what))

#ifdef FIXED
#define AGE_MAX (2 * T)
#define IS_TIME (age >= 2 * T)
#else
#define AGE_MAX T
#define IS_TIME (quiet >= T)
#endif
#define IS_ANSWERED (HAS_BEGUN && ALL(UNDER_WAY) == 0)
#define IS_LATE (IS_TIME && ALL(ANSWERED) >= QUORUM)

#ifdef LATE
#define IS_IN_TIME true
#else
#define IS_IN_TIME (age < T)
#endif
#ifdef EMPTY
#define CLOSES(n) IS_IN_TIME
#else
#define CLOSES(n) (key[n] && IS_IN_TIME)
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
#ifdef FROM_RELEASE
    age = 0;
#endif
#ifdef NO_CANCEL
    coming[2] = coming[2] || is_young;
#endif
}

inline answer(n)
{
    if
    :: is_again ->
        again = (key[n] && !IS_CLOSED -> ALL_NODES : again);
#ifdef REACH_FILL
        is_reached = IS_CLOSED && key[n];
        assert(!is_reached)
#endif
    :: else ->
        closing = (CLOSES(n) -> closing | BIT(n) : closing);
        again = (!key[n] && !IS_LATE -> again | BIT(n) : again)
    fi;
    quiet = 0;
    asked[n] = ANSWERED;
    key[n] = 0
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
    FAULT(MAY_BREAK(n), asked[n] = BROKEN; key[n] = 0)

/* What a broken connection lost is sent once more at the end. */
#define IS_AT_END (IS_ANSWERED && IS_TIME && DUE == 0)
#define PAY(n) \
    :: d_step { IS_AT_END && asked[n] == BROKEN -> \
                asked[n] = ANSWERED; key[n] = 0 }
#define IS_OVER (IS_AT_END && ALL(BROKEN) == 0)

/* ---- extends and repairs ------------------------------------------------ */

mtype phase[EXTENDS];
byte had[EXTENDS];       /* bit per node: has it, as the extend, or look, found */
byte lacks[EXTENDS];     /* bit per node: is to be repaired */
byte seen[EXTENDS * NODES];
byte since[EXTENDS];     /* ticks in this phase */

#define SEEN(e, n) seen[(e) * NODES + (n)]

inline finish(e)
{
    phase[e] = IDLE;
    had[e] = 0;
    lacks[e] = 0;
    since[e] = 0;
    SEEN(e, 0) = 0;
    SEEN(e, 1) = 0;
    SEEN(e, 2) = 0
}

inline ask(e, n)
{
    phase[e] = ASKING;
    if
    :: key[n] -> had[e] = had[e] | BIT(n)
    :: else -> lacks[e] = lacks[e] | BIT(n); SEEN(e, n) = slot[n]
    fi;
    if
    :: had[e] == ALL_NODES || COUNT(lacks[e]) >= QUORUM -> finish(e)
    :: else
    fi
}

inline wait(e)
{
    phase[e] = WAITING;
    since[e] = 0;
#ifndef NO_LOOK
    had[e] = 0 /* the look tells */
#endif
}

inline begin_look(e)
{
    phase[e] = LOOKING;
#ifdef IN_TIME
    coming[0] = 0;
    coming[2] = 0;
#endif
    since[e] = 0
}

inline set(e, n)
{
    if
    :: key[n]
    :: else ->
        key[n] = 1;
#ifdef REACH_REPAIR
        is_reached = asked[n] == ANSWERED;
        assert(!is_reached);
#endif
#ifdef NO_RAISE
        slot[n] = (slot[n] == 0 -> 1 : slot[n])
#else
        slot[n]++;
#endif
#if defined(READER) && !defined(KEEPS_LEAST)
        is_stale[n] = 1
#endif
    fi;
    lacks[e] = lacks[e] & ~BIT(n);
    SEEN(e, n) = 0;
    if
    :: lacks[e] == 0 -> finish(e)
    :: else
    fi
}

#ifdef NO_COMPARE
#define IS_AS_SEEN(e, n) true
#else
#define IS_AS_SEEN(e, n) (SEEN(e, n) == slot[n])
#endif

#ifdef NO_WAIT
#define WAIT 0
#else
#define WAIT T
#endif

#define EXTEND_ON(e, n) \
    :: d_step { (phase[e] == IDLE || phase[e] == ASKING) && \
                !((had[e] | lacks[e]) & BIT(n)) -> ask(e, n) } \
    :: d_step { phase[e] == LOOKING && key[n] && \
                !((had[e] | lacks[e]) & BIT(n)) -> had[e] = had[e] | BIT(n) } \
    :: d_step { phase[e] == LOOKING && COUNT(had[e]) >= QUORUM && \
                (lacks[e] & BIT(n)) && slot[n] < SLOT_MAX && \
                IS_AS_SEEN(e, n) -> set(e, n) }

#define EXTEND(e) \
    EXTEND_ON(e, 0) EXTEND_ON(e, 1) EXTEND_ON(e, 2) \
    :: d_step { phase[e] == ASKING && COUNT(had[e]) >= QUORUM && lacks[e] -> wait(e) } \
    :: d_step { phase[e] == WAITING && since[e] >= WAIT -> begin_look(e) } \
    :: d_step { phase[e] != IDLE -> finish(e) }

/* ---- time --------------------------------------------------------------- */

/* At its end a deadline has passed, and a wait is over. */
inline tick()
{
    age = ((is_young || HAS_BEGUN) && age < AGE_MAX -> age + 1 : age);
    quiet = (HAS_BEGUN && quiet < T -> quiet + 1 : quiet);
#ifndef NO_END
    for (n : 0 .. NODES - 1) {
        coming[n] = (age < T -> coming[n] : 0)
    }
#endif
    for (e : 0 .. EXTENDS - 1) {
        if
        :: phase[e] == WAITING && since[e] < WAIT -> since[e]++
#ifndef NO_DEADLINE
        :: phase[e] == LOOKING && since[e] + 1 < T -> since[e]++
        :: phase[e] == LOOKING && since[e] + 1 >= T -> finish(e)
#endif
        :: else
        fi
    }
    n = 0;
    e = 0
}

/* ---- the world ---------------------------------------------------------- */

#ifdef READER
#define MAY_SET(n) (!is_stale[n] && slot[n] < SLOT_MAX)
#else
#define MAY_SET(n) (slot[n] == 0)
#endif
#ifdef KEEPS
#define RAISE(n)
#else
#define RAISE(n) slot[n]++;
#endif
#define ACQUIRE(n) \
    FAULT(coming[n] && !key[n] && MAY_SET(n), \
          RAISE(n) coming[n] = 0; key[n] = 1)

#define ARE_IDLE (phase[0] == IDLE && phase[EXTENDS - 1] == IDLE)

active proctype world()
{
    byte n, e;
    d_step {
        for (n : 0 .. NODES - 1) {
            asked[n] = IDLE;
            key[n] = 1;
            slot[n] = 1
        }
        for (e : 0 .. EXTENDS - 1) {
            phase[e] = IDLE
        }
        n = 0;
        e = 0
    }
    frail = 2;
    if
    :: true
    :: d_step { key[0] = 0; slot[0] = 0; coming[0] = 1 }
    :: d_step { key[0] = 0 }
    :: d_step { key[2] = 0; slot[2] = 0; coming[2] = 1 }
    :: d_step { key[2] = 0 }
#ifndef FIXED
    :: d_step { key[2] = 0; slot[2] = 0; is_young = 1 }
    :: d_step { key[2] = 0; slot[2] = 0; is_young = 1; frail = 1 }
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
    EXTEND(0)
#if EXTENDS > 1
    EXTEND(1)
#endif
    :: d_step { tick() }
    :: d_step { IS_OVER && ARE_IDLE && !coming[0] && !coming[2] -> \
                leftover = key[0] || key[1] || key[2]; assert(!leftover) }
    od
}
