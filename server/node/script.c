#include "script.h"

#include <assert.h>

/* The files of server/node/scripts, made by the Makefile. */
static const char lua[] =
#include "script.lua.h"
    ;

struct span script_text(void)
{
    return (struct span){lua, sizeof lua - 1};
}

const char *script_name(enum call_kind kind)
{
    static const char *const names[CALL_KINDS] = {
        [CALL_LOOK] = "look",       [CALL_ADMIT] = "admit",
        [CALL_READMIT] = "readmit", [CALL_REVOKE] = "revoke",
        [CALL_ACQUIRE] = "acquire", [CALL_REPEAT] = "repeat",
        [CALL_EXTEND] = "extend",   [CALL_REPAIR] = "repair",
        [CALL_RELEASE] = "release", [CALL_INSPECT] = "inspect",
        [CALL_LISTEN] = "listen",
    };
    assert(kind < CALL_KINDS);
    return names[kind];
}

/* ---- replies ------------------------------------------------------------ */

#define BY(kind) (1u << CALL_##kind)

/* A word that the scripts answer, to which kinds, and with how many fields. */
struct answer {
    const char *word;
    enum vote vote;
    unsigned kinds;
    int fields; /* the word included */
};

enum { LOOK_FIELDS = 9, HELD_FIELDS = 3, NUMBER_FIELDS = 2, OTHER_FIELDS = 1 };

/* These ask for a vote, which the node may refuse. */
#define BY_SETTERS (BY(ACQUIRE) | BY(REPEAT) | BY(REPAIR))
#define BY_VOTERS (BY_SETTERS | BY(EXTEND))

static const struct answer answers[] = {
    {"GRANTED", VOTE_GRANTED, BY_SETTERS, OTHER_FIELDS},
    {"HELD", VOTE_HELD, BY_VOTERS | BY(RELEASE) | BY(INSPECT), HELD_FIELDS},
    {"DELETED", VOTE_DELETED, BY(RELEASE), OTHER_FIELDS},
    {"DELETED", VOTE_DELETED, BY(RELEASE), NUMBER_FIELDS},
    {"EXTENDED", VOTE_EXTENDED, BY(EXTEND), OTHER_FIELDS},
    {"FREE", VOTE_FREE, BY(EXTEND), NUMBER_FIELDS},
    {"FREE", VOTE_FREE, BY(RELEASE) | BY(INSPECT), OTHER_FIELDS},
    {"STALE", VOTE_STALE, BY(ACQUIRE) | BY(REPEAT), NUMBER_FIELDS},
    {"QUARANTINED", VOTE_QUARANTINED, BY_VOTERS | BY(RELEASE) | BY(INSPECT),
     OTHER_FIELDS},
    {"LATE", VOTE_LATE, BY_VOTERS, OTHER_FIELDS},
    {"SKEWED", VOTE_SKEWED, BY_SETTERS, OTHER_FIELDS},
    {"DONE", VOTE_DONE, BY(ADMIT) | BY(READMIT) | BY(REVOKE) | BY(LISTEN),
     OTHER_FIELDS},
    {"CHANGED", VOTE_CHANGED, BY(ADMIT) | BY(READMIT) | BY(REVOKE) | BY(REPAIR),
     OTHER_FIELDS},
};

static const char *const look_words[LOOK_WORDS] = {
    [LOOK_ADMITTED] = "ADMITTED", [LOOK_SUPERSEDED] = "SUPERSEDED",
    [LOOK_FOREIGN] = "FOREIGN",   [LOOK_EMPTY] = "EMPTY",
    [LOOK_BARE] = "BARE",         [LOOK_FRESH] = "FRESH",
    [LOOK_CREATED] = "CREATED",   [LOOK_MARKED] = "MARKED",
};

static const struct answer *find_answer(enum call_kind kind, struct span word,
                                        int fields)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if ((answers[i].kinds & 1u << kind) != 0 &&
            answers[i].fields == fields && span_is(word, answers[i].word))
            return &answers[i];
    return NULL;
}

