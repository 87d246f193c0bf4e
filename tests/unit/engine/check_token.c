/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"

#define HEX40 "00112233445566778899aabbccddeeff01234567"
#define SEVEN "0000000000000007." HEX40

static const unsigned char random_bytes[TOKEN_RANDOM_BYTES] = {
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99,
    0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x01, 0x23, 0x45, 0x67};

SUITE(token);

TEST(made_with_sixteen_digits_random_and_owner)
{
    char token[TOKEN_MAX + 1] = {0};
    size_t len = token_make(token, random_bytes,
                            &(struct token_parts){.number = 1795221641865000,
                                                  .owner = span_of("web-3")});
    ck_assert_uint_eq(len, strlen(token));
    ck_assert_str_eq(token, "1795221641865000." HEX40 ".web-3");

    memset(token, 0, sizeof token);
    (void)token_make(token, random_bytes, &(struct token_parts){.number = 7});
    ck_assert_str_eq(token, SEVEN);
}

TEST(parsed_back)
{
    struct token_parts parts;
    ck_assert(token_parse(span_of("1795221641865000." HEX40 ".a.b"), &parts));
    ck_assert_int_eq(parts.number, 1795221641865000);
    ck_assert_uint_eq(parts.owner.len, 3);
    ck_assert(memcmp(parts.owner.ptr, "a.b", 3) == 0);

    ck_assert(token_parse(span_of(SEVEN), &parts));
    ck_assert(token_is_ours(span_of(SEVEN)));
    ck_assert_int_eq(parts.number, 7);
    ck_assert_uint_eq(parts.owner.len, 0);

    ck_assert(token_parse(span_of(SEVEN "+abcdefghijklmnopqrst_-.me"), &parts));
    ck_assert_uint_eq(parts.owner.len, 2);

    /* as long as a key would be, and longer */
    ck_assert(token_parse(span_of(SEVEN ".abcdefghijklmnopqrst_-.me"), &parts));
    ck_assert_uint_eq(parts.owner.len, 25);
}

TEST(the_longest_token_is_as_long_as_it_may_be)
{
    const char *token =
        textf("%s%s.%064d", SEVEN, "+abcdefghijklmnopqrst_-", 0);
    ck_assert_uint_eq(strlen(token), TOKEN_MAX);
    ck_assert(token_is_ours(span_of(token)));
}

