/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON (RFC 8259), value after value, into one buffer that grows: a
 * library's objects cost an eighth of the CPU time of each lock cycle. Nobody
 * need look for memory before json_end.
 *
 * A value in an object has a name, which needs no escapes; one in an array has
 * NULL. What takes a name is inline, so that the name is copied as the constant
 * that it is.
 */
#ifndef REDLOCKD_JSON_H
#define REDLOCKD_JSON_H

#include "../../server/base/types.h"

struct json {
    char *text;
    size_t len;
    size_t size;
    bool has_failed; /* no memory for a value; size is 0 from then on */
};

/* Opens the object that is the whole text. json_end must follow. */
void json_begin(struct json *json);

/* Closes it. malloc'ed, with a newline and a NUL behind; NULL: no memory. */
char *json_end(struct json *json, size_t *len);

/* ---- what the values below are made of ---------------------------------- */

/* False: no memory, and what was written is gone. */
bool json_grow(struct json *json, size_t len);

/* Write behind a name. A text that is not UTF-8 takes all back to before. */
void json_write_text(struct json *json, struct span text, size_t before);
void json_write_integer(struct json *json, int64_t value);

static inline bool json_reserve(struct json *json, size_t len)
{
    return json->len + len <= json->size || json_grow(json, len);
}

/*
 * Writes what stands before a value, and makes room for len bytes of it. No
 * value ends as an object or an array begins, so the last byte tells whether
 * there is one in front.
 */
static inline bool json_begin_value(struct json *json, const char *name,
                                    size_t len)
{
    struct span text = name != NULL ? span_of(name) : (struct span){0};
    if (!json_reserve(json, sizeof ",\"\":" + text.len + len))
        return false;
    char *at = json->text + json->len;
    if (at[-1] != '{' && at[-1] != '[')
        *at++ = ',';
    if (name != NULL) {
        *at++ = '"';
        at += span_copy(at, text);
        *at++ = '"';
        *at++ = ':';
    }
    json->len = (size_t)(at - json->text);
    return true;
}

static inline void json_open(struct json *json, const char *name, char mark)
{
    if (json_begin_value(json, name, 1))
        json->text[json->len++] = mark;
}

static inline void json_close(struct json *json, char mark)
{
    if (json_reserve(json, 1))
        json->text[json->len++] = mark;
}

/* ---- values ------------------------------------------------------------- */

static inline void json_open_object(struct json *json, const char *name)
{
    json_open(json, name, '{');
}

static inline void json_close_object(struct json *json)
{
    json_close(json, '}');
}

static inline void json_open_array(struct json *json, const char *name)
{
    json_open(json, name, '[');
}

static inline void json_close_array(struct json *json)
{
    json_close(json, ']');
}

/* A text that is not UTF-8 is left out, and its name with it. */
static inline void json_put_text(struct json *json, const char *name,
                                 struct span text)
{
    size_t before = json->len;
    if (json_begin_value(json, name, text.len + 2))
        json_write_text(json, text, before);
}

/* A value that is JSON already. */
static inline void json_put_json(struct json *json, const char *name,
                                 struct span text)
{
    if (json_begin_value(json, name, text.len))
        json->len += span_copy(json->text + json->len, text);
}

static inline void json_put_integer(struct json *json, const char *name,
                                    int64_t value)
{
    if (json_begin_value(json, name, 1 + DIGITS_MAX))
        json_write_integer(json, value);
}

static inline void json_put_boolean(struct json *json, const char *name,
                                    bool value)
{
    json_put_json(json, name, span_of(value ? "true" : "false"));
}

#endif