static struct call_reply garbage(void)
{
    return (struct call_reply){.vote = VOTE_GARBAGE};
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

static bool decode_held(struct call_reply *reply,
                        const struct script_field *fields)
{
    if (fields[1].type != SCRIPT_FIELD_INTEGER || fields[1].integer < -1 ||
        fields[2].type != SCRIPT_FIELD_STRING ||
        fields[2].string.len > VALUE_MAX)
        return false;
    reply->pttl_ms = fields[1].integer;
    reply->value = fields[2].string;
    return true;
}

/*
 * Somebody else wrote a number into the slot that we would never write: an
 * error of this slot, but no reason to close the connection.
 */
static bool decode_stale(struct call_reply *reply,
                         const struct script_field *fields)
{
    if (fields[1].type != SCRIPT_FIELD_INTEGER)
        return false;
    reply->highest = fields[1].integer;
    if (!script_is_time(&fields[1]))
        *reply = (struct call_reply){.vote = VOTE_UNFIT, .state = STATE_FAILED};
    return true;
}

/* For a slot without a number the script answers 0. */
static bool decode_missing(struct call_reply *reply,
                           const struct script_field *fields)
{
    if (fields[1].type != SCRIPT_FIELD_INTEGER)
        return false;
    bool is_number = fields[1].integer == 0 || script_is_time(&fields[1]);
    reply->highest = is_number ? fields[1].integer : -1;
    return true;
}

static bool decode_deleted(struct call_reply *reply,
                           const struct script_field *fields)
{
    if (!script_is_number(&fields[1]))
        return false;
    reply->listeners = fields[1].integer;
    return true;
}

static bool is_state_text(const struct script_field *field)
{
    return field->type == SCRIPT_FIELD_STRING &&
           field->string.len <= CALL_STATE_MAX;
}

/* If the word says that there is a mark, it must be a text without NUL. */
static bool fits_word(enum call_look_word word, struct span mark)
{
    bool is_marked =
        word == LOOK_FRESH || word == LOOK_CREATED || word == LOOK_MARKED;
    return !is_marked ||
           (mark.len > 0 && memchr(mark.ptr, '\0', mark.len) == NULL);
}

static struct call_reply
decode_look(int64_t node_now_us, const struct script_field *fields, int count)
{
    int word = 0;
    while (word < LOOK_WORDS && !span_is(fields[0].string, look_words[word]))
        word++;
    if (word == LOOK_WORDS || count != LOOK_FIELDS ||
        !is_state_text(&fields[1]) || !is_state_text(&fields[2]) ||
        !fits_word((enum call_look_word)word, fields[2].string) ||
        fields[LOOK_FIELDS - 1].type != SCRIPT_FIELD_STRING ||
        fields[LOOK_FIELDS - 1].string.len > CALL_WITNESSES_MAX)
        return garbage();
    for (int i = 3; i < LOOK_FIELDS - 1; i++)
        if (!script_is_number(&fields[i]))
            return garbage();
    return (struct call_reply){
        .vote = VOTE_DONE,
        .node_now_us = node_now_us,
        .look = {.word = (enum call_look_word)word,
                 .admit = fields[1].string,
                 .mark = fields[2].string,
                 .max_ttl_ms = fields[3].integer,
                 .is_durable = fields[4].integer == 1,
                 .beat = fields[5].integer,
                 .seen_us = fields[6].integer,
                 .voted_us = fields[7].integer,
                 .witnesses = fields[8].string},
    };
}

struct call_reply script_decode(enum call_kind kind, int64_t node_now_us,
                                const struct script_field *fields, int count)
{
    assert(kind < CALL_KINDS);
    if (count == 1 && fields[0].type == SCRIPT_FIELD_ERROR)
        return call_reply_of(script_decode_error(fields[0].string));
    if (count < 1 || fields[0].type != SCRIPT_FIELD_STRING)
        return garbage();
    if (kind == CALL_LOOK)
        return decode_look(node_now_us, fields, count);
    const struct answer *answer = find_answer(kind, fields[0].string, count);
    if (answer == NULL)
        return garbage();
    struct call_reply reply = {.vote = answer->vote,
                               .node_now_us = node_now_us};
    if ((answer->vote == VOTE_HELD && !decode_held(&reply, fields)) ||
        (answer->vote == VOTE_STALE && !decode_stale(&reply, fields)) ||
        (answer->vote == VOTE_FREE && count == NUMBER_FIELDS &&
         !decode_missing(&reply, fields)) ||
        (answer->vote == VOTE_DELETED && count == NUMBER_FIELDS &&
         !decode_deleted(&reply, fields)))
        return garbage();
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
        {"NOSCRIPT ", {VOTE_UNFIT, STATE_NO_SCRIPT}},
        {"ERR max number of clients ", {VOTE_UNFIT, STATE_TOO_MANY}},
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        size_t len = strlen(errors[i].begin);
        if (text.len >= len && memcmp(text.ptr, errors[i].begin, len) == 0)
            return errors[i].ballot;
    }
    return ballot_unfit(STATE_FAILED);
}
