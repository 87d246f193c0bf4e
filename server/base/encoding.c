#include "encoding.h"

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
