/* SPDX-License-Identifier: MIT */
/*
 * The invariants of clients.h.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "../../server/engine/engine.h"
#include "../../server/engine/port/port.h"
#include "../lib/node/simnode.h"

/*
 * A lock that a node granted after it had evicted another one, before a probe
 * noticed that.
 */
struct windfall {
    int resource;
    int64_t evicted_us;
    int64_t number; /* of the lock that was granted */
    size_t token_len;
    char token[SIM_TOKEN_MAX];
};

/* The highest number of a grant, and the key of its client; 0: it has none. */
struct numbered {
    int64_t number;
    uint64_t key;
};

/*
 * A forced release: of the lock with this number, or of all readers. What was
 * granted before its answer may be gone or stay.
 */
struct forced {
    int by; /* the client that asks */
    int count;
    int resources[SIM_RESOURCES];
    int64_t number; /* 0: of all readers */
    uint64_t key;   /* of that lock; 0: it has none */
    int64_t asked_us;
    int64_t answered_us; /* INT64_MAX: it is not known what was done */
};

/* The windfalls of two nodes, until a probe notices what they evicted. */
enum { WINDFALLS = 1024, KEYS = 64, FORCED = 256 };

struct ledger {
    bool claims_clocks;     /* the clocks behave as the design assumes */
    bool has_first;         /* the first configuration has admitted a node */
    bool is_touching_first; /* a foreign server, the first one's node */
    struct numbered last[SIM_RESOURCES];
    struct numbered writers[SIM_RESOURCES]; /* of exclusive locks */
    struct numbered of_keys[KEYS]; /* the latest ones, by the rest of the key */
    struct windfall windfalls[WINDFALLS]; /* the latest */
    uint64_t windfall_count;
    struct forced forced[FORCED]; /* the latest */
    uint64_t forced_count;
    uint64_t revived; /* locks that a late call set after a forced release */
    uint64_t sames;   /* permits that were, and had to be, those from before */
    uint64_t spreads; /* locks that should have been, and were, on all nodes */
    uint64_t holders; /* bit per client, before a call: the node has its lock */
    uint64_t excused; /* how often two held a lock because of that */
    char violation[200]; /* "": none; the first one */
};

struct world;
struct client;
struct machine;
struct message;

/* After the first violation world_run() does nothing: what waits for an event
 * must stop. */
bool ledger_is_violated(const struct world *world);

void ledger_violated(struct world *world, const char *name, int client,
                     int resource);

/* Whether the machine has the client's lock, whole, or a repeat of it. */
bool ledger_has_lock(const struct world *world, const struct machine *machine,
                     const struct client *client);

/* A lock was granted, by a round that began then, though the client may not
 * know it yet. */
void ledger_on_grant(struct world *world, const struct client *client,
                     int64_t began_us);

/* All nodes have the permits that the client was granted with its present key,
 * and does not know of, and no majority has others with this key. */
bool ledger_is_clear(const struct world *world, const struct client *client);

/* The permits were granted to a client that may have others with its key. */
void ledger_on_permits(struct world *world, const struct client *client);

/* A client was granted a lock with this token, by an answer that it may not
 * get.
 */
void ledger_on_repeat(struct world *world, const struct client *client,
                      struct span token);

/* Its lock was extended, though the client may not know it yet. */
void ledger_on_extension(struct world *world, const struct client *client,
                         int64_t number);

/* The client begins to believe in its lock, or extends its belief. */
void ledger_on_belief(struct world *world, const struct client *client);

/* The client's belief is about to end. */
void ledger_on_belief_end(struct world *world, const struct client *client);

/*
 * A client asks for a forced release; it is answered, is_done: that it was
 * done.
 */
void ledger_on_force(struct world *world, const struct client *client);
void ledger_on_forced(struct world *world, const struct client *client,
                      bool is_done);

/* Whether one that was not answered when began_us was may end its lock. */
bool ledger_is_forced(const struct world *world, const struct client *client,
                      int64_t began_us);

/* A client that watches a lock is told of its holder. */
void ledger_on_told(struct world *world, struct client *client,
                    const struct engine_result *result);

/* Half the time has passed until … */
void ledger_on_half_spread(struct world *world, struct client *client);

/* … the client's lock must be on all nodes. */
void ledger_on_spread(struct world *world, const struct client *client);

/* A node is about to execute a call, or has executed it. */
void ledger_before_execution(struct world *world,
                             const struct message *message);
void ledger_on_execution(struct world *world, const struct message *message);

/* A client that believes in its lock was told that it has none. */
void ledger_on_denial(struct world *world, const struct client *client);

#endif
