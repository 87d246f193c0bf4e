/*
 * The script that runs on the nodes: what it is called with, and what its
 * replies mean. batch.h puts calls together.
 *
 * Pure: no socket, no Redis library. server/scripts/ holds the text, a file a
 * kind; it is embedded at build time.
 */
#ifndef REDLOCKD_SCRIPT_H
#define REDLOCKD_SCRIPT_H

#include "types.h"
#include "vote.h"

enum script_kind {
    SCRIPT_LOOK,    /* reads the permission to vote; marks a node without */
    SCRIPT_ADMIT,   /* gives it after a quarantine */
    SCRIPT_READMIT, /* gives it back to a durable node */
    SCRIPT_REVOKE,  /* takes it */
    SCRIPT_ACQUIRE, /* sets the lock */
    SCRIPT_EXTEND,  /* lengthens its TTL */
    SCRIPT_REPAIR,  /* sets it where it is missing */
    SCRIPT_RELEASE, /* deletes it */
    SCRIPT_INSPECT, /* reads value and TTL */
    SCRIPT_KINDS
};

/*
 * One call. The spans are borrowed until it was added to a batch. Which members
 * a kind uses stands behind each; times named node are in the node's clock.
 */
struct script_call {
    enum script_kind kind;
    struct span resource;  /* acquire, extend, repair, release, inspect */
    struct span token;     /* acquire, extend, repair, release */
    struct span admit;     /* all: what must lie there */
    struct span nonce;     /* look (empty: mark nothing), revoke */
    struct span found;     /* readmit, revoke: the older admit there */
    struct span mark;      /* admit, readmit: the mark there */
    struct span witnesses; /* look: of the other nodes, name=beat… */
    int64_t max_ttl_ms;    /* admit */
    int64_t floor;         /* look, admit, readmit: the greatest beat seen */
    int64_t median_us;     /* the nodes' clocks, all with admit; 0: not known */
    bool is_durable;       /* look, admit, readmit */
    bool is_objecting;     /* look: to a first start */
    int64_t ttl_ms;        /* acquire, extend (0: only look), repair */
    int64_t number;        /* acquire, repair: the fencing number, µs */
    int64_t node_deadline_us; /* acquire, extend, repair: later is LATE;
                                 look, revoke: a mark has no moment then */
    int64_t window_us;        /* acquire, repair: of number and clock */
    int slot;     /* acquire, extend, repair: 0 … FENCE_SLOTS - 1 */
    int64_t seen; /* repair: the slot's number when the lock was missed */
};

/* What a look found; server/scripts/permission.lua tells what the words mean.
 */
enum script_look_word {
    LOOK_ADMITTED,
    LOOK_SUPERSEDED,
    LOOK_FOREIGN,
    LOOK_EMPTY,
    LOOK_BARE,
    LOOK_FRESH,
    LOOK_CREATED,
    LOOK_MARKED,
    LOOK_WORDS
};

struct script_look {
    enum script_look_word word;
    struct span admit; /* the node's; empty: none */
    struct span mark;
    int64_t max_ttl_ms; /* the greatest that was ever allowed there */
    bool is_durable;    /* its memory was, all the time since its admission */
    int64_t beat;       /* counts what it promised, and who saw it admitted */
    int64_t seen_us; /* the last of these, and the last promise alone, by … */
    int64_t voted_us;      /* … the median of the nodes' clocks; 0: none */
    struct span witnesses; /* what it knows of others, name=beat… */
};

/* What came back, in our words. value is borrowed during the callback. */
struct script_reply {
    enum vote vote;
    int64_t node_now_us; /* the node's clock; 0: the reply did not tell */
    int64_t beat;        /* after the batch; 0: it promised nothing */
    int64_t pttl_ms;     /* held: time to live, -1 none; else 0 */
    int64_t highest;     /* stale, free of an extend: highest number accepted in
                            the slot; of a free one -1: it is none of ours */
    struct span value;   /* held: the first VALUE_MAX bytes; empty: foreign */
    struct script_look look; /* look */
};

/* One field of a RESP reply; an array stands in front of its elements. */
enum script_field_type {
    SCRIPT_FIELD_STRING,
    SCRIPT_FIELD_INTEGER,
    SCRIPT_FIELD_NIL,
    SCRIPT_FIELD_ERROR,
    SCRIPT_FIELD_ARRAY,
};

struct script_field {
    enum script_field_type type;
    int64_t integer; /* array: how many elements */
    struct span string;
};

enum {
    SCRIPT_ARGS_MAX = 8,    /* of a call, its kind included … */
    SCRIPT_NUMBERS_MAX = 5, /* … of them numbers */
    SCRIPT_FIELDS_MAX = 10, /* of a call's reply, the array included */
    SCRIPT_WORD_MAX = 16,   /* "QUARANTINED" */
    SCRIPT_STATE_MAX = 160, /* of an admission or a mark, as a look tells it */
    SCRIPT_NONCE_MAX = 22,  /* "first-" and 16 hex digits */
    SCRIPT_NAME_LEN = 16,   /* hex digits of a node's name */
    SCRIPT_WITNESSES_MAX = (NODES_MAX - 1) * (SCRIPT_NAME_LEN + DIGITS_MAX + 2),
    SCRIPT_SHA_LEN = 40,
    SCRIPT_PREFIX_MAX = 64, /* bytes of the key prefix */
    SCRIPT_INFIX_MAX = 20,  /* "redlockd:state" */
};

/* The Lua text, with a NUL behind it. */
struct span script_text(void);

/* The kind's name ("acquire"), as the text knows it. Static. */
const char *script_name(enum script_kind kind);

/* Whether it is a number that the script may tell: 0 to EXACT_MAX. */
bool script_is_number(const struct script_field *field);

/* Whether it is microseconds as a node tells them, and far from overflow. */
bool script_is_time(const struct script_field *field);

/*
 * Decodes the count fields of the reply to one call of this kind, which the
 * node ran when its clock showed node_now_us. What the script never answers is
 * VOTE_GARBAGE; an error gets its named vote.
 */
struct script_reply script_decode(enum script_kind kind, int64_t node_now_us,
                                  const struct script_field *fields, int count);

/* The named vote of an error reply's text ("LOADING Redis is…"). */
enum vote script_decode_error(struct span text);

#endif