/* A part of a token, and what it may be made of. */
static const struct {
    const char *front, *behind, *allowed;
} alphabets[] = {
    {"000000000000000", "." HEX40, "123456789"}, /* no number is 0 */
    {"00000000000000", "7." HEX40, "0123456789"},
    {"0000000000000007.", "0112233445566778899aabbccddeeff01234567",
     "0123456789abcdef"},
    {SEVEN "+", "bcdefghijklmnopqrst_-",
     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"},
    {SEVEN "+abcdefghijklmnopqrst_", "",
     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"},
    {SEVEN ".", "",
     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@/-"},
    {SEVEN ".a", "z",
     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@/-"},
};

TEST_EACH(each_part_has_its_alphabet_and_no_other_byte, alphabets)
{
    for (int byte = 0; byte <= 255; byte++) {
        char text[TOKEN_MAX + 1];
        int len = snprintf(text, sizeof text, "%s%c%s", alphabets[_i].front,
                           byte, alphabets[_i].behind);
        const char *allowed = alphabets[_i].allowed;
        bool is_allowed = byte != 0 && strchr(allowed, byte) != NULL;
        ck_assert_msg(token_is_ours((struct span){text, (size_t)len}) ==
                          is_allowed,
                      "byte %d", byte);
    }
}

TEST(other_values_are_not_tokens)
{
    static const char *const others[] = {
        "",
        "1",
        "hello",
        HEX40,
        " 0000000000000007." HEX40,
        SEVEN "\n",
        "000000000000007." HEX40,
        "0000000000000007-" HEX40,
        SEVEN ".",
        SEVEN "x",
        SEVEN "+short",
        "0000000000000000." HEX40 ".a",
        "9007199254740992." HEX40, /* 2^53 */
        SEVEN
        ".12345678901234567890123456789012345678901234567890123456789012345",
    };
    struct token_parts parts;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct span other = span_of(others[i]);
        ck_assert_msg(!token_parse(other, &parts), "%s", others[i]);
        ck_assert_msg(!token_is_ours(other), "%s", others[i]);
    }
    /* a NUL within ends no token */
    ck_assert(!token_is_ours((struct span){SEVEN, 58}));
}

/* ---- fencing tokens ---------------------------------------------------- */

TEST(slots_are_those_of_redis_cluster)
{
    /* CLUSTER KEYSLOT of redis-server 7.0.15 */
    ck_assert_int_eq(fence_bucket(span_of("123456789")), 12739);
    ck_assert_int_eq(fence_bucket(span_of("foo")), 12182);
    ck_assert_int_eq(fence_bucket(span_of("")), 0);
    /* no hash tags: each resource is hashed whole */
    ck_assert_int_ne(fence_bucket(span_of("{a}1")),
                     fence_bucket(span_of("{a}2")));
}

TEST(numbers_rise_above_all_that_is_known)
{
    static const int64_t cases[][3] = {{1000, 0, 1000},
                                       {1000, 1000, 1001},
                                       {1000, 5000, 5001},
                                       {2001, FENCE_MAX, FENCE_MAX},
                                       {FENCE_MAX, FENCE_MAX, FENCE_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(fence_next(cases[i][0], cases[i][1]), cases[i][2]);
}

/* ---- versions ----------------------------------------------------------- */

static const struct {
    const char *text;
    bool is_wellformed;
} forms[] = {
    {"free", true},
    {"0", true},
    {"1795221641865000", true},
    {"foreign-af63f54c86021707", true},
    {"-", true},
    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd-z", true},
    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd-zz",
     false},
    {"", false},
    {"Free", false},
    {"a.b", false},
    {"a b", false},
    {"\xc3\xbc", false},
};

TEST_EACH(what_clients_may_send_has_a_form, forms)
{
    ck_assert_int_eq(version_is_wellformed(span_of(forms[_i].text)),
                     forms[_i].is_wellformed);
    ck_assert(!version_is_wellformed((struct span){"a\0b", 3}));
}

/* So clients may send each of them. */
TEST(what_is_made_has_this_form)
{
    const struct version made[] = {
        version_free,
        version_shared,
        version_foreign,
        version_split,
        version_of_number(1),
        version_of_number(INT64_C(9999999999999999)),
        version_of_value(span_of("")),
        version_of_value(span_of("x")),
        version_of_value((struct span){"a\0b", 3}),
    };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        ck_assert_msg(version_is_wellformed(span_of(made[i].text)), "%s",
                      made[i].text);
}

/* Whatever server makes it: a reload or another replica changes nothing. */
TEST(a_value_has_always_the_same_version)
{
    struct version x = version_of_value(span_of("x"));
    struct version none = version_of_value(span_of(""));
    ck_assert_str_eq(x.text, "foreign-af63f54c86021707");
    ck_assert_str_eq(none.text, "foreign");
    ck_assert(!version_is(&x, span_of(version_of_value(span_of("y")).text)));
}

/* Scripts read no more of it, so what follows may differ. */
TEST(a_value_that_is_too_long_has_no_version_of_its_own)
{
    char text[256];
    memset(text, 'x', sizeof text);
    struct version less = version_of_value((struct span){text, 255});
    struct version most = version_of_value((struct span){text, 256});
    ck_assert(!version_is(&less, span_of("foreign")));
    ck_assert(version_is(&most, span_of("foreign")));
}

TEST(only_what_is_vague_may_pass)
{
    struct version x = version_of_value(span_of("x"));
    struct version number = version_of_number(1);
    ck_assert(version_may_pass(&version_split));
    ck_assert(version_may_pass(&version_foreign));
    ck_assert(!version_may_pass(&version_free));
    ck_assert(!version_may_pass(&version_shared));
    ck_assert(!version_may_pass(&x));
    ck_assert(!version_may_pass(&number));
}
