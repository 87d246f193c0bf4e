#include <string.h>

#include "../../../api/message/http.h"
#include "../../lib/suite/suite.h"

SUITE(http);

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

/* ---- which values of traceparent count (W3C Trace Context, §3.2) -------- */

#define ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static const char *const valid[] = {
    "00-" ID "-" PARENT "-00",
    "00-" ID "-" PARENT "-01",
    "00-" ID "-" PARENT "-ff", /* flags of later versions are of no matter */
    /* a later version is read as this one, and may have more */
    "01-" ID "-" PARENT "-01",
    "cc-" ID "-" PARENT "-01-what-the-future-will-be-like",
    "fe-" ID "-" PARENT "-01-",
};

TEST_EACH(a_valid_value_is_taken_over, valid)
{
    struct trace trace = {"x", "y"};
    trace_read(&trace, span_of(valid[_i]));
    ck_assert_str_eq(trace.id, ID);
    ck_assert_str_eq(trace.parent, PARENT);
}

static const char *const invalid[] = {
    "",
    "00",
    "00-" ID "-" PARENT,
    "00-" ID "-" PARENT "-",
    "00-" ID "-" PARENT "-0",
    "00-" ID "-" PARENT "-011",
    "00-" ID "-" PARENT "-01-",
    "00-" ID "-" PARENT "-01-more",
    "00-" ID "-" PARENT "-01, 00-" ID "-" PARENT "-01",
    "01-" ID "-" PARENT "-01more",
    "01-" ID "-" PARENT "-01 ",
    "ff-" ID "-" PARENT "-01",
    "FF-" ID "-" PARENT "-01",
    "0-" ID "-" PARENT "-01-",
    "0x-" ID "-" PARENT "-01",
    "000-" ID "-" PARENT "-01",
    " 00-" ID "-" PARENT "-01",
    "00-00000000000000000000000000000000-" PARENT "-01",
    "00-" ID "-0000000000000000-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
    "00-" ID "-00F067AA0BA902B7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e473g-" PARENT "-01",
    "00-" ID "-00f067aa0ba902b.-01",
    "00-" ID "-" PARENT "-0G",
    "00_" ID "-" PARENT "-01",
    "00-" ID "_" PARENT "-01",
    "00-" ID "-" PARENT "_01",
    "00-4bf92f3577b34da6a3ce929d0e0e473-6" PARENT "-01",
};

TEST_EACH(any_other_value_is_as_none, invalid)
{
    struct trace trace = {"x", "y"};
    trace_read(&trace, span_of(invalid[_i]));
    ck_assert_str_eq(trace.id, "");
    ck_assert_str_eq(trace.parent, "");
}

TEST(a_field_that_is_not_there_is_none)
{
    struct trace trace = {"x", "y"};
    trace_read(&trace, (struct span){0});
    ck_assert_str_eq(trace.id, "");
}
