/* SPDX-License-Identifier: MIT */
/*
 * The simulated world: time, machines with Redis on them, names that lead to
 * them, servers that run the real engine, the connections between them, and
 * what goes wrong. One seed decides everything that happens.
 *
 *   main ─→ clients ─→ servers ─→ links ─→ machine ─→ simnode
 *             │           ↑         ↑          ↑
 *             └→ ledger   └─── faults ─────────┘        world: time, chance
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "heap.h"
#include "machine.h"
#include "servers.h"

enum {
    SIM_NAMES = 7,               /* hosts; a configuration has up to five */
    SIM_MACHINES = 2 * SIM_NAMES /* a name may move to another one */
};

enum event_kind {
    EVENT_DELIVER,        /* object: a message reaches its machine */
    EVENT_REPLY,          /* object: its reply reaches the server */
    EVENT_CONNECT,        /* a: server, b: node */
    EVENT_CONNECTED,      /* a: server, b: node, tag: connection */
    EVENT_CONFIRM,        /* a: server, b: node, tag: connection */
    EVENT_CONFIRMED,      /* a: server, b: node, tag: connection */
    EVENT_SILENCE,        /* a: server, b: node, tag: connection */
    EVENT_BROKEN,         /* a: server, b: node, tag: connection */
    EVENT_LISTENER,       /* a: server, b: node and what, tag: connection */
    EVENT_SUBSCRIBED,     /* the same */
    EVENT_ANNOUNCED,      /* the same, number: of the lock */
    EVENT_TIMER,          /* a: server, b: slot, tag: time it was set to */
    EVENT_CLIENT,         /* a: client, b: what, tag: its operation's serial */
    EVENT_TERMINATE,      /* a: server */
    EVENT_DRAIN,          /* a: server, tag: when it began, number: of probes */
    EVENT_RESUME_MACHINE, /* a: machine */
    EVENT_START_MACHINE,  /* a: machine, b: persistence */
    EVENT_HEAL_MACHINE,   /* a: machine */
    EVENT_RESUME_SERVER,  /* a: server */
    EVENT_START_SERVER,   /* a: server, b: configuration */
    EVENT_FAULT,          /* a: which */
    EVENT_FAULT_ENDS,     /* a: which, b: of what */
};

struct clients;
struct faults;

struct world {
    uint64_t random;
    int64_t now_us;
    bool is_mute;      /* announcements do not arrive */
    bool has_permits;  /* the others never touch the pool */
    bool has_shared;   /* some clients only read */
    int readers_max;   /* of a lock, as far as servers let them in */
    bool has_visitors; /* and clients that leave, poll and hurry: half of all */
    bool has_changes;  /* the operator makes some, or errs: a fifth of all */
    bool has_full;     /* machines have no memory left, now and then */
    bool has_lists;    /* the names change again and again: a tenth of all */
    bool has_backups;  /* each of which attaches as a replica: a few of all */
    bool is_busy;      /* clients beside ours begin each batch of the servers */
    bool is_tracing;   /* set it before world_init, like only */
    uint64_t only;     /* bit per fault that may happen; 0: the seed chooses */
    int64_t node_timeout_us; /* of servers: short, or the default; mostly */
    struct heap heap;
    struct machine machines[SIM_MACHINES];
    struct messages backlog[SIM_MACHINES]; /* in the sockets of paused ones */
    int home[SIM_NAMES];                   /* the machine of a name … */
    int leads[SIM_SERVERS][SIM_NAMES];     /* … and where it leads for each */
    int64_t lost_us[SIM_NAMES]; /* locks there may have ended too early */
    int64_t stepped_us[SIM_MACHINES];
    uint64_t lives;
    struct simserver servers[SIM_SERVERS];
    struct message *spare; /* messages for reuse */
    struct clients *clients;
    struct faults *faults;
};

/* From 0 up to below; true in percent of the cases. */
int64_t world_random(struct world *world, int64_t below);
bool world_chance(struct world *world, int percent);

void world_at(struct world *world, int64_t delay_us, struct event event);

/* Writes one line for people who search for the cause of a violation. */
void world_trace(const struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void world_init(struct world *world, uint64_t seed, struct clients *clients,
                struct faults *faults);
void world_fini(struct world *world);

/* Handles the event; its server must not be paused. */
void world_handle(struct world *world, const struct event *event);

/* Handles all events of the next us. */
void world_run(struct world *world, int64_t us);

/* Any but the foreign one. */
static inline int world_any_server(struct world *world)
{
    return (int)world_random(world, SIM_FOREIGN);
}

/* So many resources are used, from the first on. */
static inline int world_resources(const struct world *world)
{
    return world->has_permits ? SIM_RESOURCES : SIM_PLAIN;
}

#endif
