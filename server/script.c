#include "script.h"

#include <assert.h>

#include "scripts.h"

#define STATE_INFIX "redlockd:state"
#define CHANNEL_INFIX "redlockd:released:"

static_assert(sizeof CHANNEL_INFIX <= SCRIPT_INFIX_MAX &&
                  sizeof STATE_INFIX <= SCRIPT_INFIX_MAX,
              "");

struct script {
    const char *name;
    struct span text;
};

#define SCRIPT(name)                                                           \
    {                                                                          \
#name,                                                                 \
        {                                                                      \
            script_text_##name, sizeof script_text_##name - 1                  \
        }                                                                      \
    }

static const struct script scripts[SCRIPT_KINDS] = {
    [SCRIPT_ADMIT] = SCRIPT(admit),     [SCRIPT_ACQUIRE] = SCRIPT(acquire),
    [SCRIPT_EXTEND] = SCRIPT(extend),   [SCRIPT_RELEASE] = SCRIPT(release),
    [SCRIPT_INSPECT] = SCRIPT(inspect),
};

const char *script_name(enum script_kind kind)
{
    assert(kind < SCRIPT_KINDS);
    return scripts[kind].name;
}

struct span script_text(enum script_kind kind)
{
    assert(kind < SCRIPT_KINDS);
    return scripts[kind].text;
}

/* ---- calls -------------------------------------------------------------- */

static void add(struct script_args *args, const char *ptr, size_t len)
{
    assert(args->argc < SCRIPT_ARGS_MAX);
    args->argv[args->argc] = ptr;
    args->len[args->argc++] = len;
}

static void add_span(struct script_args *args, struct span span)
{
    /* Clients of the node take a NULL for a missing argument. */
    add(args, span.len > 0 ? span.ptr : "", span.len);
}

/* By hand: printf would be a tenth of what a request costs. */
static void add_number(struct script_args *args, int64_t number)
{
    assert(number >= 0 && args->digits_used < SCRIPT_NUMBERS_MAX);
    char *digits = args->digits[args->digits_used++];
    size_t at = sizeof args->digits[0];
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    add(args, digits + at, sizeof args->digits[0] - at);
}

/* Adds prefix + infix + resource, stored in to. */
static void add_key(struct script_args *args, char *to, struct span prefix,
                    const char *infix, struct span resource)
{
    assert(prefix.len <= SCRIPT_PREFIX_MAX && resource.len <= RESOURCE_MAX);
    size_t len = span_copy(to, prefix);
    len += span_copy(to + len, span_of(infix));
    len += span_copy(to + len, resource);
    add(args, to, len);
}

static void add_state_key(struct script_args *args, struct span prefix)
{
    add_key(args, args->state_key, prefix, STATE_INFIX, (struct span){"", 0});
}

static void add_lock_key(struct script_args *args, struct span prefix,
                         const struct script_call *call)
{
    add_key(args, args->lock_key, prefix, "", call->resource);
}

static void encode_admit(struct script_args *args,
                         const struct script_call *call, struct span prefix)
{
    add(args, "1", 1);
    add_state_key(args, prefix);
    add_span(args, call->admit);
}

static void encode_acquire(struct script_args *args,
                           const struct script_call *call, struct span prefix)
{
    add(args, "2", 1);
    add_state_key(args, prefix);
    add_lock_key(args, prefix, call);
    add_span(args, call->token);
    add_number(args, call->ttl_ms);
    add_number(args, call->number);
    add_span(args, call->admit);
    add_number(args, call->node_deadline_us);
    add_number(args, call->window_us);
    add_number(args, call->slot);
}

static void encode_extend(struct script_args *args,
                          const struct script_call *call, struct span prefix)
{
    add(args, "2", 1);
    add_state_key(args, prefix);
    add_lock_key(args, prefix, call);
    add_span(args, call->token);
    add_number(args, call->ttl_ms);
    add_span(args, call->admit);
    add_number(args, call->node_deadline_us);
}

static void encode_release(struct script_args *args,
                           const struct script_call *call, struct span prefix)
{
    add(args, "1", 1);
    add_lock_key(args, prefix, call);
    add_span(args, call->token);
    add_key(args, args->channel, prefix, CHANNEL_INFIX, call->resource);
}

static void encode_inspect(struct script_args *args,
                           const struct script_call *call, struct span prefix)
{
    add(args, "1", 1);
    add_lock_key(args, prefix, call);
}

typedef void encode_fn(struct script_args *args, const struct script_call *call,
                       struct span prefix);

void script_encode(struct script_args *args, const struct script_call *call,
                   struct span prefix, const char *sha)
{
    static encode_fn *const encoders[SCRIPT_KINDS] = {
        [SCRIPT_ADMIT] = encode_admit,     [SCRIPT_ACQUIRE] = encode_acquire,
        [SCRIPT_EXTEND] = encode_extend,   [SCRIPT_RELEASE] = encode_release,
        [SCRIPT_INSPECT] = encode_inspect,
    };
    assert(call->kind < SCRIPT_KINDS);
    args->argc = 0;
    args->digits_used = 0;
    add(args, "EVALSHA", strlen("EVALSHA"));
    add(args, sha, SCRIPT_SHA_LEN);
    encoders[call->kind](args, call, prefix);
}

/* ---- replies ------------------------------------------------------------ */

#define BY(kind) (1u << SCRIPT_##kind)

