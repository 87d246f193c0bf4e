#include <string.h>

#include "../../../server/base/encoding.h"
#include "../../lib/suite/suite.h"

/* RFC 4648 §10, and the two characters that differ from base64. */
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
