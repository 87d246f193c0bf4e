/*
 * How much a batch holds, and whose calls; check_batch_replies.c has the
 * replies. That the script reads what is written here: transcripts/.
 */

#include "../../../server/node/batch.h"
#include "../../lib/suite/suite.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"

static struct batch batch;

static void setup(void)
{
    memset(&batch, 0, sizeof batch);
    batch.prefix = span_of("p:");
}

static const struct call any = {
    .resource = {"r", 1},
    .token = {"T", 1},
    .admit = {"1:f:n:run", 9},
    .nonce = {"00ff", 4},
    .found = {"1:f:n:old", 9},
    .quarantine = {"1:run:m:0:n", 11},
    .dead = {"1:d:", 4},
    .witnesses = {"ab=1 mab=2", 10},
    .latest = {"17000000000000031234567890", INCARNATION_LEN},
    .trace = {"ab:0:7", 6},
    .max_ttl_ms = 60000,
    .readers_max = 1000,
    .high_water = 77,
    .median_us = 1700000000000000,
    .is_durable = true,
    .is_renewing = true,
    .is_established = true,
    .ttl_ms = 30000,
    .number = 9007199254740991,
    .node_deadline_us = 1700000000123456,
    .window_us = 15000000,
    .buckets = {0, 5, FENCE_BUCKETS - 1},
    .seen = 1700000000000005,
    .tombstone_ms = 1001,
    .listen_us = CALL_LISTEN_US,
    .cursor = 12,
    .count = 100,
    .key_hash = {"h", 1},
};

