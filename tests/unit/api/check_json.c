/* SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <stdlib.h>

#include "../../../api/message/json.h"
#include "../../lib/suite/suite.h"

enum { PLACES = 20 };

static struct json json;
static char *text;
static size_t len;

static void set_up(void)
{
    text = NULL;
}

static void tear_down(void)
{
    free(text);
}

static void expect_text(const char *expected)
{
    text = json_end(&json, &len);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(len, strlen(expected));
}

SUITE(json, .set_up = set_up, .tear_down = tear_down);

TEST(values_stand_in_the_order_of_the_calls)
{
    json_begin(&json);
    json_open_object(&json, "empty");
    json_close_object(&json);
    json_open_array(&json, "list");
    json_put_integer(&json, NULL, INT64_MIN);
    json_put_boolean(&json, NULL, true);
    json_open_object(&json, NULL);
    json_put_text(&json, "{", span_of("["));
    json_put_boolean(&json, "b", false);
    json_close_object(&json);
    json_open_array(&json, NULL);
    json_close_array(&json);
    json_put_integer(&json, NULL, 0);
    json_close_array(&json);
    json_put_integer(&json, "i", INT64_MAX);
    expect_text("{\"empty\":{},\"list\":[-9223372036854775808,true,"
                "{\"{\":\"[\",\"b\":false},[],0],"
                "\"i\":9223372036854775807}\n");
}

static const struct {
    struct span text;
    const char *written;
} texts[] = {
    {{"", 0}, ""},
    {{"\0", 1}, "\\u0000"},
    {{"\x01\x1f", 2}, "\\u0001\\u001F"},
    {{"\b\t\n\f\r\"\\/", 8}, "\\b\\t\\n\\f\\r\\\"\\\\/"},
    {{"\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92", 10},
     "\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x92"},
};

TEST_EACH(texts_are_escaped_as_little_as_they_may, texts)
{
    json_begin(&json);
    json_put_text(&json, "t", texts[_i].text);
    expect_text(textf("{\"t\":\"%s\"}\n", texts[_i].written));
}

/* Eight bytes are looked at together: each byte, at each place of a text. */
TEST_RANGE(other_readers_read_each_byte_at_each_place, 0, PLACES)
{
    for (int byte = 0; byte < 0x100; byte++) {
        char bytes[PLACES];
        memset(bytes, 'a', sizeof bytes);
        bytes[_i] = (char)byte;
        json_begin(&json);
        json_put_text(&json, "t", (struct span){bytes, sizeof bytes});
        text = json_end(&json, &len);
        json_t *root = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
        json_t *value = json_object_get(root, "t");
        ck_assert_ptr_nonnull(root);
        ck_assert((value != NULL) == (byte < 0x80));
        ck_assert(value == NULL ||
                  (json_string_length(value) == sizeof bytes &&
                   memcmp(json_string_value(value), bytes, PLACES) == 0));
        json_decref(root);
        free(text);
    }
    text = NULL;
}

TEST(what_is_not_utf_8_is_left_out)
{
    json_begin(&json);
    json_put_text(&json, "a", span_of("\xff"));
    json_put_text(&json, "b", span_of("x"));
    json_put_text(&json, "c", span_of("\"a long text\" \xe2\x82"));
    json_put_text(&json, "d", span_of("y"));
    expect_text("{\"b\":\"x\",\"d\":\"y\"}\n");
}

TEST(buffer_grows)
{
    char bytes[3000];
    memset(bytes, '\x01', sizeof bytes);
    json_begin(&json);
    json_put_text(&json, "a", (struct span){bytes, sizeof bytes});
    for (int i = 0; i < 1000; i++)
        json_put_boolean(&json, "b", true);
    text = json_end(&json, &len);
    ck_assert_uint_eq(len, 8 + 6 * sizeof bytes + 1000 * 9 + 2 - 1);
    ck_assert_str_eq(text + len - 11, ",\"b\":true}\n");
}

TEST(nothing_is_written_without_memory)
{
    json = (struct json){.has_failed = true};
    json_open_object(&json, "a");
    json_put_text(&json, "b", span_of("c"));
    json_put_integer(&json, "d", 1);
    json_put_boolean(&json, "e", true);
    json_close_object(&json);
    ck_assert_uint_eq(json.size, 0);
    ck_assert_ptr_null(json_end(&json, &len));
}
