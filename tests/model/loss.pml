/* SPDX-License-Identifier: MIT */
/* A node that lost data waits for what the others have promised.
 *
 * There is no time, so what is found holds for any durations: what a client was
 * promised ends at any moment, everywhere at once. MACHINES beyond NODES answer
 * to the first names as well, to the first MOVED of them; they are new, and have
 * no memory. With CROSSED server 1 and client 1 take machines 0 and 1 for each
 * other. A command or a reply may come late: a server that has sent an admission
 * waits for it, while the other one goes on.
 *
 * NO_NAME: an admission does not name its machine, so it votes under any name.
 *
 * With NUMBERS no grant may have a lower number than an earlier one. With
 * EXTENDS client 0 extends its lock. */
#ifndef FAULTS
#define FAULTS 2 /* or incarnations would never end */
#endif
#define NO_LOCKS
#include "common.pml"

#ifndef MACHINES
#define MACHINES NODES
#endif
#define MAJORITY (NODES / 2 + 1)
#ifndef OTHERS
#define OTHERS MAJORITY
#endif
#ifndef MOVED
#define MOVED (MACHINES - NODES)
#endif
/* No conditions: Spin takes none in what an inline is given. */
#if MACHINES > NODES
#define PLAIN_NAME(m) \
    ((m) - ((m) >= NODES) * ((m) - ((m) - NODES) % MOVED))
#else
#define PLAIN_NAME(m) (m)
#endif
#ifdef CROSSED
#define NAME(who, m) (PLAIN_NAME(m) + ((who) == 1) * ((m) < 2) * (1 - 2 * (m)))
#define INCARNATIONS(m) incarnations[PLAIN_NAME(m) * ((m) >= 2)]
#else
#define NAME(who, m) PLAIN_NAME(m)
#define INCARNATIONS(m) incarnations[PLAIN_NAME(m)]
#endif
#define OF(who, name) ((who) * NODES + (name))
#define IS_MAJORITY(bits) (COUNT(bits) >= MAJORITY)
#define ARE_ENOUGH(bits) (COUNT(bits) >= OTHERS)

/* The machines. Incarnations of a name count up; all begin with incarnation 0. */
mtype = {UNMARKED, QUARANTINED, ADMITTED};
mtype phase[MACHINES];
byte incarnation[MACHINES];               /* of the quarantine record or the admission */
#ifdef CROSSED
byte named[MACHINES];               /* the name of the admission */
#define IS_NAMED(who, m) (named[m] == NAME(who, m))
#else
#define IS_NAMED(who, m) true
#endif
byte carries[MACHINES * NODES];     /* the latest incarnations told of the others */
byte lock[MACHINES];                /* client + 1, or EXTENDED; 0: free */
byte promised[MACHINES];            /* what has not ended: a bit each */
byte incarnations[NODES];                 /* how many there were of a name */

/* The clients. */
#define FIRST(c) BIT(c)
#define LONGER 4
#define EXTENDED 3
byte votes[CLIENTS];                /* those that count: a bit a name */
byte known[CLIENTS * NODES];        /* the latest incarnations */
bit holds[CLIENTS];
#ifdef EXTENDS
byte longer;                        /* votes for the extension of client 0 */
#endif
#ifdef NUMBERS
byte number[CLIENTS], granted;
byte slot[MACHINES], min_token[MACHINES], told_number[SERVERS];
#define ABOVE(a, b) ((a) > (b) -> (a) : (b))
#define IS_NEW(c, m) (number[c] > slot[m] && (number[c] > min_token[m] || IGNORES_MIN_TOKEN))
#else
#define IS_NEW(c, m) true
#endif
#ifdef NO_NAME
#define IGNORES_NAME true
#else
#define IGNORES_NAME false
#endif
#ifdef NO_MIN_TOKEN
#define IGNORES_MIN_TOKEN true
#else
#define IGNORES_MIN_TOKEN false
#endif

/* The servers. Each asks for one machine at a time. */
byte latest[SERVERS * NODES];       /* the latest incarnations */
byte target[SERVERS];               /* the machine + 1; 0: none */
byte quarantined[SERVERS];               /* its incarnation */
byte told[SERVERS], again[SERVERS]; /* names that told it; once more */
byte rest[SERVERS];                 /* what they have promised */
bit is_sent[SERVERS];

