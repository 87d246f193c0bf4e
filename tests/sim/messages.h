/* SPDX-License-Identifier: MIT */
/*
 * Calls under way to a node, and their replies. They may be lost, late, or
 * duplicated, even after the end of the connection that they were sent on.
 */
#ifndef SIM_MESSAGES_H
#define SIM_MESSAGES_H

#include "links.h"

struct message {
    TAILQ_ENTRY(message) link;    /* among those that wait for a reply */
    TAILQ_ENTRY(message) waiting; /* in the sockets of a paused machine */
    struct message *next;         /* among the spare ones */
    int server, node, machine;
    uint64_t connection;
    uint64_t life;      /* of the machine; the socket ends with it */
    bool is_pending;    /* the server waits for its reply */
    bool is_travelling; /* an event or a backlog refers to it */
    bool is_lost;       /* will not be executed */
    bool is_doubled;    /* will be executed twice */
    bool is_denied;     /* it is about keys that nodes deny the servers */
    int64_t late_us;    /* arrives this much later */
    uint64_t tag;
    int64_t sent_us; /* by the server's clock … */
    int64_t left_us; /* … and by the world's */
    int64_t due_us;  /* the server's timeout later */
    struct simcall call;
    struct simreply answer;
};
/* The port's send. */
enum vote message_send(struct world *world, int server, int node,
                       const struct call *call, uint64_t tag);

/* The message reaches its machine; its reply reaches the server. */
void message_deliver(struct world *world, struct message *message);
void message_reply(struct world *world, struct message *message);

/* The server no longer waits for its reply. */
void message_give_up(struct world *world, struct simlink *link,
                     struct message *message);

/* The event that referred to it has been handled. */
void message_forget(struct world *world, struct message *message);

/* Whether the event was a reply on a connection that has ended. */
bool message_drops(struct world *world, const struct event *event);

/* The machine executes what is in its sockets; or that is lost with them. */
void messages_resume(struct world *world, int machine);
void messages_clear_backlog(struct world *world, int machine);

#endif
