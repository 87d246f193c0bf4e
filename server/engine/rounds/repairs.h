/*
 * Repairs under way: a lock that a majority has extended is set on the nodes
 * without it, so that it does not depend on a bare majority.
 *
 *   an extension, all votes known,
 *   some voting nodes without the lock
 *        │
 *        ▼    a node timeout          still on a majority
 *     waiting ──────────────→ looking ───────────────────→ set where missing
 *                               └──→ gone, or no answer in time: nothing
 *
 * No client waits for it, and no vote counts: the next extend finds the key.
 * docs/guarantees.md explains why it waits and looks again, and how releases
 * relate to it. Without memory the repair is left to the next extend.
 */
#ifndef REDLOCKD_REPAIRS_H
#define REDLOCKD_REPAIRS_H

#include <sys/queue.h>

#include "../../base/slots.h"
#include "../../base/texts.h"
#include "../../lock/lock.h"
#include "../voting/nodes.h"
#include "round.h"

struct repair {
    struct slots_head head;
    TAILQ_ENTRY(repair) link;
    bool is_looking;
    int64_t at_us; /* waiting: time of the look; looking: its deadline */
    int64_t start_us;
    int64_t until_us; /* end of the validity that the client was told */
    int64_t ttl_ms;   /* from start_us on, as the client asked */
    int64_t number;
    uint16_t nodes; /* bit per node: lacks the lock */
    int found;      /* how many nodes have it */
    int64_t seen[NODES_MAX];
    struct texts texts; /* resource and token */
};

struct repairs {
    const struct environment *env;
    struct nodes *nodes;
    struct slots slots;
    TAILQ_HEAD(, repair) list;
};

void repairs_init(struct repairs *repairs, struct nodes *nodes);
void repairs_fini(struct repairs *repairs);

/* After an extension that the client was told of; copies what it needs. */
void repairs_start(struct repairs *repairs, struct span resource,
                   struct span token, int64_t ttl_ms,
                   const struct round *round);

/* A reply to a call with a tag of kind TAG_REPAIR, as judged. */
void repairs_on_reply(struct repairs *repairs, uint64_t tag,
                      const struct call_reply *reply);

void repairs_tick(struct repairs *repairs, int64_t now_us);

#endif
