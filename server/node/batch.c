#include "batch.h"

#include <assert.h>

#include "../base/names.h"

#define STATE_INFIX "redlockd:state"

static_assert(sizeof STATE_INFIX <= SCRIPT_INFIX_MAX, "");

/* ---- calls -------------------------------------------------------------- */

/*
 * The most that a call with so many names takes, whatever its kind. Several
 * need numbers for their count and for a slot each.
 */
#define ARGS_OF(names)                                                         \
    (SCRIPT_ARGS_MAX + ((names) > 1 ? 1 + SCRIPT_NAME_ARGS * ((names)-1) : 0))
#define NUMBERS_OF(names) (SCRIPT_NUMBERS_MAX + ((names) > 1 ? (names) : 0))

static_assert(ARGS_OF(1) * BATCH_CALLS_MAX <= BATCH_ARGS_MAX,
              "calls for one name only have room for their arguments");
static_assert(ARGS_OF(NAMES_MAX) <= BATCH_ARGS_MAX,
              "an empty batch takes any call");
static_assert(NAMES_MAX * PREFIX_MAX + NAMES_LEN_MAX + TOKEN_MAX +
                      3 * CALL_STATE_MAX + CALL_NONCE_MAX + CALL_WITNESSES_MAX +
                      NUMBERS_OF(NAMES_MAX) * DIGITS_MAX <=
                  BATCH_BYTES_MAX,
              "an empty batch takes any call");

static bool has_room(const struct batch *batch, const struct call *call)
{
    int names = names_count(call->resource);
    assert(names <= NAMES_MAX && batch->prefix.len <= PREFIX_MAX &&
           call->resource.len <= NAMES_LEN_MAX && call->token.len <= TOKEN_MAX);
    size_t needed = (size_t)names * batch->prefix.len + call->resource.len +
                    call->token.len + call->admit.len + call->nonce.len +
                    call->found.len + call->mark.len + call->witnesses.len +
                    (size_t)NUMBERS_OF(names) * DIGITS_MAX;
    return batch->calls < BATCH_CALLS_MAX &&
           ARGS_OF(names) <= BATCH_ARGS_MAX - batch->args_count &&
           needed <= sizeof batch->bytes - batch->used;
}

/* Whether the call agrees with admit and window, which a batch has once. */
static bool fits(const struct batch *batch, const struct call *call)
{
    bool is_admit_same =
        batch->admit.len == 0 || call->admit.len == 0 ||
        (batch->admit.len == call->admit.len &&
         memcmp(batch->admit.ptr, call->admit.ptr, call->admit.len) == 0);
    bool is_window_same = batch->window_us == 0 || call->window_us == 0 ||
                          batch->window_us == call->window_us;
    return is_admit_same && is_window_same;
}

static struct span copy(struct batch *batch, struct span span)
{
    char *to = batch->bytes + batch->used;
    batch->used += span_copy(to, span);
    return (struct span){to, span.len};
}

static void add(struct batch *batch, struct span arg)
{
    assert(batch->args_count < BATCH_ARGS_MAX);
    batch->args[batch->args_count++] = arg;
}

static void add_number(struct batch *batch, int64_t number)
{
    char digits[DIGITS_MAX];
    assert(number >= 0);
    add(batch, copy(batch, span_of_number(digits, (uint64_t)number)));
}

/* prefix + name, of each name */
static void add_locks(struct batch *batch, struct span names)
{
    for (int left = names_count(names); left > 0; left--) {
        struct span lock = copy(batch, batch->prefix);
        lock.len += copy(batch, names_next(&names)).len;
        add(batch, lock);
    }
}

static void add_slots(struct batch *batch, const struct call *call)
{
    int count = names_count(call->resource);
    for (int i = 0; i < count; i++)
        add_number(batch, call->slots[i]);
}

