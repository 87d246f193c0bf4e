/* Other names, once the old ones are dead: rule 12 of docs/guarantees.md.
 *
 * Three names become five; with SHRINKS five become three, with OUTSIDE three
 * become three others, of which one stays. A machine that is marked for the new
 * names keeps what it was taken from. With MOVES the last machine answers to
 * name 0 as well; it has no memory. As in forgot.pml there is no time: what a
 * client was promised ends at any moment, everywhere at once. Client 0 asks
 * servers of the old names, or with BOTH_NEW of the new ones; client 1 those of
 * the new ones. Rule 6, which forgot.pml has, is one step.
 *
 * Rules that can be switched off:
 *   ANY_TELLS    a node that had no permission when it was marked is asked, too
 *   FEW          they need be no majority of the old names
 *   NO_OLD_BIRTH a machine may tell although its name had a later one
 *   UNTOLD       what they promised need not end
 *   MEMORY       a server counts those whom it took, whatever they are now
 *   BY_Q         if too few tell, it waits until nothing is promised any more
 *   BY_TIME      what remains: an old server that is cut off, and was so all the
 *                time, admits a node when nothing is promised any more
 */
#ifdef SHRINKS
#define OLD 5
#define NEW 3
#ifdef MOVES
#define ASKS_0 25
#define ASKS_1 6
#else
#define ASKS_0 28
#define ASKS_1 3
#endif
#elif defined(OUTSIDE)
#define NEW 3
#define ASKS_0 3
#define ASKS_1 24
#elif defined(BOTH_NEW)
#define ASKS_0 13
#define ASKS_1 26
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define NO_LOCKS
#include "common.pml"

#ifndef OLD
#define OLD 3
#endif
#ifndef NEW
#define NEW 5
#endif
#define NAMES (OLD > NEW -> OLD : NEW)
#define ALL 5
#define MACHINES 6
#define SECOND 5
#define OLD_MAJORITY (OLD / 2 + 1)
#define NEW_MAJORITY (NEW / 2 + 1)
#ifdef OUTSIDE
#define FROM 2
#else
#define FROM 0
#endif
#define IS_IN_NEW(name) ((name) >= FROM && (name) < FROM + NEW)
#define NAME(m) ((m) == SECOND -> 0 : (m))
#define OF(who, name) ((who) * ALL + (name))

#ifdef FEW
#define ENOUGH (OLD_MAJORITY - 1)
#else
#define ENOUGH OLD_MAJORITY
#endif

/* The machines. */
mtype = {UNMARKED, OLD_MARKED, OLD_ADMITTED, NEW_MARKED, NEW_ADMITTED};
mtype phase[MACHINES];
byte birth[MACHINES];          /* of the mark or the admission */
byte taken[MACHINES];          /* 1 + the old birth; 0: it tells nothing */
byte carries[MACHINES * ALL];  /* the latest births told of the others */
byte lock[MACHINES];           /* client + 1; 0: free */
byte promised[MACHINES];       /* what has not ended: a bit a client */
byte births[ALL];              /* how many there were of a name */

/* The clients. */
bit is_new[CLIENTS];           /* asks servers of the new names */
byte votes[CLIENTS], known[CLIENTS * ALL];
bit holds[CLIENTS];
#define MAJORITY_OF(c) (is_new[c] -> NEW_MAJORITY : OLD_MAJORITY)

/* The servers of the new names. */
byte seen[SERVERS * MACHINES]; /* the birth of the mark; 0: none was seen */
byte cleared[SERVERS];         /* machines that are admitted, if still so */
bit is_over[SERVERS];          /* it has cleared them once */
byte told[SERVERS];            /* machines that it took: MEMORY */
byte latest[SERVERS * ALL];    /* of the new names */
byte sent[SERVERS * ALL];      /* those that its admissions tell */
#define SEEN(s, m) seen[(s) * MACHINES + (m)]

/* ---- votes -------------------------------------------------------------- */

inline hear(c, name, later)
{
    if
    :: later > known[OF(c, name)] ->
        known[OF(c, name)] = later;
        votes[c] = votes[c] & ~BIT(name)
    :: else
    fi
}

