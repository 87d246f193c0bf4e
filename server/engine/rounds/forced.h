/* Apart from operation.h: it sends nothing, and knows only tokens. */
/* SPDX-License-Identifier: MIT */
/*
 * What a forced release has found, releases, and was answered. Its operation
 * sends the calls.
 *
 *   inspection ──→ release what was found ──→ answer
 *     ↑                 │
 *     └─────────────────┘ a node has more holders than it reported
 *
 * Only tokens are released, never "all up to a number": so a lock that is
 * granted later is safe, however late a node is asked again, and whatever the
 * clocks of servers show. What was there at an inspection, on any node, is
 * released on all nodes. A shared and an exclusive form of one token, which a
 * downgrade may leave, are one lock.
 *
 * A release of all readers waits for each node's report. It leaves a token that
 * is nowhere shared: it is a writer's. An acquire that has reached a node by
 * the inspection counts as there, though its client may be told of the grant
 * later: how long that takes is up to another server. So no lock is released
 * whose acquire began after the answer.
 *
 * A node reports CALL_TOKENS_REPORTED tokens at a time, those that end first,
 * and these are then released: so each inspection finds others, until no node
 * has more than it reports. Readers who come meanwhile are released, too. If
 * they come faster than that, the outcome is unknown after four times as many
 * inspections as the first readers needed.
 */
#ifndef REDLOCKD_FORCED_H
#define REDLOCKD_FORCED_H

#include "../port/call.h"

struct forced_token;

/* A node's answers to the releases of one round. */
struct forced_tally {
    int due;
    struct ballot ballot; /* of those that have come */
};

struct forced {
    int64_t number; /* of the lock; 0: all readers */
    struct forced_token *tokens;
    int count;
    int room;
    int next;        /* where the next token of a report probably is */
    int64_t left;    /* holders that the node with the most did not report */
    int inspections; /* so far */
    int inspections_max; /* known after the first */
    bool is_releasing;   /* the round under way releases what was found */
    bool has_released;   /* a round has */
    unsigned asking;     /* which releases are those of the round */
    struct forced_tally tally[NODES_MAX];
};

/* NULL: no memory. */
struct forced *forced_new(int64_t number);
void forced_free(struct forced *forced);

/* An inspection begins: nothing is found yet. */
void forced_begin_inspection(struct forced *forced);

/* A node's report. False: no memory. */
bool forced_note_tokens(struct forced *forced, const struct call_reply *reply);

/* How many tokens are to be released. */
int forced_count(const struct forced *forced);

/* The inspection found some: their release follows. */
void forced_end_inspection(struct forced *forced);

/* The releases of the round with this number begin. */
void forced_begin_releases(struct forced *forced, unsigned asking);

/* The next token to release, from the index *at on; empty: there is none. */
struct span forced_next(const struct forced *forced, int *at);

/* One more release was sent to the node, or why it was not. */
void forced_note_asked(struct forced *forced, int node, struct ballot ballot);

/* What the node said to all of them; PENDING: it owes an answer. */
struct ballot forced_ballot(const struct forced *forced, int node);

/*
 * An answer to one release of this number. True: it was the node's last one,
 * and reply is now what the node answered to all: no vote, if it gave none to
 * one of them; otherwise deleted, if it deleted one.
 */
bool forced_note_answer(struct forced *forced, int node, unsigned asking,
                        struct call_reply *reply);

#endif
