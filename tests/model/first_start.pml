/* SPDX-License-Identifier: MIT */
/* First start: rule 8 of docs/internals/guarantees.md, raced by two servers.
 *
 * Nodes forget everything while the servers read them: before the first
 * ADMIT as many as LOSSES, afterwards one, a minority. (If a majority forgets,
 * and the others were never admitted, all nodes are as empty as on the first
 * day, which the assumptions exclude.) An ADMIT may run late. A server may give
 * up and restart as a new process. No quarantine ends, no TTL ends; a round's
 * votes arrive within LIFE ticks, its node_timeout.
 *
 * Rules that can be switched off:
 *   SHARED_QUARANTINES    others than the creator of all quarantine records go on, too
 *   NO_HOLD         no wait of more than one round's life
 *   NO_SECOND_PROBE  no probe of all nodes after that
 *   SET_IF_ABSENT   ADMIT only asks for "not admitted", not for the quarantine record
 * And of story 28, with all nodes admitted, then all empty (ALL_LOST):
 *   ANY_NODES       nodes without persistence get a first start unasked
 *   SAID_YES        `--first-start yes`, not a rule; no server restarts then
 *   NO_MEMORY       also by a process that saw an admission
 * And of story 46, with all nodes admitted, then flushed (FLUSHED), while
 * server 1 watches; a tick is a heartbeat:
 *   NO_OBJECTION    it leaves the quarantine records of a first start as they are
 *   SHORT_HOLD      a hold of one heartbeat
 */
#define T 1
#include "common.pml"

#define LIFE 1
#ifdef FLUSHED
#define ALL_LOST
#endif
#ifdef NO_HOLD
#define HOLD 0
#elif defined(SHORT_HOLD)
#define HOLD 1
#else
#define HOLD (LIFE + 1)
#endif
#ifndef LOSSES
#define LOSSES 3
#endif

bit admit[NODES];
byte quarantine[NODES];    /* the number of the server + 1; 0: no quarantine record */

/* A server's steps: examine node 0, 1, 2; hold; probe again at 0, 1, 2. */
#define HOLDING NODES
#define AGAIN(n) (NODES + 1 + (n))
#define DONE AGAIN(NODES)
byte step[SERVERS];
bit saw_admission[SERVERS];
byte held[SERVERS];
bit sent[SERVERS * NODES]; /* ADMITs that have not run yet */

/* A round: 0 idle; from 1 its age; then it failed, or has the lock. */
byte age[CLIENTS];

bit was_admitted;
byte losses;
bit all_lost;

#if defined(ALL_LOST) && !defined(ANY_NODES) && !defined(SAID_YES) && \
    !defined(FLUSHED) /* durable nodes stay durable then */
#define MAY_START(s) false
#elif defined(NO_MEMORY)
#define MAY_START(s) true
#else
#define MAY_START(s) (!saw_admission[s])
#endif

inline give_up(s)
{
    step[s] = DONE;
    held[s] = 0
}

inline probe(s, n)
{
    if
    :: admit[n] -> saw_admission[s] = 1; give_up(s)
    :: !admit[n] && quarantine[n] == 0 -> quarantine[n] = s + 1; step[s] = n + 1
#ifdef SHARED_QUARANTINES
    :: !admit[n] && quarantine[n] != 0 -> step[s] = n + 1
#endif
    :: else -> give_up(s)
    fi
}

inline end_hold(s)
{
    held[s] = 0;
#ifdef NO_SECOND_PROBE
    send_admits(s)
#else
    step[s] = AGAIN(0)
#endif
}

inline probe_again(s, n)
{
    if
#ifdef SHARED_QUARANTINES
    :: !admit[n] ->
#else
    :: quarantine[n] == s + 1 ->
#endif
        if
        :: n == NODES - 1 -> send_admits(s)
        :: else -> step[s] = AGAIN(n + 1)
        fi
    :: else -> give_up(s)
    fi
}

/* A nonce that is gone does not return: its ADMIT will do nothing. */
#ifdef SET_IF_ABSENT
#define IS_OF_USE(s, n) 1
#else
#define IS_OF_USE(s, n) (quarantine[n] == s + 1)
#endif

inline send_admits(s)
{
    sent[AT(s, 0)] = IS_OF_USE(s, 0);
    sent[AT(s, 1)] = IS_OF_USE(s, 1);
    sent[AT(s, 2)] = IS_OF_USE(s, 2);
    give_up(s)
}

inline run_admit(s, n)
{
    sent[AT(s, n)] = 0;
    if
#ifdef SET_IF_ABSENT
    :: !admit[n] ->
#else
    :: quarantine[n] == s + 1 ->
#endif
        lose_quarantine(n);
        admit[n] = 1;
        losses = (was_admitted -> losses : LOSSES); /* allows one more */
        was_admitted = 1;
        saw_admission[s] = 1;
#ifdef REACH_START
        is_reached = admit[0] && admit[1] && admit[2];
        assert(!is_reached);
#endif
    :: else
    fi
}

