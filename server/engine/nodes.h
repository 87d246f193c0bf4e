/*
 * The masters as the engine sees them: who is there and may vote, what their
 * clocks show, and the calls to them.
 */
#ifndef REDLOCKD_NODES_H
#define REDLOCKD_NODES_H

#include "admission.h"
#include "clocks.h"
#include "environment.h"

struct node {
    bool is_up;                  /* a connection is there */
    enum node_state down_reason; /* why not; STATE_VOTING: none was tried yet */
    enum node_state
        condition; /* an error that the node answers; STATE_VOTING: none */
    enum node_state
        refusal; /* why it is not asked for votes; STATE_VOTING: it is */
    enum node_state shown; /* what people were told last */
    bool is_log_due;       /* the log does not tell of it yet */
    int64_t confirmed_us;  /* it was the server that its name leads to */
    int64_t lost_by_us;    /* the step of its clock that cost its vote; 0 */
    struct admission_action action; /* on its way */
    int64_t since_us;               /* in its state since */
    int64_t rtt_us;                 /* last round trip; 0 unknown */
    char run_id[ADMISSION_STATE_MAX];
    char down_detail[NODE_DETAIL_MAX];
};

struct nodes {
    const struct environment *env;
    struct admission admission;
    struct clocks clocks;
    int voting;
    int64_t last_number; /* last fencing number made from the clocks */
    struct node node[NODES_MAX];
};

/* env is borrowed. */
void nodes_init(struct nodes *nodes, const struct environment *env);

/*
 * The number for the next round, above seen; median_us: of the clocks. A
 * quorum may vote.
 */
int64_t nodes_next_number(struct nodes *nodes, int64_t median_us, int64_t seen);

/*
 * For how long no node takes a number above this one, µs; 0: they do. It is so
 * far ahead of the clocks only if these were ahead once, and were set right.
 */
int64_t nodes_barred_us(const struct nodes *nodes, int64_t number);

/* Median of the nodes' clocks at now_us; 0: none is known. */
int64_t nodes_median_us(const struct nodes *nodes, int64_t now_us);

/* Whether a node that told node_us did so before, or past, our moment for
 * certain. */
bool nodes_is_before(const struct nodes *nodes, int node, int64_t node_us,
                     int64_t moment_us);
bool nodes_is_past(const struct nodes *nodes, int node, int64_t node_us,
                   int64_t moment_us);

/* By how much a call may come too late for our idea of the node's clock. */
int64_t nodes_uncertainty_us(const struct nodes *nodes, int node);

/*
 * Why the node is not asked by such a call; STATE_VOTING: it is. An acquire,
 * extend or repair goes only to a node that may vote.
 */
enum node_state nodes_refusal(const struct nodes *nodes, int node,
                              enum call_kind kind);

/*
 * Sends call to a node that is to be asked, with the admission and the deadline
 * in the node's clock filled in; contract as port.send.
 */
struct ballot nodes_send(struct nodes *nodes, int node, struct call *call,
                         int64_t deadline_us, uint64_t tag);

/* What time alone changes: quarantines that end, looks that are due. */
void nodes_tick(struct nodes *nodes, int64_t now_us);

/* The events of engine.h. */
void nodes_on_up(struct nodes *nodes, int node, const struct node_facts *facts);
void nodes_on_down(struct nodes *nodes, int node, enum node_state reason,
                   const char *detail);
void nodes_on_confirmed(struct nodes *nodes, int node,
                        const struct node_facts *facts);

/*
 * To be called with every reply; returns its vote, or why it is not to be
 * counted.
 */
struct ballot nodes_on_reply(struct nodes *nodes, int node, uint64_t tag,
                             const struct call_reply *reply, int64_t sent_us,
                             int64_t received_us);

#endif
