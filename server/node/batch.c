/* SPDX-License-Identifier: MIT */
#include "batch.h"

#include <assert.h>
#include <ctype.h>

#include "../lock/names.h"

/* ---- calls -------------------------------------------------------------- */

/*
 * The most that a call with so many names takes, whatever its kind. Several
 * need numbers for their count and for a bucket each.
 */
#define ARGS_OF(names)                                                         \
    (SCRIPT_ARGS_MAX + ((names) > 1 ? 1 + SCRIPT_NAME_ARGS * ((names)-1) : 0))
#define NUMBERS_OF(names) (SCRIPT_NUMBERS_MAX + ((names) > 1 ? (names) : 0))

static_assert(ARGS_OF(1) * BATCH_CALLS_MAX <= BATCH_ARGS_MAX,
              "calls for one name only have room for their arguments");
static_assert(ARGS_OF(NAMES_MAX) <= BATCH_ARGS_MAX,
              "an empty batch takes any call");
static_assert(NAMES_MAX * PREFIX_MAX + NAMES_LEN_MAX + TOKEN_MAX +
                      4 * CALL_STATE_MAX + CALL_NONCE_MAX + CALL_WITNESSES_MAX +
                      INCARNATION_LEN + CALL_TRACE_MAX +
                      NUMBERS_OF(NAMES_MAX) * DIGITS_MAX <=
                  BATCH_BYTES_MAX,
              "an empty batch takes any call");

static int count_args(const struct batch *batch)
{
    return batch->acquires + 2 * batch->releases + batch->args_count;
}

static bool has_room(const struct batch *batch, const struct call *call)
{
    int names = names_count(call->resource);
    /* limits of body.c, cursor.c and options.c */
    assert(names <= NAMES_MAX && batch->prefix.len <= PREFIX_MAX &&
           call->resource.len <= NAMES_LEN_MAX && call->token.len <= TOKEN_MAX);
    size_t needed = (size_t)names * batch->prefix.len + call->resource.len +
                    call->token.len + call->admit.len + call->nonce.len +
                    call->found.len + call->quarantine.len + call->dead.len +
                    call->witnesses.len + call->latest.len + call->trace.len +
                    call->key_hash.len + (size_t)NUMBERS_OF(names) * DIGITS_MAX;
    return batch->calls < BATCH_CALLS_MAX &&
           ARGS_OF(names) <= BATCH_ARGS_MAX - count_args(batch) &&
           needed <= sizeof batch->bytes - batch->used;
}

/* Whether a reply lists names or tokens. */
static bool is_listing(enum call_kind kind)
{
    return kind == CALL_SCAN || kind == CALL_TOKENS;
}

/* Whether the call agrees with what a batch has once. */
static bool batch_fits(const struct batch *batch, const struct call *call)
{
    bool is_admit_same = batch->admit.len == 0 || call->admit.len == 0 ||
                         span_is_same(batch->admit, call->admit);
    bool is_window_same = batch->window_us == 0 || call->window_us == 0 ||
                          batch->window_us == call->window_us;
    /* a reply has room for one list */
    bool is_only_list = !is_listing(call->kind) || !batch->has_list;
    bool is_reported = call->kind != CALL_SLOTS ||
                       call->count <= BATCH_SLOTS_MAX - batch->slots_reported;
    /* an earlier deadline is safe: the node only refuses sooner */
    bool is_deadline_near =
        !batch->is_timed || !call_asks_for_vote(call->kind) ||
        (call->node_deadline_us - batch->deadline_us <= BATCH_DEADLINES_US &&
         batch->latest_us - call->node_deadline_us <= BATCH_DEADLINES_US);
    return is_admit_same && is_window_same && is_only_list && is_reported &&
           is_deadline_near;
}

static struct span copy(struct batch *batch, struct span span)
{
    char *to = batch->bytes + batch->used;
    batch->used += span_copy(to, span);
    return (struct span){to, span.len};
}

static void batch_push(struct batch *batch, struct span arg)
{
    assert(batch->args_count < BATCH_ARGS_MAX);
    batch->args[batch->args_count++] = arg;
}

static struct span copy_number(struct batch *batch, int64_t number)
{
    char digits[DIGITS_MAX];
    assert(number >= 0); /* cursor.c and locks.c read no other */
    return copy(batch, span_of_number(digits, (uint64_t)number));
}

static void add_number(struct batch *batch, int64_t number)
{
    batch_push(batch, copy_number(batch, number));
}

/* prefix + name */
static struct span copy_lock(struct batch *batch, struct span name)
{
    struct span lock = copy(batch, batch->prefix);
    lock.len += copy(batch, name).len;
    return lock;
}

static void add_locks(struct batch *batch, struct span names)
{
    for (int left = names_count(names); left > 0; left--)
        batch_push(batch, copy_lock(batch, names_next(&names)));
}

/*
 * The script runs acquires and releases of one lock each in another order. So a
 * semicolon parts those that may be about the same lock or bucket; a lock's
 * bucket is always the same.
 */
