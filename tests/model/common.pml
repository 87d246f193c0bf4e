/* SPDX-License-Identifier: MIT */
/* What all models share.
 *
 * Three nodes, two servers, one resource. A tick of time may come at any
 * moment; timers count ticks. An action of a server, a vote and a loss are
 * separate steps, in any order.
 *
 * Two clients: if there are ever two holders, client 0 is the one whose round
 * started first, and it works until `left` ticks after that start have passed
 * (§5: validity counts from the start of the round). Client 1 votes only during
 * that time, and after it all locks vanish: what an older round leaves on the
 * nodes can only refuse votes. So locks need no TTL of their own.
 *
 * run.sh searches for the name of the failed assertion. */

#ifndef NODES
#define NODES 3
#endif
#define QUORUM 2
#define SERVERS 2
#define CLIENTS 2
#define AT(s, n) ((s) * NODES + (n))
#define BIT(n) (1 << (n))
#define COUNT(v) (((v) & 1) + (((v) >> 1) & 1) + (((v) >> 2) & 1) + \
                  (((v) >> 3) & 1) + (((v) >> 4) & 1))
#define any_client(c) if :: c = 0 :: c = 1 fi
#define any_server(s) if :: s = 0 :: s = 1 fi
#define any_node(n) if :: n = 0 :: n = 1 :: n = 2 fi
#define MAX(a, b) (a > b -> a : b)
#define DOWN(v) (v > 0 -> v - 1 : 0)
#define IS_HOLDER(c) (COUNT(votes[c]) >= QUORUM)

/* A choice of `do`: something fails. Without FAULTS this may happen any number
 * of times; the short form of the search allows FAULTS of them in all. */
#ifdef FAULTS
byte faults;
#define FAULT(guard, action) \
    :: d_step { faults < FAULTS && (guard) -> faults++; action }
#else
#define FAULT(guard, action) :: d_step { guard -> action }
#endif

bool two_holders, falls_back, livelock, revokes_honest, is_reached;

#ifndef NO_LOCKS
/* Locks: on each node the number of the client + 1; 0: free. */
byte lock[NODES], votes[CLIENTS], left;

inline grant(c, n)
{
    lock[n] = c + 1;
    votes[c] = votes[c] | BIT(n);
#ifdef REACH_GRANT
    is_reached = IS_HOLDER(c);
    assert(!is_reached);
#endif
    two_holders = IS_HOLDER(0) && IS_HOLDER(1);
    assert(!two_holders)
}

inline tick_clients()
{
    if
    :: left > 1 -> left--
    :: else ->
        left = 0;
        votes[0] = 0;
        votes[1] = 0;
        for (n : 0 .. NODES - 1) {
            lock[n] = 0
        }
        n = 0
    fi
}

/* A client asks a node through any server; may_vote stands for the script. */
#define VOTES(c, n, may_vote) \
    (left > 0 && lock[n] == 0 && !(votes[c] & BIT(n)) && (may_vote))
#endif
