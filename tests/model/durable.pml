/* Durable restarts: rule 7 of DESIGN.md §7, READMIT without a quarantine.
 *
 * What a node does here depends on no other: node 0 has all the trouble, the
 * others only vote. It is restarted with what it knew (its file is written
 * before each answer), with an older copy (a backup, the file of before a
 * life without one, a file that lost its tail) or empty, with a file or
 * without. Its clock steps. A READMIT may run late. Two servers look at it,
 * at any time or never. A beat is counted by its age.
 *
 * Rules that can be switched off:
 *   NO_BEAT           the age of the beat is not compared
 *   NO_BEAT_SEEN      nor is it with the last beat that this server saw
 *   NO_DURABLE        neither the field nor the configuration is looked at
 *   NO_DURABLE_FIELD  only the configuration is
 *   NO_DURABLE_ZERO   `durable` stays when always was switched off
 *   NO_CLOCK          the clock of a restarted node is learned anew
 *   BLIND_READMIT     `admit` is not compared
 * And what remains, not a rule:
 *   YOUNG_COPY        a copy younger than max_ttl is put back though a server
 *                     saw no beat since, or none since always was switched off
 */
#include "common.pml"

#define T 2 /* max_ttl, in ticks; the age of a beat ends there */
#define Q T /* more is safe if this is */

/* What lies on node 0, and in the copy of its file. */
mtype = {NONE, CURRENT, OLDER}; /* the run_id that `admit` names */
mtype admit = CURRENT;
bit durable = 1;
byte beat;
bit has_copy, copy_admit, copy_durable;
byte copy_lock, copy_beat;

bit is_always = 1;   /* appendfsync always, for now */
bit is_told;         /* that it is not, to a server */
bit is_copy_told;
bit is_from_copy;    /* the beat is that of the copy */
bit has_stepped;     /* its clock, and keys ended early */
byte away;           /* how long its mark has been watched */

/* What the servers know. */
bit saw_later[SERVERS]; /* a beat later than that of the copy */
byte sender;            /* of a READMIT in a socket, + 1; 0: none */

/* Rule 2; rule 8 drops votes from a clock that stepped. */
#define MAY_VOTE(n) (n != 0 || (admit == CURRENT && !has_stepped))

inline see_beat(s)
{
    beat = 0;
    is_from_copy = 0;
    saw_later[s] = has_copy
}

/* Rule 3, as far as it matters here. */
inline look(s)
{
    if
    :: !is_always ->
        is_told = 1;
#ifndef NO_DURABLE_ZERO
        durable = 0
#endif
    :: else
    fi;
    if
    :: admit == CURRENT -> see_beat(s)
    :: else
    fi
}

/* Rules 4 and 5. */
inline run_admit(s)
{
    admit = CURRENT;
    durable = is_always;
    is_told = !is_always;
    has_stepped = 0;
    see_beat(s)
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

#ifdef NO_CLOCK
#define IS_CLOCK_GOOD true
#else
#define IS_CLOCK_GOOD (!has_stepped)
#endif

#ifdef NO_BEAT
#define IS_BEAT_YOUNG true
#else
#define IS_BEAT_YOUNG (beat < T)
#endif

#ifdef NO_BEAT_SEEN
#define IS_BEAT_BELOW(s) false
#else
#define IS_BEAT_BELOW(s) (is_from_copy && saw_later[s])
#endif

#ifdef BLIND_READMIT
#define IS_UNCHANGED (admit != CURRENT)
#else
#define IS_UNCHANGED (admit == OLDER)
#endif

/* What the server asks before it sends, and the script when it runs. */
#define MAY_SEND (admit == OLDER && IS_DURABLE && IS_CLOCK_GOOD)
#define MAY_READMIT(s) \
    (IS_UNCHANGED && WAS_DURABLE && IS_BEAT_YOUNG && !IS_BEAT_BELOW(s))

inline run_readmit()
{
    s = sender - 1;
    sender = 0;
    if
    :: MAY_READMIT(s) ->
        admit = CURRENT;
#ifdef NO_CLOCK
        has_stepped = 0;
#endif
#ifdef REACH_READMIT
        is_reached = (lock[0] != 0);
        assert(!is_reached);
#endif
        see_beat(s)
    :: else
    fi;
    s = 0
}

/* Rule 8: a forward step is seen, and `admit` deleted. */
inline step()
{
    lock[0] = 0;
    has_stepped = 1
}

inline revoke()
{
    admit = NONE;
    has_stepped = 0;
    away = 0
}

/* A file that is not always written is written now; or a backup is made. */
inline save_copy()
{
    has_copy = 1;
    copy_admit = (admit != NONE);
    copy_lock = lock[0];
    copy_durable = durable;
    copy_beat = beat;
    is_copy_told = is_told;
    saw_later[0] = is_from_copy && saw_later[0];
    saw_later[1] = is_from_copy && saw_later[1]
}

inline restart(mode)
{
    is_always = mode;
    is_told = 0;
    away = 0;
    sender = 0
}

inline restart_whole(mode)
{
    admit = (admit == NONE -> NONE : OLDER);
    restart(mode)
}

inline restart_with_copy(mode)
{
    lock[0] = copy_lock;
    admit = (copy_admit -> OLDER : NONE);
    durable = copy_durable;
    beat = copy_beat;
    is_from_copy = 1;
    restart(mode)
}

inline flush()
{
    lock[0] = 0;
    admit = NONE;
    durable = 0;
    beat = T;
    is_from_copy = 0;
    away = 0
}

inline restart_empty(mode)
{
    flush();
    restart(mode)
}

/* One that is younger than max_ttl is no memory to rely on, and yet has a
 * young beat. */
#ifdef YOUNG_COPY
#define MAY_PUT_BACK has_copy
#else
#define MAY_PUT_BACK \
    (has_copy && (copy_beat == T || is_copy_told || \
                  (saw_later[0] && saw_later[1])))
#endif

inline tick()
{
    beat = (beat < T -> beat + 1 : T);
    copy_beat = (has_copy && copy_beat < T -> copy_beat + 1 : copy_beat);
    away = (admit != CURRENT && away < Q -> away + 1 : away);
    tick_clients();
    copy_lock = (left == 0 -> 0 : copy_lock)
}

#define SERVER(s) \
    :: d_step { look(s) } \
    :: d_step { admit != CURRENT && away == Q -> run_admit(s) } \
    :: d_step { MAY_SEND && sender == 0 -> sender = s + 1 }

#define NODE(n) \
    :: d_step { VOTES(0, n, MAY_VOTE(n)) -> grant(0, n) } \
    :: d_step { VOTES(1, n, MAY_VOTE(n)) -> grant(1, n) }

#define RESTART(mode) \
    :: d_step { is_always -> restart_whole(mode) } \
    :: d_step { MAY_PUT_BACK -> restart_with_copy(mode) } \
    :: d_step { restart_empty(mode) }

active proctype world()
{
    byte n, s;
    do
    SERVER(0) SERVER(1)
    NODE(0) NODE(1) NODE(2)
    RESTART(0) RESTART(1)
    :: d_step { sender != 0 -> run_readmit() }
    :: d_step { !has_stepped -> step() }
    :: d_step { has_stepped && admit == CURRENT -> revoke() }
    :: d_step { is_always -> is_always = 0 } /* CONFIG SET */
    :: d_step { save_copy() }
    :: d_step { flush() } /* FLUSHALL */
    :: d_step { left == 0 -> left = T }
    :: d_step { tick() }
    od
}
