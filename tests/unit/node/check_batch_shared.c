/*
 * Which calls share a batch, and which of them may run at once: deadlines, and
 * semicolons.
 */
#include <stdlib.h>

#include "../../../server/node/batch.h"
#include "../../lib/suite/suite.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"

enum { KINDS_AT = BATCH_HEAD_ARGS - 3, DEADLINE_AT = BATCH_HEAD_ARGS - 4 };

static struct batch batch;

static void setup(void)
{
    memset(&batch, 0, sizeof batch);
    batch.prefix = span_of("p:");
}

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
static struct call call_of(char letter, int slot)
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
    struct call call = call_of(letter, slot);
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

SUITE(batch_shared, .set_up = setup);

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
    struct call call = call_of('a', 1);
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
    struct call call = call_of('a', 7);
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
    struct call call = call_of(letter, slot++ % FENCE_BUCKETS);
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
