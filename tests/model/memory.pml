/* SPDX-License-Identifier: MIT */
/* Memory that is older than what it promised: high-water marks, witnesses, READMIT.
 *
 * Two holders need a node that they share and that lost data: node 0. So the
 * others are only witnesses here, only node 0's lock is modelled, and a second
 * holder is a vote of node 0 while an older promise lasts.
 *
 * Smaller searches:
 *   OLD_COPY   the only copy is the one from the beginning
 *   LATE_COPY  the only copy is made while node 0 is not durable; node 0 and
 *              the servers are restarted, and clocks step, but nothing else
 *              fails
 *   ONE_COPY   one copy is made, at any time; times are shorter
 *   ATTACH     the replication ID changes without a loss: a replica is attached
 *              for the first time, or Redis frees its backlog. Of the faults
 *              there is only a copy whose replica the node is for a moment
 */
#define NO_LOCKS
#include "common.pml"

#ifdef ONE_COPY
#define T 2
#define WINDOW 0
#else
#define T 3 /* max_ttl, in ticks; a tick is a heartbeat */
#define WINDOW 1 /* in ticks; see ATTACH */
#endif
#define Q T /* if this is safe, more is */
#include "generations.pml"

/* What is stored on node 0, and in a copy of its data. */
mtype admit = CURRENT;
bit durable = 1, is_quarantined;
byte lock, generation = 1;
bit has_copy, copy_durable;
mtype copy_admit;
byte copy_lock, copy_generation;

bit is_told, is_copy_told;
bit is_always = 1;  /* appendfsync always, at present */
bit has_evicted;
bit is_sent;        /* a READMIT waits in its socket */

byte witness;       /* the generation of node 0 that the others know */

/* The servers. */
bit has_read[SERVERS];
bit is_witnessed, knows[SERVERS]; /* who knows of the last promise */

inline compress_witnesses()
{
    witness = LEVEL(witness)
}

/* What shows a probe that the data is that of the server's probe before,
 * although the replication ID is another one. A node that was a replica shows it
 * twice: by its second ID, until it frees its backlog; and by the bytes that it
 * has read from a master, until its statistics are reset. Not both are lost
 * within WINDOW ticks. */
#ifdef ATTACH
#define NONE_YET (WINDOW + 1)
#define OLDER_BY(v) (v < NONE_YET -> v + 1 : v)
bit is_promoted, has_freed, was_reset; /* since it was a replica */
byte since = NONE_YET;
/* What each server has: of the present ID, of that in the admission if it is an
 * older one, of that in the copy's; whether nothing was read from a master
 * since; and for how long. */
bit is_of_id[SERVERS], is_of_admit[SERVERS], is_of_copy[SERVERS];
bit is_input_same[SERVERS];
byte age[SERVERS] = NONE_YET;

#ifdef NO_ID2
#define SHOWS_ID2 false
#else
#define SHOWS_ID2 is_promoted
#endif
#ifdef NO_INPUT
#define SHOWS_INPUT(s) false
#else
#define SHOWS_INPUT(s) (!is_input_same[s])
#endif
#ifdef NO_WINDOW
#define IS_RECENT(s) true
#else
#define IS_RECENT(s) (age[s] <= WINDOW)
#endif
#ifdef NO_PROOF
#define IS_KNOWN(s) true
#else
#define IS_KNOWN(s) (is_of_admit[s] && IS_RECENT(s))
#endif
#define MENDS(s) (admit == OLDER && (!is_quarantined) && IS_KNOWN(s) && !SHOWS_ID2 && \
    !SHOWS_INPUT(s))

inline forget_probe(s)
{
    is_of_id[s] = 0;
    is_of_admit[s] = 0;
    is_of_copy[s] = 0;
    is_input_same[s] = 0;
    age[s] = NONE_YET
}

inline forget_probes()
{
    forget_probe(0);
    forget_probe(1)
}

inline mend(s)
{
    if
    :: MENDS(s) ->
#ifdef REACH_MEND
        is_reached = (LEFT > 0 && lock > 0);
        assert(!is_reached);
#endif
        admit = CURRENT;
        is_quarantined = 0;
        is_of_admit[0] = 0;
        is_of_admit[1] = 0
    :: else
    fi
}

