/*
 * The masters: the calls to them, the events that come from them, and the
 * fencing numbers made from their clocks. status.h tells which may vote.
 */
#ifndef REDLOCKD_NODES_H
#define REDLOCKD_NODES_H

#include "status.h"

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

/*
 * Why the node is not sent such a call; STATE_NONE: it is. An acquire, extend
 * or repair goes only to a node that may vote.
 */
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

/* Ends quarantines, and sends looks that are due. */
void nodes_tick(struct nodes *nodes, int64_t now_us);

/* When the next look at a node is due, µs. */
int64_t nodes_look_due_us(const struct nodes *nodes);

/* The events of engine.h. */
void nodes_on_up(struct nodes *nodes, int node, const struct node_facts *facts);
void nodes_on_down(struct nodes *nodes, int node, enum node_state reason,
                   const char *detail);
void nodes_on_confirmed(struct nodes *nodes, int node,
                        const struct node_facts *facts);

/* To be called with every reply. Returns its vote, or why it does not count. */
struct ballot nodes_on_reply(struct nodes *nodes, int node, uint64_t tag,
                             const struct call_reply *reply, int64_t sent_us,
                             int64_t received_us);

#endif
