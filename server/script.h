/*
 * The scripts that run on the nodes: encodes calls, decodes replies.
 *
 * Pure: no socket, no Redis library. server/scripts/NAME.lua is the text of
 * each; it is embedded at build time.
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
 * One call. The spans are borrowed until the call is encoded. Which members
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

/* One field of a RESP reply, as flat as the scripts answer. */
enum script_field_type {
    SCRIPT_FIELD_STRING,
    SCRIPT_FIELD_INTEGER,
    SCRIPT_FIELD_NIL,
    SCRIPT_FIELD_ERROR,
};

struct script_field {
    enum script_field_type type;
    int64_t integer;
    struct span string;
};

enum {
    SCRIPT_ARGS_MAX = 12,   /* arguments of an EVALSHA, itself included … */
    SCRIPT_NUMBERS_MAX = 5, /* … of them numbers */
    SCRIPT_SHA_LEN = 40,
    SCRIPT_PREFIX_MAX = 64, /* bytes of the key prefix */
    SCRIPT_INFIX_MAX = 20,  /* "redlockd:released:" */
};

/* An encoded call: argc arguments for the Redis client, and their storage. */
struct script_args {
    int argc;
    const char *argv[SCRIPT_ARGS_MAX];
    size_t len[SCRIPT_ARGS_MAX];
    char state_key[SCRIPT_PREFIX_MAX + SCRIPT_INFIX_MAX];
    char lock_key[SCRIPT_PREFIX_MAX + RESOURCE_MAX];
    char channel[SCRIPT_PREFIX_MAX + SCRIPT_INFIX_MAX + RESOURCE_MAX];
    int digits_used;
    char digits[SCRIPT_NUMBERS_MAX][24];
};

/* The script's name ("acquire") and its Lua text. Static. */
const char *script_name(enum script_kind kind);
struct span script_text(enum script_kind kind);

/*
 * Fills args with the EVALSHA of call. prefix: the key prefix; sha: the 40 hex
 * digits that the node gave for this kind. args borrows from call and sha.
 */
void script_encode(struct script_args *args, const struct script_call *call,
                   struct span prefix, const char *sha);

/*
 * Decodes the count fields of one reply of this kind. What no script of ours
 * answers is VOTE_GARBAGE; an error reply gets its named vote.
 */
struct script_reply script_decode(enum script_kind kind,
                                  const struct script_field *fields, int count);

/* The named vote of an error reply's text ("LOADING Redis is…"). */
enum vote script_decode_error(struct span text);

#endif
