/* SPDX-License-Identifier: MIT */
/*
 * What a node is asked and what it answers: the border between the engine and
 * the connections to the nodes.
 */
#ifndef REDLOCKD_CALL_H
#define REDLOCKD_CALL_H

#include "../../base/types.h"
#include "../../lock/lock.h"

/* ---- votes --------------------------------------------------------------- */

/* The one reason why a node does not vote. Clients and GET /nodes see its
 * name. */
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
    STATE_OTHER,       /* it carries another configuration of our epoch */

    /* its clock */
    STATE_STEPPED,  /* it stepped */
    STATE_UNPROVEN, /* it has not been watched for long enough */
    STATE_SKEWED,   /* it is too far from the others */

    STATE_KINDS
};

/*
 * What a node answered to one call, or why it did not. An answer is a fact
 * about the lock on that node. Everything else is no vote: it counts neither
 * for nor against, and the client sees its name.
 */
enum vote {
    /* no reply yet */
    VOTE_PENDING, /* not answered; sent, or not yet */

    /* answers */
    VOTE_GRANTED,  /* acquire, replicate: the key was set */
    VOTE_EXTENDED, /* extend: the key had our token, its TTL covers the ttl */
    VOTE_DELETED,  /* release: the key had our token and is gone */
    VOTE_HELD,     /* the key has another value (inspect: a value) */
    VOTE_FREE,     /* no key: extend, release, inspect found none */
    VOTE_UNASKED,  /* release: not asked, as it never got the acquire */
    VOTE_STALE,    /* acquire: a higher fencing token was accepted before */
    VOTE_DONE,     /* probe, admit, readmit, revoke, listen: carried out */
    VOTE_CHANGED,  /* admit, readmit, revoke: the node's state had changed;
                      replication: what is missing had, or it follows another one
                    */

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

/* True if a call with this ballot certainly changed nothing on the node. An
 * acquire with any other may have set the key, and is released. */
bool ballot_is_harmless(struct ballot ballot);

/* True if a release with this vote need not be repeated: the node no longer has
 * such a key, or will not let us delete it. */
bool vote_ends_release(enum vote vote);

/* The stable name, as "granted" or "quarantined", and one sentence for people
 * that explains it. All static. */
const char *ballot_name(struct ballot ballot);
const char *ballot_detail(struct ballot ballot);
const char *state_name(enum node_state state);
const char *state_detail(enum node_state state);

/* Ballots by number, 0 to BALLOT_KINDS - 1, for counters. */
enum { BALLOT_KINDS = (int)VOTE_UNFIT + (int)STATE_KINDS };
int ballot_number(struct ballot ballot);
struct ballot ballot_of_number(int number);

/* ---- calls and replies --------------------------------------------------- */

enum {
    CALL_STATE_MAX = 192,     /* bytes of an admission or a quarantine record */
    CALL_NONCE_MAX = 16,      /* 10 digits, ":" and "first" or nothing */
    CALL_NAME_LEN = 16,       /* hex digits of a node's name */
    INCARNATION_LEN = 26,     /* digits: a time, and chance */
    CALL_LISTEN_US = 3000000, /* outlives two listen calls that are lost */
    CALL_SCAN_MAX = 32000,    /* bytes that a scan finds; it stops at half */
    CALL_TOKENS_REPORTED = 100, /* at most, by one call */
    CALL_TRACE_MAX = 80,        /* a replication ID and two numbers */
    CALL_WITNESSES_MAX =
        (NODES_MAX - 1) * 2 * (1 + CALL_NAME_LEN + INCARNATION_LEN + 2),
};

enum call_kind {
    CALL_PROBE,     /* reads the permission to vote; quarantines if none */
    CALL_ADMIT,     /* gives the permission to a node that has none */
    CALL_READMIT,   /* returns it to a restarted node */
    CALL_REVOKE,    /* takes it away */
    CALL_ACQUIRE,   /* sets the lock */
    CALL_REPEAT,    /* the same, in place of an earlier one with the same key */
    CALL_EXTEND,    /* lengthens its TTL */
    CALL_REPLICATE, /* sets it where it is missing */
    CALL_RELEASE,   /* deletes it */
    CALL_INSPECT,   /* reads value and TTL */
    CALL_TOKENS,    /* reads the tokens of all holders, page by page */
    CALL_LISTEN,    /* lets releases be announced for a while */
    CALL_SCAN,      /* finds keys that may be locks */
    CALL_SLOTS,     /* tells which slots of a pool are free */
    CALL_KINDS
};

/*
 * One call. The spans are borrowed until it is added to a batch. The comments
 * say which kinds use a field; times named node are by the node's clock.
 */
struct call {
    enum call_kind kind;
    struct span resource;   /* acquire, repeat, extend, replicate, release,
                               inspect, tokens: one name or several, see
                               names.h;
                               scan: what the names begin with;
                               slots: the pool, with NAMES_SLOT */
    struct span token;      /* acquire, repeat, extend, replicate, release */
    struct span admit;      /* all: the admission that the node must carry */
    struct span nonce;      /* probe (empty: quarantine nothing), revoke */
    struct span found;      /* readmit, revoke: the older admit there */
    struct span quarantine; /* admit, readmit: the quarantine record there */
    struct span dead;       /* admit, readmit: "epoch:fingerprint:" of the names
                               that it follows */
    /* probe, admit, readmit: "name=generation mname=incarnation " of each other
     * node, both in INCARNATION_LEN digits */
    struct span witnesses;
    struct span latest; /* probe, revoke: the latest incarnation known of it */
    struct span trace;  /* probe: that of the last probe on this connection;
                           empty: there was none */
    int64_t max_ttl_ms; /* probe, admit */
    int64_t
        high_water;    /* probe, admit, readmit: the highest generation known */
    int64_t median_us; /* admit, readmit: of the clocks; 0: unknown */
    bool is_durable;   /* probe, admit, readmit */
    bool is_objecting; /* probe: to a first start */
    bool is_renewing;  /* probe: a node whose incarnation is before latest is
                          quarantined anew */
    bool is_watching;  /* probe: writes nothing; without a nonce */
    bool is_established; /* probe: a node was seen admitted with this epoch,
                            or the other servers are stopped */
    bool is_early;       /* acquire: is not undone; strictly in time */
    int64_t ttl_ms; /* acquire, repeat, extend (0: it only checks), replicate */
    int64_t number; /* acquire, repeat, replicate: the token's, in µs;
                       tokens: only those with this number, 0: all;
                       admit: above all that it may have lost */
    /* acquire, repeat, extend, replicate: LATE after it */
    int64_t node_deadline_us;
    int64_t window_us; /* acquire, repeat, replicate: of number and clock */
    uint16_t buckets[NAMES_MAX]; /* acquire, repeat, extend, replicate, release:
                                  of each name, 0 … FENCE_BUCKETS - 1 */
    int64_t seen;    /* replicate: which of the names were missing, a bit each;
                        repeat: the highest number that it may replace;
                        acquire: 0 */
    int readers_max; /* acquire, repeat: of a shared lock; 0: it may only
                        replace one of them */
    int64_t tombstone_ms; /* replicate: how long no other one may follow it;
                             release: how long no replication may; 0: it may */
    int64_t listen_us;    /* listen: for how long, mostly CALL_LISTEN_US */
    int64_t cursor;       /* scan: where to go on; 0: begin */
    int count; /* scan: how many names are enough; slots: how many to tell */
    struct span key_hash; /* slots: those that have it are told; or empty */
};

/* The state that a probe found; scripts/permission.lua explains the words. */
enum call_probe_word {
    PROBE_ADMITTED,
    PROBE_SUPERSEDED,
    PROBE_OTHER,
    PROBE_MISNAMED,
    PROBE_EMPTY,
    PROBE_BARE,
    PROBE_FRESH,
    PROBE_CREATED,
    PROBE_QUARANTINED,
    PROBE_WORDS
};

struct call_probe {
    enum call_probe_word word;
    struct span admit; /* the node's; empty: none */
    struct span quarantine;
    int64_t max_ttl_ms;    /* the greatest that was ever allowed there */
    bool is_durable;       /* its data has been, ever since its admission */
    int64_t generation;    /* rises with promises and with probes that find it
                              admitted */
    int64_t rest_us;       /* until all that it has promised has ended */
    int64_t number;        /* it has accepted none above this one */
    bool is_full;          /* it is above maxmemory, and sets no new lock */
    struct span witnesses; /* the digits of what it knows of those in the call,
                              in the same order */
    struct span taken;  /* the admission from which the node was taken, or would
                           be by a quarantine record; empty: none of this data */
    struct span passed; /* "epoch:fingerprint:" of each quarantine record since,
                           but the last one; then, of lower epochs than it was
                           taken from, or of a node with an admission of the
                           caller's, of all names that it knows as dead */
    struct span trace;  /* for the next probe on this connection: shows that the
                           data is the same, if its replication ID is not */
};

/* The parts of an admission or a quarantine record, which colons divide. */
enum call_state_part {
    CALL_STATE_EPOCH,
    CALL_STATE_FINGERPRINT,
    CALL_STATE_NAME,
    CALL_STATE_INCARNATION,
    CALL_STATE_NEWS, /* of a quarantine record: "first", or nothing */
    CALL_STATE_RUN_ID,
};

/* Empty: the state has no such part. */
static inline struct span call_state_part(struct span state,
                                          enum call_state_part part)
{
    for (int i = 0; i < (int)part; i++)
        (void)span_take(&state, ':');
    return span_take(&state, ':');
}

/* Facts from a handshake with a node. Texts are borrowed in the callback. */
struct node_facts {
    const char *run_id;      /* 40 hex digits */
    bool is_durable;         /* it forgets nothing that it has answered */
    const char *not_durable; /* why it may, in words; "" or NULL: no reason */
    const char *lacks;  /* rights and commands that it votes without, in words;
                           "" or NULL: none */
    const char *evicts; /* why it may evict locks: so it gets no calls that ask
                           for a vote; "" or NULL: it does not */
    bool has_moved;     /* up: the last connection led to another address */
    int64_t certificate_until_s; /* when the certificate that it showed ends,
                                    Unix time; 0: it showed none */
    /* When the name lookup that led here began; 0: the lookup failed, and this
       is the last good address. */
    int64_t confirmed_us;
    int64_t node_now_us; /* the reply to TIME */
    int64_t sent_us;     /* clock_now_us() when TIME was sent */
    int64_t received_us; /* clock_now_us() when the reply was read */
};

/* What is told of a slot. */
enum call_slot {
    CALL_SLOT_FREE = '0',
    CALL_SLOT_TAKEN = '1',
    CALL_SLOT_OWN = '2', /* taken, with the key hash that was asked for */
};

/* A reply, parsed. Its spans are borrowed during the callback. */
struct call_reply {
    enum vote vote;
    enum node_state state; /* unfit: why */
    struct span words;     /* unfit: the node's own; empty: it said none */
    int64_t node_now_us;   /* the node's clock; 0: not in the reply */
    int64_t generation;    /* after the batch; 0: it promised nothing */
    bool was_free;         /* granted, of a repeat: it replaced nothing */
    int64_t pttl_ms;       /* held: time to live, -1 none; otherwise 0; slots:
                              the least of those taken, -1 none */
    int64_t highest;   /* stale: highest number accepted in the bucket; free or
                          held, of an extend: which names have not the token, a
                          bit each; held, of one name: 0; held, of a repeat:
                          the number of a reader with its key that it does not
                          replace, 0: there is none */
    int64_t listeners; /* deleted: connections that were told; 0: none, or
                          nobody listens */
    struct span value; /* held: the first VALUE_MAX bytes; empty: another type,
                          or a shared lock */
    int64_t holders;   /* held, of a shared lock: how many */
    struct call_probe probe; /* probe */
    int64_t cursor;          /* scan: where to go on; 0: this was all */
    int64_t left;            /* held, of tokens: holders that were not told */
    struct span names;       /* scan; held, of tokens: see call_next_name */
    struct span slots;       /* slots: a letter of enum call_slot each */
};

/*
 * Takes the first name or token off a list: its length in decimal, ':', its
 * bytes, and the next one. False: there is none, or rest is none of that.
 */
static inline bool call_next_name(struct span *rest, struct span *name)
{
    const char *colon =
        rest->len > 0 ? memchr(rest->ptr, ':', rest->len) : NULL;
    if (colon == NULL)
        return false;
    size_t head = (size_t)(colon - rest->ptr) + 1;
    int64_t len = span_number((struct span){rest->ptr, head - 1}, 4);
    if (len < 0 || (size_t)len > rest->len - head)
        return false;
    *name = (struct span){colon + 1, (size_t)len};
    *rest = (struct span){name->ptr + len, rest->len - head - (size_t)len};
    return true;
}

/* True for the calls that only a voting node gets, with a deadline. */
static inline bool call_asks_for_vote(enum call_kind kind)
{
    return kind == CALL_ACQUIRE || kind == CALL_REPEAT || kind == CALL_EXTEND ||
           kind == CALL_REPLICATE;
}

/* The ballot of a reply. */
static inline struct ballot call_ballot(const struct call_reply *reply)
{
    return (struct ballot){reply->vote, reply->state};
}

/* A reply with nothing but this ballot. */
static inline struct call_reply call_reply_of(struct ballot ballot)
{
    return (struct call_reply){.vote = ballot.vote, .state = ballot.state};
}

#endif