static void part_buckets(struct batch *batch, const struct call *call)
{
    assert(batch->buckets_count < BATCH_CALLS_MAX);
    for (int i = 0; i < batch->buckets_count; i++)
        if (batch->buckets[i] == call->buckets[0]) {
            batch->kinds[batch->kinds_count++] = ';';
            batch->buckets_count = 0;
        }
    batch->buckets[batch->buckets_count++] = call->buckets[0];
}

/*
 * Adds an acquire or release of one lock, which are most calls. Arguments that
 * the script reads at once are together.
 */
static void add_single(struct batch *batch, const struct call *call,
                       char letter)
{
    struct span lock = copy_lock(batch, call->resource);
    struct span token = copy(batch, call->token);
    part_buckets(batch, call);
    batch->kinds[batch->kinds_count++] = letter;
    if (call->kind == CALL_RELEASE) {
        batch->locks[batch->releases] = lock;
        batch->tokens[batch->releases++] = token;
        return;
    }
    batch_push(batch, lock);
    batch_push(batch, token);
    add_number(batch, call->ttl_ms);
    if (letter == SCRIPT_SHARE)
        add_number(batch, call->readers_max);
    batch->buckets_of[batch->acquires++] = copy_number(batch, call->buckets[0]);
}

/* The part of an admission about the node's data. */
static void add_data(struct batch *batch, const struct call *call)
{
    batch_push(batch, copy(batch, call->quarantine));
    add_number(batch, call->is_durable);
    add_number(batch, call->high_water);
    add_number(batch, call->median_us);
    batch_push(batch, copy(batch, call->witnesses));
}

static void add_probe(struct batch *batch, const struct call *call)
{
    batch_push(batch, copy(batch, call->nonce));
    add_number(batch, call->is_durable);
    add_number(batch, call->high_water);
    add_number(batch, call->is_objecting);
    batch_push(batch, copy(batch, call->witnesses));
    batch_push(batch, copy(batch, call->latest));
    add_number(batch, call->is_renewing);
    add_number(batch, call->max_ttl_ms);
    add_number(batch, call->is_watching);
    add_number(batch, call->is_established);
    batch_push(batch, copy(batch, call->trace));
}

/* What was seen before a repeat or a replication, and what limits who joins. */
static void add_seen(struct batch *batch, const struct call *call, char letter)
{
    if (call->kind == CALL_REPEAT || call->kind == CALL_REPLICATE)
        add_number(batch, call->seen);
    if (call->kind == CALL_REPEAT || letter == SCRIPT_SHARE)
        add_number(batch, call->readers_max);
    if (call->kind == CALL_REPLICATE)
        add_number(batch, call->tombstone_ms);
}

/* The arguments that batch.lua and row.lua count for each kind. */
static void add_args(struct batch *batch, const struct call *call)
{
    int names = names_count(call->resource);
    char letter = script_letter_of(call);
    if (names == 1 &&
        (letter == 'a' || letter == SCRIPT_SHARE || letter == 'r')) {
        add_single(batch, call, letter);
        return;
    }
    batch->buckets_count = 0; /* it parts what is before it from the rest */
    if (names > 1) {
        add_number(batch, names);
        letter = (char)(letter - 'a' + 'A');
    }
    batch->kinds[batch->kinds_count++] = letter;
    switch (call->kind) {
    case CALL_PROBE:
        add_probe(batch, call);
        return;
    case CALL_ADMIT:
        add_data(batch, call);
        add_number(batch, call->max_ttl_ms);
        add_number(batch, call->number);
        batch_push(batch, copy(batch, call->dead));
        return;
    case CALL_READMIT:
        add_data(batch, call);
        batch_push(batch, copy(batch, call->found));
        batch_push(batch, copy(batch, call->dead));
        return;
    case CALL_REVOKE:
        batch_push(batch, copy(batch, call->nonce));
        batch_push(batch, copy(batch, call->latest));
        batch_push(batch, copy(batch, call->found));
        return;
    case CALL_ACQUIRE:
    case CALL_REPEAT:
    case CALL_EXTEND:
    case CALL_REPLICATE:
        add_locks(batch, call->resource);
        batch_push(batch, copy(batch, call->token));
        add_number(batch, call->ttl_ms);
        for (int i = 0; i < names; i++)
            add_number(batch, call->buckets[i]);
        add_seen(batch, call, script_letter_of(call));
        return;
    case CALL_RELEASE:
    case CALL_INSPECT:
    case CALL_TOKENS:
        add_locks(batch, call->resource);
        if (call->kind == CALL_RELEASE)
            batch_push(batch, copy(batch, call->token));
        if (call->kind == CALL_RELEASE && call->tombstone_ms > 0)
            add_number(batch, call->tombstone_ms);
        if (call->kind == CALL_TOKENS)
            add_number(batch, call->number);
        return;
    case CALL_LISTEN:
        add_number(batch, call->listen_us);
        return;
    case CALL_SCAN:
        add_number(batch, call->cursor);
        add_number(batch, call->count);
        batch_push(batch, copy(batch, call->resource));
        return;
    case CALL_SLOTS:
        assert(call->count > 0 && call->count <= POOL_SLOTS_MAX);
        batch_push(batch, copy_lock(batch, call->resource));
        add_number(batch, call->count);
        batch_push(batch, copy(batch, call->key_hash));
        batch->slots_reported += call->count;
        return;
    case CALL_KINDS:
        return;
    }
}

