/*
 * The calls of the lock service, over all of its replicas: what a good client
 * does, see docs/clients.md.
 */
#ifndef REDLOCKCTL_SERVICE_H
#define REDLOCKCTL_SERVICE_H

#include "../api/message/id.h"
#include "../server/base/types.h"
#include "../server/lock/lock.h"
#include "answer.h"
#include "credentials.h"
#include "http.h"
#include "options.h"
#include "verdict.h"

enum {
    SERVICE_KEY_BYTES = 16, /* at random */
};

#define SERVICE_KEY_NAME "Idempotency-Key: "

struct service {
    struct http *http;
    const struct options *options; /* the replicas, and what to acquire */
    const struct wake *wake;
    struct credentials *credentials;
    bool outlasts_denials;           /* a denial may pass: it is asked again */
    int current;                     /* the replica to ask first */
    char detail[ANSWER_DETAIL_SIZE]; /* of the last answer, for people */
    /* of the last acquire */
    char key_header[sizeof SERVICE_KEY_NAME + (size_t)2 * SERVICE_KEY_BYTES];
    bool may_be_granted; /* by a request whose answer does not tell */
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
bool service_open(struct service *service, const struct options *options,
                  const struct wake *wake, struct credentials *credentials);
void service_close(struct service *service);

/*
 * Each of these fills body if there is an answer, unless body is NULL; the
 * caller json_decrefs it. Without VERDICT_DONE, detail says why.
 */

/* Acquires what the options name, and waits as long as they say. */
enum verdict service_acquire(struct service *service, struct lock *lock,
                             json_t **body);

/*
 * After VERDICT_STOPPED of an acquire: the lock is not wanted any more. A
 * closed connection does not tell the server, as not every proxy passes it on:
 * so it is asked for once more with its key, and released. False: that has
 * failed until give_up_us.
 */
bool service_give_back(struct service *service, int64_t give_up_us);

/*
 * Extends lock, whose id, token and until_us are known. Asks until give_up_us,
 * but each replica at least once. If the options say shared, an exclusive lock
 * becomes a shared one, and has another token.
 */
enum verdict service_extend(struct service *service, struct lock *lock,
                            int64_t give_up_us, json_t **body);

/*
 * After VERDICT_FINAL of an extend: acquires lock, which must be that of the
 * last acquire, once more with its key. Nobody has it in between if that comes
 * before its validity ends, in place of the earlier grant: VERDICT_DONE, and
 * lock has its new token. VERDICT_LOST: somebody may have had it, and lock is
 * the new grant, if there is one. Otherwise the old validity stands, but the
 * lock may have another token, which nobody knows. Asks until give_up_us, but
 * once at least.
 */
enum verdict service_renew_hold(struct service *service, struct lock *lock,
                                int64_t give_up_us);

/*
 * Asks until give_up_us, but each replica at least once. is_repeated: an
 * earlier answer was lost, so that VERDICT_LOST may mean success.
 */
enum verdict service_release(struct service *service, const char *id,
                             const char *token, int64_t give_up_us,
                             bool *is_repeated, json_t **body);

/*
 * Any other call, of which method, path, kind and id are given, once at each
 * replica. wait_ms: how much later the answer may come, as the replica waits.
 */
enum verdict service_ask(struct service *service, struct question *question,
                         int64_t wait_ms, json_t **body);

#endif