#define MAY_VOTE(c, m) \
    (phase[m] == (is_new[c] -> NEW_ADMITTED : OLD_ADMITTED) && \
     (is_new[c] -> IS_IN_NEW(NAME(m)) : NAME(m) < OLD) && \
     lock[m] == 0 && birth[m] >= known[OF(c, NAME(m))])

inline vote(c, m)
{
    for (k : 0 .. ALL - 1) {
        hear(c, k, carries[OF(m, k)])
    }
    k = 0;
    hear(c, NAME(m), birth[m]);
    votes[c] = votes[c] | BIT(NAME(m));
    lock[m] = c + 1;
    promised[m] = promised[m] | BIT(c)
}

inline decide(c)
{
    holds[c] = 1;
#ifdef REACH_GRANT
    is_reached = is_new[c];
    assert(!is_reached);
#endif
    two_holders = holds[0] && holds[1];
    assert(!two_holders)
}

inline end(c)
{
    for (k : 0 .. MACHINES - 1) {
        lock[k] = (lock[k] == c + 1 -> 0 : lock[k]);
        promised[k] = promised[k] & ~BIT(c)
    }
    holds[c] = 0;
    votes[c] = 0;
    for (k : 0 .. ALL - 1) {
        known[OF(c, k)] = 0
    }
    k = 0
}

/* ---- rules 5 and 6, at once --------------------------------------------- */

/* An admitted machine is told of a birth under the same names. */
#define IS_BESIDE(m, other) \
    (NAME(m) != NAME(other) && \
     (phase[m] == OLD_ADMITTED && \
      (phase[other] == OLD_ADMITTED || phase[other] == OLD_MARKED) || \
      phase[m] == NEW_ADMITTED && \
      (phase[other] == NEW_ADMITTED || phase[other] == NEW_MARKED)))
#define TELL(m, other) \
    :: d_step { TELLS_OF(other) && IS_BESIDE(m, other) && \
                birth[other] > carries[OF(m, NAME(other))] -> \
                carries[OF(m, NAME(other))] = birth[other] }

#define TELLS(m, other, under) \
    (phase[other] == under && NAME(other) != NAME(m) && promised[other] == 0 && \
     carries[OF(other, NAME(m))] == birth[m])
#define KNOWS_LATER(other, m, under) \
    (phase[other] == under && carries[OF(other, NAME(m))] > birth[m])
#define IS_OUTDATED(m, under) \
    (KNOWS_LATER(1, m, under) || KNOWS_LATER(2, m, under) || \
     KNOWS_LATER(3, m, under) || KNOWS_LATER(4, m, under))
#define NAME_0_TELLS(m, under) \
    (TELLS(m, SECOND, under) && !IS_OUTDATED(SECOND, under) || \
     TELLS(m, 0, under) && !IS_OUTDATED(0, under))
#define TELLERS(m, under) \
    (NAME_0_TELLS(m, under) + TELLS(m, 1, under) + TELLS(m, 2, under) + \
     TELLS(m, 3, under) + TELLS(m, 4, under))

inline admit(m, under)
{
    phase[m] = under;
    taken[m] = 0;
    promised[m] = 0
}

/* Those who told it know this of the other names. */
inline admit_told(m, under)
{
    admit(m, under);
    for (k : 0 .. MACHINES * ALL - 1) {
        carries[OF(m, k % ALL)] =
            (phase[k / ALL] == under && k % ALL != NAME(m) &&
             carries[k] > carries[OF(m, k % ALL)] -> carries[k] :
             carries[OF(m, k % ALL)])
    }
    k = 0
}

/* ---- marks -------------------------------------------------------------- */

inline forget(m)
{
    phase[m] = UNMARKED;
    birth[m] = 0;
    taken[m] = 0;
    lock[m] = 0;
    promised[m] = 0;
    for (k : 0 .. ALL - 1) {
        carries[OF(m, k)] = 0
    }
    k = 0
}

inline mark(m, under)
{
    phase[m] = under;
    births[NAME(m)]++;
    birth[m] = births[NAME(m)]
}

/* ---- the new servers ---------------------------------------------------- */

#ifdef ANY_TELLS
#define TELLS_OLD(m) (phase[m] != NEW_ADMITTED)
#else
#define TELLS_OLD(m) (phase[m] == OLD_ADMITTED)
#endif

