/* Five nodes, where a minority of two may come back with old copies at once.
 *
 * What is in question is only how many others must be asked before a node is
 * readmitted. So a round is one step, time does not pass, and a node's memory
 * tells of the first holder, or does not. All nodes may be restarted; any may
 * be away for a while.
 */
#define NODES 5
#define NO_LOCKS
#include "common.pml"
#define MAJORITY 3

bit admit[NODES] = 1, is_away[NODES], knows[NODES];
bit is_held;
byte copies;   /* nodes that were put back */
byte round;

#define ASK(n, i) ((n + i) % NODES)
#define ANSWERS(n, i) (!is_away[ASK(n, i)])
#define TELLS(n, i) (ANSWERS(n, i) && knows[ASK(n, i)])
#define VOTES(n, i) (ANSWERS(n, i) && admit[ASK(n, i)])
#define SUM(n, what) (what(n, 1) + what(n, 2) + what(n, 3) + what(n, 4))

#ifdef QUORUM_OF_OTHERS
#define ARE_ENOUGH(n) (SUM(n, ANSWERS) >= MAJORITY)
#else
#define ARE_ENOUGH(n) (SUM(n, VOTES) >= MAJORITY || \
                       SUM(n, ANSWERS) == NODES - 1)
#endif
#define MAY_READMIT(n) (!admit[n] && !is_away[n] && ARE_ENOUGH(n) && \
    (knows[n] || SUM(n, TELLS) == 0))

inline grant_first()
{
    /* on any three that are there; more than three: the next steps */
    is_held = 1
}

#define IS_FREE(n) (admit[n] && !is_away[n] && !knows[n])
#define FREE (IS_FREE(0) + IS_FREE(1) + IS_FREE(2) + IS_FREE(3) + IS_FREE(4))
#define KNOW (knows[0] + knows[1] + knows[2] + knows[3] + knows[4])

#define NODE(n) \
    :: d_step { !is_held && admit[n] && !is_away[n] && !knows[n] -> \
                knows[n] = 1; is_held = (KNOW == MAJORITY) } \
    :: d_step { is_held && copies < NODES - MAJORITY -> \
                copies++; knows[n] = 0; admit[n] = 0 } \
    :: d_step { admit[n] = 0 } \
    :: d_step { is_away[n] = !is_away[n] } \
    :: d_step { MAY_READMIT(n) -> admit[n] = 1 }

active proctype world()
{
    do
    NODE(0) NODE(1) NODE(2) NODE(3) NODE(4)
    :: d_step { is_held && FREE >= MAJORITY -> \
                two_holders = 1; assert(!two_holders) }
    od
}