inline lose_quarantine(n)
{
#ifndef SET_IF_ABSENT
    sent[AT(0, n)] = (quarantine[n] == 1 -> 0 : sent[AT(0, n)]);
    sent[AT(1, n)] = (quarantine[n] == 2 -> 0 : sent[AT(1, n)]);
#endif
    quarantine[n] = 0
}

inline lose(n)
{
    lose_quarantine(n);
    admit[n] = 0;
    lock[n] = 0
}

inline lose_one(n)
{
    losses++;
    lose(n)
}

inline lose_all()
{
    all_lost = 1;
    lose(0); lose(1); lose(2)
}

inline vote(c, n)
{
    grant(c, n);
    if
    :: IS_HOLDER(c) -> age[c] = LIFE + 2
    :: else
    fi
}

inline tick_round(c)
{
    if
    :: age[c] > 0 && age[c] <= LIFE -> age[c] = age[c] + 1
    :: age[c] == LIFE + 1 -> /* lost, and released */
        age[c] = 0;
        votes[c] = 0;
        lock[0] = (lock[0] == c + 1 -> 0 : lock[0]);
        lock[1] = (lock[1] == c + 1 -> 0 : lock[1]);
        lock[2] = (lock[2] == c + 1 -> 0 : lock[2])
    :: else
    fi
}

inline tick()
{
    held[0] = (step[0] == HOLDING && held[0] < HOLD -> held[0] + 1 : held[0]);
    held[1] = (step[1] == HOLDING && held[1] < HOLD -> held[1] + 1 : held[1]);
    tick_round(0);
    tick_round(1);
#ifdef FLUSHED
    probed = 0
#endif
}

/* Server 1 saw an admission: for it there is no first start any more. */
#ifdef FLUSHED
#define PLAIN (SERVERS + 1)
byte probed; /* at these nodes, in this tick */
#define HAS_PROBED (COUNT(probed) == NODES)
#define OBJECT(n) :: d_step { object(n) }
#else
#define HAS_PROBED true
#define OBJECT(n)
#endif

inline object(n)
{
    probed = probed | BIT(n);
#ifndef NO_OBJECTION
    if
    :: quarantine[n] == 1 -> lose_quarantine(n); quarantine[n] = PLAIN
    :: else
    fi
#endif
}

#define SERVER(s) \
    :: d_step { step[s] == 0 && MAY_START(s) -> probe(s, 0) } \
    :: d_step { step[s] == 1 -> probe(s, 1) } \
    :: d_step { step[s] == 2 -> probe(s, 2) } \
    :: d_step { step[s] == HOLDING && held[s] == HOLD -> end_hold(s) } \
    :: d_step { step[s] == AGAIN(0) -> probe_again(s, 0) } \
    :: d_step { step[s] == AGAIN(1) -> probe_again(s, 1) } \
    :: d_step { step[s] == AGAIN(2) -> probe_again(s, 2) } \
    :: d_step { sent[AT(s, 0)] -> run_admit(s, 0) } \
    :: d_step { sent[AT(s, 1)] -> run_admit(s, 1) } \
    :: d_step { sent[AT(s, 2)] -> run_admit(s, 2) } \
    FAULT(step[s] == DONE, step[s] = 0) \
    RESTART(s)

#ifdef SAID_YES
#define RESTART(s)
#elif defined(FLUSHED)
#define RESTART(s) \
    FAULT(s == 0 && saw_admission[s], saw_admission[s] = 0)
#else
#define RESTART(s) FAULT(saw_admission[s], saw_admission[s] = 0)
#endif

#ifdef ALL_LOST
#define LOSS(n)
#define LOSS_OF_ALL FAULT(!all_lost, lose_all())
#else
#define LOSS(n) \
    FAULT(losses < LOSSES + was_admitted, lose_one(n))
#define LOSS_OF_ALL
#endif

#define CLIENT(c) \
    :: d_step { age[c] == 0 -> age[c] = 1 } \
    VOTE(c, 0) VOTE(c, 1) VOTE(c, 2)
#define VOTE(c, n) \
    :: d_step { age[c] > 0 && age[c] <= LIFE + 1 && VOTES(c, n, admit[n]) -> \
                vote(c, n) }

active proctype world()
{
    left = 1; /* forever */
#ifdef ALL_LOST
    admit[0] = 1; admit[1] = 1; admit[2] = 1;
    saw_admission[0] = 1; saw_admission[1] = 1;
#endif
    do
    SERVER(0) SERVER(1)
    CLIENT(0) CLIENT(1)
    LOSS(0) LOSS(1) LOSS(2) LOSS_OF_ALL
    OBJECT(0) OBJECT(1) OBJECT(2)
    :: d_step { HAS_PROBED -> tick() }
    od
}
