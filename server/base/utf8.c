#include "utf8.h"

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

static bool fits(const struct form *form, const unsigned char *text, size_t len)
{
    if (form->len > len)
        return false;
    if (form->len > 1 &&
        (text[1] < form->second_low || text[1] > form->second_high))
        return false;
    for (size_t i = 2; i < form->len; i++)
        if (text[i] < 0x80 || text[i] > 0xbf)
            return false;
    return true;
}

size_t utf8_len(struct span text)
{
    const unsigned char *at = (const unsigned char *)text.ptr;
    for (size_t i = 0; text.len > 0 && i < sizeof forms / sizeof *forms; i++)
        if (*at >= forms[i].first_low && *at <= forms[i].first_high)
            return fits(&forms[i], at, text.len) ? forms[i].len : 0;
    return 0;
}
