/* SPDX-License-Identifier: MIT */
#include "json.h"

#include "../../server/base/encoding.h"

/*
 * The first size is room for most answers at once. For a larger block the C
 * library may first join all small ones that are free.
 */
enum { FIRST_SIZE = 1000 };

bool json_grow(struct json *json, size_t len)
{
    if (!json->has_failed &&
        bytes_reserve(&json->text, &json->size, json->len + len))
        return true;
    free(json->text);
    *json = (struct json){.has_failed = true};
    return false;
}

void json_begin(struct json *json)
{
    *json = (struct json){0};
    if (json_reserve(json, FIRST_SIZE))
        json->text[json->len++] = '{';
}

char *json_end(struct json *json, size_t *len)
{
    static const char end[] = "}\n";
    if (!json_reserve(json, sizeof end))
        return NULL;
    memcpy(json->text + json->len, end, sizeof end);
    *len = json->len + sizeof end - 1;
    return json->text;
}

void json_write_integer(struct json *json, int64_t value)
{
    char digits[DIGITS_MAX];
    uint64_t absolute = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0)
        json->text[json->len++] = '-';
    json->len +=
        span_copy(json->text + json->len, span_of_number(digits, absolute));
}

/* ---- texts -------------------------------------------------------------- */

/* The inside of a string. False: it is not UTF-8, or there is no memory. */
static bool write_inside(struct json *json, struct span text)
{
    for (;;) {
        size_t len = jsontext_plain_len(text);
        json->len +=
            span_copy(json->text + json->len, (struct span){text.ptr, len});
        if (len == text.len)
            return true;
        unsigned char byte = (unsigned char)text.ptr[len];
        text = (struct span){text.ptr + len + 1, text.len - len - 1};
        /* the room that there was is for this text without escapes */
        if (byte >= 0x80 ||
            !json_reserve(json, JSONTEXT_ESCAPE_MAX + text.len + 1))
            return false;
        json->len += jsontext_escape(json->text + json->len, byte);
    }
}

void json_write_text(struct json *json, struct span text, size_t before)
{
    json->text[json->len++] = '"';
    if (write_inside(json, text))
        json->text[json->len++] = '"';
    else if (!json->has_failed)
        json->len = before;
}
