/* SPDX-License-Identifier: MIT */
/* Five nodes, of which a minority may be bad at once: with an older copy, or
 * empty.
 *
 * The only question is which nodes must be asked before one is readmitted. So a
 * round is one step, time does not pass, and a node's data either knows the
 * first holder, whose majority was nodes 0 to 2, or does not. All nodes may be
 * restarted, and any may be unreachable for a while.
 */
#define NODES 5
#define NO_LOCKS
#include "common.pml"
#define MAJORITY 3
#define ENOUGH (NODES - MAJORITY + 1)
#ifdef MOST_ARE_BAD
#define BAD MAJORITY
#else
#define BAD (NODES - MAJORITY)
#endif

bit admit[NODES] = 1, is_away[NODES], is_empty[NODES], knows[NODES];
bit is_held;
byte bad;

#define OTHER(n, i) ((n + i) % NODES)
#define IS_THERE(n, i) (!is_away[OTHER(n, i)])
#define COUNTS(n, i) (IS_THERE(n, i) && !is_empty[OTHER(n, i)])
#define VOTES_TOO(n, i) (IS_THERE(n, i) && admit[OTHER(n, i)])
#define TELLS(n, i) (COUNTS(n, i) && knows[OTHER(n, i)])
#define SUM(n, what) (what(n, 1) + what(n, 2) + what(n, 3) + what(n, 4))

#ifdef ONE_MAY_BE_AWAY
#define MAY_BE_AWAY 1
#else
#define MAY_BE_AWAY 0
#endif
#ifdef ANY_THERE
#define HAVE_TOLD(n) (SUM(n, IS_THERE) >= ENOUGH)
#else
#define HAVE_TOLD(n) (SUM(n, VOTES_TOO) >= ENOUGH || \
    (SUM(n, IS_THERE) >= NODES - 1 - MAY_BE_AWAY && SUM(n, COUNTS) >= ENOUGH))
#endif
#define MAY_READMIT(n) (!admit[n] && !is_empty[n] && !is_away[n] && \
    HAVE_TOLD(n) && (knows[n] || SUM(n, TELLS) == 0))

inline readmit(n)
{
#ifdef REACH_READMIT
    is_reached = is_held && !admit[0] && !admit[1] && !admit[2] &&
                 !admit[3] && !admit[4];
    assert(!is_reached);
#endif
    admit[n] = 1
}

inline grant_first()
{
    is_held = 1;
    knows[0] = 1; knows[1] = 1; knows[2] = 1
}

#define IS_FREE(n) (admit[n] && !is_away[n] && !knows[n])
#define FREE (IS_FREE(0) + IS_FREE(1) + IS_FREE(2) + IS_FREE(3) + IS_FREE(4))

#define NODE(n) \
    :: d_step { bad < BAD -> bad++; knows[n] = 0; admit[n] = 0 } \
    :: d_step { bad < BAD -> bad++; knows[n] = 0; admit[n] = 0; \
                is_empty[n] = 1 } \
    :: d_step { admit[n] = 0 } \
    :: d_step { is_away[n] = !is_away[n] } \
    :: d_step { MAY_READMIT(n) -> readmit(n) }

active proctype world()
{
    do
    NODE(0) NODE(1) NODE(2) NODE(3) NODE(4)
    :: d_step { !is_held && IS_FREE(0) && IS_FREE(1) && IS_FREE(2) -> \
                grant_first() }
    :: d_step { is_held && FREE >= MAJORITY -> \
                two_holders = 1; assert(!two_holders) }
    od
}
