/* SPDX-License-Identifier: MIT */
/*
 * How much a batch holds, which calls share one, and which of those may run at
 * once: deadlines, and semicolons. check_batch_replies.c has the replies. That
 * the script reads what is written here: transcripts/.
 */
#include <stdlib.h>

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
    resource[0] = names[0] = names[2] = token[0] = admit[0] = 'X';
    /* cppcheck-suppress unreadVariable; likewise */
    nonce[0] = found[0] = 'X';
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

/* ---- who shares a batch ------------------------------------------------- */

enum { KINDS_AT = BATCH_HEAD_ARGS - 3, DEADLINE_AT = BATCH_HEAD_ARGS - 4 };

static const char *head_word(int at)
{
    static struct batch_command command;
    static char word[BATCH_KINDS_MAX + 1];
    batch_command(&batch, SHA, &command);
    ck_assert_uint_lt(command.args[at].len, sizeof word);
    word[span_copy(word, command.args[at])] = '\0';
    return word;
}

/* ---- semicolons ---------------------------------------------------------- */

static const enum call_kind kinds[] = {
    ['a'] = CALL_ACQUIRE,   ['g'] = CALL_REPEAT,  ['e'] = CALL_EXTEND,
    ['p'] = CALL_REPLICATE, ['r'] = CALL_RELEASE, ['i'] = CALL_INSPECT,
    ['l'] = CALL_LISTEN,    ['k'] = CALL_PROBE};

/* The call of this letter; a capital one: for this slot and two others. */
static struct call call_in(char letter, int slot)
{
    bool is_several = letter < 'a';
    return (struct call){
        .kind = kinds[is_several ? letter - 'A' + 'a' : letter],
        .resource = span_of(is_several ? "x\ny\nz" : "r"),
        .token = span_of("T"),
        .admit = span_of("1:f:n:run"),
        .nonce = span_of("00ff"),
        .buckets = {(uint16_t)slot, 100, 101},
    };
}

static void add(char letter, int slot)
{
    struct call call = call_in(letter, slot);
    ck_assert(batch_add(&batch, &call));
}

/* Letters, a digit behind each for the slot. */
static const struct {
    const char *calls;
    const char *kinds;
} rows[] = {
    {"a1", "a"},
    {"a1a2r3a4", "aara"},
    /* of one slot */
    {"a1r1", "a;r"},
    {"r1a1", "r;a"},
    {"a1a1", "a;a"},
    {"r1r1", "r;r"},
    {"a0r0", "a;r"},
    /* only where they meet, and only since they were parted last */
    {"a1a2r3r2a4", "aar;ra"},
    {"a1a2r1r2a3", "aa;rra"},
    {"a1r1a2r2", "a;ra;r"},
    {"a1r1r1", "a;r;r"},
    {"a1r2a1r2a1r2", "ar;ar;ar"},
    /* calls of other kinds part them */
    {"a1e1r1", "aer"},
    {"a1i1r1", "air"},
    {"a1g1r1", "agr"},
    {"a1p1r1", "apr"},
    {"a1l1r1", "alr"},
    {"a1k1r1", "akr"},
    {"a1e2r1r1", "aer;r"},
    {"a1r1e1a1r1", "a;rea;r"},
    /* and so do those of several locks */
    {"a1A1r1", "aAr"},
    {"a1R1r1", "aRr"},
    {"A1A1", "AA"},
    {"R1R1", "RR"},
    {"A1r1", "Ar"},
    {"E1r1", "Er"},
};

TEST_EACH(a_semicolon_parts_calls_of_one_slot, rows)
{
    for (int again = 0; again < 2; again++) {
        for (const char *at = rows[_i].calls; *at != '\0'; at += 2)
            add(at[0], at[1] - '0');
        ck_assert_str_eq(head_word(KINDS_AT), rows[_i].kinds);
        batch_reset(&batch);
    }
}

/* A lock's slot is the same in all calls, another lock's may be. */
TEST(slots_count_not_names)
{
    struct call call = call_in('a', 1);
    ck_assert(batch_add(&batch, &call));
    call.resource = span_of("s");
    ck_assert(batch_add(&batch, &call));
    call.resource = span_of("r");
    call.buckets[0] = FENCE_BUCKETS - 1;
    ck_assert(batch_add(&batch, &call));
    ck_assert_str_eq(head_word(KINDS_AT), "a;aa");
}

