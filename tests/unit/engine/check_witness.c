/* SPDX-License-Identifier: MIT */
/*
 * What nodes tell of each other: high-water marks, whose word counts, and when.
 */
#include <stdio.h>

#include "../../../server/engine/port/port.h"
#include "../../../server/engine/voting/witness.h"
#include "../../lib/suite/suite.h"

enum { NODES = 5, NOW_US = 1000 };

/* A greater digit is later. */
#define INCARNATION(digit) "000000000000000" #digit "0123456789"
#define NUMBER(digit) "0000000000000000000000000" #digit
#define OF_NODE(generation, incarnation)                                       \
    "%s=" generation " m%s=" incarnation " "

static const char *const names[NODES_MAX] = {"a", "b", "c", "d", "e",
                                             "f", "g", "h", "i"};
static struct witness witness;
static enum call_probe_word word; /* of probes */

static void begin(void)
{
    witness_init(&witness, names, NODES);
    word = PROBE_ADMITTED;
}

static struct span incarnation(char digit)
{
    static char text[] = INCARNATION(0);
    text[15] = digit;
    return span_of(text);
}

/* Zeros that end in these digits. */
static size_t put(char *to, const char *digits)
{
    size_t len = strspn(digits, "0123456789");
    memset(to, '0', INCARNATION_LEN);
    memcpy(to + INCARNATION_LEN - len, digits, len);
    return INCARNATION_LEN;
}

static void hear(int node, struct span text, int64_t sent_us)
{
    const struct call_probe probe = {.word = word, .witnesses = text};
    witness_on_report(&witness, node, &probe, sent_us, NOW_US);
}

/* What the node has heard of others, as "a=1 mb=2"; 2' is an incarnation. Told
 * by a probe that left at this moment. */
static void tell(int node, const char *text, int64_t sent_us)
{
    char heard[CALL_WITNESSES_MAX + 1] = "";
    size_t len = 0;
    for (int i = 0; i < witness.count; i++)
        for (int j = 0; j < 2 && i != node; j++) {
            const char key[] = {' ', j == 0 ? ' ' : 'm', (char)('a' + i), '=',
                                '\0'};
            char padded[256] = "  ";
            strcat(padded, text);
            const char *at = strstr(padded, key + (j == 0));
            if (at != NULL && at[5 - (j == 0)] == '\'')
                len += span_copy(heard + len, incarnation(at[4 - (j == 0)]));
            else
                len += put(heard + len, at != NULL ? strchr(at, '=') + 1 : "");
        }
    hear(node, (struct span){heard, len}, sent_us);
}

static void expect_high_waters(int64_t a, int64_t b, int64_t c, int64_t d,
                               int64_t e)
{
    const int64_t high_waters[NODES] = {a, b, c, d, e};
    for (int i = 0; i < NODES; i++)
        ck_assert_int_eq(witness.node[i].high_water, high_waters[i]);
}

SUITE(witness, .set_up = begin);

/* ---- high-water marks ---------------------------------------------------- */

TEST(a_generation_raises_the_high_water_and_never_lowers_it)
{
    expect_high_waters(0, 0, 0, 0, 0);
    witness_on_generation(&witness, 2, 7);
    witness_on_generation(&witness, 2, 6);
    witness_on_generation(&witness, 3, 0);
    witness_on_generation(&witness, 4, -1);
    expect_high_waters(0, 0, 7, 0, 0);
}

TEST(what_is_known_of_the_others_is_written_for_a_node)
{
    char text[CALL_WITNESSES_MAX + 1];
    witness_on_generation(&witness, 0, 5);
    witness_on_generation(&witness, 2, 70);
    witness_on_incarnation(&witness, 3, INCARNATION(3), NOW_US);
    witness_on_incarnation(&witness, 2, INCARNATION(4), NOW_US);
    struct span span = witness_text(&witness, 2, text, sizeof text);
    const char *expected = textf(
        OF_NODE(NUMBER(5), NUMBER(0)) OF_NODE(NUMBER(0), NUMBER(0))
            OF_NODE(NUMBER(0), INCARNATION(3)) OF_NODE(NUMBER(0), NUMBER(0)),
        witness.node[0].name, witness.node[0].name, witness.node[1].name,
        witness.node[1].name, witness.node[3].name, witness.node[3].name,
        witness.node[4].name, witness.node[4].name);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(span.len, strlen(expected));
    ck_assert_ptr_eq(span.ptr, text);
}

