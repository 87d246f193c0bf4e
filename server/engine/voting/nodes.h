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
 * For how long no node accepts a number above this one, µs; 0: they do. Only
 * clocks that were ahead once, and were corrected, leave such a number behind.
 */
int64_t nodes_barred_us(const struct nodes *nodes, int64_t number);

/*
 * When something is asked, by the nodes' clocks: above all numbers that this
 * server gave before, except those above a slot's, and below all that it gives
 * later. 0: no clock is known.
 */
int64_t nodes_asked_us(struct nodes *nodes, int64_t now_us);

/* Whether a node that reported node_us certainly did so before, or past, our
 * moment. */
bool nodes_is_before(const struct nodes *nodes, int node, int64_t node_us,
                     int64_t moment_us);
bool nodes_is_past(const struct nodes *nodes, int node, int64_t node_us,
                   int64_t moment_us);

/*
 * Why the node is not asked by such a call; STATE_NONE: it is. An acquire,
 * extend or repair goes only to a node that may vote.
 */
enum node_state nodes_refusal(const struct nodes *nodes, int node,
                              enum call_kind kind);

/*
 * Sends call to a node that may be asked, after filling in the admission and
 * the deadline by the node's clock; contract as port.send.
 */
struct ballot nodes_send(struct nodes *nodes, int node, struct call *call,
                         int64_t deadline_us, uint64_t tag);

/* What changes with time alone: quarantines that end, looks that are due. */
void nodes_tick(struct nodes *nodes, int64_t now_us);

/* The events of engine.h. */
void nodes_on_up(struct nodes *nodes, int node, const struct node_facts *facts);
void nodes_on_down(struct nodes *nodes, int node, enum node_state reason,
                   const char *detail);
void nodes_on_confirmed(struct nodes *nodes, int node,
                        const struct node_facts *facts);

/*
 * To be called with every reply; returns its vote, or why it does not count.
 */
struct ballot nodes_on_reply(struct nodes *nodes, int node, uint64_t tag,
                             const struct call_reply *reply, int64_t sent_us,
                             int64_t received_us);

#endif
