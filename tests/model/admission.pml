/* SPDX-License-Identifier: MIT */
/* Admission: rules 1 to 3 of docs/internals/guarantees.md, admission by time alone, and
 * REVOKE of rule 9.
 *
 * Three nodes lose their memory any number of times: restarted empty, with an
 * old dump, flushed (the run_id stays), revoked. Two servers read them, at
 * any time or never (as with a lost connection), and each keeps its timer of
 * one quarantine record. One ADMIT at a time may wait in a node's socket and run later. Two
 * clients take the lock, through any server: the script on the node decides.
 *
 * Rules that can be switched off:
 *   NO_ADMIT_CHECK    rule 2: a server asks at the heartbeat, not the script
 *   ADMIT_BY_RUN_ID   rule 2: the same run_id is taken for the same data
 *   NO_ADMIT_RUN_ID   rule 2: `admit` does not name the run_id
 *   NO_QUARANTINE_RUN_ID    rule 3: `quarantine record` does not name the run_id
 *   NO_QUARANTINE_NONCE     rule 3: `quarantine record` has no nonce
 *   TIMER_BY_RUN_ID   by time: the timer belongs to a run_id, not to a quarantine record
 *   UPTIME_TIMER      by time: the node's uptime is trusted
 *   SHORT_TIMER       by time: Q is less than the greatest max_ttl
 *   BLIND_ADMIT       rule 6: ADMIT compares nothing
 *   OLD_QUARANTINE_REVOKE   rule 9: REVOKE sets the previous quarantine record, no new nonce
 */
#include "common.pml"

#define T 2            /* max_ttl, in ticks */
#ifdef SHORT_TIMER
#define Q (T - 1)
#else
#define Q T            /* if this is safe, more is */
#endif
#define LATE 1         /* the node whose socket may hold an ADMIT */

/* What is stored on the nodes. */
mtype = {NONE, CURRENT, OLDER}; /* the run_id that `admit` names */
mtype admit[NODES] = CURRENT;
byte quarantine[NODES];                   /* its nonce; 0: no quarantine record */
bit quarantine_is_old[NODES];             /* it names an older run_id */
/* Node 0 saves dumps; the others restart empty. */
bit dump_admit;
byte dump_quarantine;

/* What the servers know. */
byte watch[SERVERS * NODES];        /* the quarantine record whose timer runs */
byte timer[SERVERS * NODES];
byte late_quarantine;                 /* of an ADMIT in a socket; 0: none */
#ifdef OLD_QUARANTINE_REVOKE
byte last_quarantine[NODES];
#endif

/* Nonces are random: a quarantine record that is neither on the node nor in its dump never
 * appears again. Forgetting who watched it keeps the model finite. */
inline forget(n, nonce)
{
#if !defined(NO_QUARANTINE_NONCE) && !defined(TIMER_BY_RUN_ID) && \
    !defined(OLD_QUARANTINE_REVOKE)
    if
    :: watch[AT(0, n)] == nonce -> watch[AT(0, n)] = 0; timer[AT(0, n)] = 0
    :: else
    fi;
    if
    :: watch[AT(1, n)] == nonce -> watch[AT(1, n)] = 0; timer[AT(1, n)] = 0
    :: else
    fi
#else
    skip
#endif
}

inline lose_quarantine(n)
{
#ifndef BLIND_ADMIT
    /* the compare-and-set would do nothing */
    if
    :: n == LATE && late_quarantine == quarantine[n] ->
#if !defined(NO_QUARANTINE_NONCE) && !defined(OLD_QUARANTINE_REVOKE)
        late_quarantine = 0
#else
        skip
#endif
    :: else
    fi;
#endif
    if
    :: quarantine[n] != 0 && !(n == 0 && quarantine[n] == dump_quarantine) ->
        forget(n, quarantine[n])
    :: else
    fi;
    quarantine[n] = 0;
    quarantine_is_old[n] = 0
}

inline write_quarantine(n)
{
#ifdef NO_QUARANTINE_NONCE
    quarantine[n] = 1;
#else
    quarantine[n] = (n == 0 && dump_quarantine == 1 -> 2 : 1);
#endif
    quarantine_is_old[n] = 0
}

#ifdef NO_QUARANTINE_RUN_ID
#define IS_OLD_QUARANTINE(n) false
#else
#define IS_OLD_QUARANTINE(n) quarantine_is_old[n]
#endif

/* Rule 3; then a timer starts: admission by time alone. Stands for the handshake, the heartbeat,
 * and the probe after each QUARANTINED. */
inline probe(s, n)
{
    if
    :: admit[n] == CURRENT ->
#ifndef TIMER_BY_RUN_ID
        watch[AT(s, n)] = 0;
        timer[AT(s, n)] = 0
#else
        skip
#endif
    :: else ->
        if
        :: quarantine[n] == 0 || IS_OLD_QUARANTINE(n) ->
            lose_quarantine(n);
            write_quarantine(n)
        :: else
        fi;
        if
        :: watch[AT(s, n)] != quarantine[n] ->
#ifdef TIMER_BY_RUN_ID
            timer[AT(s, n)] = (watch[AT(s, n)] == 0 -> 0 : timer[AT(s, n)]);
#else
            timer[AT(s, n)] = 0;
#endif
            watch[AT(s, n)] = quarantine[n]
        :: else
        fi
    fi
}