TEST(what_a_node_has_heard_raises_the_high_waters_and_tells_of_incarnations)
{
    tell(2, "a=5 ma=5' b=6 mb=0 d=0 md=4' e=9", 10);
    expect_high_waters(5, 6, 0, 0, 9);
    tell(3, "a=4 ma=4' b=7 mb=6' c=1 e=9 me=7'", 20);
    expect_high_waters(5, 7, 1, 0, 9);
    const char *const latest[NODES] = {INCARNATION(5), INCARNATION(6),
                                       NUMBER(0), INCARNATION(4),
                                       INCARNATION(7)};
    for (int i = 0; i < NODES; i++)
        ck_assert_str_eq(witness.node[i].latest, latest[i]);
}

TEST(when_a_high_water_or_an_incarnation_became_known_is_kept)
{
    tell(2, "a=5 ma=5'", 10);
    witness_on_generation(&witness, 1, 5); /* by its own word */
    ck_assert_int_eq(witness.node[0].rose_us, NOW_US);
    ck_assert_int_eq(witness.node[0].born_us, NOW_US);
    ck_assert_int_eq(witness.node[1].rose_us, 0);
    witness_on_incarnation(&witness, 0, INCARNATION(5),
                           2 * NOW_US); /* is known */
    ck_assert_int_eq(witness.node[0].born_us, NOW_US);
    witness_on_incarnation(&witness, 0, INCARNATION(6), 2 * NOW_US);
    ck_assert_int_eq(witness.node[0].born_us, 2 * NOW_US);
}

/* ---- incarnations -------------------------------------------------------- */

TEST(a_later_incarnation_is_the_latest_and_an_earlier_one_is_not)
{
    ck_assert(!witness_knows_later(&witness, 0, ""));
    witness_on_incarnation(&witness, 0, INCARNATION(5), NOW_US);
    witness_on_incarnation(&witness, 0, INCARNATION(4), NOW_US);
    ck_assert_str_eq(witness.node[0].latest, INCARNATION(5));
    ck_assert(witness_knows_later(&witness, 0, INCARNATION(4)));
    ck_assert(!witness_knows_later(&witness, 0, INCARNATION(5)));
    ck_assert(!witness_knows_later(&witness, 0, INCARNATION(6)));
    /* by the last digit of the chance: no two are equal */
    ck_assert(!witness_knows_later(&witness, 0, "00000000000000050123456789"));
    ck_assert(witness_knows_later(&witness, 0, "00000000000000050123456788"));
}

/* Texts of nodes 1 and 2 in turn; who carries the latest incarnation of a then.
 */
static const struct {
    const char *of_1, *of_2;
    unsigned carriers;
} carried[] = {
    {"a=0 ma=5'", "a=0 ma=5'", 1u << 1 | 1u << 2},
    {"a=0 ma=5'", "a=0 ma=6'", 1u << 2},
    {"a=0 ma=6'", "a=0 ma=5'", 1u << 1},
    {"a=0 ma=5'", "a=0 ma=0", 1u << 1},
    {"a=0 ma=5'", "a=0 ma=5", 1u << 1},
    {"a=0 ma=0", "a=0 ma=0", 1u << 1 | 1u << 2}, /* none */
};

