#include "head.h"

#include <stdlib.h>
#include <strings.h>

static const struct field {
    const char *name;
    const char *twice; /* why a second one is refused; NULL: the first counts */
} fields[HEAD_FIELDS] = {
    [HEAD_HOST] = {"Host", "the header field Host occurs twice"},
    [HEAD_CONTENT_LENGTH] = {"Content-Length",
                             "the header field Content-Length occurs twice"},
    [HEAD_TRANSFER_ENCODING] =
        {"Transfer-Encoding",
         "the header field Transfer-Encoding occurs twice"},
    [HEAD_CONTENT_TYPE] = {"Content-Type",
                           "the header field Content-Type occurs twice"},
    [HEAD_LOCK_TOKEN] = {"X-Lock-Token",
                         "the header field X-Lock-Token occurs twice"},
    [HEAD_IDEMPOTENCY_KEY] = {"Idempotency-Key",
                              "the header field Idempotency-Key occurs twice"},
    [HEAD_REQUEST_ID] = {"X-Request-Id", NULL},
};

void head_init(struct head *head)
{
    *head = (struct head){0};
}

void head_add(struct head *head, struct span name, const char *value)
{
    /* "Content-Length : 5" is read by some and skipped by others */
    if (name.len == 0 || memchr(name.ptr, ' ', name.len) != NULL ||
        memchr(name.ptr, '\t', name.len) != NULL)
        head->has_bad_name = true;
    for (int i = 0; i < HEAD_FIELDS; i++) {
        if (strncasecmp(fields[i].name, name.ptr, name.len) != 0 ||
            fields[i].name[name.len] != '\0')
            continue;
        if (head->values[i] == NULL) {
            head->values[i] = value;
        } else if (fields[i].twice != NULL) {
            head->has_twice = true;
            head->twice = (enum head_field)i;
        }
        return;
    }
}

const char *head_check(const struct head *head, bool is_http_1_0)
{
    const char *coding = head->values[HEAD_TRANSFER_ENCODING];
    if (head->has_bad_name)
        return "a header field's name is empty or has white space in it";
    if (head->has_twice)
        return fields[head->twice].twice;
    if (coding != NULL && head->values[HEAD_CONTENT_LENGTH] != NULL)
        return "Content-Length and Transfer-Encoding exclude each other";
    if (coding != NULL && strcasecmp(coding, "chunked") != 0)
        return "the only Transfer-Encoding that is understood is chunked";
    if (coding != NULL && is_http_1_0)
        return "HTTP/1.0 has no Transfer-Encoding";
    if (head->values[HEAD_HOST] == NULL && !is_http_1_0)
        return "the header field Host is missing";
    return NULL;
}

int64_t head_content_length(const struct head *head)
{
    const char *text = head->values[HEAD_CONTENT_LENGTH];
    /* digits, or the HTTP library had refused it; too many are INT64_MAX */
    return text == NULL ? -1 : strtoll(text, NULL, 10);
}
