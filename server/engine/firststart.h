/*
 * The first start: N nodes that nobody ever used, admitted at once.
 *
 * Five empty nodes at a first start look like five that lost everything. So
 * they skip their quarantine only if nobody saw them otherwise, and if one
 * server alone marked them all: no other can then act on older looks. Pure.
 *
 *   WAITING → LEAD → REST → HOLD → CHECK → ADMIT → OVER
 *      all     first  the    until  all     give
 *     empty    node  others  older  still   the
 *             marked marked commands have   permission
 *                           ended  their mark
 *
 * Anything else on the way: OVER, and each node waits in its quarantine.
 */
#ifndef REDLOCKD_FIRSTSTART_H
#define REDLOCKD_FIRSTSTART_H

#include "../base/types.h"
#include "call.h"

enum firststart_step {
    FIRSTSTART_WAITING,
    FIRSTSTART_LEAD,
    FIRSTSTART_REST,
    FIRSTSTART_HOLD,
    FIRSTSTART_CHECK,
    FIRSTSTART_ADMIT,
    FIRSTSTART_OVER,
};

struct firststart {
    enum firststart_step step;
    int nodes;
    int leader;       /* marked first, by all servers */
    int64_t hold_us;  /* how long HOLD lasts */
    int64_t since_us; /* WAITING: the first node came; CHECK: began */
    int64_t hold_until_us;
    int64_t yield_until_us;    /* another server may leader a first start */
    bool is_marked[NODES_MAX]; /* by this first start, and not yet admitted */
};

/* is_allowed: false if there is to be none. */
void firststart_init(struct firststart *start, int nodes, int leader,
                     int64_t hold_us, bool is_allowed);

/* What the caller knows of the nodes. */
struct firststart_view {
    bool is_possible;   /* no connected node forbids it */
    bool are_all_empty; /* all N are connected, and have no state */
    int64_t looked_us;  /* every connected node was looked at since then */
    int64_t now_us;
};

/* Goes on as far as possible; the nodes (bits) to be looked at as soon as may
 * be. */
uint16_t firststart_advance(struct firststart *start,
                            const struct firststart_view *view);

/*
 * A node came up · a look found this, and whether that is the mark which the
 * node had · a node went down, or an action on it failed.
 */
void firststart_on_up(struct firststart *start, int64_t now_us);
void firststart_on_look(struct firststart *start, int node,
                        enum call_look_word word, bool is_same_mark,
                        int64_t now_us);
void firststart_on_trouble(struct firststart *start, int node);

/* The node was admitted, or is not to be by the first start. */
void firststart_forget(struct firststart *start, int node);

/* How long it waits on for nodes that are not there; 0: it does not wait. */
int64_t firststart_remaining_us(const struct firststart *start, int64_t now_us);

/* Whether a mark made now can hurt no first start, of any server. */
bool firststart_may_mark(const struct firststart *start, int node,
                         int64_t now_us);

/* Whether what is marked now is marked by this first start. */
bool firststart_is_marking(const struct firststart *start);

/* Whether the node is to be admitted without quarantine. */
bool firststart_may_admit(const struct firststart *start, int node);

#endif
