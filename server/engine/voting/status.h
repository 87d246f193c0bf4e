/*
 * What is known of the nodes, and the one reason why a node may not vote, with
 * a name and a sentence. Combines connection, admission and clock. Pure.
 */
#ifndef REDLOCKD_STATUS_H
#define REDLOCKD_STATUS_H

#include "../../lock/lock.h"
#include "../port/port.h"
#include "admission.h"
#include "clocks.h"
#include "pace.h"

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
    struct admission_action action; /* under way */
    int64_t since_us;               /* when its state last changed */
    int64_t rtt_us;                 /* last round trip; 0 unknown */
    char run_id[ADMISSION_STATE_MAX];
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
    struct admission admission;
    struct clocks clocks;
    struct pace pace;
    int voting;
    struct quorum_loss loss; /* while voting is below the quorum */
    int epoch;               /* of the configuration, as the log has it */
    int64_t
        refused_us; /* its names replace no others since then; 0: they may */
    bool is_refusal_logged;
    bool is_word_logged; /* that --take-over is not needed any more */
    int64_t last_number; /* last fencing number made from the clocks */
    struct node node[NODES_MAX];
};

/* Why the node is not asked for votes now; STATE_NONE: it is. */
enum node_state status_refusal(const struct nodes *nodes, int node,
                               int64_t now_us);

/*
 * True while its admission is being read again and it is otherwise fit to vote:
 * its clock is good, and so belongs to the majority that numbers are made from.
 */
bool status_is_looked_at(const struct nodes *nodes, int node);

/* Another node that is connected to the same server, whose loss would cost two
 * votes; -1: none. */
int status_twin_of(const struct nodes *nodes, int node);

/* True if its name was recently confirmed to lead to this server. */
bool status_is_confirmed(const struct node *node, int64_t now_us);

/*
 * The state shown to people: the refusal, or an error that the node answers;
 * ADMITTING between a new connection and the answer to its first look.
 */
enum node_state status_shown(const struct nodes *nodes, int node);

/*
 * True if it is above maxmemory. It votes for what is held, whose extension
 * needs no memory, but it grants nothing.
 */
bool status_is_full(const struct nodes *nodes, int node);

/* True if it answers an error that keeps it from all votes: not if it is full.
 */
bool status_is_broken(const struct nodes *nodes, int node);

/* True if it votes, or would if it were not full. */
bool status_is_serving(const struct nodes *nodes, int node);

/* True if it may vote for all calls, and answers no error. */
bool status_is_voting(const struct nodes *nodes, int node);

/* True if a server, this one or another, marked the node for a first start,
 * which may be under way. */
bool status_is_starting(const struct admission *admission, int node);

/*
 * For people: the state's name ("voting", "quarantined", …; static), and one
 * sentence.
 */
const char *status_name(const struct nodes *nodes, int node);
void status_describe(const struct nodes *nodes, int node, int64_t now_us,
                     char detail[NODE_DETAIL_MAX]);

/* What an operator should know of a node even if it votes: why it is not
 * durable, and what its user lacks; "": nothing. */
void status_note(const struct node *node, char note[NODE_DETAIL_MAX]);

/* As engine_quorum_in_us. */
int64_t status_quorum_in_us(const struct nodes *nodes, int64_t now_us);

/* Sets those metrics of the node that change as time passes. */
void status_measure(const struct nodes *nodes, int node, int64_t now_us);

#endif