/* One call: marks, and keeps what was there. */
inline take(s, m)
{
    taken[m] = (TELLS_OLD(m) -> birth[m] + 1 : 0);
    told[s] = (taken[m] != 0 -> told[s] | BIT(m) : told[s]);
    mark(m, NEW_MARKED);
    see(s, m)
}

inline see(s, m)
{
    SEEN(s, m) = birth[m];
    cleared[s] = cleared[s] & ~BIT(m);
    latest[OF(s, NAME(m))] = birth[m]
}

#ifdef MEMORY
#define IS_TAKEN(s, m) (told[s] & BIT(m))
#else
#define IS_TAKEN(s, m) (phase[m] == NEW_MARKED && taken[m] != 0)
#endif
#ifdef UNTOLD
#define HAS_ENDED(m) true
#else
#define HAS_ENDED(m) (promised[m] == 0)
#endif
#if defined(NO_OLD_BIRTH) || defined(MEMORY)
#define KNOWS(s, other, m) false
#else
#define KNOWS(s, other, m) \
    (IS_TAKEN(s, other) && carries[OF(other, NAME(m))] >= taken[m])
#endif
#define IS_LATEST(s, m) \
    !(KNOWS(s, 0, m) || KNOWS(s, 1, m) || KNOWS(s, 2, m) || KNOWS(s, 3, m) || \
      KNOWS(s, 4, m))
#define COUNTS(s, m) \
    (NAME(m) < OLD && IS_IN_NEW(NAME(m)) && IS_TAKEN(s, m) && IS_LATEST(s, m))
#define NAME_0_COUNTS(s) (COUNTS(s, 0) || COUNTS(s, SECOND))
#define COUNTED(s) \
    (NAME_0_COUNTS(s) + COUNTS(s, 1) + COUNTS(s, 2) + COUNTS(s, 3) + \
     COUNTS(s, 4))
#define MAY_END(s, m) (!COUNTS(s, m) || HAS_ENDED(m))
#define ALL_MAY_END(s) \
    (MAY_END(s, 0) && MAY_END(s, 1) && MAY_END(s, 2) && MAY_END(s, 3) && \
     MAY_END(s, 4) && MAY_END(s, SECOND))
#define NOTHING_IS_PROMISED \
    (promised[0] == 0 && promised[1] == 0 && promised[2] == 0 && \
     promised[3] == 0 && promised[4] == 0 && promised[SECOND] == 0)
#ifdef BY_Q
#define IS_DEAD(s) (COUNTED(s) >= ENOUGH && ALL_MAY_END(s) || NOTHING_IS_PROMISED)
#define IS_ADMITTED_AT_ONCE(s, m) true
#else
#define IS_DEAD(s) (COUNTED(s) >= ENOUGH && ALL_MAY_END(s))
#define IS_ADMITTED_AT_ONCE(s, m) (phase[m] == NEW_MARKED && taken[m] != 0)
#endif

inline clear(s)
{
    is_over[s] = 1;
    for (k : 0 .. MACHINES - 1) {
        cleared[s] = cleared[s] |
            (SEEN(s, k) != 0 && IS_ADMITTED_AT_ONCE(s, k) -> BIT(k) : 0)
    }
    for (k : 0 .. ALL - 1) {
        sent[OF(s, k)] = latest[OF(s, k)]
    }
    k = 0
}

/* The node compares the mark. */
inline run_admit(s, m)
{
    cleared[s] = cleared[s] & ~BIT(m);
    if
    :: phase[m] == NEW_MARKED && birth[m] == SEEN(s, m) ->
        admit(m, NEW_ADMITTED);
        for (k : 0 .. ALL - 1) {
            carries[OF(m, k)] = (k == NAME(m) -> 0 : sent[OF(s, k)])
        }
        k = 0;
#ifdef REACH_ADMIT
        is_reached = true;
        assert(!is_reached)
#endif
    :: else
    fi;
    SEEN(s, m) = 0
}

/* Its commands may still be on their way. */
inline restart(s)
{
    for (k : 0 .. MACHINES - 1) {
        SEEN(s, k) = (cleared[s] & BIT(k) -> SEEN(s, k) : 0)
    }
    told[s] = 0
}

/* ---- the world ---------------------------------------------------------- */

