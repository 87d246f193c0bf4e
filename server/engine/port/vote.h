/*
 * What one node answered to one call, or why it did not.
 *
 * An answer is a fact about the lock on that node. Everything else is no vote:
 * it counts neither for nor against, and its name is shown to the client.
 */
#ifndef REDLOCKD_VOTE_H
#define REDLOCKD_VOTE_H

#include <stdbool.h>

#include "state.h"

enum vote {
    /* no reply yet */
    VOTE_PENDING, /* sent, not answered */

    /* answers */
    VOTE_GRANTED,  /* acquire, repair: the key was set */
    VOTE_EXTENDED, /* extend: the key had our token, its TTL covers the ttl */
    VOTE_DELETED,  /* release: the key had our token and is gone */
    VOTE_HELD,     /* the key has another value (inspect: a value) */
    VOTE_FREE,     /* no key: extend, release, inspect found none */
    VOTE_STALE,    /* acquire: a higher fencing number was accepted before */
    VOTE_DONE,     /* look, admit, readmit, revoke, listen: carried out */
    VOTE_CHANGED,  /* admit, readmit, revoke, repair: the node's state had
                      changed */

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

/* The stable name: "granted", "loading", … Static. */
const char *ballot_name(struct ballot ballot);

/* One sentence for people that explains it. Static. */
const char *ballot_detail(struct ballot ballot);

/* Ballots by number, 0 to BALLOT_KINDS - 1, for counters. */
enum { BALLOT_KINDS = (int)VOTE_UNFIT + (int)STATE_KINDS };
int ballot_number(struct ballot ballot);
struct ballot ballot_of_number(int number);

#endif