/* ADMIT compares the quarantine record, and removes it. */
inline run_admit(n, nonce)
{
    if
#ifdef BLIND_ADMIT
    :: true ->
#else
    :: quarantine[n] == nonce && !IS_OLD_QUARANTINE(n) ->
#endif
#ifdef OLD_QUARANTINE_REVOKE
        last_quarantine[n] = quarantine[n];
#endif
        lose_quarantine(n);
        admit[n] = CURRENT;
#ifdef REACH_READMIT
        is_reached = true;
        assert(!is_reached);
#endif
    :: else
    fi
}

#ifdef NO_ADMIT_CHECK
#define MAY_VOTE(n) true
#elif defined(NO_ADMIT_RUN_ID)
#define MAY_VOTE(n) (admit[n] != NONE)
#else
#define MAY_VOTE(n) (admit[n] == CURRENT)
#endif

inline tick_timer(i)
{
    timer[i] = (watch[i] != 0 && timer[i] < Q -> timer[i] + 1 : timer[i])
}

inline tick()
{
    tick_timer(0); tick_timer(1); tick_timer(2);
    tick_timer(3); tick_timer(4); tick_timer(5);
    tick_clients()
}

inline send_admit_late(n)
{
    late_quarantine = quarantine[n]
}

inline run_late_admit(n)
{
    late = late_quarantine;
    late_quarantine = 0;
    run_admit(n, late);
    late = 0
}

/* Its clock stepped and keys vanished: `admit` deleted, a new quarantine record. */
inline revoke(n)
{
    admit[n] = NONE;
    lock[n] = 0;
    lose_quarantine(n);
#ifdef OLD_QUARANTINE_REVOKE
    quarantine[n] = (last_quarantine[n] != 0 -> last_quarantine[n] : 1)
#else
    write_quarantine(n)
#endif
}

inline flush(n) /* FLUSHALL, or REPLICAOF and back */
{
    lock[n] = 0;
    lose_quarantine(n);
#ifndef ADMIT_BY_RUN_ID
    admit[n] = NONE
#endif
}

inline restart(n) /* empty, or with the content of the dump */
{
    lock[n] = 0;
    lose_quarantine(n);
    if
    :: n == LATE -> late_quarantine = 0
    :: else
    fi;
    admit[n] = (n == 0 && dump_admit -> OLDER : NONE);
    quarantine[n] = (n == 0 -> dump_quarantine : 0);
    quarantine_is_old[n] = (quarantine[n] != 0)
}

inline save_dump()
{
    if
    :: dump_quarantine != 0 && dump_quarantine != quarantine[0] -> forget(0, dump_quarantine)
    :: else
    fi;
    dump_admit = (admit[0] != NONE);
    dump_quarantine = quarantine[0]
}

#define TIMER_IS_DONE(s, n) \
    (watch[AT(s, n)] != 0 && timer[AT(s, n)] == Q && \
     watch[AT(s, n)] == quarantine[n] && admit[n] != CURRENT)

#define SERVER(s, n) \
    :: d_step { admit[n] != CURRENT || watch[AT(s, n)] -> probe(s, n) } \
    :: d_step { TIMER_IS_DONE(s, n) -> run_admit(n, quarantine[n]) } \
    :: d_step { n == LATE && TIMER_IS_DONE(s, n) && late_quarantine == 0 -> \
                send_admit_late(n) }

#define NODE(n) \
    :: d_step { VOTES(0, n, MAY_VOTE(n)) -> grant(0, n) } \
    :: d_step { VOTES(1, n, MAY_VOTE(n)) -> grant(1, n) } \
    :: d_step { n == LATE && late_quarantine != 0 -> run_late_admit(n) } \
    FAULT(admit[n] == CURRENT, revoke(n)) \
    FAULT(true, restart(n)) \
    FLUSH(n) STEP_CLOCK(n)

#ifdef ONLY_RESTARTS
#define FLUSH(n)
#else
#define FLUSH(n) FAULT(true, flush(n))
#endif

#ifdef UPTIME_TIMER
#define STEP_CLOCK(n) \
    FAULT(watch[AT(0, n)] != 0, timer[AT(0, n)] = Q)
#else
#define STEP_CLOCK(n)
#endif

active proctype world()
{
    byte n, late;
    do
    SERVER(0, 0) SERVER(0, 1) SERVER(0, 2)
    SERVER(1, 0) SERVER(1, 1) SERVER(1, 2)
    NODE(0) NODE(1) NODE(2)
    :: d_step { save_dump() }
    :: d_step { left == 0 -> left = T }
    :: d_step { tick() }
    od
}
