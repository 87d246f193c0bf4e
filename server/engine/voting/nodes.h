/* SPDX-License-Identifier: MIT */
/*
 * The masters: the calls to them, the events that come from them, the fencing
 * numbers made from their clocks, and the one reason why a node may not vote.
 * Pure.
 */
#ifndef REDLOCKD_NODES_H
#define REDLOCKD_NODES_H

#include "../../lock/lock.h"
#include "../port/port.h"
#include "clocks.h"
#include "members.h"

/* ---- pace ---------------------------------------------------------------- */

/*
 * How fast the nodes answer. A call is slow if it takes much longer than those
 * to a quorum do. A round that waits for a slow call asks the other nodes. A
 * node whose calls are slow, or that owes the answer to a slow one, is asked
 * last until it is quick again.
 */
struct pace_node {
    int64_t trip_us;  /* smoothed round trip; 0: none is known */
    int64_t since_us; /* of the calls under way, none was answered since */
    int under_way;    /* calls of rounds that the node has not answered */
};

struct pace {
    int total;
    int64_t slow_us; /* a call that takes longer is slow */
    struct pace_node node[NODES_MAX];
};

void pace_init(struct pace *pace, int total);

/* A call of a round was sent; a call was answered, of a round or not. */
void pace_on_sent(struct pace *pace, int node, int64_t now_us);
void pace_on_reply(struct pace *pace, int node, bool is_round, int64_t sent_us,
                   int64_t received_us);

/* The calls of a round are lost with the connection. */
void pace_on_down(struct pace *pace, int node);

/* To be called every few milliseconds: compares the nodes. */
void pace_tick(struct pace *pace);

/* True if a round with this timeout can wait for a slow call, and then still
 * ask another node. */
bool pace_leaves_time(const struct pace *pace, int64_t timeout_us);

bool pace_is_slow(const struct pace *pace, int node, int64_t now_us);

/* ---- the nodes ----------------------------------------------------------- */

enum {
    STATUS_WORDS_MAX = 160,
    STATUS_FACT_MAX = NODE_DETAIL_MAX / 2, /* two of them are told at once */
};

struct node {
    bool is_up;                   /* it is connected, and fit to vote */
    bool is_open;                 /* it is connected, but would evict locks */
    enum node_state down_reason;  /* why not; none before the first try */
    enum node_state condition;    /* an error that the node answers */
    char words[STATUS_WORDS_MAX]; /* of that error; "": it said none */
    enum node_state refusal;      /* why it is not asked for votes */
    enum node_state shown;        /* what people were shown last */
    bool is_log_due;              /* the log has not reported it yet */
    bool was_logged;              /* the log has reported some state of it */
    bool is_known;                /* a handshake has once succeeded */
    int64_t confirmed_us;         /* when its name last led to this server */
    int64_t lost_by_us; /* the step of its clock that cost its vote; 0: none */
    struct member_action action; /* under way */
    int64_t since_us;            /* when its state last changed */
    int64_t rtt_us;              /* last round trip; 0 unknown */
    char down_detail[NODE_DETAIL_MAX];
    char not_durable[STATUS_FACT_MAX]; /* why, as its last handshake told */
    char lacks[STATUS_FACT_MAX]; /* rights that it votes without, likewise */
};

/* Too few nodes vote. Before the first quorum it began with this server. */
struct quorum_loss {
    int64_t since_us;
    int failed; /* requests that were answered so meanwhile */
    bool is_first;
    bool is_logged;
};

struct nodes {
    const struct environment *env;
    struct members members;
    struct clocks clocks;
    struct pace pace;
    int voting;
    struct quorum_loss loss; /* while voting is below the quorum */
    int epoch;               /* of the configuration, as the log has it */
    int64_t refused_us; /* its names replace no others since; 0: they may */
    bool is_refusal_logged;
    bool is_word_logged; /* that --take-over is not needed any more */
    int64_t last_number; /* last fencing token made from the clocks */
    struct node node[NODES_MAX];
};

/* env is borrowed. */
void nodes_init(struct nodes *nodes, const struct environment *env);

/*
 * The number for the next round, above seen. median_us is that of the clocks. A
 * quorum must be able to vote.
 */
int64_t nodes_next_number(struct nodes *nodes, int64_t median_us, int64_t seen);

/*
 * How long the nodes refuse all numbers above this one, µs; 0: they accept
 * them. Only clocks that were ahead and have been corrected leave such a
 * number.
 */
