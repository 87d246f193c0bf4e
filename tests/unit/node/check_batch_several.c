/*
 * Calls for several names in batches; what they do on a node is
 * check_lua_several.c.
 */
#include <stdio.h>

#include "../../../server/node/batch.h"
#include "../../lib/suite/suite.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"
#define ADMIT "1:f:n:run"

static struct batch batch;

static void setup(void)
{
    memset(&batch, 0, sizeof batch);
    batch.prefix = span_of("p:");
}

/* For one name. */
static struct call call_of(enum call_kind kind)
{
    return (struct call){
        .kind = kind,
        .resource = span_of("r"),
        .token = span_of("T"),
        .admit = span_of(ADMIT),
        .median_us = 1700000000000000,
        .ttl_ms = 30000,
        .number = 9007199254740991,
        .node_deadline_us = 1700000000123456,
        .window_us = 15000000,
        .slots = {0, 5, FENCE_SLOTS - 1},
        .seen = 1700000000000005,
    };
}

/* The words of the command, joined by spaces. */
static const char *command_words(void)
{
    static char words[2 * BATCH_BYTES_MAX];
    static struct batch_command command;
    size_t len = 0;
    batch_command(&batch, SHA, &command);
    ck_assert_int_le(command.count, BATCH_COMMAND_MAX);
    for (int i = 0; i < command.count; i++) {
        len += span_copy(words + len, command.args[i]);
        words[len++] = ' ';
    }
    words[len - 1] = '\0';
    return words;
}

static const struct {
    char letter;
    const char *args;
} kinds[CALL_KINDS] = {
    [CALL_ACQUIRE] = {'A', "p:a p:bc p:d T 30000 0 5 16383"},
    [CALL_REPEAT] = {'G', "p:a p:bc p:d T 30000 0 5 16383 1700000000000005"},
    [CALL_EXTEND] = {'E', "p:a p:bc p:d T 30000 0 5 16383"},
    [CALL_REPAIR] = {'P', "p:a p:bc p:d T 30000 0 5 16383 1700000000000005"},
    [CALL_RELEASE] = {'R', "p:a p:bc p:d T"},
    [CALL_INSPECT] = {'I', "p:a p:bc p:d"},
};

enum { FIRST = CALL_ACQUIRE, END = CALL_LISTEN };
SUITE(batch_several, .set_up = setup);

/* of kinds with names */

TEST_RANGE(a_call_begins_with_the_count_of_its_names, FIRST, END)
{
    char expected[512];
    struct call call = call_of((enum call_kind)_i);
    struct call one = call_of(CALL_RELEASE);
    bool has_deadline = _i != CALL_RELEASE && _i != CALL_INSPECT;
    call.resource = span_of("a\nbc\nd");
    snprintf(expected, sizeof expected,
             "EVALSHA " SHA " 1 p:redlockd:state " ADMIT
             " 1700000000000000 15000000 %s r%cr 0 2 p:r p:r T T 3 %s",
             has_deadline ? "1700000000123456" : "0", kinds[_i].letter,
             kinds[_i].args);
    ck_assert(batch_add(&batch, &one));
    ck_assert(batch_add(&batch, &call));
    ck_assert(batch_add(&batch, &one));
    ck_assert_str_eq(command_words(), expected);
}

/* NAMES_MAX names that are together as long as they may be. */
static struct span longest_names(void)
{
    static char text[NAMES_LEN_MAX];
    memset(text, 'r', NAMES_LEN_MAX);
    for (int i = 1; i < NAMES_MAX; i++)
        text[i * NAMES_LEN_MAX / NAMES_MAX] = '\n';
    return (struct span){text, NAMES_LEN_MAX};
}

/* Each of its fields is; numbers are only as long as they get. */
static struct call longest_call(enum call_kind kind)
{
    static char bytes[CALL_WITNESSES_MAX];
    memset(bytes, 'x', sizeof bytes);
    struct call call = call_of(kind);
    call.resource = longest_names();
    call.token = (struct span){bytes, TOKEN_MAX};
    call.admit = call.found = call.mark = (struct span){bytes, CALL_STATE_MAX};
    call.nonce = (struct span){bytes, CALL_NONCE_MAX};
    call.witnesses = (struct span){bytes, CALL_WITNESSES_MAX};
    call.ttl_ms = call.number = call.node_deadline_us = call.seen = INT64_MAX;
    for (int i = 0; i < NAMES_MAX; i++)
        call.slots[i] = UINT16_MAX;
    return call;
}

TEST_RANGE(an_empty_batch_takes_the_longest_call, FIRST, END)
{
    static char prefix[PREFIX_MAX];
    memset(prefix, 'p', sizeof prefix);
    batch.prefix = (struct span){prefix, sizeof prefix};
    struct call call = longest_call((enum call_kind)_i);
    int calls = 0;
    while (batch_add(&batch, &call))
        calls++;
    ck_assert_int_ge(calls, 4);
    ck_assert_uint_le(batch.used, sizeof batch.bytes);
    ck_assert_uint_gt(strlen(command_words()), (size_t)calls * NAMES_LEN_MAX);
}

/* Wherever the last one ends: what does not fit is not begun. */
TEST_RANGE(calls_of_each_length_fit, FIRST, END)
{
    for (size_t len = 2 * NAMES_MAX; len <= NAMES_LEN_MAX; len++) {
        struct call call = longest_call((enum call_kind)_i);
        call.resource.len = len;
        batch_reset(&batch);
        while (batch_add(&batch, &call))
            ck_assert_uint_le(batch.used, sizeof batch.bytes);
    }
}

/* Short names: it is not the bytes that are too many. */
TEST_RANGE(the_arguments_have_room, FIRST, END)
{
    struct call several = call_of((enum call_kind)_i);
    struct call one = call_of((enum call_kind)_i);
    several.resource =
        span_of("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np");
    for (int before = 0; before < BATCH_CALLS_MAX; before++) {
        int calls = 0;
        batch_reset(&batch);
        for (; calls < before; calls++)
            ck_assert(batch_add(&batch, &one));
        for (; batch_add(&batch, &several); calls++)
            ck_assert_int_le(batch.args_count, BATCH_ARGS_MAX);
        ck_assert(before > 0 || calls < BATCH_CALLS_MAX);
        for (; batch_add(&batch, &one); calls++)
            ck_assert_int_le(batch.args_count, BATCH_ARGS_MAX);
        ck_assert_uint_lt(batch.used, sizeof batch.bytes / 2);
        ck_assert_int_le(batch.calls, BATCH_CALLS_MAX);
    }
}

TEST(the_names_are_copied)
{
    char names[] = "a\nb";
    struct call call = call_of(CALL_INSPECT);
    call.resource = span_of(names);
    ck_assert(batch_add(&batch, &call));
    memset(names, 'X', sizeof names - 1);
    ck_assert_ptr_null(strchr(command_words(), 'X'));
}
