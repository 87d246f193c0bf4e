#include "json.h"

#include "utf8.h"

/*
 * The first size is room for most answers at once. For a larger block the C
 * library may first join all small ones that are free.
 */
enum {
    FIRST_SIZE = 1000,
    ESCAPED_MAX = 6, /* bytes that one may become: \u001F */
};

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

/* Whether it is ASCII and stands in a string as it is (RFC 8259 §7). */
static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/*
 * The same of eight at once. A byte that is not plain gets its highest bit set
 * by one of the four; where all are plain, no difference borrows from the next.
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

/* Some bytes in front of text that stand in a string as they are; 0: none. */
static size_t plain_step(struct span text)
{
    unsigned char byte = (unsigned char)*text.ptr;
    if (byte >= 0x80)
        return utf8_len(text);
    if (text.len >= sizeof(uint64_t) && is_word_plain(text.ptr))
        return sizeof(uint64_t);
    return is_plain(byte);
}

/* All of them. */
static size_t plain_len(struct span text)
{
    size_t len = 0;
    while (len < text.len) {
        size_t step = plain_step((struct span){text.ptr + len, text.len - len});
        if (step == 0)
            break;
        len += step;
    }
    return len;
}

/* Writes the byte with a backslash, returns the length. */
static size_t escape(char *at, unsigned char byte)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char with_letter[] = "\"\\\b\t\n\f\r";
    static const char letters[] = "\"\\btnfr";
    const char *found = memchr(with_letter, byte, sizeof with_letter - 1);
    at[0] = '\\';
    if (found != NULL) {
        at[1] = letters[found - with_letter];
        return 2;
    }
    (void)span_copy(at + 1, span_of("u00"));
    at[4] = hex[byte >> 4];
    at[5] = hex[byte & 15];
    return ESCAPED_MAX;
}

/* The inside of a string. False: it is not UTF-8, or there is no memory. */
static bool write_inside(struct json *json, struct span text)
{
    for (;;) {
        size_t len = plain_len(text);
        json->len +=
            span_copy(json->text + json->len, (struct span){text.ptr, len});
        if (len == text.len)
            return true;
        unsigned char byte = (unsigned char)text.ptr[len];
        text = (struct span){text.ptr + len + 1, text.len - len - 1};
        /* the room that there was is for this text without escapes */
        if (byte >= 0x80 || !json_reserve(json, ESCAPED_MAX + text.len + 1))
            return false;
        json->len += escape(json->text + json->len, byte);
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
