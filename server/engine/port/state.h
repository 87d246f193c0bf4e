/*
 * The one reason why a node does not vote. Its name is shown to clients and in
 * GET /nodes.
 */
#ifndef REDLOCKD_STATE_H
#define REDLOCKD_STATE_H

enum node_state {
    STATE_NONE, /* none is known: it may vote, and is shown as "voting" */

    /* errors that the node itself reports */
    STATE_LOADING,       /* LOADING: reading its dataset */
    STATE_READ_ONLY,     /* READONLY: a replica */
    STATE_MISCONFIGURED, /* MISCONF: it cannot persist, and refuses writes */
    STATE_OUT_OF_MEMORY, /* OOM: above maxmemory */
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

/* The stable name: "voting", "quarantined", … Static. */
const char *state_name(enum node_state state);

/* One sentence for people that explains it. Static. */
const char *state_detail(enum node_state state);

#endif
