/*
 * The attempts of an operation: each sends the calls of one round, and releases
 * a lost one. operation.h decides whether another attempt follows.
 *
 * Each attempt to acquire has its own token, so that the release of a lost
 * attempt, however late, never deletes the lock of a later one.
 *
 * An acquire that finds the lock held with its own key hash repeats an earlier
 * acquire, whose answer may be lost or in use. (A shared one finds no other
 * holders, so each of its attempts may be a repeat; where a reader with its key
 * is later, nodes tell the number.) The next attempt replaces
 * the earlier tokens, and is not undone where it did so: that would take the
 * lock from a client that relies on the earlier answer. If it is lost, the keys
 * that it set expire with their TTL, unless a later attempt replaces them: of a
 * shared lock the attempts of one request have tokens that begin alike, by
 * which nodes tell them from those of other requests with its key.
 */
#ifndef REDLOCKD_ATTEMPT_H
#define REDLOCKD_ATTEMPT_H

#include "../../lock/lock.h"
#include "../port/port.h"
#include "../port/token.h"
#include "../voting/nodes.h"
#include "releases.h"
#include "round.h"
#include "spreads.h"

/* Who asks, and learns the outcome. */
enum request_owner {
    OWNER_CLIENT, /* port.answer */
    OWNER_WAITER,
    OWNER_LOOK, /* a waiter's inspection */
    OWNER_LISTING,
    OWNER_PERMIT,
    OWNER_WATCH, /* the inspection of a lock that is watched */
    OWNERS
};

/*
 * What is asked for, on its way from the facade to the attempts. An operation
 * keeps its own copy.
 */
struct request {
    enum lock_call call;
    bool only_looks; /* extend: checks the token, does not lengthen */
    struct span resource;
    struct span token; /* extend, release */
    struct span owner;
    struct span key_hash;
    int64_t ttl_ms;
    bool is_shared;    /* acquire: others may hold it as well; extend: from
                          now on */
    bool only_repeats; /* acquire of a shared lock with a key: in place of an
                          earlier reader, or not at all */
    bool is_choice;    /* acquire: after split votes its owner goes on, or its
                          outcome is due at once */
    int64_t number;    /* force: of the lock; 0: of all readers */
    int64_t asked_us; /* time of the request by the nodes' clocks; 0: unknown */
    /* acquire of a shared lock with a key: TOKEN_NONCE_BYTES with which the
       tokens of its earlier tries begin; NULL: there were none */
    const unsigned char *nonce;
    uint16_t own;   /* bit per node: an earlier try may be there */
    uint16_t heard; /* bit per node: no verdict before its answer */
    enum request_owner owned_by;
    void *client;
};

/* Used by each attempt; borrowed. */
struct attempt_means {
    const struct environment *env;
    struct nodes *nodes;
    struct spreads *spreads;
    struct releases *releases;
};

/*
 * A forced release: which tokens the nodes reported, which of them are
 * released, and what the nodes answered.
 *
 *   look ──→ release what was found ──→ answer
 *     ↑                 │
 *     └─────────────────┘ a node has more holders than it reported
 *
 * Only tokens are released, never "all up to a number": so a lock that is
 * granted later is safe, however late a node is asked again, and whatever the
 * clocks of servers show. What was there at a look, on any node, is released on
 * all nodes. A shared and an exclusive form of one token, which a downgrade may
 * leave, are one lock.
 *
 * A release of all readers waits for each node's report. It leaves a token that
 * is nowhere shared: it is a writer's. An acquire that has reached a node by
 * the look counts as there, though its client may be told of the grant later:
 * how long that takes is up to another server. So no lock is released whose
 * acquire began after the answer.
 *
 * A node reports CALL_TOKENS_TOLD tokens at a time, those that end first, and
 * these are then released: so each look finds others, until no node has more
 * than it reports. Readers who come meanwhile are released, too. If they come
 * faster than that, the outcome is unknown after four times as many looks as
 * the first readers needed.
 */
/* A node's answers to the releases of one round. */
struct forced_tally {
    int due;
    struct ballot ballot; /* of those that have come */
};

struct forced {
    struct forced_token *tokens;
    int count;
    int room;
    int next;          /* where the next token of a report probably is */
    int64_t left;      /* holders that the node with the most did not report */
    int looks;         /* so far */
    int looks_max;     /* known after the first */
    bool is_releasing; /* the round under way releases what was found */
    bool has_released; /* a round has */
    unsigned asking;   /* which releases are those of the round */
    struct forced_tally tally[NODES_MAX];
};

