/* SPDX-License-Identifier: MIT */
/*
 * A line with 1.0 or 1.1, then names and values in turns. A head is only
 * trusted if no second reader could frame the request in another way.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../../api/message/head.h"
#include "input.h"

enum { FIELDS_MAX = 32 };

struct field {
    struct span name;
    struct span value;
};

static bool is_word(struct span text, const char *word)
{
    return text.len == strlen(word) &&
           strncasecmp(text.ptr, word, text.len) == 0;
}

static int count_named(const struct field fields[], int count, const char *name)
{
    int named = 0;
    for (int i = 0; i < count; i++)
        named += is_word(fields[i].name, name);
    return named;
}

static void add_all(struct head *head, const struct field fields[], int count,
                    bool is_backwards)
{
    head_init(head, 0, 0);
    for (int i = 0; i < count; i++) {
        const struct field *field = &fields[is_backwards ? count - 1 - i : i];
        head_add(head, field->name, field->value);
    }
}

/* The one value of a field; ptr NULL: it is not there. */
static struct span find(const struct field fields[], int count,
                        const char *name)
{
    struct span found = {NULL, 0};
    for (int i = 0; i < count; i++)
        if (is_word(fields[i].name, name))
            found = fields[i].value;
    while (found.len > 0 && strchr(" \t", found.ptr[found.len - 1]) != NULL)
        found.len--;
    for (; found.len > 0 && strchr(" \t", *found.ptr) != NULL; found.ptr++)
        found.len--;
    return found;
}

static void check_texts(const struct field fields[], int count)
{
    for (int i = 0; i < count; i++) {
        struct span name = fields[i].name;
        struct span value = fields[i].value;
        assert(name.len > 0);
        for (size_t k = 0; k < name.len; k++)
            assert(name.ptr[k] > ' ' && strchr(":,;\x7f", name.ptr[k]) == NULL);
        for (size_t k = 0; k < value.len; k++)
            assert((unsigned char)value.ptr[k] >= ' ' || value.ptr[k] == '\t');
    }
}

/* RFC 9112 §6.1, §6.3, §3.2; and what must have one meaning. */
static void check_trusted(const struct field fields[], int count, bool is_old)
{
    static const char *const once[] = {
        "Content-Length",  "Transfer-Encoding", "Content-Type", "X-Lock-Token",
        "Idempotency-Key", "Content-Encoding",  "Expect",       "Host"};
    struct span coding = find(fields, count, "Transfer-Encoding");
    struct span expected = find(fields, count, "Expect");
    check_texts(fields, count);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        assert(count_named(fields, count, once[i]) <= 1);
    if (coding.ptr != NULL) {
        assert(count_named(fields, count, "Content-Length") == 0 && !is_old);
        assert(is_word(coding, "chunked"));
    }
    assert(is_old || count_named(fields, count, "Host") == 1);
    assert(expected.ptr == NULL || is_word(expected, "100-continue"));
}

/* What is said to be an id may be echoed. */
static void check_id(const struct head *head)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789._-";
    struct span id = head->values[HEAD_REQUEST_ID];
    if (id.ptr == NULL || !requestid_is_valid(id))
        return;
    assert(id.len >= 1 && id.len <= REQUESTID_MAX);
    for (size_t i = 0; i < id.len; i++)
        assert(memchr(safe, id.ptr[i], sizeof safe - 1) != NULL);
}

/* Whether it is hex that is not all zeros. */
static bool is_trace_id(const char *text, size_t len)
{
    return strlen(text) == len && strspn(text, "0123456789abcdef") == len &&
           strspn(text, "0") < len;
}

/* Ids stand in the one field, the trace first, each behind a dash. */
static void check_trace(const struct head *head, const struct head *backwards,
                        const struct field fields[], int count)
{
    struct trace trace, again;
    char both[TRACE_ID_LEN + TRACE_PARENT_LEN + 4];
    trace_read(&trace, head->values[HEAD_TRACEPARENT]);
    trace_read(&again, backwards->values[HEAD_TRACEPARENT]);
    assert(strcmp(trace.id, again.id) == 0);
    assert(strcmp(trace.parent, again.parent) == 0);
    if (trace.id[0] == '\0') {
        assert(trace.parent[0] == '\0');
        return;
    }
    struct span value = find(fields, count, "traceparent");
    assert(count_named(fields, count, "traceparent") == 1);
    assert(is_trace_id(trace.id, TRACE_ID_LEN));
    assert(is_trace_id(trace.parent, TRACE_PARENT_LEN));
    int len = snprintf(both, sizeof both, "-%s-%s-", trace.id, trace.parent);
    assert(value.len >= 55 && memcmp(value.ptr + 2, both, (size_t)len) == 0);
    assert(memcmp(value.ptr, "00", 2) != 0 || value.len == 55);
    assert(memcmp(value.ptr, "ff", 2) != 0);
}

static void check_type(const struct head *head)
{
    static const char json[] = "application/json";
    struct span type = head->values[HEAD_CONTENT_TYPE];
    if (!head_is_json(type))
        return;
    assert(type.len >= sizeof json - 1 &&
           strncasecmp(type.ptr, json, sizeof json - 1) == 0);
    assert(type.len == sizeof json - 1 ||
           strchr("; \t", type.ptr[sizeof json - 1]) != NULL);
}

static bool is_trusted(const struct head *head, bool is_old)
{
    struct head_refusal refusal = head_check(head, is_old);
    assert(refusal.code < PROBLEM_CODES);
    return refusal.reason == NULL;
}

void fuzz(struct input *input)
{
    struct field fields[FIELDS_MAX];
    struct head head, backwards;
    int count = 0;
    bool is_old = strcmp(input_text(input), "1.0") == 0;
    for (; input_has_more(input) && count < FIELDS_MAX; count++) {
        fields[count].name = input_line(input);
        fields[count].value = input_line(input);
    }
    add_all(&head, fields, count, false);
    add_all(&backwards, fields, count, true);
    bool is_good = is_trusted(&head, is_old);
    assert(is_good == is_trusted(&backwards, is_old));
    if (is_good)
        check_trusted(fields, count, is_old);
    check_id(&head);
    check_trace(&head, &backwards, fields, count);
    check_type(&head);
}
