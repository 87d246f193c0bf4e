#include "id.h"

#include "utf8.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static bool is_plain_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == ':' ||
           c == '-';
}

/* "." and ".." would be taken for steps in a path by clients and proxies. */
static bool is_plain(struct span text)
{
    if (text.len == 0 || text.len > RESOURCE_MAX ||
        (text.len <= 2 && text.ptr[0] == '.' && text.ptr[text.len - 1] == '.'))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_plain_char(text.ptr[i]))
            return false;
    return true;
}

static size_t encode_base64url(char *out, struct span bytes)
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

/* False: a foreign character, a length that cannot be, or leftover bits. */
static bool decode_base64url(struct span text, char out[RESOURCE_MAX],
                             size_t *len)
{
    uint32_t bits = 0;
    int count = 0;
    *len = 0;
    if (text.len % 4 == 1 || text.len >= ID_MAX)
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

size_t id_encode(char id[ID_MAX], struct span resource)
{
    if (is_plain(resource))
        return span_copy(id, resource);
    id[0] = '~';
    return 1 + encode_base64url(id + 1, resource);
}

bool id_decode(struct span id, char resource[RESOURCE_MAX], size_t *len)
{
    if (id.len > 0 && id.ptr[0] == '~') {
        struct span text = {id.ptr + 1, id.len - 1};
        if (!decode_base64url(text, resource, len) ||
            is_plain((struct span){resource, *len}))
            return false;
    } else {
        if (!is_plain(id))
            return false;
        *len = span_copy(resource, id);
    }
    return id_check_resource((struct span){resource, *len}) == NULL;
}

const char *id_check_resource(struct span resource)
{
    static const char reserved[] = RESERVED_NAME;
    size_t chars = 0;
    if (resource.len == 0)
        return "must not be empty";
    for (size_t i = 0; i < resource.len; chars++) {
        struct span rest = {resource.ptr + i, resource.len - i};
        size_t len = utf8_len(rest);
        if (len == 0)
            return "must be valid UTF-8";
        unsigned char first = (unsigned char)*rest.ptr;
        if (first < 0x20 || first == 0x7f)
            return "must not contain control characters";
        i += len;
    }
    if (chars > RESOURCE_CHARS)
        return "must have at most 255 characters";
    /* not only in front: another installation's keys have its prefix */
    if (memmem(resource.ptr, resource.len, reserved, sizeof reserved - 1) !=
        NULL)
        return "must not contain \"redlockd:\", which is reserved";
    return NULL;
}
