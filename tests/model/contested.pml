/* Contested: one name leads two servers to two machines.
 *
 * Server s reaches machine s under the name of node 0, and both reach the other
 * nodes, 1 and 2. Machine 0 votes; machine 1 is empty, or a copy. Both may be
 * restarted. A tick is a heartbeat: each server has looked at all of its nodes,
 * or has stopped for good (with STOPS: was only held up).
 *
 * Between what a server has heard of others and what it then decides there may
 * be a heartbeat. Only the news of a mark or an admission is told at once.
 */
#define NO_LOCKS
#include "common.pml"

#define T 1
#define Q (T + 2)
#ifdef ONE_HEARTBEAT
#define WAIT 1
#else
#define WAIT 2 /* ticks without a rise, before a READMIT */
#endif

mtype = {NONE, CURRENT, OLDER};
mtype admit[2] = CURRENT;
byte beat[2] = 9;
byte left[2];      /* of this machine's promises */
bit is_marked[2];
byte away[2];      /* since the mark, or since its witness last rose */

byte known[SERVERS] = 9;
byte quiet[SERVERS];
bit has_passed[SERVERS], is_stopped[SERVERS];
byte witness[NODES] = 9;

/* When marks were made: of the machine, and the latest that is known. */
byte born[2], latest[SERVERS], told_latest[NODES];

/* A beat is a line and a count: an ADMIT or READMIT begins at the time, above
 * anything that earlier counts can reach. Only their order is kept. */
#define LINE 8
#define MOST (7 * LINE)
#define IS_BEAT(v) (beat[0] == v || beat[1] == v || known[0] == v || \
    known[1] == v || witness[1] == v || witness[2] == v)
#define IN_LINE(v) (v / LINE == n / LINE)
#define IS_LINE (IN_LINE(beat[0]) || IN_LINE(beat[1]) || IN_LINE(known[0]) || \
    IN_LINE(known[1]) || IN_LINE(witness[1]) || IN_LINE(witness[2]))

inline drop_count(v)
{
    v = (v > n && IN_LINE(v) -> v - 1 : v)
}

inline drop_line(v)
{
    v = (v > n -> v - LINE : v)
}

/* Of marks, too, only the order is kept. */
#define NOW 7
#define IS_BORN(v) (born[0] == v || born[1] == v || latest[0] == v || \
    latest[1] == v || told_latest[1] == v || told_latest[2] == v)

inline drop_born(v)
{
    v = (v > n -> v - 1 : v)
}

inline compress_marks()
{
    n = NOW;
    do
    :: n > 1 ->
        n = n - 1;
        if
        :: !IS_BORN(n) ->
            drop_born(born[0]); drop_born(born[1]);
            drop_born(latest[0]); drop_born(latest[1]);
            drop_born(told_latest[1]); drop_born(told_latest[2])
        :: else
        fi
    :: else -> break
    od
}

inline compress()
{
    compress_marks();
    n = MOST + LINE;
    do
    :: n >= LINE ->
        n = n - 1;
        if
        :: n % LINE == 0 && !IS_LINE ->
            drop_line(beat[0]); drop_line(beat[1]);
            drop_line(known[0]); drop_line(known[1]);
            drop_line(witness[1]); drop_line(witness[2])
        :: n % LINE != 0 && IS_LINE && !IS_BEAT(n) ->
            drop_count(beat[0]); drop_count(beat[1]);
            drop_count(known[0]); drop_count(known[1]);
            drop_count(witness[1]); drop_count(witness[2])
        :: else
        fi
    :: else -> break
    od;
    n = 0
}

#define MAX(a, b) (a > b -> a : b)

inline exchange(s, i)
{
    if
    :: witness[i] > known[s] ->
        known[s] = witness[i];
        quiet[s] = 0;
#ifndef OLD_BIRTH
        away[s] = 0
#endif
    :: else
    fi;
    witness[i] = MAX(witness[i], known[s]);
    latest[s] = MAX(latest[s], told_latest[i]);
    told_latest[i] = latest[s]
}

inline tell(s)
{
#ifndef LATE_NEWS
    exchange(s, 1);
    exchange(s, 2)
#else
    skip
#endif
}

inline begin_mark(s)
{
    is_marked[s] = 1;
    away[s] = 0;
    quiet[s] = 0;
#ifndef NO_BIRTHS
    born[s] = NOW;
    latest[s] = NOW;
#endif
    tell(s)
}

#define IS_BELOW(s) (beat[s] < known[s])
#define IS_LATEST(s) (born[s] >= latest[s])

