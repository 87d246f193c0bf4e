#include "render.h"

#include <assert.h>
#include <stdlib.h>

#include "id.h"

enum {
    ESCAPED = 6,     /* bytes that one may become: \u001f */
    FIXED_MAX = 512, /* names, numbers and braces of the longest answer */
};

static char *put(char *at, struct span text)
{
    return at + span_copy(at, text);
}

static char *put_integer(char *at, int64_t value)
{
    char digits[DIGITS_MAX];
    uint64_t absolute = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0)
        *at++ = '-';
    return put(at, span_of_number(digits, absolute));
}

/* A string, escaped as far as RFC 8259 §7 demands. */
static char *put_string(char *at, struct span text)
{
    static const char hex[] = "0123456789abcdef";
    *at++ = '"';
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x20) {
            at = put(at, span_of("\\u00"));
            *at++ = hex[c >> 4];
            *at++ = hex[c & 15];
            continue;
        }
        if (c == '"' || c == '\\')
            *at++ = '\\';
        *at++ = (char)c;
    }
    *at++ = '"';
    return at;
}

/* Members; before is what stands before the value: ,"name": */
static char *put_number(char *at, const char *before, int64_t value)
{
    return put_integer(put(at, span_of(before)), value);
}

static char *put_text(char *at, const char *before, struct span value)
{
    return put_string(put(at, span_of(before)), value);
}

/* {"id":…,"resource":… */
static char *put_lock(char *at, struct span resource)
{
    at = put(at, span_of("{\"id\":\""));
    at += id_encode(at, resource); /* needs no escapes */
    return put_text(at, "\",\"resource\":", resource);
}

/* ,"nodes":{"<what>":…,"quorum":…,"total":…}} and the newline */
static char *put_nodes(char *at, const char *before,
                       const struct engine_result *result)
{
    at = put_number(at, before, result->votes_for);
    at = put_number(at, ",\"quorum\":", result->quorum);
    at = put_number(at, ",\"total\":", result->total);
    return put(at, span_of("}}\n"));
}

static size_t room_for(const struct engine_result *result)
{
    return FIXED_MAX + ID_MAX +
           ESCAPED *
               (result->resource.len + result->token.len + result->owner.len);
}

char *render_grant(const struct engine_result *result,
                   const struct render_times *times, size_t *len)
{
    size_t room = room_for(result);
    char *body = malloc(room);
    if (body == NULL)
        return NULL;
    char *at = put_lock(body, result->resource);
    at = put_text(at, ",\"token\":", result->token);
    at = put_number(at, ",\"fencing_token\":", result->number);
    at = put_number(at, ",\"ttl_ms\":", result->ttl_ms);
    at = put_number(at, ",\"validity_ms\":", result->validity_ms);
    at = put_number(at, ",\"elapsed_ms\":", times->elapsed_ms);
    at = put_number(at, ",\"renew_after_ms\":", times->renew_after_ms);
    if (result->owner.len > 0)
        at = put_text(at, ",\"owner\":", result->owner);
    at = put_nodes(at, ",\"nodes\":{\"granted\":", result);
    *len = (size_t)(at - body);
    assert(*len <= room);
    return body;
}

char *render_release(const struct engine_result *result, size_t *len)
{
    size_t room = room_for(result);
    char *body = malloc(room);
    if (body == NULL)
        return NULL;
    char *at = put_lock(body, result->resource);
    at = put_nodes(at, ",\"released\":true,\"nodes\":{\"released\":", result);
    *len = (size_t)(at - body);
    assert(*len <= room);
    return body;
}
