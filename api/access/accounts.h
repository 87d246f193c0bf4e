/*
 * What each identity did on this server, beside what it may do. An account
 * outlives the reload of the file as long as its identity is in it, and longer
 * while locks are counted on it, or requests have places of it.
 */
#ifndef REDLOCKD_ACCOUNTS_H
#define REDLOCKD_ACCOUNTS_H

#include <stdio.h>

#include "../../server/base/log.h"
#include "holdings.h"
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

/* Those that one identity has, or all together. */
struct places {
    int taken[PLACES];
};

struct account {
    const struct identity *identity; /* NULL: it is not in the file any more */
    int number; /* from 1 to IDENTITIES_MAX; its own while it is in the file */
    uint32_t since; /* the reading of the file that brought its credential */
    struct bucket requests;
    struct bucket refusals; /* those that were answered at once */
    struct log_limit told;  /* of refusals that the audit log tells of */
    struct holder holder;
    uint64_t results[ACCOUNT_RESULTS]; /* requests */
    struct places places;
    struct account *next_gone;
};

struct accounts {
    struct identities *identities; /* owned; NULL: none yet */
    uint32_t reads;                /* of the file, with success */
    struct account **list;         /* by the identities' numbers */
    struct account *gone;          /* that are still used */
    int last_number;               /* that was given to a new one */
};

/*
 * Takes identities, which it frees later. New ones get an account, those that
 * were there keep theirs. False: no memory, and nothing has changed.
 */
bool accounts_set(struct accounts *all, struct identities *identities,
                  int64_t now_us);

/* Writes their metrics. False: some are missing. */
bool accounts_print(const struct accounts *all, FILE *out);

/* Frees all; no lock is counted any more. */
void accounts_fini(struct accounts *all);

#endif
