/* Apart from world.c, which alone includes it and wires all parts. */
/* SPDX-License-Identifier: MIT */
/*
 * Calls to one node and their replies, over a line (line.h). Garbage, or more
 * than was asked for, ends the connection.
 *
 * While it is up, a recheck finds out again and again whether the node's name
 * still leads to it: it resolves the name, connects, asks for the run_id and
 * closes. The link's connection cannot tell: it would go on working with a
 * server that no new client finds, while they find another one.
 */
#ifndef REDLOCKD_LINK_H
#define REDLOCKD_LINK_H

#include "line.h"

struct link;

/*
 * Connects in the next turn, and again whenever it goes down. Takes all of
 * setup but purpose and beside; a node that owes a reply and sends nothing for
 * its silence_us is reconnected. All that setup points to is borrowed until
 * link_free. Its events may send on any link, and must free none. NULL: no
 * memory.
 */
struct link *link_new(int node, const struct line_setup *setup,
                      const struct node_events *events);

/*
 * Queues the call; it leaves with the next link_flush. VOTE_PENDING: a reply
 * event will come, exactly one; else why it was not taken (VOTE_DISCONNECTED,
 * VOTE_STALLED), and none will come. Never calls back before it returns.
 */
enum vote link_send(struct link *link, const struct call *call, uint64_t tag);

/*
 * Writes what is queued, as far as the socket takes it. To be called at the
 * end of each turn. A link that breaks at this goes down in the next turn.
 */
void link_flush(struct link *link);

/* Closes; pending calls get no reply. */
void link_free(struct link *link);

#endif