inline remember_probe(s)
{
    is_of_id[s] = 1;
    is_of_admit[s] = 0;
    is_of_copy[s] = 0; /* counts once the ID has changed */
    is_input_same[s] = 1;
    age[s] = 0
}

/* Before the ID changes. */
inline note_id(s)
{
    is_of_admit[s] = (admit == CURRENT -> is_of_id[s] : is_of_admit[s]);
    is_of_copy[s] = (copy_admit == CURRENT -> is_of_id[s] : is_of_copy[s]);
    is_of_id[s] = 0
}

inline change_id()
{
    note_id(0);
    note_id(1);
    admit = (admit == CURRENT -> OLDER : admit);
    copy_admit = (copy_admit == CURRENT -> OLDER : copy_admit);
    is_quarantined = 0;
    is_sent = 0;
    forget_life()
}

inline attach()
{
    has_freed = has_freed || is_promoted;
    is_promoted = 0;
    change_id();
    compress()
}

inline reset()
{
    was_reset = 1;
    is_input_same[0] = 1;
    is_input_same[1] = 1
}

inline note_promotion()
{
    note_id(0);
    note_id(1);
    is_of_admit[0] = is_of_copy[0];
    is_of_admit[1] = is_of_copy[1];
    is_input_same[0] = 0;
    is_input_same[1] = 0;
    is_promoted = 1;
    has_freed = 0;
    was_reset = 0;
    since = 0
}

inline note_copy()
{
    is_of_copy[0] = is_of_admit[0];
    is_of_copy[1] = is_of_admit[1]
}

inline grow_older()
{
    age[0] = OLDER_BY(age[0]);
    age[1] = OLDER_BY(age[1]);
    since = OLDER_BY(since)
}

#define ATTACHES \
    FAULT(!is_promoted || !was_reset || since > WINDOW, attach()) \
    FAULT(!has_freed || since > WINDOW, reset())
#else
#define forget_probe(s) skip
#define forget_probes() skip
#define mend(s) skip
#define remember_probe(s) skip
#define note_promotion() skip
#define grow_older() skip
#define note_copy() skip
#define ATTACHES
#endif

/* Its clock, which is no part of any memory: a step ends all locks early. */
mtype = {RIGHT, STEPPED, LEARNED};
#ifdef NO_CLOCK
#define STEPS
#define IS_CLOCK_GOOD true
#define relearn_clock() clock = (clock == STEPPED -> LEARNED : clock)
#else
#define IS_CLOCK_GOOD (clock == RIGHT)
#define relearn_clock() skip
#endif
#ifdef STEPS
mtype clock = RIGHT;
#define STEP \
    FAULT(clock == RIGHT, clock = STEPPED) \
    :: d_step { clock == STEPPED && admit == CURRENT -> lose_admission() }
#else
#define clock RIGHT
#define STEP
#endif

#ifdef BLIND_READMIT
#define IS_UNCHANGED (admit != CURRENT)
#define forget_sent() skip
#else
#define IS_UNCHANGED (admit == OLDER)
#define forget_sent() is_sent = 0 /* it will do nothing */
#endif

inline lose_admission()
{
    admit = NONE;
    is_quarantined = 1;
    has_evicted = 0;
    forget_sent()
}

#ifdef NO_HIGH_WATER
#define IS_BELOW(s) false
#else
#define IS_BELOW(s) (generation < known[s])
#endif

#ifdef NO_EVICTED
#define IS_EVICTED false
#else
#define IS_EVICTED has_evicted
#endif

inline learn(s)
{
    known[s] = MAX(known[s], generation)
}

#define TAKES(s) (admit != NONE && IS_BELOW(s))

inline probe(s)
{
    is_told = is_told || !is_always;
#ifndef NO_DURABLE_ZERO
    durable = durable && is_always;
#endif
    mend(s);
    if
    :: TAKES(s) ->
        generation = known[s];
        lose_admission()
    :: admit == CURRENT && IS_EVICTED -> lose_admission()
    :: admit == CURRENT && !IS_EVICTED && !TAKES(s) ->
        generation++;
        learn(s)
    :: else ->
        if
        :: !is_quarantined -> is_quarantined = 1
        :: else
        fi;
        wait[s] = (wait[s] == 0 -> 1 : wait[s])
    fi;
    remember_probe(s);
    compress()
}

