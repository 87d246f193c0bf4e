/* SPDX-License-Identifier: MIT */
/* Shared locks: readers and writers.
 *
 * Three nodes, one slot. Each of three clients asks once, as a writer or as a
 * reader, with the numbers 1 to 3; they reach the nodes in any order. Holders
 * are extended any number of times, and repaired after each. A writer may
 * become a reader (a downgrade). Locks end, or are released. A command comes
 * late, or never.
 *
 * There is no time, so what is found holds for any durations: what a client was
 * promised ends at any moment, and what is on the nodes after that, one by one.
 * An extend that a majority answers is one step, and one that fails is none: it
 * changes nothing but times.
 *
 * A node has a writer's key, a set of readers, or no key; and two numbers: the
 * highest of any grant, which all that sets a lock raises to its number, and the
 * least, which a reader's number must be above. What sets a writer's lock raises
 * the least to the highest; what sets a reader's does not. The scripts store the
 * least only where the two differ.
 *
 * What replication.pml shows is taken for granted: a release comes again to each
 * node where it found nothing, until no acquire or replication is under way; and a
 * check that finds nothing where the release deleted the lock replicates nothing.
 * So a node that has deleted a lock must not get it again.
 *
 * Not in the model: clocks, locks of several resources, repeats, a writer's
 * want to come next, and for how long readers last. With FORGETS, nodes forget
 * while nobody holds the lock. Their least is then their minimum fencing token: the highest that
 * the others tell.
 *
 * Rules that can be switched off:
 *   NO_CHECK       a reader's number need not be above the least
 *   NO_MIN_TOKEN         … nor above the minimum fencing token
 *   OVER_WRITER    a reader takes the key from a writer
 *   OVER_READERS   a writer takes it from readers
 *   NO_RECORD      a reader's grant raises no number
 *   ALL_RECORD     a reader's grant raises the least, too. Nothing goes wrong,
 *                  but readers make each other stale (REACH_BOTH)
 *   OLD_RECORD     a writer's grant does not raise the least if a reader's has
 *                  left it below the highest
 *   NO_TOMB        a replication leaves no tombstone: others of its lock may follow
 *   NO_GATE        an acquire may come after a probe
 *   LOWERS         a shorter extend takes back what a longer one promised
 *   CREATES        an extend sets a reader again that has ended
 *   NEW_END        the key ends with the reader that came last
 *   OLD_END        … as it did before a reader was extended
 *   RELEASER_END   … with the reader that was released
 *   KEEPS_END      … as it did before the release of a reader
 *   NO_DROP        … the same, if it leaves only readers that have ended, as
 *                  these are not dropped
 *   ALL_LEAVE      the release of a reader deletes the key
 *   TAKES_TIME     a downgrade takes back what the writer was promised
 *   TWO_STEPS      … deletes the key first, and adds the reader later
 *   LEAVES_KEY     the release of a reader leaves the writer's key where the
 *                  downgrade has not come yet
 *   LEAVES_READER  the release of a writer leaves the reader where it has
 *   WRITES_ON      a client writes until its downgrade is answered
 *   GOES_BACK      … and again, once it is extended as a writer after that
 *   UPGRADES       … which finds a reader, too
 * And what remains:
 *   NODES=4        two of four are no majority
 * With FEW only client 1 is a writer, and nothing is extended, repaired or
 * downgraded.
 */
#define NO_LOCKS
#include "common.pml"
#include "each.pml"

bool leftover, untidy;

/* ---- nodes and clients -------------------------------------------------- */

/* Of each node; has and those below: a bit per client. */
byte highest[NODES], least[NODES];
bit is_writers[NODES];  /* the key is a writer's */
byte has[NODES];        /* the writer, or the readers */
byte firm[NODES];       /* do not end before what the client was promised */
byte coming[NODES];     /* the acquire, or its early replication */
byte replications[NODES];    /* are under way, and have seen the highest as it is */
byte deleted[NODES];    /* by the release */
byte odd[NODES];        /* what a rule leads to that is switched off */

#define ASKING 0
#define HOLDING 1
#define LAPSED 2        /* may still be extended */
#define RELEASED 3
#define OVER 4
#define WRITER 0
#define READER 1
#define DOWNGRADED 2    /* it has asked for that */
byte phase[CLIENTS], mode[CLIENTS];