inline look(s)
{
    if
    :: admit[s] == CURRENT && IS_BELOW(s) -> admit[s] = NONE; begin_mark(s)
    :: admit[s] == CURRENT && !IS_BELOW(s) ->
#ifndef NO_LOOK_BEAT
        beat[s] = beat[s] + 1;
#endif
        known[s] = MAX(known[s], beat[s])
    :: admit[s] != CURRENT && is_marked[s] && IS_LATEST(s) ->
        latest[s] = born[s]
    :: admit[s] != CURRENT && (!is_marked[s] || !IS_LATEST(s)) -> begin_mark(s)
    fi
}

inline pass(s)
{
    has_passed[s] = 1;
    look(s);
    exchange(s, 1);
    exchange(s, 2);
    compress()
}

inline come_back(s)
{
    admit[s] = CURRENT;
    is_marked[s] = 0;
    born[s] = 0;
    away[s] = 0;
    beat[s] = MOST + 1;
    known[s] = beat[s];
#ifdef REACH_ADMIT
    is_reached = (s == 1);
    assert(!is_reached);
#endif
    tell(s)
}

#ifdef RACE
#define HAS_HEARD(s) true
#else
#define HAS_HEARD(s) has_passed[s]
#endif
#define MAY_COME(s) (is_marked[s] && IS_LATEST(s) && HAS_HEARD(s))
#define MAY_ADMIT(s) (admit[s] != CURRENT && away[s] == Q)
/* A copy after which nothing was promised, as the others report. */
#ifdef IDLE
bit is_unchanged;
#define MAY_READMIT_IDLE(s) (s == 1 && is_unchanged)
#else
#define is_unchanged false
#define MAY_READMIT_IDLE(s) false
#endif

#define MAY_READMIT(s) (admit[s] == OLDER && \
    (MAY_READMIT_IDLE(s) || quiet[s] >= WAIT && beat[s] >= known[s]))

#define COUNTS(s) (admit[s] == CURRENT && !IS_BELOW(s))

inline vote(s)
{
    two_holders = (left[1 - s] > 0);
    assert(!two_holders);
    left[s] = T;
    beat[s] = beat[s] + 1;
    known[s] = beat[s];
#ifdef IDLE
    is_unchanged = 0;
#endif
    compress()
}

inline copy()
{
    admit[1] = OLDER;
#ifdef IDLE
    is_unchanged = 1;
#endif
    beat[1] = beat[0];
    is_marked[1] = 0;
    born[1] = 0;
    away[1] = 0;
    quiet[1] = 0;
    compress()
}

inline lose(s)
{
    admit[s] = NONE;
    beat[s] = 0;
    left[s] = 0; /* losing promises is the subject of admission.pml */
    is_marked[s] = 0;
    born[s] = 0;
    away[s] = 0;
    quiet[s] = 0;
    compress()
}

/* It keeps its memory. */
inline restart(s)
{
    admit[s] = OLDER;
    is_marked[s] = 0;
    born[s] = 0;
    away[s] = 0;
    quiet[s] = 0;
    compress()
}

inline begin_server(s)
{
    known[s] = 0;
    latest[s] = 0;
    quiet[s] = 0;
    compress()
}

inline tick_server(s)
{
    has_passed[s] = 0;
    quiet[s] = (is_marked[s] && quiet[s] < WAIT && !is_stopped[s] ->
                quiet[s] + 1 : quiet[s]);
    away[s] = (is_marked[s] && away[s] < Q -> away[s] + 1 : away[s]);
    left[s] = (left[s] > 0 -> left[s] - 1 : 0)
}

#define SERVER(s) \
    :: d_step { !is_stopped[s] -> look(s); compress() } \
    :: d_step { !is_stopped[s] -> exchange(s, 1); compress() } \
    :: d_step { !is_stopped[s] -> exchange(s, 2); compress() } \
    :: d_step { !is_stopped[s] && !has_passed[s] -> pass(s) } \
    :: d_step { !is_stopped[s] && MAY_COME(s) && \
                (MAY_ADMIT(s) || MAY_READMIT(s)) -> \
                come_back(s); compress() } \
    :: d_step { !is_stopped[s] && COUNTS(s) -> vote(s) } \
    STOP(s) \
    FAULT(true, begin_server(s))

#ifdef STOPS
#define STOP(s) FAULT(true, is_stopped[s] = !is_stopped[s])
#else
#define STOP(s) FAULT(true, is_stopped[s] = 1) /* for good */
#endif

active proctype world()
{
    byte n;
    d_step { admit[1] = NONE; beat[1] = 0 }
    do
    SERVER(0) SERVER(1)
    FAULT(left[0] == 0 && admit[0] == CURRENT, copy())
    FAULT(true, lose(1))
    FAULT(admit[0] == CURRENT, restart(0))
    FAULT(admit[1] == CURRENT, restart(1))
    :: d_step { (has_passed[0] || is_stopped[0]) && \
                (has_passed[1] || is_stopped[1]) -> \
                tick_server(0); tick_server(1) }
    od
}
