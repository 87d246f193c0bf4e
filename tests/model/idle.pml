/* Idle: a node may vote at once if nothing that it may have forgotten is still
 * promised.
 *
 * Node 0 comes back with a copy of any age, or empty; node 1 is emptied. The
 * median of the clocks that server 1 sees is ahead of server 0's by SPREAD. A
 * tick is a node's time.
 */
#define NO_LOCKS
#include "common.pml"

#ifndef T
#define T 4
#endif
#define LIFE 1 /* of a round, in ticks */
#define SPREAD 1
#ifdef SHORT_Q
#define Q T
#else
#define Q (T + SPREAD)
#endif
#ifdef NO_SPREAD
#define MARGIN LIFE
#elif defined(NO_LIFE)
#define MARGIN SPREAD
#else
#define MARGIN (LIFE + SPREAD)
#endif
#ifdef READ_EARLY
#define WAIT LIFE
#else
#define WAIT (LIFE + 1)
#endif

/* How the rule is broken: answers that are late on their way back make the
 * median of a server that asks for a lock low; another server's rounds count
 * for longer; a batch that was sent earlier arrives later. */
#ifdef SENDER_ERROR
#define ASKED(s) (NOW(s) + 1)
#else
#define ASKED(s) NOW(s)
#endif
#ifdef OTHER_TIMEOUT
#define LASTS (LIFE + 1)
#else
#define LASTS LIFE
#endif
byte early; /* ticks since it was sent, + 1; 0: none */

/* Times are counted back from what the fast server's clock shows. */
#define NOW(s) ((s) == 0 -> SPREAD : 0)
#define LONG (Q + SPREAD) /* this long ago, or longer */
#define LONG_SEEN (LONG - MARGIN)

mtype = {NONE, CURRENT, OLDER};
mtype admit[NODES] = CURRENT;
bit lock[NODES];
byte voted[NODES] = LONG;
byte seen = LONG_SEEN;        /* node 0's */
bit has_copy, copy_lock;
byte copy_seen, copy_voted;

bit is_sent[NODES]; /* a READMIT or ADMIT, in the node's socket */
byte wait[NODES]; /* since it was seen without admission, + 1 */

/* A round: 0 idle; from 1 its age + 1. */
byte age, asked, left;
byte votes;

#define MAX(a, b) (a > b -> a : b)
#define LATER(a, b) (a < b -> a : b)
#define AGO(v, most) (v < most -> v + 1 : most)

#define OTHER(n, i) ((n + i) % 3)
#ifdef ONE_OTHER
#define ARE(n, what) (what(OTHER(n, 1)) || what(OTHER(n, 2)))
#else
#define ARE(n, what) (what(OTHER(n, 1)) && what(OTHER(n, 2)))
#endif

#define COUNTS(n) (admit[n] != NONE)
#ifdef ADMIT_BY_OLDER
#define COUNTS_TO_ADMIT(n) COUNTS(n)
#else
#define COUNTS_TO_ADMIT(n) (admit[n] == CURRENT)
#endif

/* Nothing was promised since node 0's memory was written. */
#define IS_BEFORE(n) \
    (COUNTS(n) && (voted[n] == LONG || voted[n] > seen + MARGIN))
/* Everything promised has expired, by the fast server's clock. */
#define HAS_ENDED(n) (COUNTS_TO_ADMIT(n) && voted[n] >= Q)

#define MAY_READMIT \
    (admit[0] == OLDER && wait[0] > WAIT && ARE(0, IS_BEFORE))
#define MAY_ADMIT(n) (admit[n] != CURRENT && wait[n] > WAIT && \
    (ARE(n, HAS_ENDED) || wait[n] > Q))

inline send_readmit()
{
    is_sent[0] = 1;
#ifdef REACH_READMIT
    is_reached = (left > 0 && lock[0] && !MAY_ADMIT(0));
    assert(!is_reached);
#endif
}

inline run_admit(n)
{
#ifdef REACH_ADMIT
    is_reached = (n == 0 && wait[n] <= Q && left > 0);
    assert(!is_reached);
#endif
    admit[n] = CURRENT;
    wait[n] = 0;
    is_sent[n] = 0
}

inline begin_round(s)
{
    age = 1;
    asked = ASKED(s);
    left = T
}

#define VOTES(n) \
    (age > 0 && !(votes & BIT(n)) && !lock[n] && admit[n] == CURRENT)

inline vote(n)
{
    lock[n] = 1;
    votes = votes | BIT(n);
    voted[n] = asked;
    seen = (n == 0 -> LATER(asked, LONG_SEEN) : seen)
}

