#include <string.h>

#include "../../../api/message/requestid.h"
#include "../../lib/suite/suite.h"

SUITE(requestid);

TEST(only_harmless_ids_are_echoed)
{
    static const char *const bad[] = {
        "",
        "a b",
        "a\"",
        "a\x7f",
        "\xc3\xa9",
        "a/b",
        "a=b",
        ("12345678901234567890123456789012345678901234567890123456789012"
         "345")};
    ck_assert(requestid_is_valid(span_of("Ab-1._z")));
    ck_assert(requestid_is_valid(span_of(
        "1234567890123456789012345678901234567890123456789012345678901234")));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!requestid_is_valid(span_of(bad[i])), "%s", bad[i]);
}

TEST(made_ids_are_valid_and_differ)
{
    struct requestid_source one = {.seed = 1}, two = {.seed = 2};
    char id[REQUESTID_LEN + 1], before[REQUESTID_LEN + 1] = "";
    char other[REQUESTID_LEN + 1];

    for (int i = 0; i < 1000; i++) {
        requestid_make(&one, id);
        requestid_make(&two, other);
        ck_assert(requestid_is_valid(span_of(id)));
        ck_assert_uint_eq(strlen(id), REQUESTID_LEN);
        ck_assert_str_ne(id, before);
        ck_assert_str_ne(id, other);
        memcpy(before, id, sizeof id);
    }
}

/* Known numbers of SplitMix64, the last digit first. */
TEST(ids_are_numbers_of_a_generator_that_repeats_none)
{
    static const char *const ids[] = {"fadcd1b7938a022e", "4f569b1aa6e987e6",
                                      "f454900881d54c60"};
    struct requestid_source source = {.seed = 0};
    char id[REQUESTID_LEN + 1];
    for (int i = 0; i < 3; i++) {
        requestid_make(&source, id);
        ck_assert_str_eq(id, ids[i]);
    }
}
