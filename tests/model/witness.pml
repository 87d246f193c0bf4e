/* SPDX-License-Identifier: MIT */
/* Witnesses: the other nodes must report what servers that are gone knew.
 *
 * Node 0 is restarted with its data or with an older copy; nodes 1 and 2 are
 * paused, restarted with their memory, or emptied (one of them). Two servers,
 * each of which may be replaced by a new one at any time.
 *
 * A smaller search:
 *   OLD_COPY  the only copy is the one from the beginning
 */
#define NO_LOCKS
#include "common.pml"

#define T 3 /* max_ttl, in ticks; a tick is a heartbeat */
#include "generations.pml"

mtype admit[NODES] = CURRENT;
bit is_away[NODES];
byte witness[NODES];    /* on 1 and 2: node 0's generation */
byte emptied;           /* ticks since node 1 was emptied */

byte lock, generation;
bit has_copy;
byte copy_lock, copy_generation;

bit has_read[SERVERS * NODES];
bit knows[SERVERS], is_told[NODES]; /* of what was promised */

inline compress_witnesses()
{
    witness[1] = LEVEL(witness[1]);
    witness[2] = LEVEL(witness[2])
}

#ifdef EMPTY_WITNESS
#define COUNTS(n) true
#else
#define COUNTS(n) (admit[n] != NONE)
#endif
#ifdef WRITE_ADMITTED
#define TAKES(n) (admit[n] == CURRENT)
#else
#define TAKES(n) COUNTS(n)
#endif

inline forget_wait(s)
{
    wait[s] = 0;
    has_read[AT(s, 1)] = 0; has_read[AT(s, 2)] = 0
}

/* A witness begins to count. */
inline begin_witness(n)
{
#ifdef WAIT_OWN
    has_read[AT(0, n)] = 0; has_read[AT(1, n)] = 0
#else
    forget_wait(0);
    forget_wait(1)
#endif
}

#ifdef ONE_OTHER
#define ARE_THERE (!is_away[1] && COUNTS(1) || !is_away[2] && COUNTS(2))
#define HAS_READ(s) (has_read[AT(s, 1)] || has_read[AT(s, 2)])
#elif defined(WAIT_OWN)
#define ARE_THERE true
#define HAS_READ(s) (has_read[AT(s, 1)] && has_read[AT(s, 2)])
#else
#define ARE_THERE (!is_away[1] && COUNTS(1) && !is_away[2] && COUNTS(2))
#define HAS_READ(s) (has_read[AT(s, 1)] && has_read[AT(s, 2)])
#endif

inline probe(s)
{
    if
    :: admit[0] == CURRENT -> known[s] = MAX(known[s], generation); compress()
    :: admit[0] != CURRENT && ARE_THERE && wait[s] == 0 -> wait[s] = 1
    :: else
    fi
}

inline exchange(s, n)
{
    if
    :: !is_away[n] && COUNTS(n) ->
        known[s] = MAX(known[s], witness[n]);
        knows[s] = knows[s] || is_told[n];
        has_read[AT(s, n)] = (wait[s] == WAIT + 1)
    :: else
    fi;
    if
    :: !is_away[n] && TAKES(n) ->
        witness[n] = MAX(witness[n], known[s]);
        is_told[n] = is_told[n] || knows[s]
    :: else
    fi
}

inline pass(s)
{
    has_passed[s] = 1;
    exchange(s, 1);
    exchange(s, 2);
    compress()
}

inline raise(s)
{
    generation = 5;
    known[s] = MAX(known[s], generation);
    compress()
}

#define MAY_READMIT(s) (admit[0] == OLDER && wait[s] == WAIT + 1 && \
    HAS_READ(s) && generation >= known[s])

inline come_back(s)
{
    admit[0] = CURRENT;
    forget_wait(0);
    forget_wait(1);
    raise(s);
#ifdef REACH_READMIT
    is_reached = (LEFT > 0 && lock > 0);
    assert(!is_reached);
#endif
}

/* Together with another node that votes. */
#define IS_VOTING(n) (admit[n] == CURRENT && !is_away[n])
#define MAY_VOTE (admit[0] == CURRENT && (IS_VOTING(1) || IS_VOTING(2)))

