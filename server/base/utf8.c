#include "utf8.h"

#include <assert.h>

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
