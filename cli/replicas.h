/* SPDX-License-Identifier: MIT */
/*
 * The calls of the lock service, over all of its replicas: what a good client
 * does, see docs/client-authors.md.
 */
#ifndef REDLOCKCTL_REPLICAS_H
#define REDLOCKCTL_REPLICAS_H

#include "../api/message/id.h"
#include "../server/base/types.h"
#include "../server/lock/lock.h"
#include "answer.h"
#include "credentials.h"
#include "fetch.h"
#include "options.h"

enum {
    REPLICAS_KEY_BYTES = 16, /* at random */
};

#define REPLICAS_KEY_NAME "Idempotency-Key: "

struct replicas {
    struct fetch *fetch;
    const struct options *options; /* the replicas, and what to acquire */
    struct wake *wake;
    struct credentials *credentials;
    bool outlasts_denials; /* a denial may pass: it is asked again */
    int current;           /* the replica to ask first */
    json_t *body; /* of the last answer, until the next call; NULL: none */
    char detail[ANSWER_DETAIL_SIZE]; /* without ANSWER_DONE: why, for people */
    /* of the last acquire */
    char key_header[sizeof REPLICAS_KEY_NAME + (size_t)2 * REPLICAS_KEY_BYTES];
    bool may_be_granted; /* by a request whose answer does not tell */
    /* of the last release: an earlier answer of it was lost, so that
     * ANSWER_LOST may mean success */
    bool is_repeated;
};

struct lock {
    char id[ID_MAX + 1];
    char token[TOKEN_MAX + 1];
    int64_t fencing_token;
    int64_t until_us;    /* of clock_now_us(): ours until then */
    int64_t renew_us;    /* a good moment to extend */
    int64_t max_hold_ms; /* by extending it; 0: without limit, or not told */
    char slots[NAMES_MAX * sizeof "999"]; /* with a limit; parted by spaces */
};

/*
 * All of these must outlive the service. Opens no connection yet. False: no
 * memory.
 */
bool replicas_open(struct replicas *replicas, const struct options *options,
                   struct wake *wake, struct credentials *credentials);
void replicas_close(struct replicas *replicas);

/* Acquires what the options name, and waits as long as they say. */
enum answer replicas_acquire(struct replicas *replicas, struct lock *lock);

/*
 * After an acquire that a signal stopped: the lock is not wanted any more. A
 * closed connection does not tell the server, as not every proxy passes it on:
 * so it is asked for once more with its key, and released, within
 * REPLICAS_GIVE_BACK_US. Another signal ends that at once.
 */
enum { REPLICAS_GIVE_BACK_US = 2000000 };
void replicas_give_back(struct replicas *replicas);

/*
 * Extends lock, whose id, token and until_us are known. Asks until give_up_us,
 * but each replica at least once. If the options say shared, an exclusive lock
 * becomes a shared one, and has another token.
 */
enum answer replicas_extend(struct replicas *replicas, struct lock *lock,
                            int64_t give_up_us);

/*
 * After ANSWER_FINAL of an extend: acquires lock, which must be that of the
 * last acquire, once more with its key. Nobody has it in between if that comes
 * before its validity ends, in place of the earlier grant: ANSWER_DONE, and
 * lock has its new token. ANSWER_LOST: somebody may have had it, and lock is
 * the new grant, if there is one. Otherwise the old validity stands, but the
 * lock may have another token, which nobody knows. Asks until give_up_us, but
 * once at least.
 */
enum answer replicas_renew_hold(struct replicas *replicas, struct lock *lock,
                                int64_t give_up_us);

/* Asks until give_up_us, but each replica at least once. */
enum answer replicas_release(struct replicas *replicas, const char *id,
                             const char *token, int64_t give_up_us);

/*
 * Any other call, of which method, path, kind and id are given, once at each
 * replica. wait_ms: how much later the answer may come, as the replica waits.
 */
enum answer replicas_ask(struct replicas *replicas, struct question *question,
                         int64_t wait_ms);

#endif