/* ---- votes -------------------------------------------------------------- */

/* A later incarnation: what an earlier one has voted no longer counts. */
inline hear(c, name, later)
{
#ifndef NO_VOTE_INCARNATIONS
    if
    :: later > known[OF(c, name)] ->
        known[OF(c, name)] = later;
#ifdef EXTENDS
        longer = (c == 0 -> longer & ~BIT(name) : longer);
#endif
        votes[c] = votes[c] & ~BIT(name)
    :: else
    fi
#else
    skip
#endif
}

inline hear_all(c, m)
{
    for (k : 0 .. NODES - 1) {
        hear(c, k, carries[OF(m, k)])
    }
    hear(c, NAME(c, m), incarnation[m]);
    k = 0
}

#ifdef UNTIL_LAST
#define AND_BEFORE(m) 0
#else
#define AND_BEFORE(m) promised[m]
#endif
#define MAY_VOTE(c, m) \
    (phase[m] == ADMITTED && (IS_NAMED(c, m) || IGNORES_NAME) && \
     incarnation[m] >= known[OF(c, NAME(c, m))])

inline vote(c, m)
{
    hear_all(c, m);
    votes[c] = votes[c] | BIT(NAME(c, m));
    lock[m] = c + 1;
    promised[m] = AND_BEFORE(m) | FIRST(c);
#ifdef NUMBERS
    slot[m] = number[c]
#endif
}

inline decide(c)
{
    holds[c] = 1;
#ifdef REACH_GRANT
    is_reached = incarnations[0] > 0 && (votes[c] & 1);
    assert(!is_reached);
#endif
    two_holders = holds[0] && holds[1];
    assert(!two_holders);
#ifdef NUMBERS
    falls_back = number[c] < granted;
    assert(!falls_back);
    granted = number[c]
#endif
}

#ifdef EXTENDS
inline extend(m)
{
    hear_all(0, m);
    longer = longer | BIT(NAME(0, m));
    lock[m] = EXTENDED;
#ifndef EXTENDS_UNTOLD
    promised[m] = AND_BEFORE(m) | LONGER
#endif
}
#endif

/* The extension was the shorter one. */
inline shorten()
{
    for (k : 0 .. MACHINES - 1) {
        lock[k] = (lock[k] == EXTENDED -> 1 : lock[k]);
        promised[k] = promised[k] & ~LONGER
    }
    rest[0] = rest[0] & ~LONGER;
    rest[1] = rest[1] & ~LONGER;
    k = 0;
    longer = 0
}

/* What was promised has ended; its client forgets all. */
inline end(c, value, promise)
{
    for (k : 0 .. MACHINES - 1) {
        lock[k] = (lock[k] == value -> 0 : lock[k]);
        promised[k] = promised[k] & ~promise
    }
    rest[0] = rest[0] & ~promise;
    rest[1] = rest[1] & ~promise;
    k = 0
}

inline forget_client(c)
{
    holds[c] = 0;
    votes[c] = 0;
    for (k : 0 .. NODES - 1) {
        known[OF(c, k)] = 0
    }
    k = 0;
#ifdef NUMBERS
    number[c] = 0
#endif
}

/* ---- probes -------------------------------------------------------------- */

inline begin_asking(s)
{
    told[s] = 0;
    again[s] = 0;
    rest[s] = 0;
#ifdef NUMBERS
    told_number[s] = 0
#endif
}

/* Later incarnations: those who told something under an earlier one are asked anew,
 * unless all have told all. */
inline learn(s, name, later)
{
    if
    :: later > latest[OF(s, name)] ->
        latest[OF(s, name)] = later;
        if
        :: target[s] != 0 && NAME(s, target[s] - 1) == name && later > quarantined[s] ->
            target[s] = 0;
            quarantined[s] = 0;
            begin_asking(s)
        :: else
        fi;
        if
        :: !ARE_ENOUGH(again[s]) ->
            told[s] = told[s] & ~BIT(name);
            again[s] = again[s] & ~BIT(name)
        :: else
        fi
    :: else
    fi
}

