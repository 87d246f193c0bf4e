/*
 * A prefix, and then calls for locks, a line each: a letter for the kind, and
 * the names with blanks in between.
 *
 * What a call does not fit into is full; an empty batch takes any call. Taken
 * apart like batch.lua does it, the command has the same calls in their order.
 */
#include <assert.h>

#include "../../server/base/names.h"
#include "../../server/node/batch.h"
#include "input.h"

enum { HEAD_ARGS = BATCH_HEAD_ARGS, KINDS_AT = CALL_ACQUIRE };

static const char letters[] = {'a', 'p', 'e', 'r', 'd', 'i'};

/* The calls of the batch that is being filled. */
struct calls {
    int count;
    struct call call[BATCH_CALLS_MAX];
    size_t used;
    char names[BATCH_BYTES_MAX];
};

/* ---- in ----------------------------------------------------------------- */

/* False: this is no call that anybody makes. */
static bool read_call(struct span line, char names[NAMES_LEN_MAX],
                      struct call *call)
{
    const char *letter =
        line.len > 2 ? memchr(letters, line.ptr[0], sizeof letters) : NULL;
    struct span rest = {line.ptr + 2, line.len - 2};
    if (letter == NULL || rest.len > NAMES_LEN_MAX)
        return false;
    (void)span_copy(names, rest);
    for (size_t i = 0; i < rest.len; i++)
        if (names[i] == ' ')
            names[i] = '\n';
    *call = (struct call){
        .kind = (enum call_kind)(KINDS_AT + (letter - letters)),
        .resource = {names, rest.len},
        .token = span_of("T"),
        .admit = span_of("1:f:n:run"),
        .ttl_ms = (int64_t)line.len,
        .number = INT64_MAX,
        .node_deadline_us = INT64_MAX,
        .window_us = 15000000,
        .seen = INT64_MAX,
    };
    for (int i = 0; i < NAMES_MAX; i++)
        call->slots[i] = (uint16_t)(FENCE_SLOTS - 1 - i);
    return names_count(call->resource) <= NAMES_MAX;
}

/* ---- out ---------------------------------------------------------------- */

static bool is_text(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static const struct span *take_text(const struct span *arg, struct span text)
{
    assert(is_text(*arg, text));
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
        assert(arg->len == len + name.len);
        assert(is_text((struct span){arg->ptr, len}, batch->prefix));
        assert(is_text((struct span){arg->ptr + len, name.len}, name));
    }
    return arg;
}

/* Takes off the arguments of the call; returns what follows them. */
static const struct span *take_call(const struct span *arg,
                                    const struct batch *batch,
                                    const struct call *call)
{
    int count = names_count(call->resource);
    bool is_extend = call->kind == CALL_EXTEND;
    if (count > 1)
        arg = take_number(arg, count);
    assert(arg->len > 2); /* no count */
    arg = take_text(arg, span_of(script_name(call->kind)));
    arg = take_locks(arg, batch, call->resource, count);
    if (call->kind == CALL_INSPECT)
        return arg;
    arg = take_text(arg, call->token);
    if (call->kind == CALL_RELEASE)
        return arg;
    arg = take_number(arg, call->ttl_ms);
    if (!is_extend)
        arg = take_number(arg, call->number);
    arg = take_number(arg, call->node_deadline_us);
    for (int i = 0; i < count; i++)
        arg = take_number(arg, call->slots[i]);
    if (call->kind == CALL_REPEAT || call->kind == CALL_REPAIR)
        arg = take_number(arg, call->seen);
    return arg;
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
    const struct span *arg = command.args + HEAD_ARGS;
    for (int i = 0; i < calls->count; i++)
        arg = take_call(arg, batch, &calls->call[i]);
    assert(arg == command.args + command.count);
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