static struct call call_of(enum call_kind kind)
{
    struct call call = any;
    call.kind = kind;
    if (kind >= CALL_RELEASE && kind < CALL_SLOTS)
        call.admit = span_of("");
    if (kind < CALL_ACQUIRE || kind > CALL_REPLICATE)
        call.window_us = 0;
    if (kind == CALL_RELEASE) /* not by force */
        call.tombstone_ms = 0;
    return call;
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

SUITE(batch, .set_up = setup);

/* The spans of a call may be gone when the batch is sent. */
TEST(what_a_call_borrows_is_copied)
{
    char resource[] = "r", names[] = "a\nb", token[] = "T";
    char admit[] = "1:f:n:run";
    char nonce[] = "00ff", found[] = "1:f:n:old", witnesses[] = "ab=1";
    char quarantine[] = "1:run:m:0:n", dead[] = "1:d:";
    char latest[] = "17000000000000031234567890", trace[] = "ab:0:7";
    struct call call = call_of(CALL_ACQUIRE);
    call.resource.ptr = resource;
    call.token.ptr = token;
    call.admit.ptr = admit;
    ck_assert(batch_add(&batch, &call));
    call.resource = span_of(names);
    ck_assert(batch_add(&batch, &call));
    call.nonce.ptr = nonce;
    call.found.ptr = found;
    call.witnesses.ptr = witnesses;
    call.witnesses.len = 4;
    call.quarantine.ptr = quarantine;
    call.dead.ptr = dead;
    call.latest.ptr = latest;
    call.trace.ptr = trace;
    call.kind = CALL_READMIT;
    ck_assert(batch_add(&batch, &call));
    call.kind = CALL_PROBE;
    ck_assert(batch_add(&batch, &call));
    /* cppcheck-suppress unreadVariable; nobody may read them: the test */
    resource[0] = names[0] = names[2] = token[0] = admit[0] = nonce[0] =
        found[0] = 'X';
    /* cppcheck-suppress unreadVariable; likewise */
    witnesses[0] = quarantine[0] = dead[0] = latest[0] = trace[0] = 'X';
    ck_assert_ptr_null(strchr(command_words(), 'X'));
}

TEST(calls_of_another_admission_wait_for_the_next_batch)
{
    struct call call = call_of(CALL_ACQUIRE);
    struct call inspect = call_of(CALL_INSPECT);
    ck_assert(batch_add(&batch, &inspect));
    ck_assert(batch_add(&batch, &call));
    call.admit = span_of("2:f:n:run");
    ck_assert(!batch_add(&batch, &call));
    call.admit = any.admit;
    call.window_us++;
    ck_assert(!batch_add(&batch, &call));
    ck_assert(batch_add(&batch, &inspect));
    ck_assert_int_eq(batch.calls, 3);
    batch_reset(&batch);
    ck_assert(batch_add(&batch, &call));
}

TEST(it_has_a_limit)
{
    struct call call = call_of(CALL_ACQUIRE);
    for (int i = 0; i < BATCH_CALLS_MAX; i++)
        ck_assert(batch_add(&batch, &call));
    ck_assert(!batch_add(&batch, &call));
    (void)command_words();
}

/* ---- several names ------------------------------------------------------- */

/* Of the kinds with names, of which a batch has more than one. */
enum { FIRST = CALL_ACQUIRE, END = CALL_TOKENS };

/* Short names: it is not the bytes that are too many. */
TEST_RANGE(the_arguments_have_room, FIRST, END)
{
    struct call call = call_of((enum call_kind)_i);
    struct call one = call_of((enum call_kind)_i);
    call.resource = span_of("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np");
    for (int before = 0; before < BATCH_CALLS_MAX; before++) {
        int calls = 0;
        batch_reset(&batch);
        for (; calls < before; calls++)
            ck_assert(batch_add(&batch, &one));
        for (; batch_add(&batch, &call); calls++)
            ck_assert_int_le(batch.args_count, BATCH_ARGS_MAX);
        ck_assert(before > 0 || calls < BATCH_CALLS_MAX);
        for (; batch_add(&batch, &one); calls++)
            ck_assert_int_le(batch.args_count, BATCH_ARGS_MAX);
        ck_assert_uint_lt(batch.used, sizeof batch.bytes / 2);
        ck_assert_int_le(batch.calls, BATCH_CALLS_MAX);
    }
}

/* ---- lengths ------------------------------------------------------------- */

/* Each of its fields is as long as it may be. */
static struct call longest_call(enum call_kind kind, int names)
{
    static char bytes[CALL_WITNESSES_MAX], text[NAMES_LEN_MAX];
    struct call call = call_of(kind);
    memset(bytes, 'x', sizeof bytes);
    memset(text, 'r', sizeof text);
    for (int i = 1; i < names; i++)
        text[i * NAMES_LEN_MAX / names] = '\n';
    call.resource.ptr = text;
    call.resource.len = names == 1 ? RESOURCE_MAX : NAMES_LEN_MAX;
    call.token = (struct span){bytes, TOKEN_MAX};
    call.admit = call.found = call.quarantine = call.dead =
        (struct span){bytes, CALL_STATE_MAX};
    call.latest = (struct span){bytes, INCARNATION_LEN};
    call.nonce = (struct span){bytes, CALL_NONCE_MAX};
    call.trace = (struct span){bytes, CALL_TRACE_MAX};
    call.witnesses = (struct span){bytes, CALL_WITNESSES_MAX};
    call.ttl_ms = call.number = call.node_deadline_us = call.seen =
        call.tombstone_ms = INT64_MAX;
    call.high_water = call.median_us = call.max_ttl_ms = INT64_MAX;
    call.readers_max = READERS_MAX;
    for (int i = 0; i < NAMES_MAX; i++)
        call.buckets[i] = UINT16_MAX;
    return call;
}

/* A node has one probe of a time, after the other calls of the batch. */
TEST_RANGE(the_longest_calls_fit, CALL_PROBE, END)
{
    static char prefix[PREFIX_MAX];
    memset(prefix, 'p', sizeof prefix);
    batch.prefix = (struct span){prefix, sizeof prefix};
    for (int names = 1; names <= NAMES_MAX; names += NAMES_MAX - 1) {
        struct call call = longest_call((enum call_kind)_i, names);
        size_t least = _i < FIRST ? 1 : call.resource.len;
        int calls = 0;
        batch_reset(&batch);
        while (batch_add(&batch, &call))
            calls++;
        ck_assert_int_ge(calls, names == 1 ? 10 : 4);
        ck_assert_uint_le(batch.used, sizeof batch.bytes);
        ck_assert_uint_gt(strlen(command_words()), (size_t)calls * least);
    }
}

/* Wherever the last one ends: what does not fit is not begun. */
TEST_RANGE(calls_of_each_length_fit, FIRST, END)
{
    for (int names = 1; names <= NAMES_MAX; names += NAMES_MAX - 1) {
        struct call call = longest_call((enum call_kind)_i, names);
        size_t most = call.resource.len;
        if (names == 1)
            call.token = any.token;
        for (size_t len = names == 1 ? 1 : 2 * NAMES_MAX; len <= most; len++) {
            call.resource.len = len;
            batch_reset(&batch);
            while (batch_add(&batch, &call))
                ck_assert_uint_le(batch.used, sizeof batch.bytes);
        }
    }
}