TEST(a_batch_of_one_slot_has_room)
{
    for (int i = 0; i < BATCH_CALLS_MAX; i++)
        add(i % 2 == 0 ? 'a' : 'r', 7);
    struct call call = call_in('a', 7);
    ck_assert(!batch_add(&batch, &call));
    const char *word = head_word(KINDS_AT);
    ck_assert_uint_eq(strlen(word), 2 * BATCH_CALLS_MAX - 1);
    ck_assert_uint_le(strlen(word), BATCH_KINDS_MAX);
    for (int i = 0; i < BATCH_CALLS_MAX; i++) {
        ck_assert_int_eq(word[2 * i], i % 2 == 0 ? 'a' : 'r');
        ck_assert_int_eq(word[2 * i + 1], i < BATCH_CALLS_MAX - 1 ? ';' : 0);
    }
}

TEST(a_batch_of_as_many_slots_as_calls_has_none)
{
    for (int i = 0; i < BATCH_CALLS_MAX; i++)
        add('r', FENCE_BUCKETS - 1 - i);
    const char *word = head_word(KINDS_AT);
    ck_assert_uint_eq(strlen(word), BATCH_CALLS_MAX);
    ck_assert_uint_eq(strspn(word, "r"), BATCH_CALLS_MAX);
}

/* ---- deadlines ----------------------------------------------------------- */

enum { SLACK_US = BATCH_DEADLINES_US };

static const int64_t deadline_us = 1700000000123456;
static const char with_deadline[] = {'a', 'g', 'e', 'p'};
static const char without[] = {'r', 'i', 'l', 'k'};

/* Of a call with this deadline and a slot of its own. */
static bool may_add(char letter, int64_t us)
{
    static int slot;
    struct call call = call_in(letter, slot++ % FENCE_BUCKETS);
    call.node_deadline_us = us;
    return batch_add(&batch, &call);
}

static int64_t deadline(void)
{
    return strtoll(head_word(DEADLINE_AT), NULL, 10);
}

TEST_RANGE(the_earliest_deadline_is_that_of_the_batch, 0,
           (int)sizeof with_deadline)
{
    char letter = with_deadline[_i];
    ck_assert(may_add(letter, deadline_us));
    ck_assert_int_eq(deadline(), deadline_us);
    ck_assert(may_add(letter, deadline_us + 5));
    ck_assert_int_eq(deadline(), deadline_us);
    ck_assert(may_add(letter, deadline_us - 5));
    ck_assert_int_eq(deadline(), deadline_us - 5);
    ck_assert(may_add(letter, deadline_us));
    ck_assert_int_eq(deadline(), deadline_us - 5);
    batch_reset(&batch);
    ck_assert(may_add(letter, deadline_us + 3 * SLACK_US));
    ck_assert_int_eq(deadline(), deadline_us + 3 * SLACK_US);
}

TEST(deadlines_far_apart_share_no_batch)
{
    ck_assert_int_eq(SLACK_US, 2000);
    for (int i = 0; i < 4; i++) {
        ck_assert(may_add('a', deadline_us));
        ck_assert(!may_add(with_deadline[i], deadline_us + SLACK_US + 1));
        ck_assert(!may_add(with_deadline[i], deadline_us - SLACK_US - 1));
        ck_assert_int_eq(batch.calls, 1);
        ck_assert_int_eq(deadline(), deadline_us);
        ck_assert_str_eq(head_word(KINDS_AT), "a");
        ck_assert(may_add(with_deadline[i], deadline_us + SLACK_US));
        ck_assert_int_eq(deadline(), deadline_us);
        batch_reset(&batch);
        ck_assert(may_add('a', deadline_us));
        ck_assert(may_add(with_deadline[i], deadline_us - SLACK_US));
        ck_assert_int_eq(deadline(), deadline_us - SLACK_US);
        ck_assert(!may_add(with_deadline[i], deadline_us + 1));
        batch_reset(&batch);
    }
}

/* Whatever their field says. */
TEST_RANGE(calls_without_a_deadline_share_any_batch, 0, (int)sizeof without)
{
    char letter = without[_i];
    ck_assert(may_add(letter, deadline_us + 9 * SLACK_US));
    ck_assert_int_eq(deadline(), 0);
    ck_assert(may_add('a', deadline_us));
    ck_assert(may_add(letter, 0));
    ck_assert(may_add(letter, 1));
    ck_assert(may_add(letter, deadline_us - 9 * SLACK_US));
    ck_assert(may_add(letter, deadline_us + 9 * SLACK_US));
    ck_assert_int_eq(deadline(), deadline_us);
    ck_assert_int_eq(batch.calls, 6);
}
