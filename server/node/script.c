/* SPDX-License-Identifier: MIT */
#include "script.h"

#include <assert.h>

#include "../engine/port/token.h"

/* The files of server/node/scripts, made by the Makefile. */
static const char lua[] =
#include "script.lua.h"
    ;

static const char rights_lua[] =
#include "rights.lua.h"
    ;

static const char rights_sha[] =
#include "rights.sha.h"
    ;

static_assert(sizeof rights_sha == SCRIPT_SHA_LEN + 1, "");

struct span script_text(void)
{
    return (struct span){lua, sizeof lua - 1};
}

struct span script_rights_text(void)
{
    return (struct span){rights_lua, sizeof rights_lua - 1};
}

struct span script_rights_sha(void)
{
    return (struct span){rights_sha, SCRIPT_SHA_LEN};
}

char script_letter_of(const struct call *call)
{
    static const char letters[CALL_KINDS] = {
        [CALL_PROBE] = 'k',   [CALL_ADMIT] = 'm',     [CALL_READMIT] = 'n',
        [CALL_REVOKE] = 'v',  [CALL_ACQUIRE] = 'a',   [CALL_REPEAT] = 'g',
        [CALL_EXTEND] = 'e',  [CALL_REPLICATE] = 'p', [CALL_RELEASE] = 'r',
        [CALL_INSPECT] = 'i', [CALL_TOKENS] = 't',    [CALL_LISTEN] = 'l',
        [CALL_SCAN] = 's',    [CALL_SLOTS] = 'f',
    };
    assert(call->kind < CALL_KINDS);
    if (call->kind == CALL_ACQUIRE && token_is_shared(call->token))
        return SCRIPT_SHARE;
    if (call->kind == CALL_RELEASE && call->tombstone_ms > 0)
        return SCRIPT_FORCE;
    return letters[call->kind];
}

/* ---- replies ------------------------------------------------------------ */

#define BY(kind) (1u << CALL_##kind)

/* These ask for a vote, which the node may refuse. */
#define BY_SETTERS (BY(ACQUIRE) | BY(REPEAT) | BY(REPLICATE))
#define BY_VOTERS (BY_SETTERS | BY(EXTEND))
#define BY_WRITERS (BY(ADMIT) | BY(READMIT) | BY(REVOKE))
#define BY_READERS (BY(RELEASE) | BY(INSPECT) | BY(TOKENS))

/* A possible answer of the script, and the kinds of call that get it. */
struct answer {
    enum vote vote;
    unsigned kinds;
};

/* The most digits of a cursor, which is below the number of buckets. */
enum { CURSOR_DIGITS = 15 };

enum { LETTERS = 'Z' - 'A' + 1 };

static const struct answer letters[LETTERS] = {
    ['G' - 'A'] = {VOTE_GRANTED, BY_SETTERS},
    ['D' - 'A'] = {VOTE_DELETED, BY(RELEASE)},
    ['E' - 'A'] = {VOTE_EXTENDED, BY(EXTEND)},
    ['F' - 'A'] = {VOTE_FREE, BY_READERS},
    ['Q' - 'A'] = {VOTE_NOT_ADMITTED, BY_VOTERS | BY_READERS | BY(SLOTS)},
    ['L' - 'A'] = {VOTE_LATE, BY_VOTERS},
    ['S' - 'A'] = {VOTE_OUT_OF_RANGE, BY_SETTERS},
    ['C' - 'A'] = {VOTE_CHANGED, BY_WRITERS | BY(REPLICATE)},
    ['O' - 'A'] = {VOTE_DONE, BY_WRITERS | BY(LISTEN)},
    ['N' - 'A'] = {VOTE_KEY_REFUSED, BY(SCAN)},
    ['R' - 'A'] = {VOTE_GRANTED, BY(REPEAT)},
};

enum {
    PROBE_FIELDS = 13,
    PROBE_TEXTS = 5, /* the word included; then numbers, up to the next ones */
    PROBE_WITNESSES = 11,
    PROBE_TRACE = 12,
    HELD_FIELDS = 3,
    HELD_OF_SEVERAL_FIELDS = 4,
    SCAN_FIELDS = 3,
    SLOTS_FIELDS = 3,
    TOKENS_FIELDS = 3,
    NUMBER_FIELDS = 2
};
static_assert((int)PROBE_FIELDS < (int)SCRIPT_FIELDS_MAX, "and the array");

