/* SPDX-License-Identifier: MIT */
/* How many clients and nodes readers.pml has, and what is done for each. */
#undef CLIENTS
#if defined(FOUR_CLIENTS)
#define CLIENTS 4
#elif defined(TWO_CLIENTS)
#define CLIENTS 2
#else
#define CLIENTS 3
#endif
#if NODES == 5
#undef QUORUM
#define QUORUM 3
#endif

#if CLIENTS == 4
#define CLIENTS_FROM_2(what) what(2) what(3)
#define ALL(what) (what(0) + what(1) + what(2) + what(3))
#elif CLIENTS == 3
#define CLIENTS_FROM_2(what) what(2)
#define ALL(what) (what(0) + what(1) + what(2))
#else
#define CLIENTS_FROM_2(what)
#define ALL(what) (what(0) + what(1))
#endif
#define ON_THREE(what, c) (what(c, 0) + what(c, 1) + what(c, 2))
#if NODES == 3
#define ON(what, c) ON_THREE(what, c)
#elif NODES == 4
#define ON(what, c) (ON_THREE(what, c) + what(c, 3))
#else
#define ON(what, c) (ON_THREE(what, c) + what(c, 3) + what(c, 4))
#endif

#define THREE_NODES(c) NODE(c, 0) NODE(c, 1) NODE(c, 2)
#if NODES == 3
#define EACH_NODE(c) THREE_NODES(c)
#elif NODES == 4
#define EACH_NODE(c) THREE_NODES(c) NODE(c, 3)
#else
#define EACH_NODE(c) THREE_NODES(c) NODE(c, 3) NODE(c, 4)
#endif
