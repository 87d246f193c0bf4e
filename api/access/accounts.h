/* Apart from access.h: what an identity did, without requests. */
/* SPDX-License-Identifier: MIT */
/*
 * What each identity did on this server, beside what it may do. An account
 * outlives the reload of the file as long as its identity is in it, and longer
 * while locks are counted on it, or requests have places of it.
 */
#ifndef REDLOCKD_ACCOUNTS_H
#define REDLOCKD_ACCOUNTS_H

#include <stdio.h>

#include "../../server/base/log.h"
#include "identities.h"

/* ---- token buckets ------------------------------------------------------ */

/* rate requests a second, and burst of them at once. */
struct bucket {
    int64_t level;     /* millionths of a request that it has room for */
    int64_t filled_us; /* when level was true */
};

/* A full one. */
void bucket_init(struct bucket *it, int64_t burst, int64_t now_us);

/*
 * Takes count requests; more than burst count as burst. False: there is no
 * room; *wait_us: for how long. rate and burst are from 1 to IDENTITY_RATE_MAX,
 * and may change between two calls.
 */
bool bucket_take(struct bucket *it, int64_t rate, int64_t burst, int64_t count,
                 int64_t now_us, int64_t *wait_us);

/* ---- accounts ----------------------------------------------------------- */

enum account_result {
    ACCOUNT_ALLOWED,
    ACCOUNT_FORBIDDEN,
    ACCOUNT_LIMITED,
    ACCOUNT_RESULTS
};

/*
 * Places that a server has a limited number of: acquires that wait, lists that
 * are under way.
 */
enum place { PLACE_WAIT, PLACE_LIST, PLACES };

struct account {
    const struct identity *identity; /* NULL: it is not in the file any more */
    char name[IDENTITY_NAME_MAX + 1];
    int number; /* from 1 to IDENTITIES_MAX; its own while it is in the file */
    uint32_t since; /* the reading of the file that brought its credential */
    struct bucket requests;
    struct bucket refusals;    /* those that were answered at once */
    struct log_limit reported; /* of refusals that the audit log reports */
    int64_t locks_most;        /* held at once; 0: they are not counted */
    int64_t locks;             /* held */
    uint64_t results[ACCOUNT_RESULTS]; /* requests */
    int places[PLACES];                /* that are taken */
    struct account *next_gone;
};

struct accounts {
    struct identities *identities; /* owned; NULL: none yet */
    uint32_t reads;                /* of the file, with success */
    struct account **list;         /* by the identities' numbers */
    struct account *gone;          /* that are still used */
    int last_number;               /* that was given to a new one */
};

/* Takes identities, which it frees later. New ones get an account, those that
 * were there keep theirs. False: no memory, and nothing has changed. */
bool accounts_set(struct accounts *all, struct identities *identities,
                  int64_t now_us);

/* Writes their metrics. False: some are missing. */
bool accounts_print(const struct accounts *all, FILE *out);

/* Frees all; no lock is counted any more. */
void accounts_fini(struct accounts *all);

/* ---- locks held --------------------------------------------------------- */

/*
 * The locks that identities hold through this server, so that none holds more
 * than it may. One is known from the call that may get or extend it, until it
 * is released or its TTL ends:
 *
 *            reservation                    grant
 *   unknown ───────→ reserved by some ───────→ held ──→ unknown
 *              ↑       calls             │       release, expiry
 *              └──── drop: the last ─────┘
 *
 * Calls for the exclusive lock of the same resources are one lock, as only one
 * of them can get it. Each reader holds one of its own.
 */

struct holdings;
struct holding; /* one lock of one account */

/* Which lock of an account. */
struct holding_lock {
    struct span names;  /* as in names.h */
    struct span reader; /* what no other reader of them has, at most
                           HOLDING_READER_MAX bytes; empty: no reader's */
    bool may_be_either; /* it may be a reader's or, as before a downgrade, not
                           yet: whichever is known, or else not yet */
    int64_t number;     /* its fencing token; 0: none yet */
};

enum { HOLDING_READER_MAX = 40 };

/* NULL: no memory. */
struct holdings *holdings_new(void);

/* NULL is ignored. */
void holdings_free(struct holdings *all);

enum holdings_verdict { HOLDINGS_RESERVED, HOLDINGS_FULL, HOLDINGS_NO_MEMORY };

/* Forgets the locks whose TTL has ended, as reservations do. */
void holdings_expire(struct holdings *all, int64_t now_us);

/* An acquire or an extend is about to try. HOLDINGS_RESERVED: *reservation is
 * its reservation, to be dropped. */
enum holdings_verdict holdings_reserve(struct holdings *all,
                                       struct account *account,
                                       const struct holding_lock *lock,
                                       int64_t now_us,
                                       struct holding **reservation);

/* The same for a release, which counts nothing; NULL: it is not known. */
struct holding *holdings_reserve_known(struct holdings *all,
                                       const struct account *account,
                                       const struct holding_lock *lock);

/* If what was reserved is held, it is until then, at least. */
void holdings_keep(struct holdings *all, struct holding *reservation,
                   int64_t until_us);

/*
 * What was reserved is held with a token that has this number and these random
 * digits, HOLDING_READER_MAX of them. Who shows them has the token: the number
 * alone may be guessed.
 */
void holdings_set_token(struct holding *reservation, int64_t number,
                        struct span random);
bool holdings_has_token(const struct holding *reservation, int64_t number,
                        struct span random);

/* Whether a reservation of a lock that is not held yet would be refused. */
bool holdings_is_full(struct holdings *all, const struct account *account,
                      int64_t now_us);

/*
 * What was reserved turns out to be this lock, whatever the account may hold: a
 * permit's slots, a reader that has a token now. Takes the reservation, and
 * returns the one to be dropped instead; NULL: no memory, and it does not
 * count.
 */
struct holding *holdings_move(struct holdings *all, struct holding *reservation,
                              const struct holding_lock *lock);

/* What was reserved is held with this fencing token, until then, or until it
 * was held already. */
void holdings_grant(struct holdings *all, struct holding *reservation,
                    int64_t number, int64_t until_us);

/* The call is over. */
void holdings_drop(struct holdings *all, struct holding *reservation);

/* What was reserved is not held any more, unless it was granted again since,
 * with a higher number. */
void holdings_release(struct holdings *all, struct holding *reservation,
                      int64_t number);

/* Nor what anybody holds of names with this number; 0: what readers hold. A
 * lock that has other names, too, is held until each of them is forced. */
void holdings_force(struct holdings *all, struct span names, int64_t number);

#endif