/* The newest attempt; of earlier ones only seen_number remains. */
struct attempt {
    const struct attempt_means *means;
    const struct request *request;
    const void *operation;  /* the tags refer to it */
    int number;             /* from 1 on; 0: none has begun */
    int64_t seen_number;    /* acquire: the number of the round under way, or a
                               higher one that nodes have accepted since */
    bool is_repeat;         /* acquire: replaces earlier tokens with its key
                               hash */
    int64_t replaces;       /* the greatest number that the next round replaces
                             */
    int64_t replacing;      /* the same, of the round under way */
    uint16_t fresh;         /* bit per node: set there, without replacing
                               anything, and not undone yet */
    uint16_t own;           /* bit per node: an earlier attempt may be there, or
                               may have been until this one came */
    int64_t uncertainty_us; /* its calls may run so long after the deadline */
    struct forced *forced;  /* force; otherwise NULL */
    bool has_nonce;         /* of a shared lock with a key: known by now */
    unsigned char nonce[TOKEN_NONCE_BYTES];
    struct round round;
    size_t token_len;
    char token[TOKEN_MAX];
};

/*
 * True if an extension would exceed max_hold_ms. It is refused, but only the
 * owner may learn why: the round checks the token, without lengthening.
 */
bool attempt_is_held_too_long(const struct attempt_means *means,
                              struct span token, int64_t ttl_ms);

/*
 * None has begun. request and operation are borrowed. token: the client's;
 * empty for an acquire. attempt_init_force: false if there is no memory.
 */
void attempt_init(struct attempt *attempt, const struct attempt_means *means,
                  const struct request *request, const void *operation,
                  struct span token);
bool attempt_init_force(struct attempt *attempt);
void attempt_fini(struct attempt *attempt);

/* Begins the next attempt, of any call but a release, and sends it. */
void attempt_begin(struct attempt *attempt);

/* After a look of a force that found something: its release follows. */
void attempt_end_look(struct attempt *attempt);

/*
 * Begins the only attempt of a release, or one of a force, for what the look
 * found. False: no memory, and nothing was sent.
 */
bool attempt_release(struct attempt *attempt);

/* Asks the nodes that the round has not asked. */
void attempt_widen(struct attempt *attempt);

/* After a grant: the nodes that have not granted get the lock later. */
void attempt_begin_spread(struct attempt *attempt);

/* All votes are known, of a grant or an extension: likewise. */
void attempt_spread(struct attempt *attempt);

/*
 * The admission of a node has been read, or is lost: sends the node the call
 * that it refused, or that was held back. is_decided: the outcome is known, and
 * nothing is sent. False: no call was held back.
 */
bool attempt_ask_again(struct attempt *attempt, int node, bool is_decided);

/* Votes of nodes whose memory is outdated no longer count. */
void attempt_drop_outdated(struct attempt *attempt);

/* Waits for the same calls for another timeout. */
void attempt_wait_on(struct attempt *attempt);

/*
 * After a lost acquire: makes the next attempt replace the token of an acquire
 * with the same key, if that was granted before this request. False: there is
 * none. Of two acquires at the same time only one gets the lock.
 */
bool attempt_make_repeat(struct attempt *attempt);

/*
 * For a round that is not decided. True: the node had lost our script, so the
 * call changed nothing; it was sent once more, behind the script. Like a call
 * that was long on its way, it has the round's deadline.
 */
bool attempt_repeat(struct attempt *attempt, int node,
                    const struct call_reply *reply);

/*
 * As round_note_reply. But a node whose admission has just changed refuses
 * calls that were sent before. If its admission is being read, the vote stays
 * pending, and the node is asked again.
 */
void attempt_note_reply(struct attempt *attempt, int node,
                        const struct call_reply *reply);

/*
 * A reply to a release of this number (struct forced), of a client's token or
 * of one of many that are forced. True: it is the node's vote in the round.
 */
bool attempt_note_release(struct attempt *attempt, int node, unsigned asking,
                          const struct call_reply *reply);

/* After a grant: whether it replaced an earlier lock with the same key. */
bool attempt_has_replaced(const struct attempt *attempt);

/*
 * Releases a lost acquire on all nodes that may have set the key; a repeat only
 * where it certainly replaced nothing. Called again as a repeat gets replies.
 */
void attempt_undo(struct attempt *attempt);

/* As round_validity_ms. */
int64_t attempt_validity_ms(const struct attempt *attempt, int64_t now_us);

static inline struct span attempt_token(const struct attempt *attempt)
{
    return (struct span){attempt->token, attempt->token_len};
}

#endif