TEST_EACH(who_tells_the_latest_incarnation_carries_it, carried)
{
    tell(1, carried[_i].of_1, 10);
    tell(2, carried[_i].of_2, 10);
    ck_assert_uint_eq(witness.node[0].carriers, carried[_i].carriers);
    uint32_t joins = witness.node[0].joins;
    tell(2, carried[_i].of_2, 20);
    ck_assert_uint_eq(witness.node[0].joins, joins);
    witness_on_lost(&witness, 1); /* its data may be another one now */
    ck_assert_uint_eq(witness.node[0].carriers,
                      carried[_i].carriers & ~(1u << 1));
    tell(1, carried[_i].of_1, 20);
    ck_assert_uint_eq(witness.node[0].carriers, carried[_i].carriers);
    ck_assert_uint_eq(witness.node[0].joins,
                      joins + (carried[_i].carriers >> 1 & 1u));
    witness_on_incarnation(&witness, 0, INCARNATION(9), NOW_US);
    ck_assert_uint_eq(witness.node[0].carriers, 0);
    tell(1, "ma=9'", 30);
    ck_assert_uint_eq(witness.node[0].joins,
                      joins + 1 + (carried[_i].carriers >> 1 & 1u));
}

/* It may be an old copy; who asks it wants its vote. */
TEST(who_is_not_admitted_carries_nothing)
{
    word = PROBE_QUARANTINED;
    tell(1, "a=4 ma=5'", 10);
    expect_high_waters(4, 0, 0, 0, 0);
    ck_assert_str_eq(witness.node[0].latest, INCARNATION(5));
    ck_assert_uint_eq(witness.node[0].carriers, 0);
    word = PROBE_ADMITTED;
    tell(1, "a=4 ma=5'", 20);
    ck_assert_uint_eq(witness.node[0].carriers, 1u << 1);
    ck_assert_uint_eq(witness.node[0].joins, 1);
}

/* ---- the text ------------------------------------------------------------ */

/* Cut off behind this many bytes, or with another byte at its end. */
static const struct {
    int len;
    char last;
} damages[] = {
    {0, '\0'},  {1, '9'},   {207, '9'}, {209, '9'},
    {208, ' '}, {208, '/'}, {208, ':'}, {208, '\0'},
};

TEST_EACH(a_text_that_is_damaged_is_ignored_as_a_whole, damages)
{
    char text[256];
    size_t len = (size_t)damages[_i].len;
    memset(text, '9', sizeof text);
    for (int i = 0; i < 4; i++)
        memset(text + i * 2 * INCARNATION_LEN, '0', INCARNATION_LEN - 1);
    hear(2, (struct span){text, 208}, 9);
    expect_high_waters(9, 9, 0, 9, 9);
    witness_init(&witness, names, NODES);
    text[len > 0 ? len - 1 : 0] = damages[_i].last;
    hear(2, (struct span){text, len}, 10);
    expect_high_waters(0, 0, 0, 0, 0);
    for (int i = 0; i < NODES; i++)
        ck_assert_uint_eq(witness.node[i].carriers, 0);
    /* it is there all the same */
    ck_assert_int_eq(witness.node[2].reported_us, 10);
}

/* No memory has a generation as high: the node would never vote again. */
TEST(a_number_that_lua_cannot_tell_raises_no_high_water)
{
    tell(2, "a=9007199254740992 b=9007199254740993 d=7", 10);
    expect_high_waters(INT64_C(1) << 53, 0, 0, 7, 0);
    tell(2, "a=9007199254740992 b=9223372036854775807 d=8", 10);
    tell(2, "a=0 b=99999999999999999999999999 d=8", 10);
    expect_high_waters(INT64_C(1) << 53, 0, 0, 8, 0);
}

/* ---- since when ---------------------------------------------------------- */

/* Since the first probe that found it so: the others may write there since. */
TEST(how_long_a_memory_counts_is_kept)
{
    tell(1, "", 100);
    tell(1, "", 350);
    ck_assert_int_eq(witness.node[1].counts_us, 100);
    ck_assert_int_eq(witness.node[1].reported_us, 350);
    witness_on_lost(&witness, 1);
    ck_assert_int_eq(witness.node[1].reported_us, 0);
    tell(1, "", 360); /* it begins anew */
    ck_assert_int_eq(witness.node[1].counts_us, 360);
}