#ifdef ANY_COUNTS
#define MAY_TELL(s, m) (phase[m] != UNMARKED)
#else
#define MAY_TELL(s, m) (phase[m] == ADMITTED && IS_NAMED(s, m))
#endif
#ifdef OUTDATED
#define IS_OUTDATED(s, m) false
#else
#define IS_OUTDATED(s, m) (incarnation[m] < latest[OF(s, NAME(s, m))])
#endif
inline note(s, m)
{
    again[s] = again[s] | BIT(NAME(s, m));
    rest[s] = rest[s] | promised[m];
#ifdef NUMBERS
    told_number[s] = ABOVE(told_number[s], slot[m]);
#ifndef TOP_ONLY
    told_number[s] = ABOVE(told_number[s], min_token[m])
#endif
#endif
}

/* Server and machine tell each other what they know of the other names; then
 * the machine may have told something about the target. */
inline probe(s, m)
{
    for (k : 0 .. NODES - 1) {
        if
        :: k != NAME(s, m) ->
            learn(s, k, carries[OF(m, k)]);
#ifndef UNTOLD
            carries[OF(m, k)] = latest[OF(s, k)]
#endif
        :: else
        fi
    }
    k = 0;
    learn(s, NAME(s, m), incarnation[m]);
    if
    :: target[s] != 0 && NAME(s, m) != NAME(s, target[s] - 1) &&
       !IS_OUTDATED(s, m) && !ARE_ENOUGH(again[s]) ->
        if
        :: !(told[s] & BIT(NAME(s, m))) ->
            told[s] = told[s] | BIT(NAME(s, m));
            again[s] = 0;
            rest[s] = 0
        :: (told[s] & BIT(NAME(s, m))) && ARE_ENOUGH(told[s]) ->
            note(s, m)
        :: else
        fi
    :: else
    fi
}

/* ---- quarantine records and admissions ----------------------------------- */

inline forget(m)
{
    phase[m] = UNMARKED;
    incarnation[m] = 0;
    lock[m] = 0;
    promised[m] = 0;
    for (k : 0 .. NODES - 1) {
        carries[OF(m, k)] = 0
    }
    k = 0;
#ifdef NUMBERS
    slot[m] = 0;
    min_token[m] = 0
#endif
}

inline quarantine(m)
{
    phase[m] = QUARANTINED;
#ifdef EQUAL_INCARNATIONS
    INCARNATIONS(m) = 1;
#else
    INCARNATIONS(m)++;
#endif
    incarnation[m] = INCARNATIONS(m)
}

inline begin_target(s, m)
{
    learn(s, NAME(s, m), incarnation[m]);
    target[s] = m + 1;
    quarantined[s] = incarnation[m];
    begin_asking(s)
}

inline end_target(s)
{
    target[s] = 0;
    quarantined[s] = 0;
    is_sent[s] = 0;
    begin_asking(s)
}

#ifdef BLIND_ADMIT
#define IS_STILL(s, m) (phase[m] == QUARANTINED)
#else
#define IS_STILL(s, m) (phase[m] == QUARANTINED && incarnation[m] == quarantined[s])
#endif

/* The node compares the quarantine record. */
inline run_admit(s, m)
{
    if
    :: IS_STILL(s, m) ->
        phase[m] = ADMITTED;
#ifdef CROSSED
        named[m] = NAME(s, m);
#endif
        promised[m] = 0;
#ifndef NO_ADMIT_INCARNATIONS
        for (k : 0 .. NODES - 1) {
            carries[OF(m, k)] = (k == NAME(s, m) -> 0 : latest[OF(s, k)])
        }
        k = 0;
#endif
#ifdef NUMBERS
        min_token[m] = told_number[s];
#endif
#ifdef REACH_ADMIT
        is_reached = true;
        assert(!is_reached);
#endif
    :: else
    fi;
    end_target(s)
}

inline restart(s)
{
    end_target(s);
    for (k : 0 .. NODES - 1) {
        latest[OF(s, k)] = 0
    }
    k = 0
}

/* ---- the world ---------------------------------------------------------- */

#ifdef NUMBERS
#define ROUND(c) \
    :: d_step { number[c] == 0 -> number[c] = (number[1 - c] == 1 -> 2 : 1) } \
    :: d_step { number[c] == 0 -> number[c] = (number[1 - c] == 2 -> 1 : 2) }
#define HAS_BEGUN(c) (number[c] != 0)
#else
#define ROUND(c)
#define HAS_BEGUN(c) true
#endif

#define VOTE(c, m) \
    :: d_step { ASKS(c, m) && HAS_BEGUN(c) && MAY_VOTE(c, m) && lock[m] == 0 && \
                IS_NEW(c, m) -> vote(c, m) }
