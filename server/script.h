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
    SCRIPT_ADMIT,   /* writes the permission to vote */
    SCRIPT_ACQUIRE, /* sets the lock */
    SCRIPT_EXTEND,  /* lengthens its TTL */
    SCRIPT_RELEASE, /* deletes it and announces that */
    SCRIPT_INSPECT, /* reads value and TTL */
    SCRIPT_KINDS
};

/*
 * One call. The spans are borrowed until it was added to a batch. Which members
 * a kind uses stands behind each; times named node are in the node's clock.
 */
struct script_call {
    enum script_kind kind;
    struct span resource;     /* acquire, extend, release, inspect */
    struct span token;        /* acquire, extend, release */
    struct span admit;        /* admit, acquire, extend */
    int64_t ttl_ms;           /* acquire, extend (0: only look) */
    int64_t number;           /* acquire: the fencing number, µs */
    int64_t node_deadline_us; /* acquire, extend: later than that is LATE */
    int64_t window_us;        /* acquire: how far number and clock may be */
    int slot;                 /* acquire: 0 … FENCE_SLOTS - 1 */
};

/* What came back, in our words. value is borrowed during the callback. */
struct script_reply {
    enum vote vote;
    int64_t node_now_us; /* the node's clock; 0: the reply did not tell */
    int64_t pttl_ms;     /* held: time to live, -1 none; else 0 */
    int64_t highest;     /* stale: highest number accepted in the slot */
    struct span value;   /* held: the first VALUE_MAX bytes; empty: foreign */
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
    SCRIPT_ARGS_MAX = 7,    /* of a call, its kind included … */
    SCRIPT_NUMBERS_MAX = 4, /* … of them numbers … */
    SCRIPT_DIGITS_MAX = 20, /* … of so many digits */
    SCRIPT_FIELDS_MAX = 4,  /* of a call's reply, the array included */
    SCRIPT_WORD_MAX = 16,   /* "QUARANTINED" */
    SCRIPT_SHA_LEN = 40,
    SCRIPT_PREFIX_MAX = 64, /* bytes of the key prefix */
    SCRIPT_INFIX_MAX = 20,  /* "redlockd:released:" */
};

/* The Lua text, with a NUL behind it. */
struct span script_text(void);

/* The kind's name ("acquire"), as the text knows it. Static. */
const char *script_name(enum script_kind kind);

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
