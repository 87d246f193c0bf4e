#include <stdio.h>
#include <string.h>

#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"

#define HEX40 "00112233445566778899aabbccddeeff01234567"

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
    ck_assert_str_eq(token, "0000000000000007." HEX40);
}

TEST(parsed_back)
{
    struct token_parts parts;
    ck_assert(token_parse(span_of("1795221641865000." HEX40 ".a.b"), &parts));
    ck_assert_int_eq(parts.number, 1795221641865000);
    ck_assert_uint_eq(parts.owner.len, 3);
    ck_assert(memcmp(parts.owner.ptr, "a.b", 3) == 0);

    ck_assert(token_parse(span_of("0000000000000007." HEX40), &parts));
    ck_assert(token_is_ours(span_of("0000000000000007." HEX40)));
    ck_assert_int_eq(parts.number, 7);
    ck_assert_uint_eq(parts.owner.len, 0);

    ck_assert(token_parse(
        span_of("0000000000000007." HEX40 "+abcdefghijklmnopqrst_-.me"),
        &parts));
    ck_assert_uint_eq(parts.owner.len, 2);

    /* as long as a key would be, and longer */
    ck_assert(token_parse(
        span_of("0000000000000007." HEX40 ".abcdefghijklmnopqrst_-.me"),
        &parts));
    ck_assert_uint_eq(parts.owner.len, 25);
}

TEST(the_longest_token_is_as_long_as_it_may_be)
{
    const char *token = textf("%s%s.%064d", "0000000000000007." HEX40,
                              "+abcdefghijklmnopqrst_-", 0);
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
    {"0000000000000007." HEX40 "+", "bcdefghijklmnopqrst_-",
     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"},
    {"0000000000000007." HEX40 "+abcdefghijklmnopqrst_", "",
     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"},
    {"0000000000000007." HEX40 ".", "",
     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@/-"},
    {"0000000000000007." HEX40 ".a", "z",
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
        "0000000000000007." HEX40 "\n",
        "000000000000007." HEX40,
        "00000000000000a7." HEX40,
        "0000000000000007-" HEX40,
        "0000000000000007.00112233445566778899AABBccddeeff01234567",
        "0000000000000007." HEX40 ".",
        "0000000000000007." HEX40 "x",
        "0000000000000007." HEX40 "+short",
        "0000000000000007." HEX40 ".a b",
        "0000000000000007." HEX40 ".\xc3\xbc",
        "0000000000000000." HEX40 ".a",
        "9007199254740992." HEX40, /* 2^53 */
        "9999999999999999." HEX40,
        "0000000000000007." HEX40 "+abcdefghijklmnopqrst!-.me",
        "0000000000000007." HEX40
        ".12345678901234567890123456789012345678901234567890123456789012345",
    };
    struct token_parts parts;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct span other = span_of(others[i]);
        ck_assert_msg(!token_parse(other, &parts), "%s", others[i]);
        ck_assert_msg(!token_is_ours(other), "%s", others[i]);
    }
    /* a NUL within ends no token */
    ck_assert(!token_is_ours((struct span){"0000000000000007." HEX40, 58}));
}
