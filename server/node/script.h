/* SPDX-License-Identifier: MIT */
/*
 * The script that runs on the nodes: its text, and the meaning of its replies.
 * batch.h makes its arguments.
 *
 * Pure: no socket, no Redis library. The text is in server/node/scripts/, one
 * file for each kind of call; it is embedded at build time.
 */
#ifndef REDLOCKD_SCRIPT_H
#define REDLOCKD_SCRIPT_H

#include "../engine/port/call.h"
#include "../lock/lock.h"

/* One field of a RESP reply; an array comes before its elements. */
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
    SCRIPT_ARGS_MAX = 11,   /* arguments of a call for one name */
    SCRIPT_NUMBERS_MAX = 7, /* those of them that are numbers */
    SCRIPT_NAME_ARGS = 2,   /* more for each further name: lock, slot */
    SCRIPT_FIELDS_MAX = 14, /* of a call's reply, the array included */
    SCRIPT_WORD_MAX = 16,   /* "QUARANTINED" */
    SCRIPT_SHA_LEN = 40,
    SCRIPT_INFIX_MAX = sizeof "redlockd:state",
    SCRIPT_WORDS_MAX = 400, /* "+del ~app:*", of scripts/rights.lua */
};

/* <prefix>redlockd:state is the key of what is kept of the node itself. */
#define SCRIPT_STATE "redlockd:state"

/*
 * <prefix>redlockd:released:<resource> is the channel on which releases of the
 * resource are announced; without a resource, that of heartbeats.
 */
#define SCRIPT_RELEASED "redlockd:released:"

/* The Lua text; a NUL follows it. */
struct span script_text(void);

/* The same of the script that asks for rights, and its SHA1 in hex digits. */
struct span script_rights_text(void);
struct span script_rights_sha(void);

/* The letter by which the text knows such a call, in lower case. */
char script_letter_of(const struct call *call);

/* Of acquires and repeats of shared locks. */
enum { SCRIPT_SHARE = 'h' };

/* Of releases that leave a tombstone. */
enum { SCRIPT_FORCE = 'x' };

/* Whether it is a number that the script may return: 0 to EXACT_MAX. */
bool script_is_number(const struct script_field *field);

/* Whether it is a node's time in microseconds, far from overflow. */
bool script_is_time(const struct script_field *field);

/* Decodes an answer that is a letter alone; otherwise like script_decode. */
struct call_reply script_decode_letter(enum call_kind kind, int64_t node_now_us,
                                       char letter);

/*
 * Decodes the count fields of the reply to one call of this kind, which the
 * node ran when its clock showed node_now_us. An answer that the script never
 * gives is VOTE_UNREADABLE; an error is that of an unfit node.
 */
struct call_reply script_decode(enum call_kind kind, int64_t node_now_us,
                                const struct script_field *fields, int count);

/* The reply to a call that an error is. */
struct call_reply script_error_reply(struct span text);

/* An error reply without the arguments, which a node repeats that does not know
 * the command. */
struct span script_words(struct span text);

/* The meaning of an error reply, such as "LOADING Redis is loading". */
struct ballot script_decode_error(struct span text);

#endif