/* A word and more fields. */
static const struct {
    const char *word;
    struct answer answer;
    int fields; /* the word included */
} words[] = {
    {"HELD", {VOTE_HELD, BY_VOTERS | BY(RELEASE) | BY(INSPECT)}, HELD_FIELDS},
    {"SHARED", {VOTE_HELD, BY_VOTERS | BY(RELEASE) | BY(INSPECT)}, HELD_FIELDS},
    {"HELD", {VOTE_HELD, BY(EXTEND)}, HELD_OF_SEVERAL_FIELDS},
    {"SHARED", {VOTE_HELD, BY(EXTEND) | BY(REPEAT)}, HELD_OF_SEVERAL_FIELDS},
    {"DELETED", {VOTE_DELETED, BY(RELEASE)}, NUMBER_FIELDS},
    {"FREE", {VOTE_FREE, BY(EXTEND)}, NUMBER_FIELDS},
    {"KEYS", {VOTE_DONE, BY(SCAN)}, SCAN_FIELDS},
    {"SLOTS", {VOTE_DONE, BY(SLOTS)}, SLOTS_FIELDS},
    {"TOKENS", {VOTE_HELD, BY(TOKENS)}, TOKENS_FIELDS},
    {"STALE", {VOTE_STALE, BY(ACQUIRE) | BY(REPEAT)}, NUMBER_FIELDS},
};

static const char *const probe_words[PROBE_WORDS] = {
    [PROBE_ADMITTED] = "ADMITTED",
    [PROBE_SUPERSEDED] = "SUPERSEDED",
    [PROBE_OTHER] = "OTHER",
    [PROBE_MISNAMED] = "MISNAMED",
    [PROBE_EMPTY] = "EMPTY",
    [PROBE_BARE] = "BARE",
    [PROBE_FRESH] = "FRESH",
    [PROBE_CREATED] = "CREATED",
    [PROBE_QUARANTINED] = "QUARANTINED",
};

/* VOTE_UNREADABLE: there is none. */
static enum vote find_word(enum call_kind kind, struct span word, int fields)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((words[i].answer.kinds & 1u << kind) != 0 &&
            words[i].fields == fields && span_is(word, words[i].word))
            return words[i].answer.vote;
    return VOTE_UNREADABLE;
}

static struct call_reply garbage(void)
{
    return (struct call_reply){.vote = VOTE_UNREADABLE};
}

bool script_is_number(const struct script_field *field)
{
    return field->type == SCRIPT_FIELD_INTEGER && field->integer >= 0 &&
           field->integer <= EXACT_MAX;
}

bool script_is_time(const struct script_field *field)
{
    return script_is_number(field) && field->integer > 0 &&
           field->integer < EXACT_MAX;
}

/* A list of texts, none of which is longer than that. */
static bool decode_list(struct call_reply *reply,
                        const struct script_field *field, size_t len_max)
{
    struct span rest = field->string, text;
    if (field->type != SCRIPT_FIELD_STRING || rest.len > CALL_SCAN_MAX)
        return false;
    reply->names = rest;
    while (call_next_name(&rest, &text))
        if (text.len > len_max)
            return false;
    return rest.len == 0;
}

static bool decode_keys(struct call_reply *reply,
                        const struct script_field *fields)
{
    if (fields[1].type != SCRIPT_FIELD_STRING)
        return false;
    reply->cursor = span_number(fields[1].string, CURSOR_DIGITS);
    return reply->cursor >= 0 && decode_list(reply, &fields[2], RESOURCE_MAX);
}

static bool decode_tokens(struct call_reply *reply,
                          const struct script_field *fields)
{
    reply->left = fields[1].integer;
    return script_is_number(&fields[1]) &&
           decode_list(reply, &fields[2], TOKEN_MAX);
}

/* How many slots there are the caller must check. */
static bool decode_slots(struct call_reply *reply,
                         const struct script_field *fields)
{
    if (fields[1].type != SCRIPT_FIELD_INTEGER || fields[1].integer < -1 ||
        fields[2].type != SCRIPT_FIELD_STRING ||
        fields[2].string.len > POOL_SLOTS_MAX)
        return false;
    reply->pttl_ms = fields[1].integer;
    reply->slots = fields[2].string;
    for (size_t i = 0; i < reply->slots.len; i++)
        if (reply->slots.ptr[i] < CALL_SLOT_FREE ||
            reply->slots.ptr[i] > CALL_SLOT_OWN)
            return false;
    return true;
}