int64_t nodes_barred_us(const struct nodes *nodes, int64_t number);

/*
 * The time of a request by the nodes' clocks: above all numbers that this
 * server has issued, except those raised above a slot, and below all later
 * ones. 0: no clock is known.
 */
int64_t nodes_asked_us(struct nodes *nodes, int64_t now_us);

/* True if the node's time was node_us certainly before, or after, our moment.
 */
bool nodes_is_before(const struct nodes *nodes, int node, int64_t node_us,
                     int64_t moment_us);
bool nodes_is_past(const struct nodes *nodes, int node, int64_t node_us,
                   int64_t moment_us);

/* Why the node is not sent such a call; STATE_NONE: it is. */
enum node_state nodes_refusal(const struct nodes *nodes, int node,
                              enum call_kind kind);

/*
 * Sends call to a node that may be asked, after filling in the admission and
 * the deadline by the node's clock; contract as port.send.
 */
struct ballot nodes_send(struct nodes *nodes, int node, struct call *call,
                         int64_t deadline_us, uint64_t tag);

/* A request is answered that too few nodes replied. */
void nodes_on_failed(struct nodes *nodes);

/* Ends quarantines, and sends probes that are due. */
void nodes_tick(struct nodes *nodes, int64_t now_us);

/* When the next probe of a node is due, µs. */
int64_t nodes_probe_due_us(const struct nodes *nodes);

/* The events of engine.h. */
void nodes_on_up(struct nodes *nodes, int node, const struct node_facts *facts);
void nodes_on_down(struct nodes *nodes, int node, enum node_state reason,
                   const char *detail);
void nodes_on_confirmed(struct nodes *nodes, int node,
                        const struct node_facts *facts);

/* Takes every reply. Returns its vote, or why it does not count. */
struct ballot nodes_on_reply(struct nodes *nodes, int node, uint64_t tag,
                             const struct call_reply *reply, int64_t sent_us,
                             int64_t received_us);

/* ---- their status: status.c ---------------------------------------------- */

/* Why the node is not asked for votes now; STATE_NONE: it is. */
enum node_state status_refusal(const struct nodes *nodes, int node,
                               int64_t now_us);

/*
 * True while its admission is being read again and it is otherwise fit to vote:
 * its clock is good, and so belongs to the majority that numbers are made from.
 */
bool status_is_probed(const struct nodes *nodes, int node);

/* Another node that is connected to the same server, whose loss would cost two
 * votes; -1: none. */
int status_twin_of(const struct nodes *nodes, int node);

/* True if its name was recently confirmed to lead to this server. */
bool status_is_confirmed(const struct node *node, int64_t now_us);

/*
 * full     above maxmemory: it votes for what is held, whose extension needs no
 *          memory, but it grants nothing
 * broken   it answers an error that keeps it from all votes
 * serving  it votes, or would if it were not full
 * voting   it may vote for all calls, and answers no error
 */
bool status_is_full(const struct nodes *nodes, int node);
bool status_is_broken(const struct nodes *nodes, int node);
bool status_is_serving(const struct nodes *nodes, int node);
bool status_is_voting(const struct nodes *nodes, int node);

/*
 * The state shown to people: the refusal, or an error that the node answers;
 * ADMITTING between a new connection and the answer to its first probe.
 */
enum node_state status_shown(const struct nodes *nodes, int node);

/* True if a server, this one or another, quarantined the node for a first
 * start, which may be under way. */
bool status_is_starting(const struct members *members, int node);

/* For people: the state's name (static), and one sentence. */
const char *status_name(const struct nodes *nodes, int node);
void status_describe(const struct nodes *nodes, int node, int64_t now_us,
                     char detail[NODE_DETAIL_MAX]);

/* What an operator should know of a node even if it votes: why it is not
 * durable, and what its user lacks; "": nothing. */
void status_note(const struct node *node, char note[NODE_DETAIL_MAX]);

/* How long so many of the nodes that wait are missing, µs; 0: none is, or more
 * than wait. */
int64_t status_wait_us(int64_t waits_us[], int count, int missing);

/* As engine_quorum_in_us. */
int64_t status_quorum_in_us(const struct nodes *nodes, int64_t now_us);

/* Sets those metrics of the node that change as time passes. */
void status_measure(const struct nodes *nodes, int node, int64_t now_us);

#endif
