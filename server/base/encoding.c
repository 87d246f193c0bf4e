/* SPDX-License-Identifier: MIT */
#include "encoding.h"

#include <assert.h>

/* ---- base64url ---------------------------------------------------------- */

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t base64url_encode(char *out, struct span bytes)
{
    size_t len = 0;
    uint32_t bits = 0;
    int count = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bits = bits << 8 | (unsigned char)bytes.ptr[i];
        for (count += 8; count >= 6; count -= 6)
            out[len++] = alphabet[bits >> (count - 6) & 63];
    }
    if (count > 0)
        out[len++] = alphabet[bits << (6 - count) & 63];
    return len;
}

bool base64url_decode(struct span text, char *out, size_t *len)
{
    uint32_t bits = 0;
    int count = 0;
    *len = 0;
    if (text.len % 4 == 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = memchr(alphabet, text.ptr[i], sizeof alphabet - 1);
        if (at == NULL)
            return false;
        bits = bits << 6 | (uint32_t)(at - alphabet);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[(*len)++] = (char)(bits >> count & 255);
        }
    }
    return (bits & ((1u << count) - 1)) == 0;
}

/* ---- percent-encoding --------------------------------------------------- */

int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool percent_decode(struct span text, char *out, size_t size, size_t *len)
{
    *len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            if (text.len - i < 3)
                return false;
            int high = hex_value(text.ptr[i + 1]);
            int low = hex_value(text.ptr[i + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (*len == size)
            return false;
        out[(*len)++] = c;
    }
    return true;
}

/* ---- UTF-8 --------------------------------------------------------------- */

/* RFC 3629 §4, by the first byte. The third and fourth are always 80 to bf. */
static const struct form {
    unsigned char first_low, first_high, second_low, second_high;
    size_t len;
} forms[] = {
    {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2},
    {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
    {0xf4, 0xf4, 0x80, 0x8f, 4},
};

size_t utf8_len(struct span text)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    const struct form *form = forms,
                      *end = forms + sizeof forms / sizeof *forms;
    if (text.len == 0)
        return 0;
    while (form < end && (*at < form->first_low || *at > form->first_high))
        form++;
    if (form == end || form->len > text.len)
        return 0;
    if (form->len > 1 &&
        (at[1] < form->second_low || at[1] > form->second_high))
        return 0;
    for (size_t i = 2; i < form->len; i++)
        if (at[i] < 0x80 || at[i] > 0xbf)
            return 0;
    return form->len;
}

uint32_t utf8_code(struct span text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    assert(len >= 1 && len <= 4 && len <= text.len);
    uint32_t code = len == 1 ? *at : *at & (0x7fu >> len);
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (at[i] & 0x3fu);
    return code;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

bool utf8_is_control(struct span text)
{
    size_t len = utf8_len(text);
    return len > 0 && is_control(utf8_code(text, len));
}

bool utf8_is_obeyed(struct span text)
{
    size_t len = utf8_len(text);
    if (len == 0)
        return true;
    uint32_t code = utf8_code(text, len);
    return is_control(code) || code == 0x61c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* ---- JSON strings -------------------------------------------------------- */

/*
 * Whether eight bytes are ASCII and stand in a string as they are. A byte that
 * is not plain gets its highest bit set by one of the four; where all are
 * plain, no difference borrows from the next.
 */
static bool is_word_plain(const char *bytes)
{
    const uint64_t each = 0x0101010101010101u;
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    uint64_t found = word | (word - each * 0x20) |
                     ((word ^ each * '"') - each) |
                     ((word ^ each * '\\') - each);
    return (found & each * 0x80) == 0;
}

size_t jsontext_plain_len(struct span text)
{
    size_t len = 0, step = 1;
    for (; step > 0 && len < text.len; len += step) {
        struct span rest = span_behind(text, len);
        unsigned char byte = (unsigned char)*rest.ptr;
        if (byte >= 0x80)
            step = utf8_len(rest);
        else if (rest.len >= sizeof(uint64_t) && is_word_plain(rest.ptr))
            step = sizeof(uint64_t);
        else
            step = byte >= 0x20 && byte != '"' && byte != '\\';
    }
    return len;
}

size_t jsontext_escape(char at[JSONTEXT_ESCAPE_MAX], uint32_t code)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char with_letter[] = "\"\\\b\t\n\f\r";
    static const char letters[] = "\"\\btnfr";
    const char *found =
        code < 0x80 ? memchr(with_letter, (int)code, sizeof with_letter - 1)
                    : NULL;
    assert(code <= 0xffff);
    at[0] = '\\';
    if (found != NULL) {
        at[1] = letters[found - with_letter];
        return 2;
    }
    at[1] = 'u';
    for (int i = 5; i > 1; i--, code >>= 4)
        at[i] = hex[code & 15];
    return JSONTEXT_ESCAPE_MAX;
}
