/* Repairs and a release ("Repair" in docs/guarantees.md).
 *
 * Three nodes, one lock. A client releases it through one server; through others
 * the same lock is extended, any number of times, with a repair after each.
 * Commands take any time. The connection to node 2 may break. One node may lack
 * the key; the acquire may still be under way there. In the end no node may have
 * the key.
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
 *   ONCE         no node is asked again
 *   ONLY_LATE    … unless no majority answered in time
 *   ONLY_MISSED  … unless a node lacked the key
 *   FIXED        they are asked again 2 T after the release began, whenever they
 *                answered
 *   TWICE        they are not asked once more, whatever was found
 * And what remains, not a rule:
 *   MOST_BREAK   the connection to node 1 may break, too
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
bit coming[NODES];  /* the acquire */

/* ---- the release -------------------------------------------------------- */

mtype = { IDLE, UNDER_WAY, ANSWERED, BROKEN, ASKING, WAITING, LOOKING };

mtype asked[NODES];
bit is_again;       /* they are asked again */
bit is_unclean;     /* a node lacked the key, or had it when asked again */
byte in_time;       /* bit per node */
byte age;           /* since it began */
byte quiet;         /* since the last answer */

#define IS(n, what) (asked[n] == what -> 1 : 0)
#define ALL(what) (IS(0, what) + IS(1, what) + IS(2, what))

#ifdef FIXED
#define IS_TIME (age >= 2 * T)
#else
#define IS_TIME (quiet >= T)
#endif
#define MAY_GO_ON (asked[0] != IDLE && IS_TIME && ALL(UNDER_WAY) == 0)
#define IS_LATE (IS_TIME && ALL(ANSWERED) >= QUORUM)

#if defined(ONCE)
#define IS_CLEAN true
#elif defined(TWICE)
#define IS_CLEAN (is_again || (!is_unclean && COUNT(in_time) >= QUORUM))
#elif defined(ONLY_LATE)
#define IS_CLEAN (is_again -> !is_unclean : COUNT(in_time) >= QUORUM)
#elif defined(ONLY_MISSED)
#define IS_CLEAN (!is_unclean)
#else
#define IS_CLEAN (!is_unclean && (is_again || COUNT(in_time) >= QUORUM))
#endif

inline begin()
{
    asked[0] = UNDER_WAY;
    asked[1] = UNDER_WAY;
    asked[2] = UNDER_WAY
}

inline answer(n)
{
    is_unclean = is_unclean ||
                 (is_again -> key[n] : !key[n] && !IS_LATE);
    in_time = (!is_again && age < T -> in_time | BIT(n) : in_time);
    quiet = 0;
    asked[n] = ANSWERED;
    key[n] = 0
}

inline again()
{
    is_again = 1;
    is_unclean = 0;
    in_time = 0;
    begin()
}

#define RELEASE(n) \
    :: d_step { asked[n] == UNDER_WAY -> answer(n) }

#define BREAK(n) \
    FAULT(asked[n] == UNDER_WAY, asked[n] = BROKEN) \
    FAULT(asked[n] == UNDER_WAY, asked[n] = BROKEN; key[n] = 0)

/* What a broken connection lost is sent once more at the end. */
#define OWES(n) (asked[n] == BROKEN && key[n])
#define IS_OVER (MAY_GO_ON && IS_CLEAN && !OWES(1) && !OWES(2))

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
    fi
}

inline begin_look(e)
{
    phase[e] = LOOKING;
    since[e] = 0;
#ifndef NO_LOOK
    had[e] = 0
#endif
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
        slot[n]++
#endif
    fi;
    lacks[e] = lacks[e] & ~BIT(n);
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
    :: d_step { phase[e] == ASKING && COUNT(had[e]) >= QUORUM && lacks[e] -> \
                phase[e] = WAITING; since[e] = 0 } \
    :: d_step { phase[e] == WAITING && since[e] >= WAIT -> begin_look(e) } \
    :: d_step { phase[e] != IDLE -> finish(e) }

/* ---- time --------------------------------------------------------------- */

/* At its end a deadline has passed, and a wait is over. */
inline tick()
{
    age = (asked[0] != IDLE && age < 2 * T -> age + 1 : age);
    quiet = (asked[0] != IDLE && quiet < T -> quiet + 1 : quiet);
    for (n : 0 .. NODES - 1) {
        coming[n] = (age < T -> coming[n] : 0)
    }
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

#define ACQUIRE(n) \
    FAULT(coming[n] && slot[n] == 0 && !key[n], \
          coming[n] = 0; key[n] = 1; slot[n] = 1)

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
    if
    :: true
    :: d_step { key[0] = 0; slot[0] = 0; coming[0] = 1 }
    :: d_step { key[0] = 0 }
    :: d_step { key[2] = 0; slot[2] = 0; coming[2] = 1 }
    :: d_step { key[2] = 0 }
    fi;
    do
    :: d_step { asked[0] == IDLE -> begin() }
    RELEASE(0) RELEASE(1) RELEASE(2)
#ifdef MOST_BREAK
    BREAK(1)
#endif
    BREAK(2)
    :: d_step { MAY_GO_ON && IS_CLEAN && OWES(1) -> key[1] = 0 }
    :: d_step { MAY_GO_ON && IS_CLEAN && OWES(2) -> key[2] = 0 }
    :: d_step { MAY_GO_ON && !IS_CLEAN -> again() }
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
