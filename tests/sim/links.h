/* SPDX-License-Identifier: MIT */
/*
 * The connections between servers and nodes.
 *
 * They keep the order, delay what they carry, and break. Commands of a broken
 * connection may still reach the node later. A paused node executes nothing
 * until it resumes, and then everything in its sockets.
 */
#ifndef SIM_LINKS_H
#define SIM_LINKS_H

#include <sys/queue.h>

#include "../../server/engine/port/port.h"
#include "machine.h"

enum { SIM_NODES = 5 };

struct message;
TAILQ_HEAD(messages, message);

enum link_state { LINK_IDLE, LINK_CONNECTING, LINK_UP };

/* What a new connection learns. */
struct meeting {
    int machine;
    uint64_t life;
    char run_id[SIM_RUN_ID_LEN];
    bool is_durable;
    enum node_state unfitness; /* STATE_NONE: none */
    int64_t began_us;          /* by the server's clock */
    int64_t clock_us;          /* the node's */
};

struct simlink {
    enum link_state state;
    bool is_cut;         /* it has ended, but the server does not know yet */
    bool is_watched;     /* an EVENT_SILENCE is under way */
    bool has_probed;     /* in this life the server has seen its permission */
    uint64_t connection; /* counts the attempts */
    struct meeting met;
    struct meeting confirming;
    enum node_state reason; /* why it breaks */
    int pending_count;
    int64_t generation;     /* the highest that the server has seen */
    int64_t up_us;          /* up since then */
    int64_t heard_us;       /* the last reply */
    int64_t counted_us;     /* since then, calls about the right to vote … */
    int admissions;         /* … were sent, so many */
    int64_t arrives_us;     /* the last command; order is kept */
    int64_t replies_us;     /* the last reply */
    int64_t delay_us;       /* each way, at most */
    int64_t lag_us[2];      /* to the node, and back: in its place … */
    int64_t lags_until_us;  /* … until then */
    int64_t blocked_us;     /* nothing gets through until then */
    int64_t unconfirmed_us; /* no confirmation gets through until then */
    struct messages pending;
};

struct world;
struct event;

/*
 * How long a message travels that leaves now, to the node or back; how long one
 * there and back may.
 */
int64_t simlink_travel_us(struct world *world, const struct simlink *link,
                          bool is_back);
int64_t simlink_delay_us(const struct world *world, const struct simlink *link);

struct simlink *simlink_of(struct world *world, int server, int node);

/* The server's node for this name; -1: it has none. */
int simlink_node_of(struct world *world, int server, int name);

/*
 * Whether the server learns at once of anything that happens on the node, and
 * has done so since since_us.
 */
bool simlink_is_good(struct world *world, int server, int node,
                     int64_t since_us);

/* Connects, and reconnects whenever that fails. */
void simlinks_start(struct world *world, int server);

/* The server has died: ends its connections without notice. */
void simlinks_abandon(struct world *world, int server);

/* Breaks the connection: for both sides at once, unless the server is paused.
 */
void simlink_break(struct world *world, int server, int node);

/* Ends all connections to the machine; is_reported: the servers learn it at
 * once.
 */
void simlinks_cut(struct world *world, int machine, bool is_reported);

/* The node owes a reply: it is given up if it sends nothing for a second. */
void simlink_watch(struct world *world, int server, int node);

/* The events of world.h that concern connections. */
void simlink_on_event(struct world *world, const struct event *event);

#endif
