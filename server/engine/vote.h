/*
 * What one node said, or failed to say, about one call.
 *
 * An answer is a fact about the lock on that node. Everything else is no vote:
 * it counts neither for nor against, and its name is shown to the client.
 */
#ifndef REDLOCKD_VOTE_H
#define REDLOCKD_VOTE_H

#include <stdbool.h>

#include "state.h"

enum vote {
    /* not yet */
    VOTE_PENDING, /* sent, nothing came back so far */

    /* answers */
    VOTE_GRANTED,  /* acquire, repair: the key was set */
    VOTE_EXTENDED, /* extend: the key had our token, its TTL covers the ttl */
    VOTE_DELETED,  /* release: the key had our token and is gone */
    VOTE_HELD,     /* the key has another value (inspect: a value) */
    VOTE_FREE,     /* no key: extend, release, inspect found none */
    VOTE_STALE,    /* acquire: a higher fencing number was accepted before */
    VOTE_DONE,     /* look, admit, readmit, revoke: it was carried out */
    VOTE_CHANGED,  /* admit, readmit, revoke, repair: the node's state was
                      another */

    /* no votes: what became of the call */
    VOTE_QUARANTINED, /* the node does not carry our admission */
    VOTE_LATE,        /* the command reached the script past its deadline */
    VOTE_SKEWED,      /* the number is too far from the node's clock */
    VOTE_KEY_REFUSED, /* an ACL denies this resource's key, and no more */
    VOTE_SILENT,      /* no reply before the round's deadline */
    VOTE_UNREACHABLE, /* no connection, or it broke before the reply */
    VOTE_STALLED,     /* too many commands wait for a reply: not sent */
    VOTE_GARBAGE,     /* a reply that no script of ours gives */
    VOTE_DISTRUSTED,  /* granted, when the node could not be counted any more */
    VOTE_UNFIT,       /* the node's state keeps it from voting: it was not
                         asked, answered an error, or is not to be counted */

    VOTE_KINDS
};

/* A vote, and of an unfit node its state; else STATE_VOTING. */
struct ballot {
    enum vote vote;
    enum node_state state;
};

/* Of a node that this state keeps from voting. */
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
 * True if a release with this vote need not be repeated: the node has no such
 * key any more, or will not let us delete it.
 */
bool vote_ends_release(enum vote vote);

/* The stable name: "granted", "loading", … Static. */
const char *ballot_name(struct ballot ballot);

/* One sentence for people: what it means. Static. */
const char *ballot_detail(struct ballot ballot);

/* Ballots by number, 0 to BALLOT_KINDS - 1, for counters. */
enum { BALLOT_KINDS = (int)VOTE_UNFIT + (int)STATE_KINDS };
int ballot_number(struct ballot ballot);
struct ballot ballot_of_number(int number);

#endif