/* Through either server, whose median may be behind that of the server that
 * asked last. */
#define HAS_LOCK(n) (admit[n] == CURRENT && lock[n] && (votes & BIT(n)))
inline extend_on(n)
{
    voted[n] = (HAS_LOCK(n) -> NOW(s) : voted[n])
}

inline extend(server)
{
    s = server;
    extend_on(0);
    extend_on(1);
    extend_on(2);
    s = 0;
    left = T
}

inline lose(n)
{
    admit[n] = NONE;
    lock[n] = 0;
    voted[n] = LONG;
    wait[n] = 0;
    is_sent[n] = 0;
    seen = (n == 0 -> LONG_SEEN : seen)
}

inline save_copy()
{
    has_copy = 1;
    copy_lock = lock[0];
    copy_seen = seen;
    copy_voted = voted[0]
}

inline put_back()
{
    admit[0] = OLDER;
    lock[0] = copy_lock;
    seen = copy_seen;
    voted[0] = copy_voted;
    wait[0] = 0;
    is_sent[0] = 0
}

inline forget_all()
{
    left = 0;
    age = 0;
    asked = 0;
    votes = 0;
    lock[0] = 0; lock[1] = 0; lock[2] = 0;
    copy_lock = 0
}

inline tick()
{
    seen = AGO(seen, LONG_SEEN);
    voted[0] = AGO(voted[0], LONG);
    voted[1] = AGO(voted[1], LONG);
    voted[2] = AGO(voted[2], LONG);
    copy_seen = (has_copy -> AGO(copy_seen, LONG_SEEN) : 0);
    copy_voted = (has_copy -> AGO(copy_voted, LONG) : 0);
    wait[0] = (wait[0] > 0 && wait[0] <= Q -> wait[0] + 1 : wait[0]);
    wait[1] = (wait[1] > 0 && wait[1] <= Q -> wait[1] + 1 : wait[1]);
    early = (early > 0 && early <= LIFE -> early + 1 : 0);
    asked = (age > 0 -> asked + 1 : 0);
    age = (age > 0 -> age + 1 : 0);
    if
    :: age > LASTS + 1 && COUNT(votes) < QUORUM -> forget_all()
    :: age > LASTS + 1 && COUNT(votes) >= QUORUM -> age = 0; asked = 0
    :: else
    fi;
    if
    :: left > 1 -> left--
    :: left == 1 -> forget_all()
    :: else
    fi
}

#define IS_FREE(n) (admit[n] == CURRENT && !lock[n])
#define IS_HELD (left > 0 && HAS_LOCK(0) + HAS_LOCK(1) + HAS_LOCK(2) >= QUORUM)

active proctype world()
{
    byte s;
    do
    :: d_step { admit[0] == CURRENT -> seen = NOW(0) }
    :: d_step { admit[0] == CURRENT -> seen = NOW(1) }
    :: d_step { admit[0] != CURRENT && wait[0] == 0 -> wait[0] = 1 }
    :: d_step { admit[1] != CURRENT && wait[1] == 0 -> wait[1] = 1 }
    :: d_step { MAY_READMIT -> send_readmit() }
    :: d_step { MAY_ADMIT(0) -> is_sent[0] = 1 }
    :: d_step { MAY_ADMIT(1) -> is_sent[1] = 1 }
    :: d_step { left == 0 -> begin_round(0) }
    :: d_step { left == 0 -> begin_round(1) }
    :: d_step { IS_HELD -> extend(0) }
    :: d_step { IS_HELD -> extend(1) }
    :: d_step { VOTES(0) -> vote(0) }
    :: d_step { VOTES(1) -> vote(1) }
    :: d_step { VOTES(2) -> vote(2) }
    :: d_step { COUNT(votes) >= QUORUM &&
                IS_FREE(0) + IS_FREE(1) + IS_FREE(2) >= QUORUM ->
                two_holders = 1; assert(!two_holders) }
    :: d_step { lose(0) }
    :: d_step { is_sent[0] -> run_admit(0) }
    :: d_step { lose(1) }
    :: d_step { is_sent[1] -> run_admit(1) }
    :: d_step { admit[0] != NONE -> save_copy() }
    :: d_step { has_copy -> put_back() }
    :: d_step { tick() }
#ifdef OVERTAKES
    :: d_step { early == 0 -> early = 1 }
    :: d_step { early > 0 && admit[1] == CURRENT ->
                voted[1] = NOW(0) + early - 1; early = 0 }
    :: d_step { early > 0 && admit[2] == CURRENT ->
                voted[2] = NOW(0) + early - 1; early = 0 }
#endif
    od
}
