#include <jansson.h>

#include "../../../server/base/utf8.h"
#include "../../lib/suite/suite.h"

static const struct {
    const char *text;
    size_t len;
} rows[] = {
    {"", 0},
    {"a", 1},
    {"ab", 1},
    {"\x7f", 1},
    {"\x80", 0},
    {"\xc1\xbf", 0},
    {"\xc2\x80", 2},
    {"\xc3\xa9x", 2},
    {"\xc3", 0},
    {"\xc3x", 0},
    {"\xe0\x9f\xbf", 0},
    {"\xe2\x82\xac", 3},
    {"\xe2\x82", 0},
    {"\xe2\x82x", 0},
    {"\xe2\x82\x7f", 0},
    {"\xe2\x82\xc0", 0},
    {"\xed\x9f\xbf", 3},
    {"\xed\xa0\x80", 0}, /* a surrogate */
    {"\xe0\xa0\x80", 3},
    {"\xee\x80\x80", 3},
    {"\xf0\x8f\xbf\xbf", 0},
    {"\xf0\x90\x80\x80", 4},
    {"\xf0\x9f\x94\x92", 4},
    {"\xf0\x9f\x94", 0},
    {"\xf0\x9f\x94x", 0},
    {"\xf0\x9f\x94\xc0", 0},
    {"\xf0\x9f\xc0\x92", 0},
    {"\xf0\x9f\x28\x92", 0},
    {"\xf4\x8f\xbf\xbf", 4},
    {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
    {"\xf5\x80\x80\x80", 0},
    {"\xff", 0},
};

SUITE(utf8, .timeout_s = 60);

TEST_EACH(first_character_is_measured, rows)
{
    ck_assert_uint_eq(utf8_len(span_of(rows[_i].text)), rows[_i].len);
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
