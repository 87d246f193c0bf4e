/*
 * What one node said, or failed to say, about one call.
 *
 * An answer is a fact about the lock on that node. Everything else is no vote:
 * it counts neither for nor against, and its name is shown to the client and
 * in GET /nodes.
 */
#ifndef REDLOCKD_VOTE_H
#define REDLOCKD_VOTE_H

#include <stdbool.h>

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

    /* no votes: the node is there, but does not vote */
    VOTE_QUARANTINED,   /* the node does not carry our admission */
    VOTE_LATE,          /* the command reached the script past its deadline */
    VOTE_SKEWED,        /* the number is too far from the node's clock */
    VOTE_LOADING,       /* LOADING: reading its dataset */
    VOTE_READ_ONLY,     /* READONLY: a replica */
    VOTE_MISCONFIGURED, /* MISCONF: it cannot persist, and refuses writes */
    VOTE_OUT_OF_MEMORY, /* OOM: above maxmemory */
    VOTE_BUSY,          /* BUSY: a script blocks it */
    VOTE_NO_PERMISSION, /* NOPERM, NOAUTH, WRONGPASS */
    VOTE_KEY_REFUSED,   /* an ACL denies this resource's key, and no more */
    VOTE_NO_SCRIPT,     /* NOSCRIPT: its script cache was flushed */
    VOTE_TOO_MANY,      /* max number of clients reached */
    VOTE_CLUSTER,       /* a node of a Redis Cluster */
    VOTE_EVICTS,        /* it may throw keys away when memory is short */
    VOTE_TOO_OLD,       /* its version lacks what the script needs */
    VOTE_MOVED,         /* the address leads to another server now */
    VOTE_FAILED,        /* any other error reply */

    /* no votes: the node may be there, but is not counted */
    VOTE_SUPERSEDED,  /* it carries a newer configuration than ours */
    VOTE_FOREIGN,     /* it carries another configuration of our epoch */
    VOTE_WAITING,     /* it is empty, and a first start may be possible */
    VOTE_DUPLICATE,   /* the same server stands behind two names */
    VOTE_UNCONFIRMED, /* not known to be the server that its name leads to */
    VOTE_STEPPED,     /* its clock stepped */
    VOTE_UNPROVEN,    /* its clock is not known for long enough */
    VOTE_DISTRUSTED,  /* granted, when the node could not be counted any more */

    /* no votes: nothing usable came */
    VOTE_SILENT,      /* no reply before the round's deadline */
    VOTE_UNREACHABLE, /* no connection, or it broke before the reply */
    VOTE_STALLED,     /* too many commands wait for a reply: not sent */
    VOTE_GARBAGE,     /* a reply that no script of ours gives */

    VOTE_KINDS
};

/* True for the answers: facts about the lock that may be counted. */
bool vote_is_answer(enum vote vote);

/*
 * True if a call with this vote certainly changed nothing on the node. An
 * acquire with any other vote may have set the key, and is released.
 */
bool vote_is_harmless(enum vote vote);

/*
 * True if a release with this vote need not be repeated: the node has no such
 * key any more, or will not let us delete it.
 */
bool vote_ends_release(enum vote vote);

/* The stable name: "granted", "quarantined", … Static. */
const char *vote_name(enum vote vote);

/* One sentence for people: what it means. Static. */
const char *vote_detail(enum vote vote);

#endif