/* A examine the others. */
inline exchange(s)
{
#ifndef NO_WITNESS
    known[s] = MAX(known[s], witness);
#endif
    witness = MAX(witness, known[s]);
    is_witnessed = is_witnessed || knows[s];
#ifndef NO_WITNESS
    knows[s] = is_witnessed;
#endif
    has_read[s] = (wait[s] == WAIT + 1);
    has_passed[s] = 1;
    compress()
}

inline forget_life()
{
    wait[0] = 0; wait[1] = 0;
    has_read[0] = 0; has_read[1] = 0
}

inline raise(s)
{
#if defined(NO_RAISE)
    skip;
#elif defined(RAISE_HIGH_WATER)
    generation = MAX(generation, known[s]) + 1;
#else
    generation = 5; /* the time: above all earlier generations */
#endif
    learn(s)
}

inline run_admit(s)
{
    admit = CURRENT;
    is_quarantined = 0;
    durable = is_always;
    is_told = !is_always;
#ifdef STEPS
    clock = RIGHT;
#endif
    raise(s);
    is_sent = 0;
    forget_life();
    compress()
}

/* Nothing was promised since: idle.pml models how a server knows. */
inline readmit_idle(s)
{
    exchange(s);
    admit = CURRENT;
    is_quarantined = 0;
    relearn_clock();
    raise(s);
    is_sent = 0;
    forget_life();
    compress()
}

#if defined(NO_DURABLE)
#define WAS_DURABLE true
#define IS_DURABLE true
#elif defined(NO_DURABLE_FIELD)
#define WAS_DURABLE true
#define IS_DURABLE is_always
#else
#define WAS_DURABLE durable
#define IS_DURABLE is_always
#endif

#define MAY_SEND(s) (!is_sent && admit == OLDER && wait[s] == WAIT + 1 && \
    has_read[s] && WAS_DURABLE && IS_DURABLE && !IS_BELOW(s) && \
    IS_CLOCK_GOOD)

inline run_readmit()
{
    is_sent = 0;
    if
    :: IS_UNCHANGED ->
        admit = CURRENT;
#ifdef READMIT_RAISES
        durable = 1;
#endif
        is_quarantined = 0;
        forget_life();
        relearn_clock();
#ifdef REACH_READMIT
        is_reached = (LEFT > 0 && lock > 0);
        assert(!is_reached);
#endif
    :: else
    fi
}

/* A client asks node 0 through this server; a held lock is extended by its
 * holder. */
#define MAY_VOTE (admit == CURRENT && !IS_EVICTED && clock != STEPPED)

inline vote(s)
{
    two_holders = (LEFT > 0 && (lock == 0 || clock != RIGHT));
    assert(!two_holders);
    LEFT = T;
    lock = T;
    is_witnessed = 0;
    knows[1 - s] = 0;
    knows[s] = 1;
    generation++;
    learn(s);
    compress()
}

/* Copies: a file that is not always written, a backup, a replica. */
inline save_copy()
{
    has_copy = 1;
    copy_admit = admit;
    copy_lock = lock;
    copy_durable = durable;
    is_copy_told = is_told;
    copy_generation = generation;
    note_copy();
    compress()
}

inline begin_life(mode)
{
    is_always = mode;
    is_quarantined = 0;
    has_evicted = 0;
    is_sent = 0;
    forget_life();
    forget_probes();
    copy_admit = (copy_admit == CURRENT -> OLDER : copy_admit)
}

inline restart_whole(mode)
{
    admit = (admit == CURRENT -> OLDER : admit);
    begin_life(mode);
    compress()
}

inline put_back(mode)
{
    admit = (copy_admit == CURRENT -> OLDER : copy_admit);
    lock = copy_lock;
    durable = copy_durable;
    is_told = is_copy_told;
    generation = copy_generation;
    begin_life(mode);
    compress()
}

/* Under the same run_id: a replica of the copy for a moment. */
inline roll_back()
{
    note_promotion();
    lock = copy_lock;
    durable = copy_durable;
    is_told = is_copy_told;
    generation = copy_generation;
    has_evicted = 0;
#ifdef NO_REPLID
    admit = copy_admit;
#else
    admit = (copy_admit == CURRENT -> OLDER : copy_admit);
    copy_admit = admit;
    is_quarantined = 0;
    is_sent = 0;
    forget_life();
#endif
    compress()
}

