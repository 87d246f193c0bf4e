/*
 * Batches as commands; check_batch_replies.c has their replies, and what they
 * do on a node is in check_lua.c and check_lua_several.c.
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
    .mark = {"1:run:m:0:n", 11},
    .dead = {"1:d:", 4},
    .witnesses = {"ab=1 mab=2", 10},
    .latest = {"17000000000000031234567890", CALL_BIRTH_LEN},
    .trace = {"ab:0:7", 6},
    .max_ttl_ms = 60000,
    .readers_max = 1000,
    .floor = 77,
    .median_us = 1700000000000000,
    .is_durable = true,
    .is_renewing = true,
    .is_established = true,
    .ttl_ms = 30000,
    .number = 9007199254740991,
    .node_deadline_us = 1700000000123456,
    .window_us = 15000000,
    .slots = {0, 5, FENCE_SLOTS - 1},
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
    if (kind < CALL_ACQUIRE || kind > CALL_REPAIR)
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

/* The head of a batch whose calls have an admission, … */
#define SEEN "1:f:n:run "
/* … and that of one whose calls have a deadline, too. */
#define SETS SEEN "15000000 1700000000123456 "

static const char *const kinds[CALL_KINDS] = {
    SEEN "0 0 k 00ff 1 77 0 ab=1 mab=2 17000000000000031234567890 1 60000 0 1 "
         "ab:0:7",
    SEEN "0 0 m 1:run:m:0:n 1 77 1700000000000000 ab=1 mab=2 60000 "
         "9007199254740991 1:d:",
    SEEN "0 0 n 1:run:m:0:n 1 77 1700000000000000 ab=1 mab=2 1:f:n:old 1:d:",
    SEEN "0 0 v 00ff 17000000000000031234567890 1:f:n:old",
    SETS "a 0 p:r T 30000",
    SETS "g p:r T 30000 0 1700000000000005 1000",
    SETS "e p:r T 30000 0",
    SETS "p p:r T 30000 0 1700000000000005 1001",
    " 0 0 r p:r T",
    " 0 0 i p:r",
    " 0 0 t p:r 9007199254740991",
    " 0 0 l 3000000",
    " 0 0 s 12 100 r",
    SEEN "0 0 f p:r 100 h",
};

SUITE(batch, .set_up = setup);

TEST_RANGE(a_call_is_encoded, 0, CALL_KINDS)
{
    struct call call = call_of((enum call_kind)_i);
    const char *expected =
        textf("EVALSHA " SHA " 1 p:redlockd:state %s", kinds[_i]);
    ck_assert(batch_add(&batch, &call));
    ck_assert_str_eq(command_words(), expected);
    batch_reset(&batch);
    ck_assert(batch_add(&batch, &call));
    ck_assert_str_eq(command_words(), expected);
}

TEST(several_calls_are_one_command)
{
    struct call release = call_of(CALL_RELEASE);
    struct call acquire = call_of(CALL_ACQUIRE);
    release.resource = span_of("q");
    release.slots[0] = 1;
    ck_assert(batch_add(&batch, &release));
    ck_assert(batch_add(&batch, &acquire));
    acquire.resource = span_of("s");
    acquire.token = span_of("U");
    acquire.slots[0] = FENCE_SLOTS - 1;
    ck_assert(batch_add(&batch, &acquire));
    acquire.resource = span_of("t");
    acquire.slots[0] = 7;
    acquire.ttl_ms = 500;
    ck_assert(batch_add(&batch, &acquire));
    ck_assert_str_eq(command_words(), "EVALSHA " SHA " 1 p:redlockd:state " SETS
                                      "raaa 3 1 0 16383 7 p:q T "
                                      "p:r T 30000 p:s U 30000 p:t U 500");
}