byte granted;           /* the highest number so far */
byte granted_writer;
#if defined(GOES_BACK) || defined(REACH_BOTH)
byte quarantined;            /* a bit per client */
#endif

#define NUMBER(c) (c + 1)
#define IN(bits, c) (((bits) & BIT(c)) != 0)
#define ADD(bits, c) bits = bits | BIT(c)
#define DROP(bits, c) bits = bits & ~BIT(c)

#define HOLDS(c) (phase[c] == HOLDING)
#define READS(c) (HOLDS(c) && mode[c] != WRITER)
#ifdef WRITES_ON
#define WRITES(c) (HOLDS(c) && mode[c] != READER)
#else
#define WRITES(c) (HOLDS(c) && mode[c] == WRITER)
#endif
#define IS_DOWNGRADED(c) (mode[c] == DOWNGRADED)
#define IS_FIRM(c, n) IN(firm[n], c)
#define HAS_KEY(c, n) (IN(has[n], c) && is_writers[n])

#include "settle.pml"
#include "checks.pml"

#define STEP(guard, action) \
    :: d_step { guard -> action; c_code { settle(); } }

/* ---- acquires ----------------------------------------------------------- */

inline raise(c, n)
{
    highest[n] = MAX(NUMBER(c), highest[n])
}

inline raise_for_reader(c, n)
{
#ifdef NO_RECORD
    skip;
#else
    raise(c, n);
#endif
#ifdef ALL_RECORD
    least[n] = highest[n]
#endif
}

#if defined(OVER_WRITER)
#define IS_FREE(c, n) (mode[c] == READER || has[n] == 0)
#elif defined(OVER_READERS)
#define IS_FREE(c, n) (!is_writers[n])
#else
#define IS_FREE(c, n) (mode[c] == READER -> !is_writers[n] : has[n] == 0)
#endif
#ifdef FORGETS
#define IS_NEW(c, n) \
    (NUMBER(c) > (mode[c] == READER -> least[n] : highest[n]))
#else
#define IS_NEW(c, n) true /* those that are stale are not coming any more */
#endif
#define MAY_ACQUIRE(c, n) (IN(coming[n], c) && IS_NEW(c, n) && IS_FREE(c, n))

inline acquire(c, n)
{
#ifdef REACH_BOTH
    /* A reader with a higher number had the lock before the first vote. */
    quarantined = (mode[c] == READER && ON(IS_FIRM, c) == 0 && ALL(READS) > 0 &&
              granted > NUMBER(c) -> quarantined | BIT(c) : quarantined);
#endif
    if
    :: mode[c] == READER ->
#ifdef OVER_WRITER
        has[n] = (is_writers[n] -> 0 : has[n]);
        is_writers[n] = 0;
#endif
        raise_for_reader(c, n)
    :: else ->
        has[n] = 0;
        is_writers[n] = 1;
#ifdef OLD_RECORD
        least[n] = (least[n] < highest[n] -> least[n] : NUMBER(c));
        raise(c, n)
#else
        raise(c, n);
        least[n] = highest[n]
#endif
    fi;
#ifdef NEW_END
    odd[n] = (has[n] != 0);
#endif
    ADD(has[n], c);
    DROP(coming[n], c);
    check_set(c, n);
    if
    :: phase[c] == ASKING ->
        ADD(firm[n], c);
        if
        :: ON(IS_FIRM, c) >= QUORUM -> phase[c] = HOLDING; check_grant(c)
        :: else
        fi
    :: else
    fi
}

/* ---- extends and replications -------------------------------------------- */

#define COUNTS(c, n) (IN(has[n], c) && (mode[c] == WRITER || !is_writers[n]))
#ifdef CREATES
#define EXTENDS(c, n) (COUNTS(c, n) || (mode[c] == READER && !is_writers[n]))
#else
#define EXTENDS(c, n) COUNTS(c, n)
#endif

inline extend(c)
{
    phase[c] = HOLDING;
    for (i : 0 .. NODES - 1) {
#ifdef OLD_END
        odd[i] = (EXTENDS(c, i) && mode[c] != WRITER -> 1 : odd[i]);
#endif
        firm[i] = (EXTENDS(c, i) -> firm[i] | BIT(c) : firm[i]);
        has[i] = (EXTENDS(c, i) -> has[i] | BIT(c) : has[i])
    }
    i = 0;
    check_extend(c)
}