bool batch_add(struct batch *batch, const struct call *call)
{
    assert(call->kind < CALL_KINDS);
    if (!has_room(batch, call) || !batch_fits(batch, call))
        return false;
    if (batch->admit.len == 0)
        batch->admit = copy(batch, call->admit);
    if (batch->window_us == 0)
        batch->window_us = call->window_us;
    if (call_asks_for_vote(call->kind)) {
        int64_t deadline_us = call->node_deadline_us;
        if (!batch->is_timed || deadline_us < batch->deadline_us)
            batch->deadline_us = deadline_us;
        if (!batch->is_timed || deadline_us > batch->latest_us)
            batch->latest_us = deadline_us;
        batch->is_timed = true;
    }
    batch->has_list |= is_listing(call->kind);
    batch->calls++;
    int before = count_args(batch);
    add_args(batch, call);
    /* its fields change how long its arguments are, and not how many */
    assert(count_args(batch) - before <= ARGS_OF(names_count(call->resource)));
    return true;
}

/* ---- the command -------------------------------------------------------- */

static void append(struct batch_command *command, const struct span *args,
                   int count)
{
    for (int i = 0; i < count; i++)
        command->args[command->count++] = args[i];
}

void batch_command(const struct batch *batch, const char *sha,
                   struct batch_command *command)
{
    assert(batch->calls > 0);
    size_t len = span_copy(command->state_key, batch->prefix);
    len += span_copy(command->state_key + len, span_of(SCRIPT_STATE));
    const struct span head[BATCH_HEAD_ARGS] = {
        span_of("EVALSHA"),
        {sha, SCRIPT_SHA_LEN},
        span_of("1"),
        {command->state_key, len},
        batch->admit,
        span_of_number(command->window, (uint64_t)batch->window_us),
        span_of_number(command->deadline, (uint64_t)batch->deadline_us),
        {batch->kinds, (size_t)batch->kinds_count},
        span_of_number(command->acquires, (uint64_t)batch->acquires),
        span_of_number(command->releases, (uint64_t)batch->releases),
    };
    /* the counts would tell nothing of one call about one lock or none */
    bool has_counts =
        batch->kinds_count != 1 || isupper((unsigned char)*batch->kinds);
    command->count = 0;
    append(command, head, has_counts ? BATCH_HEAD_ARGS : BATCH_HEAD_ARGS - 2);
    append(command, batch->buckets_of, batch->acquires);
    append(command, batch->locks, batch->releases);
    append(command, batch->tokens, batch->releases);
    append(command, batch->args, batch->args_count);
}

void batch_reset(struct batch *batch)
{
    memset(batch, 0, offsetof(struct batch, prefix));
}

/* ---- the reply ---------------------------------------------------------- */

void batch_read(struct batch_reader *reader, const struct script_field *fields,
                int count, int calls)
{
    assert(count > 0 && calls > 0);
    *reader = (struct batch_reader){
        .fields = fields,
        .count = count,
        .at = BATCH_HEAD_FIELDS,
        .all = call_reply_of((struct ballot){.vote = VOTE_UNREADABLE}),
    };
    if (count == 1 && fields[0].type == SCRIPT_FIELD_ERROR) {
        reader->all = script_error_reply(fields[0].string);
        return;
    }
    if (count < BATCH_HEAD_FIELDS || fields[0].type != SCRIPT_FIELD_ARRAY ||
        !script_is_time(&fields[1]) || !script_is_number(&fields[2]) ||
        fields[3].type != SCRIPT_FIELD_STRING ||
        fields[3].string.len != (size_t)calls)
        return;
    /* a letter for each call, and a detail where that says so */
    int details = 0;
    for (int i = 0; i < calls; i++)
        details += fields[3].string.ptr[i] == '.';
    if (fields[0].integer != BATCH_HEAD_FIELDS - 1 + details)
        return;
    reader->all.vote = VOTE_PENDING;
    reader->node_now_us = fields[1].integer;
    reader->generation = fields[2].integer;
    reader->letter = fields[3].string.ptr;
}

/* A call's detail: an error, or an array. */
static struct call_reply read_detail(struct batch_reader *reader,
                                     enum call_kind kind)
{
    assert(reader->at < reader->count); /* batch_read has counted them */
    const struct script_field *fields = &reader->fields[reader->at++];
    int count = 1;
    if (fields->type == SCRIPT_FIELD_ARRAY) {
        count = (int)fields->integer;
        reader->at += count;
        fields++;
    }
    return script_decode(kind, reader->node_now_us, fields, count);
}

struct call_reply batch_next(struct batch_reader *reader, enum call_kind kind)
{
    if (reader->all.vote != VOTE_PENDING)
        return reader->all;
    char letter = *reader->letter++;
    struct call_reply reply =
        letter == '.' ? read_detail(reader, kind)
                      : script_decode_letter(kind, reader->node_now_us, letter);
    reply.generation = reader->generation;
    return reply;
}
