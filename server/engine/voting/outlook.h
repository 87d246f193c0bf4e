/* SPDX-License-Identifier: MIT */
/*
 * What a server with this configuration would do with the nodes, from what an
 * observer has seen of them: for redlockd --plan. Pure.
 */
#ifndef REDLOCKD_OUTLOOK_H
#define REDLOCKD_OUTLOOK_H

#include "nodes.h"

/* What the machine at a node's address is. */
enum outlook_kind {
    OUTLOOK_VOTES,
    OUTLOOK_DOWN,      /* out of reach; detail says why */
    OUTLOOK_UNFIT,     /* connected, and may not vote; detail says why */
    OUTLOOK_TWICE,     /* the name under leads to the same machine */
    OUTLOOK_MISPLACED, /* it has the name under, of this configuration */
    OUTLOOK_OTHERS,    /* it carries other names, or these with a lower epoch */
    OUTLOOK_OUTDATED,  /* another machine has the name since */
    OUTLOOK_QUARANTINED, /* it waits in its quarantine */
    OUTLOOK_RESTARTED,   /* it has its own admission, from before a restart */
    OUTLOOK_EMPTY,       /* it has no admission that counts */
};

struct outlook_node {
    enum outlook_kind kind;
    int under;      /* another name that it has; -1: none of ours */
    int epoch;      /* others: of their configuration */
    bool is_lower;  /* others: it is of these names, with a lower epoch */
    bool is_in_use; /* misplaced: it votes under that name; outdated: a
                       server uses the other machine now */
    bool is_whole;  /* restarted: with all its data */
    bool will_vote; /* after wait_us at most; in use: from when it is not */
    int64_t wait_us;
    char detail[NODE_DETAIL_MAX];
    char note[NODE_DETAIL_MAX]; /* as status_note; only while connected */
};

/* What the nodes as a whole come to. */
enum outlook_change {
    OUTLOOK_UNKNOWN,     /* no majority was reached */
    OUTLOOK_SAME,        /* nodes of this configuration, or nobody's */
    OUTLOOK_FIRST_START, /* all nodes are new, and admitted together */
    OUTLOOK_TAKE_OVER,   /* other names are replaced by these */
    OUTLOOK_REFUSED,     /* the old names would not be dead */
    OUTLOOK_WRONG_EPOCH, /* they would be by epoch_needed */
};

struct outlook {
    int nodes;
    int quorum;
    int reached; /* have answered a probe */
    int voting;
    bool is_settled; /* all has been seen that a plan needs */
    bool is_blocked; /* nobody is admitted beside nodes of other names */
    bool are_empty;  /* all; and none may be admitted without a wait */
    enum outlook_change change;
    int epoch_given;
    int epoch;           /* the one that counts */
    int epoch_needed;    /* to replace the other names; 0: there are none */
    int old_names;       /* how many names are replaced; 0: none were seen */
    uint16_t reporters;  /* of them, the nodes that report what they promised */
    bool has_rivals;     /* a third configuration may have taken them, too */
    int64_t reported_us; /* until that has ended */
    int64_t held_us; /* until the last promise has ended; 0: none is known */
    int64_t
        pause_us;    /* until a majority votes; of other names: once they are
                        replaced. 0: it votes, or waiting alone does not help */
    int64_t most_us; /* the same at most, if more locks are granted meanwhile */
    struct outlook_node node[NODES_MAX];
};

/*
 * As of now_us. since_us: when it was settled for the first time, 0 before
 * that. A plan needs two probes of each node: a generation that rose between
 * them show which names are in use.
 */
void outlook_make(struct outlook *outlook, const struct nodes *nodes,
                  int64_t since_us, int64_t now_us);

#endif
