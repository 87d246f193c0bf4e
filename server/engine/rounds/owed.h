/*
 * A queue of releases that one node owes. It is compact, as it grows to
 * millions while a node is unreachable for long. Pure.
 *
 *       ┌─ oldest            ┌─ next to send           ┌─ newest
 *   ────┴────────────────────┴─────────────────────────┴────
 *         sent: at most OWED_WINDOW, answered or not
 *
 * An answered release leaves the queue. A refused one goes to its end, as the
 * node may refuse it for long. If the connection breaks, the unanswered ones
 * are next again.
 */
#ifndef REDLOCKD_OWED_H
#define REDLOCKD_OWED_H

#include "../../base/types.h"

/* At most this many at once, so that no other call waits long. */
enum { OWED_WINDOW = 512, OWED_BLOCK = 64 * 1024 };

/* The memory that several queues share. */
struct owed_store {
    size_t limit; /* bytes; a multiple of OWED_BLOCK is used */
    size_t bytes;
    uint64_t items;
};

struct owed_block;
struct owed_head;

struct owed {
    struct owed_store *store;
    struct owed_block *first, *last;
    struct owed_block *next_block;
    size_t first_at, next_at; /* bytes into the blocks */
    uint32_t first_number, next_number;
    uint32_t in_flight;
    struct owed_head *sent[OWED_WINDOW]; /* by number */
};

/* The spans are copied by owed_push; owed_next borrows them from the queue. */
struct owed_item {
    struct span resource;
    struct span token;
    int64_t until_us; /* owed until then */
};

/* Zeroed before, except for the store. */
void owed_fini(struct owed *owed);

/* False: no memory, or the queues already use most bytes. */
bool owed_push(struct owed *owed, const struct owed_item *item, size_t most);

/*
 * The next release to send, and the number of its answer. False: there is none,
 * or the window is full. The caller sends it and calls owed_note_sent.
 */
bool owed_next(struct owed *owed, int64_t now_us, struct owed_item *item,
               uint32_t *number);
void owed_note_sent(struct owed *owed);

enum owed_answer { OWED_DONE, OWED_REFUSED, OWED_LOST };

/*
 * The answer to a sent release. OWED_LOST: there will be none; all under way
 * are lost together. False: it was refused, and there is no memory to keep it.
 */
bool owed_note_answer(struct owed *owed, uint32_t number,
                      enum owed_answer answer);

/* Drops the oldest ones whose time has passed. */
void owed_expire(struct owed *owed, int64_t now_us);

#endif