/* The spans of a call may be gone when the batch is sent. */
TEST(what_a_call_borrows_is_copied)
{
    char resource[] = "r", names[] = "a\nb", token[] = "T";
    char admit[] = "1:f:n:run";
    char nonce[] = "00ff", found[] = "1:f:n:old", witnesses[] = "ab=1";
    char mark[] = "1:run:m:0:n", dead[] = "1:d:";
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
    call.mark.ptr = mark;
    call.dead.ptr = dead;
    call.latest.ptr = latest;
    call.trace.ptr = trace;
    call.kind = CALL_READMIT;
    ck_assert(batch_add(&batch, &call));
    call.kind = CALL_LOOK;
    ck_assert(batch_add(&batch, &call));
    /* cppcheck-suppress unreadVariable; nobody may read them: the test */
    resource[0] = names[0] = names[2] = token[0] = admit[0] = nonce[0] =
        found[0] = 'X';
    /* cppcheck-suppress unreadVariable; likewise */
    witnesses[0] = mark[0] = dead[0] = latest[0] = trace[0] = 'X';
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

/* A probe marks nothing; a revocation need not know a mark. */
TEST(what_is_left_out_is_an_empty_argument)
{
    struct call call = call_of(CALL_LOOK);
    call.nonce = call.witnesses = call.latest = call.trace = span_of("");
    call.is_durable = call.is_renewing = call.is_established = false;
    call.is_objecting = call.is_watching = true;
    call.floor = call.max_ttl_ms = 0;
    ck_assert(batch_add(&batch, &call));
    call = call_of(CALL_REVOKE);
    call.found = call.latest = span_of("");
    ck_assert(batch_add(&batch, &call));
    ck_assert_str_eq(command_words(),
                     "EVALSHA " SHA " 1 p:redlockd:state 1:f:n:run 0 0 "
                     "kv 0 0  0 0 1   0 0 1 0  00ff  ");
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

static const struct {
    char letter;
    const char *args;
} several[CALL_KINDS] = {
    [CALL_ACQUIRE] = {'A', "p:a p:bc p:d T 30000 0 5 16383"},
    [CALL_REPEAT] = {'G',
                     "p:a p:bc p:d T 30000 0 5 16383 1700000000000005 1000"},
    [CALL_EXTEND] = {'E', "p:a p:bc p:d T 30000 0 5 16383"},
    [CALL_REPAIR] = {'P',
                     "p:a p:bc p:d T 30000 0 5 16383 1700000000000005 1001"},
    [CALL_RELEASE] = {'X', "p:a p:bc p:d T 1001"}, /* by force */
    [CALL_INSPECT] = {'I', "p:a p:bc p:d"},
    [CALL_TOKENS] = {'T', "p:a p:bc p:d 9007199254740991"},
};

/* Of the kinds with names, of which a batch has more than one. */
enum { FIRST = CALL_ACQUIRE, END = CALL_TOKENS };

TEST_RANGE(a_call_begins_with_the_count_of_its_names, FIRST, END + 1)
{
    struct call call = any, one = any;
    bool has_deadline = _i < CALL_RELEASE;
    one.kind = CALL_RELEASE;
    one.tombstone_ms = 0;
    call.kind = (enum call_kind)_i;
    call.resource = span_of("a\nbc\nd");
    const char *expected = textf("EVALSHA " SHA " 1 p:redlockd:state " SEEN
                                 "15000000 %s r%cr 0 2 p:r p:r T T 3 %s",
                                 has_deadline ? "1700000000123456" : "0",
                                 several[_i].letter, several[_i].args);
    ck_assert(batch_add(&batch, &one));
    ck_assert(batch_add(&batch, &call));
    ck_assert(batch_add(&batch, &one));
    ck_assert_str_eq(command_words(), expected);
}

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
    call.admit = call.found = call.mark = call.dead =
        (struct span){bytes, CALL_STATE_MAX};
    call.latest = (struct span){bytes, CALL_BIRTH_LEN};
    call.nonce = (struct span){bytes, CALL_NONCE_MAX};
    call.trace = (struct span){bytes, CALL_TRACE_MAX};
    call.witnesses = (struct span){bytes, CALL_WITNESSES_MAX};
    call.ttl_ms = call.number = call.node_deadline_us = call.seen =
        call.tombstone_ms = INT64_MAX;
    call.floor = call.median_us = call.max_ttl_ms = INT64_MAX;
    call.readers_max = READERS_MAX;
    for (int i = 0; i < NAMES_MAX; i++)
        call.slots[i] = UINT16_MAX;
    return call;
}

/* A node has one look at a time, after the other calls of the batch. */
TEST_RANGE(the_longest_calls_fit, CALL_LOOK, END)
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
