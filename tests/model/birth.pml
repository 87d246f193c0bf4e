/* Births: the mark stores when its quarantine began, so that restarted servers
 * do not begin it again.
 *
 * One node loses its memory: empty, or with a copy, by a restart or under the
 * same run_id. Two servers look at it, and are restarted. A look may wait in
 * the node's socket; the time it carries is then old. Only this node's lock is
 * modelled: a second holder is its vote while an older promise lasts.
 */
#define NO_LOCKS
#include "common.pml"

#define T 3
#define NEAR 1          /* how many ticks late a look is still trusted */
#ifdef SHORT_Q
#define Q T
#else
#define Q (T + NEAR)
#endif
#define UNKNOWN (Q + 1) /* a mark without a birth */

mtype = {NONE, CURRENT, OLDER};
mtype admit = CURRENT;
byte lock, left;
byte mark;              /* its nonce; 0: none */
bit mark_is_old;        /* it names an older life */
byte since;             /* its birth */

bit has_copy;
mtype copy_admit;
byte copy_lock, copy_mark, copy_since;

byte watch[SERVERS], timer[SERVERS];
byte late_look;         /* ticks since it was sent, + 1; 0: none */

#define IS_MARKED (mark != 0 && !mark_is_old)

inline begin_mark(birth)
{
    mark = (copy_mark == 1 -> 2 : 1);
    mark_is_old = 0;
    since = birth;
    forget_timers()
}

inline forget_timers()
{
    watch[0] = 0; timer[0] = 0;
    watch[1] = 0; timer[1] = 0
}

inline lose_mark()
{
    mark = 0;
    mark_is_old = 0;
    since = 0;
    forget_timers()
}

/* What a look does on the node. */
inline run_look(birth)
{
    if
    :: admit != CURRENT && !IS_MARKED -> begin_mark(birth)
    :: else
    fi
}

#ifdef OLD_BIRTH
#define BELIEVED(age) age
#else
#define BELIEVED(age) (age <= NEAR -> age : UNKNOWN)
#endif

inline look(s, birth)
{
    run_look(birth);
    if
    :: admit != CURRENT && watch[s] == 0 -> watch[s] = 1; timer[s] = 0
    :: else
    fi
}

#define IS_OVER(s) (admit != CURRENT && IS_MARKED && watch[s] && \
    (timer[s] == Q || since == Q))

inline run_admit()
{
    admit = CURRENT;
    lose_mark();
#ifdef REACH_ADMIT
    is_reached = (left == 0);
    assert(!is_reached);
#endif
}

inline vote()
{
    two_holders = (left > 0 && lock == 0);
    assert(!two_holders);
    left = T;
    lock = T
}

inline flush()
{
    lock = 0;
    admit = NONE;
    lose_mark()
}

inline save_copy()
{
    has_copy = 1;
    copy_admit = admit;
    copy_lock = lock;
    copy_mark = mark;
    copy_since = since
}

inline begin_life()
{
    admit = (admit == CURRENT -> OLDER : admit);
    mark_is_old = (mark != 0);
    late_look = 0;
    copy_admit = (copy_admit == CURRENT -> OLDER : copy_admit);
    forget_timers()
}

inline put_back()
{
    lock = copy_lock;
    admit = copy_admit;
    mark = copy_mark;
    since = copy_since
}

inline restart()
{
    put_back();
    begin_life()
}

inline roll_back()
{
    put_back();
#ifdef NO_MARK_REPLID
    mark_is_old = 0;
    admit = (admit == CURRENT -> OLDER : admit);
    forget_timers()
#else
    late = late_look; /* waits on its connection */
    begin_life();
    late_look = late;
    late = 0
#endif
}

#define DOWN(v) (v > 0 -> v - 1 : 0)

inline tick()
{
    left = DOWN(left);
    lock = DOWN(lock);
    copy_lock = DOWN(copy_lock);
    since = (mark && since < Q -> since + 1 : since);
    copy_since = (copy_mark && copy_since < Q -> copy_since + 1 : copy_since);
    timer[0] = (watch[0] && timer[0] < Q -> timer[0] + 1 : timer[0]);
    timer[1] = (watch[1] && timer[1] < Q -> timer[1] + 1 : timer[1]);
    late_look = (late_look > 0 && late_look <= Q -> late_look + 1 : late_look)
}

#define SERVER(s) \
    :: d_step { look(s, 0) } \
    :: d_step { look(s, UNKNOWN) } /* it does not know the clocks */ \
    :: d_step { IS_OVER(s) -> run_admit() } \
    :: d_step { watch[s] = 0; timer[s] = 0 } /* a new process */

active proctype world()
{
    byte late;
    do
    SERVER(0) SERVER(1)
    :: d_step { late_look == 0 -> late_look = 1 }
    :: d_step { late_look > 0 -> late = late_look - 1; late_look = 0;
                late = BELIEVED(late); run_look(late); late = 0 }
    :: d_step { admit == CURRENT && left < T -> vote() }
    :: d_step { save_copy() }
    :: d_step { flush() }
    :: d_step { has_copy -> restart() }
    :: d_step { has_copy -> roll_back() }
    :: d_step { tick() }
    od
}
