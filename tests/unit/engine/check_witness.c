/*
 * What nodes tell of each other: floors, whose word counts, and when.
 */
#include <stdio.h>

#include "../../../server/engine/fingerprint.h"
#include "../../../server/engine/witness.h"
#include "../../lib/suite/suite.h"

enum { NODES = 5, QUORUM = 3, NOW_US = 1000 };

/* A greater digit is later. */
#define BIRTH(digit) "000000000000000" #digit "0123456789"
#define NUMBER(digit) "0000000000000000000000000" #digit

static const char *const names[NODES_MAX] = {"a", "b", "c", "d", "e",
                                             "f", "g", "h", "i"};
static struct witness witness;

static void begin(void)
{
    witness_init(&witness, names, NODES, QUORUM);
}

static struct span birth(char digit)
{
    static char text[] = BIRTH(0);
    text[15] = digit;
    return span_of(text);
}

/* What the node has heard of others, as "a=1 b=2"; 2' is a birth, ~2 is not
 * filled up with zeros. Told by a look that left at this moment; the last bytes
 * stand behind the text. */
static void tell_part(int node, const char *text, size_t cut, int64_t sent_us)
{
    char hashed[512];
    size_t len = 0;
    for (; *text != '\0'; text++) {
        struct span part = {text, 1};
        if (*text >= 'a' && *text <= 'a' + NODES - 1)
            part = span_of(witness.node[*text - 'a'].name);
        else if (*text >= '0' && *text <= '9' && text[1] == '\'')
            part = birth(*text++);
        else if (*text == '~' || (*text >= '0' && *text <= '9')) {
            bool is_raw = *text == '~';
            text += is_raw;
            part = (struct span){text, strspn(text, "0123456789")};
            for (size_t i = part.len; i < CALL_BIRTH_LEN && !is_raw; i++)
                hashed[len++] = '0';
            text += part.len - 1;
        }
        len += span_copy(hashed + len, part);
    }
    const struct witness_words words = {
        .text = {hashed, len - cut}, .sent_us = sent_us, .now_us = NOW_US};
    witness_on_told(&witness, node, &words);
}

static void tell(int node, const char *text, int64_t sent_us)
{
    tell_part(node, text, 0, sent_us);
}

static void expect_floors(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e)
{
    const int64_t floors[NODES] = {a, b, c, d, e};
    for (int i = 0; i < NODES; i++)
        ck_assert_int_eq(witness.node[i].floor, floors[i]);
}

SUITE(witness, .set_up = begin);

/* ---- floors -------------------------------------------------------------- */

TEST(a_beat_raises_the_floor_and_never_lowers_it)
{
    expect_floors(0, 0, 0, 0, 0);
    witness_on_beat(&witness, 2, 7);
    witness_on_beat(&witness, 2, 6);
    witness_on_beat(&witness, 3, 0);
    witness_on_beat(&witness, 4, -1);
    expect_floors(0, 0, 7, 0, 0);
}

TEST(what_is_known_of_the_others_is_written_for_a_node)
{
    char text[CALL_WITNESSES_MAX + 1], expected[CALL_WITNESSES_MAX + 1];
    witness_on_beat(&witness, 0, 5);
    witness_on_beat(&witness, 2, 70);
    witness_on_birth(&witness, 3, BIRTH(3), NOW_US);
    witness_on_birth(&witness, 2, BIRTH(4), NOW_US);
    struct span span = witness_text(&witness, 2, text, sizeof text);
    snprintf(
        expected, sizeof expected,
        "%s=" NUMBER(5) " m%s=" NUMBER(0) " %s=" NUMBER(0) " m%s=" NUMBER(
            0) " %s=" NUMBER(0) " m%s=" BIRTH(3) " %s=" NUMBER(0) " m%"
                                                                  "s=" NUMBER(
                                                                      0),
        witness.node[0].name, witness.node[0].name, witness.node[1].name,
        witness.node[1].name, witness.node[3].name, witness.node[3].name,
        witness.node[4].name, witness.node[4].name);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(span.len, strlen(expected));
    ck_assert_ptr_eq(span.ptr, text);
}

TEST(the_longest_text_fits)
{
    char text[CALL_WITNESSES_MAX + 1];
    witness_init(&witness, names, NODES_MAX, NODES_MAX / 2 + 1);
    for (int i = 0; i < NODES_MAX; i++) {
        witness_on_beat(&witness, i, INT64_MAX);
        witness_on_birth(&witness, i, BIRTH(9), NOW_US);
    }
    struct span span = witness_text(&witness, 4, text, sizeof text);
    ck_assert_uint_le(span.len, CALL_WITNESSES_MAX);
}

