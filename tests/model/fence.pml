/* SPDX-License-Identifier: MIT */
/* Fencing tokens, and how far apart the clocks are ("Rising fencing tokens" in
 * docs/internals/guarantees.md).
 *
 * Three nodes whose clocks are ahead by some ticks, each by a different number.
 * Node 0 forgets everything, its clock steps anywhere, and it does not vote for
 * Q. The others remember, and all are near enough to each other to vote at the
 * start. A server asks with any number, which stands for whatever it believes
 * of clocks and last numbers: the nodes decide. Numbers are counted from now:
 * time never ends, and a number far behind counts as none. No lock ever exists
 * already.
 *
 * Rules that can be switched off:
 *   NO_COMPARE    a number from the server's memory; nodes compare nothing
 *   NODE_COUNTER  a counter on each node, the maximum of a majority
 *   NO_WINDOW     a node accepts numbers further than W from its clock
 *   NO_SPREAD     clocks further than W/2 from the median vote
 *   SHORT_Q       Q is 3 W; one tick more (LEAST_Q) is safe here, where no
 *                 clock drifts and each median is of all nodes
 * And what remains, not a rule:
 *   FAR_NODE      node 2 is far off, until node 0's clock steps to its side
 */
#define NO_LOCKS
#include "common.pml"

#ifndef W
#define W 2
#endif
#ifdef SHORT_Q
#define Q (3 * W)
#elif defined(LEAST_Q)
#define Q (3 * W + 1)
#else
#define Q (4 * W + 1)
#endif

#define FAR (2 * W + 1) /* at least Q - 2 W, or the spread does not matter */

byte ahead[NODES];  /* the nodes' clocks */
byte away;          /* ticks until node 0 votes */

/* A number is counted from the least that the slowest clock may accept now. */
#define MOST (FAR + 2 * W + 1)
#define CLOCK(n) (ahead[n] + W + 1)
byte highest[NODES]; /* accepted in the slot; 0: none that matters */
byte granted;

#define MIN(a, b) (a < b -> a : b)
#define MEDIAN \
    (MAX(MIN(ahead[0], ahead[1]), MIN(MAX(ahead[0], ahead[1]), ahead[2])))
#define ARE_NEAR(a, b, most) ((a) <= (b) + (most) && (b) <= (a) + (most))

#ifdef NO_SPREAD
#define IS_IN_SPREAD(n) true
#else
#define IS_IN_SPREAD(n) (2 * ahead[n] <= 2 * MEDIAN + W && \
                         2 * MEDIAN <= 2 * ahead[n] + W)
#endif

#ifdef NO_WINDOW
#define IS_IN_WINDOW(n, number) true
#else
#define IS_IN_WINDOW(n, number) ARE_NEAR(number, CLOCK(n), W)
#endif

#ifdef NO_COMPARE
#define IS_RISING(n, number) true
#else
#define IS_RISING(n, number) (number > highest[n])
#endif

#define ACCEPTS(n, number) ((n != 0 || away == 0) && IS_IN_SPREAD(n) && \
    IS_IN_WINDOW(n, number) && IS_RISING(n, number))

/* A lost round leaves its number on one node. */
inline accept(n, number)
{
    highest[n] = number
}

inline win(a, b, number)
{
    accept(a, number);
    accept(b, number);
    falls_back = (number <= granted);
    assert(!falls_back);
    granted = number;
#ifdef REACH_RETURN
    is_reached = (a == 0 && has_returned);
    assert(!is_reached);
#endif
}

inline count(n)
{
    highest[n]++
}

inline win_by_count(a, b)
{
    count(a);
    count(b);
    falls_back = (MAX(highest[a], highest[b]) <= granted);
    assert(!falls_back);
    granted = MAX(highest[a], highest[b])
}

#ifdef NODE_COUNTER
#define LATER(value) value
#define ROUND(a, b) \
    :: d_step { highest[a] < MOST && highest[b] < MOST -> win_by_count(a, b) }
#define ROUNDS ROUND(0, 1) ROUND(0, 2) ROUND(1, 2)
#else
#define LATER(value) (value > 0 -> value - 1 : 0)
#define VOTE(n, number) \
    :: d_step { ACCEPTS(n, number) -> accept(n, number) }
#define ROUND(a, b, number) \
    :: d_step { ACCEPTS(a, number) && ACCEPTS(b, number) -> \
                win(a, b, number) }
#define ASK(number) \
    VOTE(0, number) VOTE(1, number) VOTE(2, number) \
    ROUND(0, 1, number) ROUND(0, 2, number) ROUND(1, 2, number)
#define ROUNDS ASK(1) ASK(2) ASK(3) ASK(4) ASK(5) ASK(6) \
    ASK(7) ASK(8) ASK(9) ASK(10)
#endif

#ifdef REACH_RETURN
bit has_returned;
#endif

inline lose(clock)
{
#ifdef REACH_RETURN
    has_returned = 1;
#endif
    highest[0] = 0;
    ahead[0] = clock;
    away = Q
}

inline tick()
{
    highest[0] = LATER(highest[0]);
    highest[1] = LATER(highest[1]);
    highest[2] = LATER(highest[2]);
    granted = LATER(granted);
    away = (away > 0 -> away - 1 : 0)
}

#define LOSE(clock) FAULT(true, lose(clock))
#define SET_CLOCK(n) \
    do :: ahead[n] < FAR -> ahead[n]++ :: break od

#ifdef FAR_NODE
#define IS_BEGINNING true
#else
#define IS_BEGINNING (IS_IN_SPREAD(0) && IS_IN_SPREAD(1) && IS_IN_SPREAD(2))
#endif

active proctype world()
{
    SET_CLOCK(0);
    SET_CLOCK(1);
    SET_CLOCK(2);
    if
    :: IS_BEGINNING
    :: else -> goto no_beginning
    fi;
    do
    ROUNDS
    LOSE(0) LOSE(1) LOSE(2) LOSE(3) LOSE(4) LOSE(5)
    :: d_step { tick() }
    od;
no_beginning:
    skip
}
