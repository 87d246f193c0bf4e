/*
 * What one node answered to one call, or why it did not; and why a node does
 * not vote.
 *
 * An answer is a fact about the lock on that node. Everything else is no vote:
 * it counts neither for nor against, and its name is shown to the client.
 */
#ifndef REDLOCKD_VOTE_H
#define REDLOCKD_VOTE_H

#include <stdbool.h>

/*
 * The one reason why a node does not vote. Its name is shown to clients and in
 * GET /nodes.
 */
enum node_state {
    STATE_NONE, /* none is known: it may vote, and is shown as "voting" */

    /* errors that the node itself reports */
    STATE_LOADING,       /* LOADING: reading its dataset */
    STATE_READ_ONLY,     /* READONLY: a replica */
    STATE_MISCONFIGURED, /* MISCONF: it cannot persist, and refuses writes */
    STATE_OUT_OF_MEMORY, /* OOM: above maxmemory; it grants nothing new */
    STATE_BUSY,          /* BUSY: a script blocks it */
    STATE_NO_PERMISSION, /* NOPERM, NOAUTH, WRONGPASS */
    STATE_NO_SCRIPT,     /* NOSCRIPT: its script cache was flushed */
    STATE_TOO_MANY,      /* max number of clients reached */
    STATE_CLUSTER,       /* a node of a Redis Cluster */
    STATE_EVICTS,        /* it may evict keys when memory is short */
    STATE_TOO_OLD,       /* its version lacks what the script needs */
    STATE_FAILED,        /* any other error reply */
    STATE_GARBAGE,       /* what it sends is not a reply of Redis */

    /* the connection */
    STATE_UNREACHABLE, /* there is none */
    STATE_TLS_FAILED,  /* TLS with the node, or its certificate, fails */
    STATE_SILENT,      /* nothing was received for too long */
    STATE_MOVED,       /* the address now leads to another server */
    STATE_UNCONFIRMED, /* not confirmed as the server that its name leads to */
    STATE_DUPLICATE,   /* one server answers to two names */

    /* its admission */
    STATE_ADMITTING,   /* it is being checked */
    STATE_QUARANTINED, /* the node does not carry our admission */
    STATE_WAITING,     /* it is empty, and a first start may be possible */
    STATE_SUPERSEDED,  /* it carries a newer configuration than ours */
    STATE_FOREIGN,     /* it carries another configuration of our epoch */

    /* its clock */
    STATE_STEPPED,  /* it stepped */
    STATE_UNPROVEN, /* it has not been watched for long enough */
    STATE_SKEWED,   /* it is too far from the others */

    STATE_KINDS
};

enum vote {
    /* no reply yet */
    VOTE_PENDING, /* not answered; sent, or not yet */

    /* answers */
    VOTE_GRANTED,  /* acquire, repair: the key was set */
    VOTE_EXTENDED, /* extend: the key had our token, its TTL covers the ttl */
    VOTE_DELETED,  /* release: the key had our token and is gone */
    VOTE_HELD,     /* the key has another value (inspect: a value) */
    VOTE_FREE,     /* no key: extend, release, inspect found none */
    VOTE_UNASKED,  /* release: not asked, as it never got the acquire */
    VOTE_STALE,    /* acquire: a higher fencing number was accepted before */
    VOTE_DONE,     /* look, admit, readmit, revoke, listen: carried out */
    VOTE_CHANGED,  /* admit, readmit, revoke: the node's state had changed;
                      repair: what is missing had, or it follows another one */

    /* no votes: the fate of the call */
    VOTE_NOT_ADMITTED, /* the node does not carry our admission */
    VOTE_LATE,         /* the command reached the script after its deadline */
    VOTE_OUT_OF_RANGE, /* the number is too far from the node's clock */
    VOTE_KEY_REFUSED,  /* an ACL denies only this resource's key */
    VOTE_UNANSWERED,   /* no reply before the round's deadline */
    VOTE_DISCONNECTED, /* no connection, or it broke before the reply */
    VOTE_STALLED,      /* too many commands wait for a reply: not sent */
    VOTE_UNREADABLE,   /* not a reply that our script gives */
    VOTE_DISTRUSTED,   /* granted, but the node no longer qualified to vote */
    VOTE_UNFIT,        /* the node's state keeps it from voting: it was not
                          asked, answered an error, or does not count */

    VOTE_KINDS
};

/* A vote; for an unfit node its state, otherwise STATE_NONE. */
struct ballot {
    enum vote vote;
    enum node_state state;
};

/* The ballot of a node whose state keeps it from voting. */
static inline struct ballot ballot_unfit(enum node_state state)
{
    return (struct ballot){VOTE_UNFIT, state};
}

/* True for the answers: facts about the lock that may be counted. */
bool vote_is_answer(enum vote vote);

/*
 * True if a call with this ballot certainly changed nothing on the node. An
 * acquire with any other may have set the key, and is released.
 */
bool ballot_is_harmless(struct ballot ballot);

/*
 * True if a release with this vote need not be repeated: the node no longer has
 * such a key, or will not let us delete it.
 */
bool vote_ends_release(enum vote vote);

/*
 * The stable name: "granted", "loading", …, of a state "voting", "quarantined";
 * and one sentence for people that explains it. All static.
 */
const char *ballot_name(struct ballot ballot);
const char *ballot_detail(struct ballot ballot);
const char *state_name(enum node_state state);
const char *state_detail(enum node_state state);

/* Ballots by number, 0 to BALLOT_KINDS - 1, for counters. */
enum { BALLOT_KINDS = (int)VOTE_UNFIT + (int)STATE_KINDS };
int ballot_number(struct ballot ballot);
struct ballot ballot_of_number(int number);

#endif
