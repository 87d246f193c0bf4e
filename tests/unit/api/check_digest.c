/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "../../../api/access/digest.h"
#include "../../lib/suite/suite.h"

/* FIPS 180-2, appendix B.1 */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

SUITE(digest);

TEST(the_digest_is_that_of_the_standard)
{
    struct digest made, read;
    ck_assert(digest_make(&made, span_of("abc")));
    ck_assert(digest_read(&read, span_of(ABC)));
    ck_assert(digest_same(&made, &read) == UINT64_MAX);
    ck_assert(digest_make(&made, (struct span){NULL, 0}));
    ck_assert(digest_same(&made, &read) == 0);
}

TEST(hex_may_be_of_either_case)
{
    struct digest lower, upper;
    char text[] = ABC;
    for (char *c = text; *c != '\0'; c++)
        *c = (char)(*c >= 'a' ? *c - 'a' + 'A' : *c);
    ck_assert(digest_read(&lower, span_of(ABC)));
    ck_assert(digest_read(&upper, span_of(text)));
    ck_assert(digest_same(&lower, &upper) != 0);
}

TEST(other_texts_are_none)
{
    static const char others[] = "g/:@`G \n\xff";
    struct digest digest;
    char text[] = ABC;
    ck_assert(!digest_read(&digest, span_of("")));
    ck_assert(!digest_read(&digest, (struct span){ABC, 63}));
    ck_assert(!digest_read(&digest, span_of(ABC "0")));
    for (const char *c = others; *c != '\0'; c++)
        for (size_t at = 0; at < 64; at++) {
            char was = text[at];
            text[at] = *c;
            ck_assert(!digest_read(&digest, span_of(text)));
            text[at] = was;
        }
}

TEST(each_bit_makes_another)
{
    struct digest a = {{0}}, b;
    for (int i = 0; i < DIGEST_WORDS * 64; i++) {
        b = a;
        b.words[i / 64] ^= UINT64_C(1) << i % 64;
        ck_assert(digest_same(&a, &b) == 0);
        ck_assert(digest_same(&b, &b) == UINT64_MAX);
    }
}

/* ---- idempotency keys ---------------------------------------------------- */

#define KEY "0123456789abcdef"
#define EIGHT "abcdefgh"
#define LONGEST_NAME                                                           \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define ALL_OF_64                                                              \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

static const struct {
    const char *key;
    bool is_good;
} keys[] = {
    {KEY, true},
    {ALL_OF_64, true},
    {"6f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e", true}, /* a UUID */
    {"", false},
    {"0123456789abcde", false},
    {ALL_OF_64 "0", false},
    {EIGHT " " EIGHT, false},
    {EIGHT "." EIGHT, false},
    {EIGHT "+" EIGHT, false},
    {EIGHT "\"" EIGHT, false},
    {"\"" EIGHT EIGHT "\"", false},
    {EIGHT EIGHT "\n", false},
    {EIGHT EIGHT "\xc3\xa9", false},
};

GROUP(keys);

TEST_EACH(keys_are_told_from_other_texts, keys)
{
    ck_assert_msg(digest_is_key(span_of(keys[_i].key)) == keys[_i].is_good,
                  "%s", keys[_i].key);
}

/* Made by another program: other servers have to find the same. */
TEST(the_hash_is_that_of_key_and_names)
{
    static char longest[NAMES_LEN_MAX];
    static char zeros[DIGEST_KEY_MAX];
    const struct {
        const char *identity;
        struct span key, names;
        const char *hash;
    } rows[] = {
        {"", span_of(KEY), span_of("order:42"), "HBvC3OTCJKRp830X6_MckQ"},
        {"", span_of(KEY), span_of("a\nb"), "96cfz9OaZ4GSpIOy1WDgCg"},
        {"",
         {zeros, sizeof zeros},
         {longest, sizeof longest},
         "3Ou86zkxXbTWG3yczHkTbw"},
        {"billing", span_of(KEY), span_of("order:42"),
         "Hgw67lm9H33xYOsf_uaBog"},
        {LONGEST_NAME,
         {zeros, sizeof zeros},
         {longest, sizeof longest},
         "A2EO50FrLcE-sUClcn9xNQ"},
    };
    memset(zeros, '0', sizeof zeros);
    memset(longest, 'x', sizeof longest);
    char hash[KEY_HASH_LEN + 1];
    for (size_t i = 0; i < COUNT(rows); i++) {
        hash[KEY_HASH_LEN] = '!';
        ck_assert(digest_key(hash, span_of(rows[i].identity), rows[i].key,
                             rows[i].names));
        ck_assert_mem_eq(hash, rows[i].hash, KEY_HASH_LEN);
        ck_assert_int_eq(hash[KEY_HASH_LEN], '!');
    }
}
