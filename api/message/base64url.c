#include "base64url.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

bool base64url_is_alphabet(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (memchr(alphabet, text.ptr[i], sizeof alphabet - 1) == NULL)
            return false;
    return true;
}

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
