/*
 * The attempts of an operation: what one sends, and what is released after it.
 * operation.h decides whether there is another one.
 *
 * Each attempt to acquire has its own token, so that the release of a lost
 * attempt, however late, never deletes the lock of a later one.
 *
 * An acquire that finds the lock held with its own key hash repeats an earlier
 * one, whose answer may be lost or in use. The next attempt takes the place of
 * its tokens, and is not undone there: that would take the lock from a client
 * that goes by the earlier answer. What a lost one leaves ends with its TTL.
 */
#ifndef REDLOCKD_ATTEMPT_H
#define REDLOCKD_ATTEMPT_H

#include "../../lock/lock.h"
#include "../port/environment.h"
#include "../voting/nodes.h"
#include "releases.h"
#include "round.h"

/* What a client asks. */
struct request {
    enum lock_call call;
    bool only_looks; /* extend: asks who has the lock, lengthens nothing */
    int64_t ttl_ms;
    int64_t number; /* force: of the lock */
    uint16_t heard; /* bit per node: decide nothing before it answered */
    struct span resource;
    struct span owner;
    struct span key_hash;
    int64_t asked_us; /* when it was asked, by the nodes' clocks; 0: unknown */
};

/* The newest attempt; of earlier ones only seen_number remains. */
struct attempt {
    int number;             /* from 1 on; 0: none has begun */
    int64_t seen_number;    /* acquire: that of the round under way, or what
                               nodes have accepted since */
    bool is_repeat;         /* acquire: takes the place of earlier tokens … */
    int64_t replaces;       /* … with its key hash, up to this number */
    int64_t replacing;      /* the same, of the round under way */
    uint16_t fresh;         /* … but none on these nodes, a bit each, where it
                               was set, and has yet to be undone */
    int64_t uncertainty_us; /* its calls may run this much later */
    struct round round;
    size_t token_len;
    char token[TOKEN_MAX];
};

/* What an attempt needs; borrowed. */
struct attempt_means {
    const struct environment *env;
    struct nodes *nodes;
    struct releases *releases;
};

/*
 * Extending past max_hold_ms is refused. But only the owner of the lock may
 * learn that: so the round first asks for the token, without lengthening.
 */
bool attempt_is_held_too_long(const struct attempt_means *means,
                              struct span token, int64_t ttl_ms);

/* None has begun. token: the client's; empty for an acquire. */
void attempt_init(struct attempt *attempt, struct span token);

/*
 * Begins the next attempt, of anything but a release, and sends its calls. The
 * tags of the calls name operation.
 */
void attempt_begin(struct attempt *attempt, const struct attempt_means *means,
                   const struct request *request, const void *operation);

/*
 * The only one of a release, and the last one of a force. False: no memory, and
 * nothing was sent.
 */
bool attempt_release(struct attempt *attempt, const struct attempt_means *means,
                     const struct request *request, const void *operation);

/*
 * The admission of a node is known now, or known to be lost: sends it the call
 * that it refused, or was to get. Without an operation, whose outcome has been
 * told, nothing is sent. False: it had nothing to get.
 */
bool attempt_ask_again(struct attempt *attempt,
                       const struct attempt_means *means,
                       const struct request *request, int node,
                       const void *operation);

/* What nodes answered from a memory that is outdated no longer counts. */
void attempt_drop_outdated(struct attempt *attempt,
                           const struct attempt_means *means);

/* After a won look of a force: the lock's token becomes that of the attempt. */
void attempt_take_wanted(struct attempt *attempt);

/* Goes on waiting for the same calls, for another timeout. */
void attempt_wait_on(struct attempt *attempt, const struct attempt_means *means,
                     const struct request *request);

/*
 * After a lost acquire: the next attempt takes the place of one with the same
 * key, if that was granted before this one was asked. False: there is none. Of
 * two that are under way together only one has the lock.
 */
bool attempt_make_repeat(struct attempt *attempt,
                         const struct request *request);

/*
 * As round_note_reply. But a node that has just heard of another one's mark
 * refuses what was sent before: its admission is being read, and it is asked
 * again.
 */
void attempt_note_reply(struct attempt *attempt,
                        const struct attempt_means *means, int node,
                        const struct call_reply *reply);

/*
 * Releases a lost acquire on all nodes that may have set the key; a repeat only
 * where it is known to have replaced nothing. To be called again when a repeat
 * has got more replies.
 */
void attempt_undo(struct attempt *attempt, const struct attempt_means *means,
                  const struct request *request);

/* As round_validity_ms. */
int64_t attempt_validity_ms(const struct attempt *attempt,
                            const struct attempt_means *means,
                            const struct request *request, int64_t now_us);

static inline struct span attempt_token(const struct attempt *attempt)
{
    return (struct span){attempt->token, attempt->token_len};
}

#endif