TEST(what_one_server_writes_another_one_reads)
{
    char text[CALL_WITNESSES_MAX + 1];
    struct witness other;
    witness_init(&witness, names, NODES_MAX, NODES_MAX / 2 + 1);
    witness_init(&other, names, NODES_MAX, NODES_MAX / 2 + 1);
    for (int i = 0; i < NODES_MAX; i++) {
        witness_on_beat(&witness, i, (INT64_C(1) << 53) - i);
        witness_on_birth(&witness, i, birth((char)('1' + i)).ptr, NOW_US);
    }
    const struct witness_words words = {
        .text = witness_text(&witness, 4, text, sizeof text), .sent_us = 1};
    witness_on_told(&other, 4, &words);
    for (int i = 0; i < NODES_MAX; i++) {
        ck_assert_int_eq(other.node[i].floor,
                         i == 4 ? 0 : (INT64_C(1) << 53) - i);
        ck_assert_str_eq(other.node[i].latest,
                         i == 4 ? "" : birth((char)('1' + i)).ptr);
        ck_assert_uint_eq(other.node[i].carriers, i == 4 ? 0 : 1u << 4);
    }
}

TEST(a_single_node_has_nobody_to_tell_of_it)
{
    char text[8] = "x";
    witness_init(&witness, names, 1, 1);
    ck_assert_uint_eq(witness_text(&witness, 0, text, sizeof text).len, 0);
    ck_assert_str_eq(text, "");
    tell(0, "", 10);
    ck_assert(!witness_have_told(&witness, 0, &(struct witness_demand){0}));
}

TEST(what_a_node_has_heard_raises_the_floors_and_tells_of_births)
{
    tell(2, "a=5 ma=5' b=6 mb=0 d=0 md=4' e=9", 10);
    expect_floors(5, 6, 0, 0, 9);
    tell(3, "a=4 ma=4' b=7 mb=6' c=1 mc=~7 e=9 me=7'", 20);
    expect_floors(5, 7, 1, 0, 9);
    const char *const latest[NODES] = {BIRTH(5), BIRTH(6), "", BIRTH(4),
                                       BIRTH(7)};
    for (int i = 0; i < NODES; i++)
        ck_assert_str_eq(witness.node[i].latest, latest[i]);
}

TEST(when_a_floor_or_a_birth_became_known_is_kept)
{
    tell(2, "a=5 ma=5'", 10);
    witness_on_beat(&witness, 1, 5); /* by its own word */
    ck_assert_int_eq(witness.node[0].rose_us, NOW_US);
    ck_assert_int_eq(witness.node[0].born_us, NOW_US);
    ck_assert_int_eq(witness.node[1].rose_us, 0);
    witness_on_birth(&witness, 0, BIRTH(5), 2 * NOW_US); /* is known */
    ck_assert_int_eq(witness.node[0].born_us, NOW_US);
    witness_on_birth(&witness, 0, BIRTH(6), 2 * NOW_US);
    ck_assert_int_eq(witness.node[0].born_us, 2 * NOW_US);
}

/* ---- births -------------------------------------------------------------- */

TEST(a_later_birth_is_the_latest_and_an_earlier_one_is_not)
{
    ck_assert(!witness_knows_later(&witness, 0, ""));
    witness_on_birth(&witness, 0, BIRTH(5), NOW_US);
    witness_on_birth(&witness, 0, BIRTH(4), NOW_US);
    ck_assert_str_eq(witness.node[0].latest, BIRTH(5));
    ck_assert(witness_knows_later(&witness, 0, BIRTH(4)));
    ck_assert(!witness_knows_later(&witness, 0, BIRTH(5)));
    ck_assert(!witness_knows_later(&witness, 0, BIRTH(6)));
    /* by the last digit of the chance: no two are equal */
    ck_assert(!witness_knows_later(&witness, 0, "00000000000000050123456789"));
    ck_assert(witness_knows_later(&witness, 0, "00000000000000050123456788"));
}

/* Texts of nodes 1 and 2 in turn; who carries the latest birth of a then. */
static const struct {
    const char *of_1, *of_2;
    unsigned carriers;
} carried[] = {
    {"a=0 ma=5'", "a=0 ma=5'", 1u << 1 | 1u << 2},
    {"a=0 ma=5'", "a=0 ma=6'", 1u << 2},
    {"a=0 ma=6'", "a=0 ma=5'", 1u << 1},
    {"a=0 ma=5'", "a=0 ma=0", 1u << 1},
    {"a=0 ma=5'", "a=0 ma=5", 1u << 1},
    {"a=0 ma=0", "a=0", 0},
};

TEST_EACH(who_tells_the_latest_birth_carries_it, carried)
{
    tell(1, carried[_i].of_1, 10);
    tell(2, carried[_i].of_2, 10);
    ck_assert_uint_eq(witness.node[0].carriers, carried[_i].carriers);
    witness_on_lost(&witness, 1); /* its memory may be another one now */
    ck_assert_uint_eq(witness.node[0].carriers,
                      carried[_i].carriers & ~(1u << 1));
    witness_on_birth(&witness, 0, BIRTH(9), NOW_US);
    ck_assert_uint_eq(witness.node[0].carriers, 0);
}

/* ---- the text ------------------------------------------------------------ */