/* The arguments that batch.lua counts for each kind. */
static void add_args(struct batch *batch, const struct call *call)
{
    int names = names_count(call->resource);
    if (names > 1)
        add_number(batch, names);
    add(batch, span_of(script_name(call->kind)));
    switch (call->kind) {
    case CALL_LOOK:
        add(batch, copy(batch, call->nonce));
        add_number(batch, call->node_deadline_us);
        add_number(batch, call->is_durable);
        add_number(batch, call->floor);
        add_number(batch, call->is_objecting);
        add(batch, copy(batch, call->witnesses));
        add_number(batch, call->latest_us);
        return;
    case CALL_ADMIT:
        add(batch, copy(batch, call->mark));
        add_number(batch, call->max_ttl_ms);
        add_number(batch, call->is_durable);
        add_number(batch, call->floor);
        return;
    case CALL_READMIT:
        add(batch, copy(batch, call->mark));
        add(batch, copy(batch, call->found));
        add_number(batch, call->is_durable);
        add_number(batch, call->floor);
        return;
    case CALL_REVOKE:
        add(batch, copy(batch, call->nonce));
        add_number(batch, call->node_deadline_us);
        add(batch, copy(batch, call->found));
        return;
    case CALL_ACQUIRE:
    case CALL_REPEAT:
    case CALL_EXTEND:
    case CALL_REPAIR:
        add_locks(batch, call->resource);
        add(batch, copy(batch, call->token));
        add_number(batch, call->ttl_ms);
        if (call->kind != CALL_EXTEND)
            add_number(batch, call->number);
        add_number(batch, call->node_deadline_us);
        add_slots(batch, call);
        if (call->kind == CALL_REPEAT || call->kind == CALL_REPAIR)
            add_number(batch, call->seen);
        return;
    case CALL_RELEASE:
        add_locks(batch, call->resource);
        add(batch, copy(batch, call->token));
        return;
    case CALL_INSPECT:
        add_locks(batch, call->resource);
        return;
    case CALL_LISTEN:
        add_number(batch, call->listen_us);
        return;
    case CALL_KINDS:
        return;
    }
}

bool batch_add(struct batch *batch, const struct call *call)
{
    assert(call->kind < CALL_KINDS);
    if (!has_room(batch, call) || !fits(batch, call))
        return false;
    if (batch->admit.len == 0)
        batch->admit = copy(batch, call->admit);
    if (batch->window_us == 0)
        batch->window_us = call->window_us;
    if (batch->median_us == 0)
        batch->median_us = call->median_us;
    batch->calls++;
    add_args(batch, call);
    return true;
}

/* ---- the command -------------------------------------------------------- */

static void append(struct batch_command *command, struct span arg)
{
    command->args[command->count++] = arg;
}

void batch_command(const struct batch *batch, const char *sha,
                   struct batch_command *command)
{
    assert(batch->calls > 0);
    command->count = 0;
    append(command, span_of("EVALSHA"));
    append(command, (struct span){sha, SCRIPT_SHA_LEN});
    append(command, span_of("1"));
    size_t len = span_copy(command->state_key, batch->prefix);
    len += span_copy(command->state_key + len, span_of(STATE_INFIX));
    append(command, (struct span){command->state_key, len});
    append(command, batch->admit);
    append(command,
           span_of_number(command->median, (uint64_t)batch->median_us));
    append(command,
           span_of_number(command->window, (uint64_t)batch->window_us));
    for (int i = 0; i < batch->args_count; i++)
        append(command, batch->args[i]);
}

void batch_reset(struct batch *batch)
{
    batch->calls = 0;
    batch->args_count = 0;
    batch->used = 0;
    batch->admit = (struct span){NULL, 0};
    batch->window_us = 0;
    batch->median_us = 0;
}

/* ---- the reply ---------------------------------------------------------- */

void batch_read(struct batch_reader *reader, const struct script_field *fields,
                int count, int calls)
{
    *reader = (struct batch_reader){
        .fields = fields,
        .count = count,
        .at = BATCH_HEAD_FIELDS,
        .all = {.vote = VOTE_GARBAGE},
    };
    if (count == 1 && fields[0].type == SCRIPT_FIELD_ERROR) {
        reader->all = script_decode_error(fields[0].string);
    } else if (count >= BATCH_HEAD_FIELDS &&
               fields[0].type == SCRIPT_FIELD_ARRAY &&
               fields[0].integer == BATCH_HEAD_FIELDS - 1 + calls &&
               script_is_time(&fields[1]) && script_is_number(&fields[2])) {
        reader->all.vote = VOTE_PENDING;
        reader->node_now_us = fields[1].integer;
        reader->beat = fields[2].integer;
    }
}

struct call_reply batch_next(struct batch_reader *reader, enum call_kind kind)
{
    if (reader->all.vote != VOTE_PENDING)
        return call_reply_of(reader->all);
    assert(reader->at < reader->count);
    const struct script_field *fields = &reader->fields[reader->at++];
    int count = 1;
    if (fields->type == SCRIPT_FIELD_ARRAY) {
        count = (int)fields->integer;
        reader->at += count;
        fields++;
    }
    struct call_reply reply =
        script_decode(kind, reader->node_now_us, fields, count);
    reply.beat = reader->beat;
    return reply;
}
