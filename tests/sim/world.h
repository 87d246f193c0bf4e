/*
 * The simulated world: time, nodes, servers that run the real engine, and the
 * connections between them. One seed decides everything that happens.
 *
 * Connections keep their order, delay what they carry and break; commands of a
 * broken one may still reach the node later. A paused node executes nothing
 * until it goes on, then everything that lies in its sockets.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <sys/queue.h>

#include "../../server/engine.h"
#include "heap.h"
#include "simnode.h"

enum {
    SIM_NODES = 5,
    SIM_SERVERS = 2,
    SIM_CLIENTS = 12,
    SIM_TIMERS = 256,
    SIM_NODE_TIMEOUT_US = 50000,
    SIM_MAX_TTL_MS = 20000,
};

enum event_kind {
    EVENT_DELIVER, /* object: a message reaches its node */
    EVENT_REPLY,   /* object: its reply reaches the server */
    EVENT_LINK_UP, /* a: server, b: node */
    EVENT_SILENCE, /* a: server, b: node, tag: connection */
    EVENT_RESUME,  /* b: node */
    EVENT_FAULT,
    EVENT_TIMER,  /* a: server, b: slot, tag: time it was set to */
    EVENT_CLIENT, /* a: client, b: what, tag: its operation's serial */
};

struct message {
    TAILQ_ENTRY(message) link;    /* among those that await a reply */
    TAILQ_ENTRY(message) waiting; /* in the sockets of a paused node */
    int server, node;
    uint64_t connection; /* of the link when it was sent */
    bool is_lost;        /* will not be executed */
    uint64_t tag;
    int64_t sent_us;
    struct simcall call;
    struct script_reply reply;
    char value[TOKEN_MAX];
};
TAILQ_HEAD(messages, message);

struct simlink {
    bool is_up;
    uint64_t connection;
    int64_t arrives_us; /* the last command; order is kept */
    int64_t replies_us; /* the last reply */
    int64_t delay_us;   /* each way, at most */
    struct messages pending;
};

struct simserver {
    struct world *world;
    struct engine *engine;
    struct metrics metrics;
    int64_t timers[SIM_TIMERS];
    struct simlink links[SIM_NODES];
};

struct clients;

struct world {
    uint64_t random;
    int64_t now_us;
    bool has_faults;
    struct heap heap;
    struct simnode nodes[SIM_NODES];
    struct messages backlog[SIM_NODES]; /* of paused nodes */
    struct simserver servers[SIM_SERVERS];
    struct clients *clients;
    uint64_t faults;
    uint64_t late_executions; /* acquires set long after they were sent */
};

void world_init(struct world *world, uint64_t seed, struct clients *clients);
void world_fini(struct world *world);

/* From 0 to below, and true in percent of the cases. */
int64_t world_random(struct world *world, int64_t below);
bool world_chance(struct world *world, int percent);

void world_at(struct world *world, int64_t delay_us, struct event event);

/* Lets everything happen that happens within the next us. */
void world_run(struct world *world, int64_t us);

/* No faults from now on; what is broken heals by itself. */
void world_calm(struct world *world);

#endif