static const struct {
    const char *text;
    int64_t a, b, d, e;
} texts[] = {
    {"", 0, 0, 0, 0},
    {"a", 0, 0, 0, 0},
    {"a=", 0, 0, 0, 0},
    {"a=5", 5, 0, 0, 0},
    {"a=5 ", 5, 0, 0, 0},
    {"a=5 b", 5, 0, 0, 0},
    {"a=x b=6", 0, 6, 0, 0},
    {"a=-5 b=6", 0, 6, 0, 0},
    {"a=~5 b=~06 d=7", 0, 0, 7, 0}, /* too short */
    {"b=6 d=7", 0, 6, 7, 0},        /* of fewer nodes */
    {"b=6 a=7 d=8", 7, 6, 8, 0},
    {"c=9 a=5", 5, 0, 0, 0}, /* of itself */
    {"ma=5 b=6", 0, 6, 0, 0},
    {"a=5 b=6 d=7 e=8 a=9", 5, 6, 7, 8},
};

TEST_EACH(a_text_is_read_as_far_as_it_makes_sense, texts)
{
    tell(2, texts[_i].text, 10);
    expect_floors(texts[_i].a, texts[_i].b, 0, texts[_i].d, texts[_i].e);
    ck_assert_int_eq(witness.node[2].told_us,
                     10); /* it is there all the same */
}

TEST(what_stands_behind_a_text_is_not_read)
{
    tell_part(2, "a=5 b=67", 1, 10);
    expect_floors(5, 0, 0, 0, 0);
    tell_part(2, "a=8 b=99", 0, 20);
    expect_floors(8, 99, 0, 0, 0);
}

/* No memory has a beat as high: the node would never vote again. */
TEST(a_number_that_lua_cannot_tell_raises_no_floor)
{
    tell(2, "a=9007199254740992 b=9007199254740993 d=7", 10);
    expect_floors(INT64_C(1) << 53, 0, 0, 7, 0);
    tell(2, "a=9007199254740992 b=9223372036854775807 d=8", 10);
    tell(2, "a=0 b=99999999999999999999999999999999999999 d=8", 10);
    expect_floors(INT64_C(1) << 53, 0, 0, 8, 0);
}

/* ---- whose word counts --------------------------------------------------- */

static bool have_told(int node, int64_t since_us, int64_t long_us)
{
    const struct witness_demand demand = {.since_us = since_us,
                                          .long_us = long_us};
    return witness_have_told(&witness, node, &demand);
}

TEST(enough_others_share_a_node_with_each_majority)
{
    static const int enough[NODES_MAX + 1] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 5};
    for (int nodes = 1; nodes <= NODES_MAX; nodes++) {
        int quorum = nodes / 2 + 1;
        witness_init(&witness, names, nodes, quorum);
        for (int told = 0; told < nodes; told++) {
            bool is_enough = told >= enough[nodes];
            /* a majority with the node in it has quorum - 1 of the others */
            ck_assert(is_enough == (told + quorum - 1 > nodes - 1));
            ck_assert(have_told(0, 0, 0) == is_enough);
            if (told < nodes - 1)
                tell(told + 1, "", 10);
        }
    }
}

TEST(a_node_is_no_witness_of_itself)
{
    for (int i = 0; i < 3; i++)
        tell(i, "", 10);
    ck_assert(!have_told(0, 0, 0));
    ck_assert(have_told(3, 0, 0));
}

TEST(looks_of_before_tell_nothing)
{
    for (int i = 1; i < 4; i++)
        tell(i, "", 10 * i);
    ck_assert(have_told(0, 10, 0));
    ck_assert(!have_told(0, 11, 0));
    tell(1, "", 40);
    ck_assert(have_told(0, 20, 0));
}

/* Since the first look that found it so: the others may write there since. */
TEST(those_whose_memory_counts_for_long_are_heard)
{
    for (int i = 1; i < 4; i++) {
        tell(i, "", 100 * i);
        tell(i, "", 350);
    }
    ck_assert(have_told(0, 0, 50));
    ck_assert(!have_told(0, 0, 51));
    tell(3, "", 351);
    ck_assert(have_told(0, 0, 51));
    witness_on_lost(&witness, 2);
    tell(2, "", 360); /* it begins anew */
    ck_assert(have_told(0, 0, 0));
    ck_assert(!have_told(0, 0, 1));
}

TEST(those_who_vote_may_be_asked_for)
{
    const struct witness_demand voters = {.must_be_admitted = true};
    for (int i = 1; i < 5; i++) {
        const struct witness_words words = {.is_admitted = i < 3,
                                            .sent_us = 10};
        witness_on_told(&witness, i, &words);
    }
    ck_assert(have_told(0, 0, 0));
    ck_assert(!witness_have_told(&witness, 0, &voters));
    const struct witness_words words = {.is_admitted = true, .sent_us = 20};
    witness_on_told(&witness, 3, &words);
    ck_assert(witness_have_told(&witness, 0, &voters));
}

TEST(who_has_lost_its_memory_is_no_witness_any_more)
{
    for (int i = 1; i < 4; i++)
        tell(i, "a=7", 10);
    ck_assert(have_told(0, 0, 0));
    witness_on_lost(&witness, 2);
    ck_assert(!have_told(0, 0, 0));
    expect_floors(7, 0, 0, 0, 0); /* what it has told was true */
}
