/* SPDX-License-Identifier: MIT */
/*
 * A prefix, and then calls for locks, a line each: the kind's letter, and the
 * names with blanks in between. There are few slots, and the longer the names,
 * the later is the deadline: so that some calls may not share a batch or a row.
 *
 * What a call does not fit into is full; an empty batch takes any call. Taken
 * apart like batch.lua does it, the command has the same calls in their order.
 */
#include <assert.h>

#include "../../server/engine/port/token.h"
#include "../../server/lock/names.h"
#include "../../server/node/batch.h"
#include "input.h"

enum {
    KINDS_AT = BATCH_HEAD_ARGS - 3,
    DEADLINE_AT = BATCH_HEAD_ARGS - 4,
    SLOTS = 8,
    LATER_US = 500, /* for each byte */
};

/* The calls of the batch that is being filled. */
struct calls {
    int count;
    struct call call[BATCH_CALLS_MAX];
    size_t used;
    char names[BATCH_BYTES_MAX];
};

/* ---- in ----------------------------------------------------------------- */

/* CALL_KINDS: this is none of the calls for locks. */
static enum call_kind kind_of(char letter)
{
    struct call call = {.kind = CALL_ACQUIRE};
    while (call.kind <= CALL_INSPECT && script_letter_of(&call) != letter)
        call.kind++;
    return call.kind <= CALL_INSPECT ? call.kind : CALL_KINDS;
}

/* False: this is no call that anybody makes. */
static bool read_call(struct span line, char names[NAMES_LEN_MAX],
                      struct call *call)
{
    enum call_kind kind = line.len > 2 ? kind_of(line.ptr[0]) : CALL_KINDS;
    struct span rest = {line.ptr + 2, line.len - 2};
    if (kind == CALL_KINDS || rest.len > NAMES_LEN_MAX)
        return false;
    (void)span_copy(names, rest);
    for (size_t i = 0; i < rest.len; i++)
        if (names[i] == ' ')
            names[i] = '\n';
    *call = (struct call){
        .kind = kind,
        .resource = {names, rest.len},
        .token = span_of("T"),
        .admit = span_of("1:f:n:run"),
        .ttl_ms = (int64_t)line.len,
        .node_deadline_us =
            INT64_C(1700000000000000) + (int64_t)rest.len * LATER_US,
        .window_us = 15000000,
        .seen = INT64_MAX,
        .tombstone_ms = kind == CALL_REPLICATE ? INT64_MAX : 0,
    };
    if (names_count(call->resource) > NAMES_MAX)
        return false;
    fence_buckets(call->resource, call->buckets);
    for (int i = 0; i < NAMES_MAX; i++)
        call->buckets[i] %= SLOTS;
    return true;
}

/* ---- out ---------------------------------------------------------------- */

static const struct span *take_text(const struct span *arg, struct span text)
{
    assert(span_is_same(*arg, text));
    return arg + 1;
}

static const struct span *take_number(const struct span *arg, int64_t number)
{
    char digits[DIGITS_MAX];
    return take_text(arg, span_of_number(digits, (uint64_t)number));
}

static const struct span *take_locks(const struct span *arg,
                                     const struct batch *batch,
                                     struct span names, int count)
{
    for (int i = 0; i < count; i++, arg++) {
        struct span name = names_next(&names);
        size_t len = batch->prefix.len;
        assert(arg->len >= len);
        assert(span_is_same((struct span){arg->ptr, len}, batch->prefix));
        assert(span_is_same(span_behind(*arg, len), name));
    }
    return arg;
}

/* Where the next arguments of each sort are. */
struct places {
    const struct span *slot; /* of acquires of one lock … */
    const struct span *lock; /* … and what is released: locks, … */
    const struct span *token;
    const struct span *arg; /* all others */
};

static struct places places_of(const struct calls *calls,
                               const struct batch_command *command)
{
    int acquires = 0, releases = 0;
    for (int i = 0; i < calls->count; i++) {
        const struct call *call = &calls->call[i];
        if (names_count(call->resource) > 1)
            continue;
        acquires += call->kind == CALL_ACQUIRE;
        releases += call->kind == CALL_RELEASE;
    }
    const struct span *slots = command->args + KINDS_AT + 1;
    if (calls->count > 1 || names_count(calls->call[0].resource) > 1) {
        slots = take_number(slots, acquires);
        slots = take_number(slots, releases);
    }
    const struct span *locks = slots + acquires;
    return (struct places){slots, locks, locks + releases,
                           locks + 2 * releases};
}

