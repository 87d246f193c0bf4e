/* Apart from world.c, which alone includes it and wires all parts. */
/*
 * Calls to one node and their replies, over a line (line.h). Garbage, or more
 * than was asked for, ends the connection.
 *
 * While it is up, a probe finds out again and again whether the node's name
 * still leads to it: it looks the name up, connects, asks for the run_id and
 * closes. The link's connection cannot tell: it would go on working with a
 * server that no new client finds, while they find another one.
 */
#ifndef REDLOCKD_LINK_H
#define REDLOCKD_LINK_H

#include "line.h"

struct engine;
struct link;

/*
 * Called in the loop, but never from within link_send or link_flush. They may
 * send on any link, and must free none.
 *
 * up         calls may be sent from now on
 *
 * confirmed  the probe found the same node, still fit, and is closed already.
 *            If it finds another node, or an unfit one, the link goes down
 *
 * down       the connection is lost, or an attempt failed. Each pending call
 *            already got its reply, with VOTE_DISCONNECTED. reason and detail,
 *            a sentence without secrets, say why
 *
 * reply      to the call sent with tag; sent_us and received_us bound its
 *            flight
 */
struct link_events {
    void (*up)(struct engine *engine, int node, const struct node_facts *facts);
    void (*confirmed)(struct engine *engine, int node,
                      const struct node_facts *facts);
    void (*down)(struct engine *engine, int node, enum node_state reason,
                 const char *detail);
    void (*reply)(struct engine *engine, int node, uint64_t tag,
                  const struct call_reply *reply, int64_t sent_us,
                  int64_t received_us);
    struct engine *engine; /* who is told */
};

/*
 * Connects in the next turn, and again whenever it goes down. Takes all of
 * setup but has_script and beside; a node that owes a reply and sends nothing
 * for its silence_us is reconnected. prefix and all that setup points to are
 * borrowed until link_free. NULL: no memory.
 */
struct link *link_new(int node, const struct line_setup *setup,
                      const char *prefix, const struct link_events *events);

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