/* How many fields there are the caller has checked. */
static bool decode_held(struct call_reply *reply,
                        const struct script_field *fields)
{
    bool is_integer = fields[1].type == SCRIPT_FIELD_INTEGER;
    reply->pttl_ms = fields[1].integer;
    if (span_is(fields[0].string, "SHARED")) {
        reply->holders = fields[2].integer;
        return is_integer && reply->pttl_ms >= 0 &&
               fields[2].type == SCRIPT_FIELD_INTEGER && fields[2].integer > 0;
    }
    reply->value = fields[2].string;
    return is_integer && reply->pttl_ms >= -1 &&
           fields[2].type == SCRIPT_FIELD_STRING &&
           fields[2].string.len <= VALUE_MAX;
}

static bool decode_missing(struct call_reply *reply,
                           const struct script_field *field)
{
    reply->highest = field->integer;
    return script_is_number(field) && field->integer < 1 << NAMES_MAX;
}

static bool decode_last(struct call_reply *reply, enum call_kind kind,
                        const struct script_field *field)
{
    if (kind == CALL_EXTEND)
        return decode_missing(reply, field);
    reply->highest = field->integer;
    return script_is_time(field);
}

/* What comes behind the word. False: the script never says that. */
static bool decode_rest(struct call_reply *reply, enum call_kind kind,
                        const struct script_field *fields)
{
    bool is_integer = fields[1].type == SCRIPT_FIELD_INTEGER;
    bool is_time = script_is_time(&fields[1]);
    int64_t number = fields[1].integer;
    switch (reply->vote) {
    case VOTE_HELD:
        if (kind == CALL_TOKENS)
            return decode_tokens(reply, fields);
        return decode_held(reply, fields);
    case VOTE_STALE:
        /*
         * Somebody else may have written a number into the slot that we would
         * never write: an error of this slot, but no reason to close the
         * connection.
         */
        reply->highest = number;
        if (!is_time)
            *reply =
                (struct call_reply){.vote = VOTE_UNFIT, .state = STATE_FAILED};
        return is_integer;
    case VOTE_FREE:
        return decode_missing(reply, &fields[1]) && number > 0;
    case VOTE_DELETED:
        reply->listeners = number;
        return script_is_number(&fields[1]);
    case VOTE_DONE:
        return kind == CALL_SLOTS ? decode_slots(reply, fields)
                                  : decode_keys(reply, fields);
    default:
        return false;
    }
}

static bool is_state(const struct script_field *field)
{
    return field->type == SCRIPT_FIELD_STRING &&
           field->string.len <= CALL_STATE_MAX;
}

static struct call_reply
decode_probe(int64_t node_now_us, const struct script_field *fields, int count)
{
    if (count != PROBE_FIELDS)
        return garbage();
    struct span admit = fields[1].string, quarantine = fields[2].string;
    int word = 0;
    while (word < PROBE_WORDS && !span_is(fields[0].string, probe_words[word]))
        word++;
    /* if the word says that there is a quarantine record, it is a text without
     * NUL */
    bool is_quarantined = word == PROBE_FRESH || word == PROBE_CREATED ||
                          word == PROBE_QUARANTINED;
    if (word == PROBE_WORDS ||
        (is_quarantined &&
         (quarantine.len == 0 ||
          memchr(quarantine.ptr, '\0', quarantine.len) != NULL)) ||
        fields[PROBE_WITNESSES].type != SCRIPT_FIELD_STRING ||
        fields[PROBE_WITNESSES].string.len > CALL_WITNESSES_MAX ||
        fields[PROBE_TRACE].type != SCRIPT_FIELD_STRING ||
        fields[PROBE_TRACE].string.len > CALL_TRACE_MAX)
        return garbage();
    for (int i = 1; i < PROBE_TEXTS; i++)
        if (!is_state(&fields[i]))
            return garbage();
    for (int i = PROBE_TEXTS; i < PROBE_WITNESSES; i++)
        if (!script_is_number(&fields[i]))
            return garbage();
    return (struct call_reply){
        .vote = VOTE_DONE,
        .node_now_us = node_now_us,
        .probe = {.word = (enum call_probe_word)word,
                  .admit = admit,
                  .quarantine = quarantine,
                  .taken = fields[3].string,
                  .passed = fields[4].string,
                  .max_ttl_ms = fields[5].integer,
                  .is_durable = fields[6].integer == 1,
                  .generation = fields[7].integer,
                  .rest_us = fields[8].integer,
                  .number = fields[9].integer,
                  .is_full = fields[10].integer == 1,
                  .witnesses = fields[PROBE_WITNESSES].string,
                  .trace = fields[PROBE_TRACE].string},
    };
}

