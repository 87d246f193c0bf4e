/*
 * The invariants of clients.h.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "../../server/engine/engine.h"
#include "../../server/engine/port.h"
#include "../lib/node/simnode.h"

/*
 * A lock that a node granted though it had evicted another one, and no look
 * had found that yet.
 */
struct windfall {
    int resource;
    int64_t evicted_us;
    size_t token_len;
    char token[SIM_TOKEN_MAX];
};

enum { WINDFALLS = 32 };

struct ledger {
    bool claims_clocks;     /* the clocks do what the design allows them */
    bool is_touching_first; /* a foreign server, the first one's admission */
    int64_t last_number[SIM_RESOURCES];
    struct windfall windfalls[WINDFALLS]; /* the last ones */
    uint64_t windfall_count;
    uint64_t excused;    /* two held a lock for that */
    char violation[200]; /* "": none; the first one */
};

struct world;
struct client;
struct machine;
struct message;

void ledger_violated(struct world *world, const char *name, int client,
                     int resource);

/* Whether the machine has the client's lock. */
bool ledger_has_key(const struct world *world, const struct machine *machine,
                    const struct client *client);

/* Something was granted, though perhaps not yet told to the client. */
void ledger_on_grant(struct world *world, const struct client *client,
                     int64_t number);

/* Its lock was extended, though perhaps not yet told to it. */
void ledger_on_extension(struct world *world, const struct client *client,
                         int64_t number);

/* The client begins to believe in its lock, or for longer. */
void ledger_on_belief(struct world *world, const struct client *client);

/* In a moment it will believe no longer. */
void ledger_on_belief_end(struct world *world, const struct client *client);

/* A node is about to execute a call, and has executed it. */
void ledger_before_execution(struct world *world,
                             const struct message *message);
void ledger_on_execution(struct world *world, const struct message *message);

/* A client that believes in its lock was told that it has none. */
void ledger_on_denial(struct world *world, const struct client *client);

#endif