/* What the scripts answer: the word, who answers it, and with what behind. */
struct answer {
    const char *word;
    enum vote vote;
    unsigned kinds;
    int fields; /* outcome and now included */
};

enum { HELD_FIELDS = 4, STALE_FIELDS = 3, OTHER_FIELDS = 2 };

static const struct answer answers[] = {
    {"GRANTED", VOTE_GRANTED, BY(ACQUIRE), OTHER_FIELDS},
    {"HELD", VOTE_HELD, BY(ACQUIRE) | BY(EXTEND) | BY(RELEASE) | BY(INSPECT),
     HELD_FIELDS},
    {"DELETED", VOTE_DELETED, BY(RELEASE), OTHER_FIELDS},
    {"EXTENDED", VOTE_EXTENDED, BY(EXTEND), OTHER_FIELDS},
    {"FREE", VOTE_FREE, BY(EXTEND) | BY(RELEASE) | BY(INSPECT), OTHER_FIELDS},
    {"STALE", VOTE_STALE, BY(ACQUIRE), STALE_FIELDS},
    {"QUARANTINED", VOTE_QUARANTINED, BY(ACQUIRE) | BY(EXTEND), OTHER_FIELDS},
    {"LATE", VOTE_LATE, BY(ACQUIRE) | BY(EXTEND), OTHER_FIELDS},
    {"SKEWED", VOTE_SKEWED, BY(ACQUIRE), OTHER_FIELDS},
    {"DONE", VOTE_DONE, BY(ADMIT), OTHER_FIELDS},
};

static bool is_word(struct span span, const char *word)
{
    size_t len = strlen(word);
    return span.len == len && memcmp(span.ptr, word, len) == 0;
}

static const struct answer *find_answer(enum script_kind kind, struct span word)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if ((answers[i].kinds & 1u << kind) != 0 &&
            is_word(word, answers[i].word))
            return &answers[i];
    return NULL;
}

static struct script_reply no_answer(enum vote vote)
{
    return (struct script_reply){.vote = vote};
}

/* Microseconds as TIME tells them; a node must not make us overflow. */
static bool is_time(const struct script_field *field)
{
    return field->type == SCRIPT_FIELD_INTEGER && field->integer > 0 &&
           field->integer < INT64_C(1) << 53;
}

static bool decode_held(struct script_reply *reply,
                        const struct script_field *fields)
{
    if (fields[2].type != SCRIPT_FIELD_INTEGER || fields[2].integer < -1 ||
        fields[3].type != SCRIPT_FIELD_STRING ||
        fields[3].string.len > VALUE_MAX)
        return false;
    reply->pttl_ms = fields[2].integer;
    reply->value = fields[3].string;
    return true;
}

/*
 * A number that is none of ours was written into the slot by some other hand:
 * an error of this slot, and no reason to give up the connection.
 */
static bool decode_stale(struct script_reply *reply,
                         const struct script_field *fields)
{
    if (fields[2].type != SCRIPT_FIELD_INTEGER)
        return false;
    reply->highest = fields[2].integer;
    if (!is_time(&fields[2]))
        *reply = no_answer(VOTE_FAILED);
    return true;
}

struct script_reply script_decode(enum script_kind kind,
                                  const struct script_field *fields, int count)
{
    assert(kind < SCRIPT_KINDS);
    if (count == 1 && fields[0].type == SCRIPT_FIELD_ERROR)
        return no_answer(script_decode_error(fields[0].string));
    if (count < OTHER_FIELDS || fields[0].type != SCRIPT_FIELD_STRING ||
        !is_time(&fields[1]))
        return no_answer(VOTE_GARBAGE);
    const struct answer *answer = find_answer(kind, fields[0].string);
    if (answer == NULL || answer->fields != count)
        return no_answer(VOTE_GARBAGE);
    struct script_reply reply = {.vote = answer->vote,
                                 .node_now_us = fields[1].integer};
    if ((answer->vote == VOTE_HELD && !decode_held(&reply, fields)) ||
        (answer->vote == VOTE_STALE && !decode_stale(&reply, fields)))
        return no_answer(VOTE_GARBAGE);
    return reply;
}

enum vote script_decode_error(struct span text)
{
    static const struct {
        const char *begin;
        enum vote vote;
    } errors[] = {
        {"LOADING ", VOTE_LOADING},
        {"READONLY ", VOTE_READ_ONLY},
        {"MISCONF ", VOTE_MISCONFIGURED},
        {"OOM ", VOTE_OUT_OF_MEMORY},
        {"BUSY ", VOTE_BUSY},
        {"NOPERM ", VOTE_NO_PERMISSION},
        /* what Redis 7.0 says instead within a script, and what 7.2 does */
        {"ERR The user executing the script ", VOTE_NO_PERMISSION},
        {"ERR ACL failure in script", VOTE_NO_PERMISSION},
        {"NOAUTH ", VOTE_NO_PERMISSION},
        {"WRONGPASS ", VOTE_NO_PERMISSION},
        {"DENIED ", VOTE_NO_PERMISSION}, /* protected mode */
        {"NOSCRIPT ", VOTE_NO_SCRIPT},
        {"ERR max number of clients ", VOTE_TOO_MANY},
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        size_t len = strlen(errors[i].begin);
        if (text.len >= len && memcmp(text.ptr, errors[i].begin, len) == 0)
            return errors[i].vote;
    }
    return VOTE_FAILED;
}
