
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