/* To have an end: a client asks only some names, only some machines forget, and
 * only births of these are told; the second machine may be missing. */
#ifndef ASKS_0
#define ASKS_0 3
#endif
#ifndef ASKS_1
#define ASKS_1 28
#endif
#ifndef LOSERS
#define LOSERS 31
#endif
#ifdef MOVES
#define IS_THERE(m) true
#define TELLS_OF(m) (NAME(m) == 0 || (LOSERS & BIT(m)))
#else
#define IS_THERE(m) ((m) != SECOND)
#define TELLS_OF(m) (LOSERS & BIT(m))
#endif
#define ASKS(c, name) ((c == 0 -> ASKS_0 : ASKS_1) & BIT(name))
#define IS_NEW_NAME(m) (IS_IN_NEW(NAME(m)) && IS_THERE(m))
#define IS_OLD_NAME(m) (NAME(m) < OLD && IS_THERE(m))

#define VOTE(c, m) \
    :: d_step { ASKS(c, NAME(m)) && MAY_VOTE(c, m) -> vote(c, m) }

/* A server takes what votes under the old names, or under none, until it has
 * seen its own nodes vote; then it marks only those that forgot. */
#define LOOK(s, m) \
    :: d_step { IS_NEW_NAME(m) && \
                (phase[m] == UNMARKED || phase[m] == OLD_MARKED || \
                 !is_over[s] && phase[m] == OLD_ADMITTED) -> take(s, m) } \
    :: d_step { IS_NEW_NAME(m) && phase[m] == NEW_MARKED && \
                SEEN(s, m) != birth[m] -> see(s, m) } \
    :: d_step { (cleared[s] & BIT(m)) -> run_admit(s, m) }

#ifdef TWO_SERVERS
#define LOOK_1(m) LOOK(1, m)
#else
#define LOOK_1(m)
#endif

#define SERVER(s) \
    :: d_step { !is_over[s] && IS_DEAD(s) -> clear(s) } \
    FAULT(!is_over[s], restart(s))

#ifdef BY_TIME
#define ADMIT_BY_TIME(m) \
    :: d_step { phase[m] == OLD_MARKED && NOTHING_IS_PROMISED -> \
                admit(m, OLD_ADMITTED) }
#else
#define ADMIT_BY_TIME(m)
#endif

#define MACHINE(m) \
    VOTE(0, m) VOTE(1, m) LOOK(0, m) LOOK_1(m) \
    TELL(m, 0) TELL(m, 1) TELL(m, 2) TELL(m, 3) TELL(m, 4) TELL(m, SECOND) \
    :: d_step { IS_OLD_NAME(m) && phase[m] == UNMARKED -> mark(m, OLD_MARKED) } \
    :: d_step { phase[m] == OLD_MARKED && \
                TELLERS(m, OLD_ADMITTED) >= OLD_MAJORITY -> \
                admit_told(m, OLD_ADMITTED) } \
    ADMIT_BY_TIME(m) \
    :: d_step { phase[m] == NEW_MARKED && \
                TELLERS(m, NEW_ADMITTED) >= NEW_MAJORITY -> \
                admit_told(m, NEW_ADMITTED) } \
    FAULT((LOSERS & BIT(m)) && phase[m] != UNMARKED, forget(m))

active proctype world()
{
    byte k, m;
    d_step {
        for (k : 0 .. MACHINES - 1) {
            phase[k] = (k < OLD -> OLD_ADMITTED : UNMARKED)
        }
        k = 0;
#ifdef BOTH_NEW
        is_new[0] = 1;
#endif
        is_new[1] = 1
    }
    do
    :: d_step { k == 0 -> k = 0 } /* it may stand still */
    :: d_step { !holds[0] && COUNT(votes[0]) >= MAJORITY_OF(0) -> decide(0) }
    :: d_step { !holds[1] && COUNT(votes[1]) >= MAJORITY_OF(1) -> decide(1) }
    :: d_step { votes[0] != 0 -> end(0) }
    :: d_step { votes[1] != 0 -> end(1) }
    SERVER(0)
#ifdef TWO_SERVERS
    SERVER(1)
#endif
    MACHINE(0) MACHINE(1) MACHINE(2) MACHINE(3) MACHINE(4) MACHINE(SECOND)
    od
}