/* An extend has reached only a majority; or it comes later to others. */
#ifdef LOWERS
#define MAY_MISS(c, n) IS_FIRM(c, n)
#else
#define MAY_MISS(c, n) (IS_FIRM(c, n) && ON(IS_FIRM, c) > QUORUM)
#endif
#define EXTEND(c) \
    STEP(phase[c] == LAPSED && ON(EXTENDS, c) >= QUORUM, extend(c))
#define EXTEND_ON(c, n) \
    STEP(HOLDS(c) && MAY_MISS(c, n), DROP(firm[n], c)) \
    STEP(HOLDS(c) && COUNTS(c, n) && !IS_FIRM(c, n), ADD(firm[n], c))

/* A probe finds nothing of this client. */
#ifndef NO_GATE
#define MAY_PROBE(c, n) (!IN(coming[n], c))
#define DEADLINE(c, n) STEP(IN(coming[n], c), DROP(coming[n], c))
#else
#define MAY_PROBE(c, n) true
#define DEADLINE(c, n)
#endif
#define LACKS(c, n) \
    (MAY_PROBE(c, n) && !IN(has[n], c) && \
     (mode[c] == WRITER -> has[n] == 0 : !is_writers[n]))
#define MAY_REPLICATION(c, n) \
    (HOLDS(c) -> LACKS(c, n) : IN(replications[n], c) && !is_writers[n])

inline replication(c, n, is_whole)
{
#ifdef REACH_REPLICATION
    is_reached = has[n] != 0 && phase[c] == RELEASED;
    assert(!is_reached);
#endif
#ifndef NO_TOMB
    DROP(replications[n], c);
#endif
    least[n] = (is_whole && NUMBER(c) > highest[n] -> NUMBER(c) : least[n]);
    highest[n] = MAX(NUMBER(c), highest[n]);
    is_writers[n] = is_whole;
    ADD(has[n], c);
    check_set(c, n);
    if
    :: HOLDS(c) -> ADD(firm[n], c)
    :: else
    fi
}

/* A replication may be older than the downgrade. */
#define REPLICATE(c, n) \
    STEP(mode[c] != WRITER && MAY_REPLICATION(c, n), replication(c, n, 0)) \
    STEP(mode[c] != READER && MAY_REPLICATION(c, n) && has[n] == 0, \
         replication(c, n, 1)) \
    DEADLINE(c, n)

/* ---- downgrades --------------------------------------------------------- */

inline convert(c, n)
{
    is_writers[n] = 0;
#ifdef TAKES_TIME
    DROP(firm[n], c);
#endif
#ifdef TWO_STEPS
    DROP(has[n], c);
    ADD(odd[n], c)
#endif
}

#ifdef TWO_STEPS
#define ADD_READER(c, n) \
    STEP(IN(odd[n], c) && !is_writers[n], DROP(odd[n], c); ADD(has[n], c))
#else
#define ADD_READER(c, n)
#endif
#ifdef GOES_BACK
#define MAY_CONVERT(c) (mode[c] == DOWNGRADED || IN(quarantined, c))
#define GO_BACK(c) \
    STEP(READS(c) && ON(HAS_KEY, c) >= QUORUM, \
         mode[c] = WRITER; ADD(quarantined, c))
#else
#define MAY_CONVERT(c) (mode[c] == DOWNGRADED)
#ifdef UPGRADES
#define GO_BACK(c) \
    STEP(HOLDS(c) && IS_DOWNGRADED(c) && ON(COUNTS, c) >= QUORUM, \
         mode[c] = WRITER; check_holders())
#else
#define GO_BACK(c)
#endif
#endif

#define DOWNGRADE(c) \
    STEP(mode[c] == WRITER && (HOLDS(c) || phase[c] == LAPSED), \
         mode[c] = DOWNGRADED) \
    GO_BACK(c)
#define CONVERT(c, n) \
    STEP(MAY_CONVERT(c) && HAS_KEY(c, n), convert(c, n)) ADD_READER(c, n)

/* ---- ends --------------------------------------------------------------- */

inline remove(c, n)
{
    is_writers[n] = 0;
    DROP(has[n], c);
    DROP(firm[n], c)
}

