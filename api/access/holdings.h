/*
 * The locks that identities hold through this server, so that none holds more
 * than it may. One is known from the call that may get or extend it, until it
 * is released or its TTL ends:
 *
 *            claim                    grant
 *   unknown ───────→ claimed by some ───────→ held ──→ unknown
 *              ↑       calls             │       release, expiry
 *              └──── drop: the last ─────┘
 *
 * Calls of the same resources are one lock, as only one of them can get it.
 */
#ifndef REDLOCKD_HOLDINGS_H
#define REDLOCKD_HOLDINGS_H

#include "../../server/base/types.h"

/* Of one identity; set most, the others begin as 0. */
struct holder {
    char name[64 + 1];
    int64_t most; /* 0: it is not counted */
    int64_t count;
};

struct holdings;
struct holding; /* one lock of one holder */

/* NULL: no memory. */
struct holdings *holdings_new(void);

/* NULL is ignored. */
void holdings_free(struct holdings *all);

enum holdings_verdict { HOLDINGS_CLAIMED, HOLDINGS_FULL, HOLDINGS_NO_MEMORY };

/* Forgets the locks whose TTL has ended, as claims do. */
void holdings_expire(struct holdings *all, int64_t now_us);

/*
 * An acquire or an extend is about to try. HOLDINGS_CLAIMED: *claim is its
 * claim, to be dropped. names as in names.h.
 */
enum holdings_verdict holdings_claim(struct holdings *all,
                                     struct holder *holder, struct span names,
                                     int64_t now_us, struct holding **claim);

/* Whether a claim of a lock that is not held yet would be refused. */
bool holdings_is_full(struct holdings *all, const struct holder *holder,
                      int64_t now_us);

/* What was claimed is held until then, or until it was held already. */
void holdings_grant(struct holdings *all, struct holding *claim,
                    int64_t until_us);

/* The call is over; is_undone: it was granted, and is released again. */
void holdings_drop(struct holdings *all, struct holding *claim, bool is_undone);

/* It is not held any more. */
void holdings_release(struct holdings *all, const struct holder *holder,
                      struct span names);

#endif
