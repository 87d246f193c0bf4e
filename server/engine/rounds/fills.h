/*
 * Locks that a quorum has, because their acquires asked no other nodes: those
 * get the same acquire a moment later, with the rest of the TTL, if the lock is
 * still held then. That is a fill.
 *
 * A fill counts in no round. It has the deadline of the round that was granted:
 * to a node it is a call of that round that was long on its way, and whatever
 * holds for such a call holds for it. It is not undone, so the deadline is by
 * the earliest time that the node's clock may show.
 */
#ifndef REDLOCKD_FILLS_H
#define REDLOCKD_FILLS_H

#include <sys/queue.h>

#include "../../base/slots.h"
#include "../../base/texts.h"
#include "releases.h"
#include "round.h"

enum {
    FILLS_AFTER_US = 100000, /* or less, see fills_may_follow */
    FILLS_BUCKETS = 4096,
};

struct fill {
    struct slots_head head;
    TAILQ_ENTRY(fill) link;
    LIST_ENTRY(fill) in_bucket;
    uint16_t asked;   /* bit per node: the acquire was sent there */
    int64_t at_us;    /* when it is sent */
    int64_t start_us; /* of the round */
    int64_t deadline_us;
    int64_t ttl_ms;
    struct texts texts; /* resource and token */
};

LIST_HEAD(fill_bucket, fill);

struct fills {
    const struct environment *env;
    struct nodes *nodes;
    struct slots slots;
    TAILQ_HEAD(fill_list, fill) list; /* what is due first is the first */
    struct fill_bucket buckets[FILLS_BUCKETS]; /* by token */
};

void fills_init(struct fills *fills, struct nodes *nodes);
void fills_fini(struct fills *fills);

/*
 * True if the round's deadline leaves time for a fill. A round for which it
 * does not asks all nodes at once.
 */
bool fills_may_follow(const struct round *round);

/*
 * After a grant, if the round has not asked all nodes: the others get the lock
 * later, or at once if there is no memory, or no time left.
 */
void fills_add(struct fills *fills, const struct round *round,
               struct span resource, struct span token, int64_t ttl_ms);

/* Before an extend: the fill of this lock, or of one that has a resource of it,
 * is sent at once. */
void fills_send(struct fills *fills, struct span resource, struct span token);

/*
 * Before a release or a repeat: likewise, the fill is never sent. True:
 * there was one, and the scope, if any, says which nodes may have the lock.
 * False: the scope stays.
 */
bool fills_cancel(struct fills *fills, struct span resource, struct span token,
                  struct release_scope *scope);

/* Sends what is due. */
void fills_tick(struct fills *fills, int64_t now_us);

/* Sends all of them: the server stops. */
void fills_flush(struct fills *fills);

#endif
