/*
 * Which bytes stand in a JSON string as they are, and what becomes of the rest.
 */

#include "../../../server/base/jsontext.h"
#include "../../lib/suite/suite.h"

static const struct {
    struct span text;
    size_t len;
} rows[] = {
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

SUITE(jsontext);

TEST_EACH(plain_bytes_are_counted, rows)
{
    ck_assert_uint_eq(jsontext_plain_len(rows[_i].text), rows[_i].len);
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