inline vote(s)
{
    two_holders = (LEFT > 0 && lock == 0);
    assert(!two_holders);
    LEFT = T;
    lock = T;
    generation++;
    known[s] = MAX(known[s], generation);
    knows[1 - s] = 0;
    knows[s] = 1;
    is_told[1] = 0;
    is_told[2] = 0;
    compress()
}

inline save_copy()
{
    has_copy = 1;
    copy_lock = lock;
    copy_generation = generation;
    compress()
}

inline restart_whole()
{
    admit[0] = (admit[0] == CURRENT -> OLDER : admit[0]);
    forget_wait(0);
    forget_wait(1)
}

inline put_back()
{
    admit[0] = OLDER;
    lock = copy_lock;
    generation = copy_generation;
    forget_wait(0);
    forget_wait(1);
    compress()
}

inline restart_other(n)
{
    admit[n] = (admit[n] == CURRENT -> OLDER : admit[n]);
    begin_witness(n)
}

inline lose(n)
{
    admit[n] = NONE;
    witness[n] = 0;
    is_told[n] = 0;
    emptied = 0;
    begin_witness(n);
    compress()
}

inline admit_other(n)
{
    admit[n] = CURRENT;
    emptied = 0;
    begin_witness(n)
}

inline begin_server(s)
{
    known[s] = 0;
    knows[s] = 0;
    forget_wait(s)
}

#define IS_LOST (LEFT > lock)
#define IS_WITNESSED (is_told[1] || is_told[2])
#ifdef UNWITNESSED
#define MAY_DIE(s) true
#define MAY_PUT_BACK has_copy
#else
#define MAY_DIE(s) (!IS_LOST || IS_WITNESSED || knows[1 - s])
#define MAY_PUT_BACK (has_copy && (LEFT <= copy_lock || IS_WITNESSED || \
                                   knows[0] || knows[1]))
#endif

inline tick()
{
    has_passed[0] = 0;
    has_passed[1] = 0;
    emptied = (admit[1] == NONE && emptied < T -> emptied + 1 : emptied);
    wait[0] = (wait[0] > 0 && wait[0] <= WAIT -> wait[0] + 1 : wait[0]);
    wait[1] = (wait[1] > 0 && wait[1] <= WAIT -> wait[1] + 1 : wait[1]);
    LEFT = DOWN(LEFT);
    lock = DOWN(lock);
    copy_lock = DOWN(copy_lock);
    knows[0] = knows[0] && LEFT > 0;
    knows[1] = knows[1] && LEFT > 0;
    is_told[1] = is_told[1] && LEFT > 0;
    is_told[2] = is_told[2] && LEFT > 0
}

#define SERVER(s) \
    :: d_step { probe(s) } \
    :: d_step { exchange(s, 1); compress() } \
    :: d_step { exchange(s, 2); compress() } \
    :: d_step { !has_passed[s] -> pass(s) } \
    :: d_step { admit[0] != CURRENT && LEFT == 0 -> come_back(s) } \
    :: d_step { MAY_READMIT(s) -> come_back(s) } \
    :: d_step { MAY_VOTE && LEFT < T -> vote(s) } \
    FAULT(MAY_DIE(s), begin_server(s))

#define OTHER(n) \
    FAULT(true, restart_other(n)) \
    :: d_step { admit[n] == OLDER -> admit[n] = CURRENT } \
    FAULT(!is_away[n], is_away[n] = 1; begin_witness(n)) \
    :: d_step { is_away[n] -> is_away[n] = 0; begin_witness(n) }

active proctype world()
{
    byte low, high;
#ifdef OLD_COPY
    d_step { save_copy() }
#endif
    do
    SERVER(0) SERVER(1)
    OTHER(1) OTHER(2)
    FAULT(true, restart_whole())
    FAULT(MAY_PUT_BACK, put_back())
#ifndef OLD_COPY
    :: d_step { save_copy() }
#endif
    FAULT(true, lose(1))
    :: d_step { admit[1] == NONE && emptied == T -> admit_other(1) }
    :: d_step { has_passed[0] && has_passed[1] -> tick() }
    od
}
