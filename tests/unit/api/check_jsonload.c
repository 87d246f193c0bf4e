/* SPDX-License-Identifier: MIT */
/*
 * Bodies that are read while one allocation fails, each in turn.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "../../../api/message/jsonload.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"

enum { LONGEST = 130, MANY = 1000, TEXT_MAX = 1000 };

static void set_up(void)
{
    jsonload_init();
}

SUITE(jsonload, .set_up = set_up);

/* One allocation fails after the other, until none is left. */
static void read_starved(const char *text)
{
    json_error_t error;
    json_t *root = NULL;
    for (int n = 1; root == NULL; n++) {
        ck_assert_int_lt(n, MANY);
        starve = (struct starve){.is_on = true, .left = n};
        root = jsonload(text, strlen(text), JSON_REJECT_DUPLICATES, &error);
        bool has_failed = starve.left == 0;
        starve.is_on = false;
        ck_assert_int_eq(root == NULL, has_failed);
        ck_assert_int_eq(jsonload_has_failed(), has_failed);
    }
    json_decref(root);
}

/* jansson goes on without a byte for which it has no room, be it the quote in
 * which a string ends. */
TEST_RANGE(strings_of_any_length_are_whole_or_not_read, 0, LONGEST)
{
    read_starved(textf("{\"resource\":\"%0*d\",\"n\":[1,true]}", _i + 1, 0));
}

TEST_RANGE(numbers_and_escapes_are_whole_or_not_read, 0, 40)
{
    const char *text = textf("{\"a\":\"%0*d\\u00e9\\n\\\"\",\"b\":%0*d1.5e1}",
                             _i + 1, 0, _i + 1, 0);
    memset(strchr(text, ':') + 2, '7', (size_t)_i + 1);
    memset(strrchr(text, ':') + 1, '7', (size_t)_i + 1);
    read_starved(text);
}

TEST(objects_of_many_members_are_whole_or_not_read)
{
    char text[2048] = "{";
    size_t len = 1;
    for (int i = 0; i < 40; i++)
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "\"member%d\":{\"a\":[%d]},", i, i);
    text[len - 1] = '}';
    read_starved(text);
}

/* ---- the usual shape ---------------------------------------------------- */

/* What this reads itself, and what it leaves to jansson: nobody sees a
 * difference. */
static const char *const texts[] = {
    "{}",
    " { } ",
    "{\"a\":1}",
    "{\"a\" : [ ] , \"b\" : { } }\n",
    ("{\"operations\":[{\"operation\":\"acquire\",\"resources\":[\"a\",\"b\"],"
     "\"ttl_ms\":30000},{\"id\":\"a\",\"token\":\"17.a\"}]}"),
    "{\"a\":0,\"b\":999999999999999}",
    "{\"a\":00}",
    "{\"a\":01}",
    "{\"a\":1000000000000000}",
    "{\"a\":99999999999999999999}",
    "{\"a\":-1}",
    "{\"a\":1.5}",
    "{\"a\":1e3}",
    "{\"a\":1x}",
    "{\"a\":1",
    "{\"a\":\"b",
    "{\"a\":\"b\n\"}",
    "{\"a\":\"b \n\"}",
    "{\"a\":\"\\u00e9\\n\\\"\"}",
    "{\"a\":\"\xc3\xa9\xe2\x82\xac\"}",
    "{\"a\":\"\xc3\"}",
    "{\"a\":\"\xed\xa0\x80\"}",
    "{\"a\":\"\xc0\x80\"}",
    "{\"a\":\"\x7f\"}",
    "{\"a\xc3\xa9\":1}",
    "{\"a\":true,\"b\":null}",
    "{\"a\":[1,2,]}",
    "{\"a\":1,}",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{a:1}",
    "{\"a\":1}}",
    "{\"a\":1} x",
    "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":1}}}}}",
    "{\"0123456789012345678901234567890\":1}",
    "{\"01234567890123456789012345678901\":1}",
    "{\"\":1}",
    "{\"a\":1,\"a\":2}",
    "[1]",
    "\"a\"",
    "7",
    "",
};

/* In the same order, too. */
static void expect_same_text(const json_t *it, const json_t *wanted)
{
    char text[TEXT_MAX], wanted_text[TEXT_MAX];
    size_t len = json_dumpb(it, text, sizeof text, JSON_ENCODE_ANY);
    size_t wanted_len =
        json_dumpb(wanted, wanted_text, sizeof wanted_text, JSON_ENCODE_ANY);
    ck_assert_uint_le(len, sizeof text);
    ck_assert_uint_eq(len, wanted_len);
    ck_assert_mem_eq(text, wanted_text, len);
}

TEST_EACH(what_is_read_is_what_jansson_reads, texts)
{
    for (size_t flags = 0; flags <= JSON_REJECT_DUPLICATES;
         flags += JSON_REJECT_DUPLICATES) {
        json_error_t error, wanted_error;
        json_t *wanted = json_loadb(texts[_i], strlen(texts[_i]),
                                    flags | JSON_DECODE_ANY, &wanted_error);
        json_t *it = jsonload(texts[_i], strlen(texts[_i]),
                              flags | JSON_DECODE_ANY, &error);
        ck_assert_int_eq(it == NULL, wanted == NULL);
        if (it == NULL) {
            ck_assert_int_eq(json_error_code(&error),
                             json_error_code(&wanted_error));
            ck_assert_int_eq(error.column, wanted_error.column);
            continue;
        }
        expect_same_text(it, wanted);
        json_decref(it);
        json_decref(wanted);
    }
}

/* A text need not end with a NUL: what stands behind is not read. */
TEST(what_stands_behind_is_not_read)
{
    static const char text[] = "{\"a\":123}";
    json_error_t error;
    for (size_t len = 0; len < sizeof text - 1; len++)
        ck_assert_ptr_null(jsonload(text, len, 0, &error));
}