/* Takes off the arguments of the call. */
static void take_call(struct places *at, const struct batch *batch,
                      const struct call *call)
{
    int count = names_count(call->resource);
    if (count == 1 && call->kind == CALL_RELEASE) {
        at->lock = take_locks(at->lock, batch, call->resource, 1);
        at->token = take_text(at->token, call->token);
        return;
    }
    if (count > 1)
        at->arg = take_number(at->arg, count);
    at->arg = take_locks(at->arg, batch, call->resource, count);
    if (call->kind == CALL_INSPECT)
        return;
    at->arg = take_text(at->arg, call->token);
    if (call->kind == CALL_RELEASE)
        return;
    at->arg = take_number(at->arg, call->ttl_ms);
    if (count == 1 && call->kind == CALL_ACQUIRE) {
        at->slot = take_number(at->slot, call->buckets[0]);
        return;
    }
    for (int i = 0; i < count; i++)
        at->arg = take_number(at->arg, call->buckets[i]);
    if (call->kind == CALL_REPEAT || call->kind == CALL_REPLICATE)
        at->arg = take_number(at->arg, call->seen);
    if (call->kind == CALL_REPEAT)
        at->arg = take_number(at->arg, call->readers_max);
    if (call->kind == CALL_REPLICATE)
        at->arg = take_number(at->arg, call->tombstone_ms);
}

/*
 * A letter for each call. The script runs acquires and releases of one lock
 * each at once until a letter of another kind or a semicolon comes: they have
 * different slots. A semicolon stands only where they would not.
 */
static void check_kinds(const struct calls *calls, struct span kinds)
{
    unsigned row = 0; /* the slots of this one */
    size_t at = 0;
    assert(kinds.len <= BATCH_KINDS_MAX);
    for (int i = 0; i < calls->count; i++, at++) {
        const struct call *call = &calls->call[i];
        bool is_single = names_count(call->resource) == 1;
        bool is_in_row = is_single && (call->kind == CALL_ACQUIRE ||
                                       call->kind == CALL_RELEASE);
        bool meets = is_in_row && (row & 1u << call->buckets[0]) != 0;
        assert(at < kinds.len && (kinds.ptr[at] == ';') == meets);
        at += meets;
        row = is_in_row ? (meets ? 0 : row) | 1u << call->buckets[0] : 0;
        char letter = script_letter_of(call);
        assert(at < kinds.len &&
               kinds.ptr[at] == (is_single ? letter : letter - 'a' + 'A'));
    }
    assert(at == kinds.len);
}

/* The earliest of those calls that have one. */
static int64_t deadline_of(const struct calls *calls)
{
    int64_t earliest_us = 0;
    for (int i = 0; i < calls->count; i++) {
        const struct call *call = &calls->call[i];
        bool has_one = call->kind != CALL_RELEASE && call->kind != CALL_INSPECT;
        if (has_one &&
            (earliest_us == 0 || call->node_deadline_us < earliest_us))
            earliest_us = call->node_deadline_us;
    }
    return earliest_us;
}

static void check(struct batch *batch, struct calls *calls)
{
    static struct batch_command command;
    if (calls->count == 0)
        return;
    assert(batch->calls == calls->count);
    assert(batch->args_count <= BATCH_ARGS_MAX);
    assert(batch->used <= BATCH_BYTES_MAX);
    batch_command(batch, "0123456789abcdef0123456789abcdef01234567", &command);
    (void)take_number(&command.args[DEADLINE_AT], deadline_of(calls));
    check_kinds(calls, command.args[KINDS_AT]);
    struct places at = places_of(calls, &command);
    for (int i = 0; i < calls->count; i++)
        take_call(&at, batch, &calls->call[i]);
    assert(at.arg == command.args + command.count);
    batch_reset(batch);
    calls->count = 0;
    calls->used = 0;
}

void fuzz(struct input *input)
{
    static struct batch batch;
    static struct calls calls;
    char names[NAMES_LEN_MAX];
    struct call call;
    batch.prefix = input_line(input);
    if (batch.prefix.len > PREFIX_MAX)
        batch.prefix.len = PREFIX_MAX;
    batch_reset(&batch);
    calls.count = 0;
    calls.used = 0;
    while (input_has_more(input)) {
        if (!read_call(input_line(input), names, &call))
            continue;
        if (!batch_add(&batch, &call)) {
            check(&batch, &calls);
            bool is_added = batch_add(&batch, &call);
            assert(is_added);
        }
        char *kept = calls.names + calls.used;
        calls.used += span_copy(kept, call.resource);
        call.resource.ptr = kept;
        calls.call[calls.count++] = call;
    }
    check(&batch, &calls);
}