/* With FEW, for what takes many steps: the clients have no more names in common
 * than they must, from COMMON on; server 0 asks only for machine 0 and server 1
 * for the others, and they have no other business. Only the first LOSERS machines
 * forget. With ENDLESS no promise ends. */
#ifndef COMMON
#define COMMON 0
#endif
#ifdef FEW
#define IS_COMMON(c, m) \
    (NAME(c, m) >= COMMON && NAME(c, m) < COMMON + 2 * MAJORITY - NODES)
#define ASKS(c, m) \
    (c == 0 -> NAME(c, m) < MAJORITY : NAME(c, m) >= MAJORITY || IS_COMMON(c, m))
#define IS_TARGET(s, m) ((m == 0) == (s == 0))
#define IS_ASKING(s) (target[s] != 0)
#define MAY_RESTART false
#else
#define ASKS(c, m) true
#define IS_TARGET(s, m) true
#define IS_ASKING(s) true
#define MAY_RESTART true
#endif
#ifdef ENDLESS
#define ENDS false
#else
#define ENDS true
#endif
#ifndef LOSERS
#define LOSERS MACHINES
#endif

#ifdef EXTENDS
#define CLIENT_0 \
    :: d_step { IS_MAJORITY(votes[0]) && longer != 0 -> shorten() } \
    :: d_step { IS_MAJORITY(longer) && !holds[0] -> decide(0) } \
    :: d_step { ENDS && longer != 0 -> end(0, 1, FIRST(0)); \
                votes[0] = 0; holds[0] = IS_MAJORITY(longer) } \
    :: d_step { ENDS -> end(0, 1, FIRST(0)); end(0, EXTENDED, LONGER); \
                forget_client(0); longer = 0 }
#define EXTEND(m) \
    :: d_step { holds[0] && lock[m] == 1 && MAY_VOTE(0, m) -> extend(m) }
#else
#define CLIENT_0 \
    :: d_step { ENDS -> end(0, 1, FIRST(0)); forget_client(0) }
#define EXTEND(m)
#endif

#define CLIENT(c) \
    ROUND(c) \
    :: d_step { IS_MAJORITY(votes[c]) && !holds[c] -> decide(c) }

#define PROBE(s, m) \
    :: d_step { !is_sent[s] && IS_ASKING(s) && MAY_TELL(s, m) -> probe(s, m) } \
    :: d_step { !is_sent[s] && IS_TARGET(s, m) && phase[m] == QUARANTINED && \
                incarnation[m] >= latest[OF(s, NAME(s, m))] && \
                (target[s] != m + 1 || quarantined[s] != incarnation[m]) -> \
                begin_target(s, m) }

#define SERVER(s) \
    :: d_step { target[s] != 0 && ARE_ENOUGH(again[s]) && rest[s] == 0 && \
                !is_sent[s] -> is_sent[s] = 1 } \
    :: d_step { is_sent[s] -> m = target[s] - 1; run_admit(s, m); m = 0 } \
    :: d_step { MAY_RESTART -> restart(s) }

#define MACHINE(m) \
    VOTE(0, m) VOTE(1, m) EXTEND(m) \
    PROBE(0, m) PROBE(1, m) \
    :: d_step { phase[m] == UNMARKED -> quarantine(m) } \
    FAULT(m < LOSERS && phase[m] != UNMARKED, forget(m))

active proctype world()
{
    byte k, m;
    d_step {
        for (k : 0 .. MACHINES - 1) {
            phase[k] = (k < NODES -> ADMITTED : UNMARKED);
#ifdef CROSSED
            named[k] = k
#endif
        }
        k = 0
    }
    do
    :: d_step { k == 0 -> k = 0 } /* it may stand still */
    CLIENT(0) CLIENT(1) CLIENT_0
    :: d_step { ENDS -> end(1, 2, FIRST(1)); forget_client(1) }
    SERVER(0) SERVER(1)
    MACHINE(0) MACHINE(1) MACHINE(2)
#if NODES > 3
    MACHINE(3)
#endif
#if NODES > 4
    MACHINE(4)
#endif
#if MACHINES > NODES
    MACHINE(NODES)
#endif
#if MACHINES > NODES + 1
    MACHINE((NODES + 1))
#endif
    od
}