/* Another node's data, by REPLICAOF or from its files. */
inline take_over(mode)
{
    lock = 0;
    durable = 1;
#ifdef NO_NAME
    admit = OLDER;
    generation = 5;
#else
    admit = NONE;
    generation = 0;
#endif
    begin_life(mode);
    compress()
}

inline flush()
{
    lock = 0;
    admit = NONE;
    durable = 0;
    generation = 0;
    is_quarantined = 0;
    has_evicted = 0;
    forget_sent();
    compress()
}

inline begin_server(s)
{
    known[s] = 0;
    knows[s] = 0;
    wait[s] = 0;
    has_read[s] = 0;
    forget_probe(s);
    compress()
}

/* What remains: votes known only to servers that died. */
#define IS_LOST (LEFT > lock)
#ifdef UNWITNESSED
#define MAY_DIE(s) true
#define MAY_PUT_BACK has_copy
#else
#define MAY_DIE(s) \
    (!IS_LOST || is_told || is_witnessed || knows[1 - s])
#define MAY_PUT_BACK \
    (has_copy && (LEFT <= copy_lock || is_copy_told || is_witnessed || \
                  knows[0] || knows[1]))
#endif

inline tick()
{
    has_passed[0] = 0;
    has_passed[1] = 0;
    wait[0] = (wait[0] > 0 && wait[0] <= WAIT -> wait[0] + 1 : wait[0]);
    wait[1] = (wait[1] > 0 && wait[1] <= WAIT -> wait[1] + 1 : wait[1]);
    LEFT = DOWN(LEFT);
    is_witnessed = is_witnessed && LEFT > 0;
    knows[0] = knows[0] && LEFT > 0;
    knows[1] = knows[1] && LEFT > 0;
    lock = DOWN(lock);
    copy_lock = DOWN(copy_lock);
    grow_older();
    compress()
}

#if defined(ATTACH) || defined(LATE_COPY)
#define OTHER_FAULT(guard, action)
#else
#define OTHER_FAULT(guard, action) FAULT(guard, action)
#endif
#if defined(OLD_COPY)
#define MAY_COPY false
#elif defined(ONE_COPY)
#define MAY_COPY (!has_copy)
#elif defined(LATE_COPY)
#define MAY_COPY (!has_copy && !is_always)
#else
#define MAY_COPY true
#endif

#define SERVER(s) \
    :: d_step { probe(s) } \
    :: d_step { exchange(s) } \
    :: d_step { admit != CURRENT && is_quarantined && LEFT == 0 -> run_admit(s) } \
    :: d_step { MAY_SEND(s) -> is_sent = 1 } \
    :: d_step { admit == OLDER && LEFT <= lock && IS_CLOCK_GOOD -> \
                readmit_idle(s) } \
    :: d_step { MAY_VOTE && LEFT < T -> vote(s) } \
    FAULT(MAY_DIE(s), begin_server(s))

#define RESTART(mode) \
    FAULT(is_always && !has_evicted, restart_whole(mode)) \
    FAULT(MAY_PUT_BACK, put_back(mode)) \
    OTHER_FAULT(true, take_over(mode))

active proctype world()
{
    byte low, high;
    d_step {
        known[0] = 1; known[1] = 1; witness = 1;
#ifdef OLD_COPY
        save_copy()
#endif
    }
    do
    SERVER(0) SERVER(1)
#ifndef ATTACH
    RESTART(0) RESTART(1)
#endif
    :: d_step { is_sent -> run_readmit() }
    ATTACHES
#ifdef ATTACH
    FAULT(MAY_PUT_BACK, roll_back())
#else
    OTHER_FAULT(MAY_PUT_BACK, roll_back())
    FAULT(is_always, is_always = 0) /* CONFIG SET */
#endif
    STEP
    OTHER_FAULT(lock > 0 && admit == CURRENT, lock = 0; has_evicted = 1)
    :: d_step { MAY_COPY && !has_evicted -> save_copy() }
    OTHER_FAULT(true, flush())
    :: d_step { has_passed[0] && has_passed[1] -> tick() }
    od
}
