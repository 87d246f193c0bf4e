/*
 * Whether a node may vote, and if not, why: one reason, with a name and a
 * sentence. Combines what nodes.h, admission.h and clocks.h know.
 */
#ifndef REDLOCKD_STATUS_H
#define REDLOCKD_STATUS_H

#include "../../lock/lock.h"
#include "nodes.h"

/* Why the node is not asked for votes now; STATE_NONE: it is. */
enum node_state status_refusal(const struct nodes *nodes, int node,
                               int64_t now_us);

/*
 * Its admission may have changed, and is being read; if it turns out to be
 * admitted, the node votes: its clock is good, and so belongs to the majority
 * that numbers are made from.
 */
bool status_is_looked_at(const struct nodes *nodes, int node);

/* Whether its name was recently confirmed to lead to this server. */
bool status_is_confirmed(const struct node *node, int64_t now_us);

/*
 * What people are shown: the refusal, or an error that the node answers;
 * ADMITTING between a new connection and the answer to its first look.
 */
enum node_state status_shown(const struct nodes *nodes, int node);

/* True if it may vote, and answers no error. */
bool status_is_voting(const struct nodes *nodes, int node);

/*
 * For people: the state's name ("voting", "quarantined", …; static), and one
 * sentence.
 */
const char *status_name(const struct nodes *nodes, int node);
void status_describe(const struct nodes *nodes, int node, int64_t now_us,
                     char detail[NODE_DETAIL_MAX]);

/* How long until a quorum may vote, as quarantines end; 0: it may, or unknown.
 */
int64_t status_quorum_in_us(const struct nodes *nodes, int64_t now_us);

#endif