inline expire(c, n)
{
    remove(c, n);
#ifdef NO_DROP
    odd[n] = (has[n] != 0);
#endif
#ifdef KEEPS_END
    untidy = odd[n] != 0 && has[n] == 0;
    assert(!untidy)
#endif
}

#if defined(LEAVES_KEY)
#define STAYS(c, n) (mode[c] == DOWNGRADED && is_writers[n])
#elif defined(LEAVES_READER)
#define STAYS(c, n) (mode[c] == DOWNGRADED && !is_writers[n])
#else
#define STAYS(c, n) false
#endif

inline release(c, n)
{
    ADD(deleted[n], c);
    if
    :: STAYS(c, n) -> check_set(c, n)
    :: else ->
        remove(c, n);
#ifdef ALL_LEAVE
        has[n] = 0
#endif
    fi;
#ifdef NO_DROP
    untidy = odd[n] != 0 && has[n] == 0;
    assert(!untidy);
#endif
#if defined(KEEPS_END) || defined(RELEASER_END)
    odd[n] = (has[n] != 0)
#endif
}

/* At once where no acquire can follow: fewer states. */
inline begin_release(c)
{
    for (i : 0 .. NODES - 1) {
        if
        :: LACKS(c, i) -> ADD(replications[i], c)
        :: IN(has[i], c) && !IN(coming[i], c) -> release(c, i)
        :: else
        fi
    }
    i = 0;
    phase[c] = RELEASED
}

#if defined(NEW_END) || defined(RELEASER_END) || defined(OLD_END)
#define END_KEY(n) STEP(odd[n] != 0 && !is_writers[n], odd[n] = 0; has[n] = 0)
#else
#define END_KEY(n)
#endif

#define END(c) \
    STEP(HOLDS(c), phase[c] = LAPSED) \
    STEP(HOLDS(c), begin_release(c)) \
    STEP(!HOLDS(c) && phase[c] != OVER, phase[c] = OVER)
#define END_ON(c, n) \
    STEP(phase[c] == RELEASED && IN(has[n], c), release(c, n)) \
    STEP((phase[c] == LAPSED || HOLDS(c)) && IN(has[n], c) && !IS_FIRM(c, n), \
         expire(c, n))

/* ---- nodes that forget -------------------------------------------------- */

#define OTHER_HIGHEST(n, after) highest[(n + after) % NODES]

/* It is admitted when no promise is left; its earlier votes do not count. */
inline forget(n)
{
    is_writers[n] = 0;
    has[n] = 0;
    firm[n] = 0;
    replications[n] = 0;
    highest[n] = MAX(OTHER_HIGHEST(n, 1), OTHER_HIGHEST(n, 2));
#ifdef NO_MIN_TOKEN
    least[n] = 0
#else
    least[n] = highest[n]
#endif
}

#ifdef FORGETS
#define FORGET(n) STEP(ALL(HOLDS) == 0, forget(n))
#else
#define FORGET(n)
#endif

/* ---- the world ---------------------------------------------------------- */

#ifdef FEW
#define IS_READER(c) (c != 1)
#define MORE(c)
#define MORE_ON(c, n)
#else
#define IS_READER(c) false
#define MORE(c) EXTEND(c) DOWNGRADE(c)
#define MORE_ON(c, n) EXTEND_ON(c, n) REPLICATE(c, n) CONVERT(c, n)
#endif
#define NODE(c, n) \
    STEP(MAY_ACQUIRE(c, n), acquire(c, n)) MORE_ON(c, n) END_ON(c, n)
#define CLIENT(c) MORE(c) END(c) EACH_NODE(c)

#define BEGIN(c) \
    if \
    :: mode[c] = READER \
    :: !IS_READER(c) -> mode[c] = WRITER \
    fi;

active proctype world()
{
    byte i;
    d_step {
        for (i : 0 .. NODES - 1) {
            coming[i] = BIT(CLIENTS) - 1
        }
        i = 0
    }
    BEGIN(0) BEGIN(1) CLIENTS_FROM_2(BEGIN)
end:
    do
    CLIENT(0) CLIENT(1) CLIENTS_FROM_2(CLIENT)
    END_KEY(0) END_KEY(1) END_KEY(2)
    FORGET(0) FORGET(1) FORGET(2)
    od
}
