#include "jsontext.h"

#include <assert.h>

#include "utf8.h"

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
