/* SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <string.h>

#include "../../../server/base/encoding.h"
#include "../../lib/suite/suite.h"

static const struct {
    const char *bytes, *text;
} pairs[] = {
    {"", ""},
    {"f", "Zg"},
    {"fo", "Zm8"},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg"},
    {"fooba", "Zm9vYmE"},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xef\xbe\xff", "_---_w"},
};

SUITE(encoding);

TEST_EACH(bytes_and_text_lead_to_each_other, pairs)
{
    size_t size = strlen(pairs[_i].bytes), len = strlen(pairs[_i].text);
    char text[16], bytes[16];
    ck_assert_uint_eq(base64url_encode(text, span_of(pairs[_i].bytes)), len);
    ck_assert_uint_eq(BASE64URL_LEN(size), len);
    ck_assert_mem_eq(text, pairs[_i].text, len);
    ck_assert(base64url_decode(span_of(pairs[_i].text), bytes, &len));
    ck_assert_uint_eq(len, size);
    ck_assert_mem_eq(bytes, pairs[_i].bytes, len);
}

static const char *const bad[] = {"Z",    "Zm9vY", "Zh",    "Zm9",
                                  "Zg==", "Zm+v",  "Zm/v",  "Zm9v\n",
                                  " Zm9", "Zm9~",  "Zm\xc3"};

TEST_EACH(other_texts_are_refused, bad)
{
    char bytes[16];
    size_t len;
    ck_assert_msg(!base64url_decode(span_of(bad[_i]), bytes, &len), "%s",
                  bad[_i]);
}

/* ---- UTF-8 --------------------------------------------------------------- */

/* What the first two bytes decide is below. */
static const struct {
    const char *text;
    size_t len;
} characters[] = {
    {"", 0},
    {"a", 1},
    {"ab", 1},
    {"\x7f", 1},
    {"\xc2\x80", 2},
    {"\xc3\xa9x", 2},
    {"\xe2\x82\xac", 3},
    {"\xe2\x82x", 0},
    {"\xe2\x82\x7f", 0},
    {"\xe2\x82\xc0", 0},
    {"\xed\x9f\xbf", 3},
    {"\xe0\xa0\x80", 3},
    {"\xee\x80\x80", 3},
    {"\xf0\x90\x80\x80", 4},
    {"\xf0\x9f\x94\x92", 4},
    {"\xf0\x9f\x94x", 0},
    {"\xf0\x9f\x94\xc0", 0},
    {"\xf0\x9f\xc0\x92", 0},
    {"\xf0\x9f\x28\x92", 0},
    {"\xf4\x8f\xbf\xbf", 4},
};

GROUP(utf8, .timeout_s = 60);

TEST_EACH(first_character_is_measured, characters)
{
    ck_assert_uint_eq(utf8_len(span_of(characters[_i].text)),
                      characters[_i].len);
}

TEST(what_stands_behind_a_text_is_not_read)
{
    ck_assert_uint_eq(utf8_len((struct span){"a", 0}), 0);
    ck_assert_uint_eq(utf8_len((struct span){"\xc3\xa9", 1}), 0);
}

/* Each pair of first bytes, against another reader. */
TEST(other_readers_agree)
{
    for (int first = 0; first < 0x100; first++)
        for (int second = 0; second < 0x100; second++)
            for (size_t len = 1; len <= 4; len++) {
                char text[] = {(char)first, (char)second, '\x80', '\xbf'};
                size_t found = utf8_len((struct span){text, len});
                ck_assert_uint_le(found, len);
                json_t *string = json_stringn(text, found > 0 ? found : len);
                ck_assert_msg((string != NULL) == (found > 0), "%02x %02x",
                              (unsigned)first, (unsigned)second);
                json_decref(string);
            }
}

/* ---- JSON strings -------------------------------------------------------- */

static const struct {
    struct span text;
    size_t len;
} strings[] = {
    {{"", 0}, 0},
    {{"abc", 3}, 3},
    {{"ab\"c", 4}, 2},
    {{"ab\\", 3}, 2},
    {{"\n", 1}, 0},
    {{"a\0b", 3}, 1},
    {{"12345678/\x7f", 10}, 10},
    {{"1234567\t8", 9}, 7},
    {{"\xe2\x82\xac.", 4}, 4},
    {{"a\xe2\x82", 3}, 1},
    {{"a\xff", 2}, 1},
};

GROUP(jsontext);

TEST_EACH(plain_bytes_are_counted, strings)
{
    ck_assert_uint_eq(jsontext_plain_len(strings[_i].text), strings[_i].len);
}

TEST(each_byte_of_ascii_is_plain_or_has_an_escape)
{
    char at[JSONTEXT_ESCAPE_MAX];
    for (unsigned char c = 0; c < 0x80; c++) {
        char byte = (char)c;
        if (jsontext_plain_len((struct span){&byte, 1}) == 1)
            continue;
        size_t len = jsontext_escape(at, c);
        ck_assert_int_eq(at[0], '\\');
        ck_assert(len == 2 || len == JSONTEXT_ESCAPE_MAX);
        if (len == JSONTEXT_ESCAPE_MAX)
            ck_assert_int_eq(
                strtol((char[]){at[2], at[3], at[4], at[5], 0}, NULL, 16), c);
    }
    ck_assert_uint_eq(jsontext_escape(at, '\n'), 2);
    ck_assert_int_eq(at[1], 'n');
}