struct call_reply script_decode_letter(enum call_kind kind, int64_t node_now_us,
                                       char letter)
{
    assert(kind < CALL_KINDS);
    if (letter < 'A' || letter > 'Z' ||
        (letters[letter - 'A'].kinds & 1u << kind) == 0)
        return garbage();
    return (struct call_reply){.vote = letters[letter - 'A'].vote,
                               .node_now_us = node_now_us,
                               .was_free =
                                   kind == CALL_REPEAT && letter == 'G'};
}

struct call_reply script_decode(enum call_kind kind, int64_t node_now_us,
                                const struct script_field *fields, int count)
{
    assert(kind < CALL_KINDS);
    if (count == 1 && fields[0].type == SCRIPT_FIELD_ERROR)
        return script_error_reply(fields[0].string);
    if (count < 1 || fields[0].type != SCRIPT_FIELD_STRING)
        return garbage();
    if (kind == CALL_PROBE)
        return decode_probe(node_now_us, fields, count);
    struct call_reply reply = {.vote = find_word(kind, fields[0].string, count),
                               .node_now_us = node_now_us};
    if (reply.vote == VOTE_UNREADABLE || !decode_rest(&reply, kind, fields))
        return garbage();
    if (count == HELD_OF_SEVERAL_FIELDS && /* no other answer has as many */
        !decode_last(&reply, kind, &fields[HELD_FIELDS]))
        return garbage();
    return reply;
}

struct span script_words(struct span text)
{
    static const char args[] = ", with args";
    const char *at = memmem(text.ptr, text.len, args, sizeof args - 1);
    if (at != NULL)
        text.len = (size_t)(at - text.ptr);
    return text;
}

struct call_reply script_error_reply(struct span text)
{
    struct call_reply reply = call_reply_of(script_decode_error(text));
    reply.words = script_words(text);
    return reply;
}

struct ballot script_decode_error(struct span text)
{
    static const struct {
        const char *begin;
        struct ballot ballot;
    } errors[] = {
        {"LOADING ", {VOTE_UNFIT, STATE_LOADING}},
        {"READONLY ", {VOTE_UNFIT, STATE_READ_ONLY}},
        {"MISCONF ", {VOTE_UNFIT, STATE_MISCONFIGURED}},
        {"OOM ", {VOTE_UNFIT, STATE_OUT_OF_MEMORY}},
        {"BUSY ", {VOTE_UNFIT, STATE_BUSY}},
        {"NOPERM ", {VOTE_UNFIT, STATE_NO_PERMISSION}},
        /* what scripts get instead from Redis 7.0, and from 7.2 */
        {"ERR The user executing the script can't access at least one of the "
         "keys ",
         {.vote = VOTE_KEY_REFUSED}},
        {"ERR ACL failure in script: No permissions to access a key",
         {.vote = VOTE_KEY_REFUSED}},
        {"ERR The user executing the script ",
         {VOTE_UNFIT, STATE_NO_PERMISSION}},
        {"ERR ACL failure in script", {VOTE_UNFIT, STATE_NO_PERMISSION}},
        {"NOAUTH ", {VOTE_UNFIT, STATE_NO_PERMISSION}},
        {"WRONGPASS ", {VOTE_UNFIT, STATE_NO_PERMISSION}},
        {"DENIED ", {VOTE_UNFIT, STATE_NO_PERMISSION}}, /* protected mode */
        /* renamed, or hidden by a proxy; the last two in a script, of Redis and
         * of Valkey 8 */
        {"ERR unknown command ", {VOTE_UNFIT, STATE_NO_PERMISSION}},
        {"ERR Unknown Redis command ", {VOTE_UNFIT, STATE_NO_PERMISSION}},
        {"ERR Unknown command called ", {VOTE_UNFIT, STATE_NO_PERMISSION}},
        {"NOSCRIPT ", {VOTE_UNFIT, STATE_NO_SCRIPT}},
        {"ERR max number of clients ", {VOTE_UNFIT, STATE_TOO_MANY}},
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (span_begins(text, errors[i].begin))
            return errors[i].ballot;
    return ballot_unfit(STATE_FAILED);
}
