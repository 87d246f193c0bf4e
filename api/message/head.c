#include "head.h"

#include <stdint.h>
#include <stdlib.h>

/* What the library takes for each field, argument and cookie, beside its text.
 */
enum { VALUE_COST = 80 };

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
    [HEAD_CONTENT_ENCODING] =
        {"Content-Encoding", "the header field Content-Encoding occurs twice"},
    [HEAD_EXPECT] = {"Expect", "the header field Expect occurs twice"},
    [HEAD_LOCK_TOKEN] = {"X-Lock-Token",
                         "the header field X-Lock-Token occurs twice"},
    [HEAD_IDEMPOTENCY_KEY] = {"Idempotency-Key",
                              "the header field Idempotency-Key occurs twice"},
    [HEAD_REQUEST_ID] = {"X-Request-Id", NULL},
    [HEAD_TRACEPARENT] = {"traceparent", NULL},
    [HEAD_AUTHORIZATION] = {"Authorization",
                            "the header field Authorization occurs twice"},
    [HEAD_ORIGIN] = {"Origin", "the header field Origin occurs twice"},
    /* no page can set these */
    [HEAD_SEC_FETCH_SITE] = {"Sec-Fetch-Site", NULL},
    [HEAD_SEC_FETCH_MODE] = {"Sec-Fetch-Mode", NULL},
    [HEAD_SEC_FETCH_DEST] = {"Sec-Fetch-Dest", NULL},
};

/* ---- texts -------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct span head_trim(struct span text)
{
    while (text.len > 0 && is_blank(text.ptr[text.len - 1]))
        text.len--;
    while (text.len > 0 && is_blank(*text.ptr)) {
        text.ptr++;
        text.len--;
    }
    return text;
}

/* Whatever the letters' case. */
static bool is_word(struct span text, const char *word)
{
    return span_is_like(text, span_of(word));
}

/* RFC 9110 §5.6.2 */
static bool is_token(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_alphanumeric = (c >= '0' && c <= '9') ||
                               (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!is_alphanumeric &&
            (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return text.len > 0;
}

/* RFC 9110 §5.5: nothing that controls, but TAB. */
static bool is_field_value(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* ---- fields ------------------------------------------------------------- */

void head_init(struct head *head, size_t bytes, size_t path_len)
{
    size_t uncounted = path_len < HEAD_PATH_MAX ? path_len : HEAD_PATH_MAX;
    *head = (struct head){.cost = bytes > uncounted ? bytes - uncounted : 0};
}

static void pick(struct head *head, enum head_field field, struct span value)
{
    if (head->values[field].ptr == NULL) {
        head->values[field] = value;
    } else if (fields[field].twice != NULL) {
        head->has_twice = true;
        head->twice = field;
    } else if (field == HEAD_TRACEPARENT) {
        head->values[field].len = 0; /* none counts then, so not the first */
    }
}

/* Each proxy may add one behind those that it was sent. */
static void add_forwarded(struct head *head, struct span value)
{
    if (head->forwarded_count < HEAD_FORWARDED_MAX)
        head->forwarded_count++;
    for (int i = head->forwarded_count - 1; i > 0; i--)
        head->forwarded[i] = head->forwarded[i - 1];
    head->forwarded[0] = value;
}

void head_add(struct head *head, struct span name, struct span value)
{
    value = head_trim(value);
    head->cost += VALUE_COST;
    /* the library copies them, and splits them at each ';' */
    if (is_word(name, "Cookie")) {
        head->cost += value.len;
        for (size_t i = 0; i < value.len; i++)
            head->cost += value.ptr[i] == ';' ? VALUE_COST : 0;
    }
    /* "Content-Length : 5" is read by some and skipped by others */
    head->has_bad_name |= !is_token(name);
    head->has_bad_value |= !is_field_value(value);
    if (is_word(name, "X-Forwarded-For"))
        add_forwarded(head, value);
    for (int i = 0; i < HEAD_FIELDS; i++)
        if (is_word(name, fields[i].name))
            pick(head, (enum head_field)i, value);
}

/* Where both were read, the name comes first; a copy of it lies behind. */
static bool is_copied(struct span name, struct span value)
{
    return value.ptr != NULL && (uintptr_t)name.ptr > (uintptr_t)value.ptr;
}

void head_add_line(struct head *head, struct span name, struct span value)
{
    head->has_fold |= is_copied(name, value);
    if (name.ptr == head->line_end + 1)
        head->has_bare_cr = true;
    if (value.ptr == NULL)
        value = span_of("");
    else
        head->line_end = value.ptr + value.len;
    head_add(head, name, value);
}

void head_add_argument(struct head *head, struct span name, struct span value)
{
    head->cost += VALUE_COST;
    query_add(&head->query, name, value);
}

/* ---- what is refused ---------------------------------------------------- */

static const char *find_doubtful_text(const struct head *head)
{
    struct span host = head->values[HEAD_HOST];
    if (head->has_bare_cr)
        return "a line of the head ends with a single CR or LF; end it with CR "
               "LF";
    if (head->has_fold)
        return "a header field goes on in the next line; send it in one";
    if (head->has_bad_name)
        return "a header field's name is empty, or contains a character that "
               "is not allowed";
    if (head->has_bad_value)
        return "a header field's value contains a control character";
    for (size_t i = 0; i < host.len; i++)
        if (is_blank(host.ptr[i]) || host.ptr[i] == ',')
            return "the header field Host is not a valid host";
    return NULL;
}

static const char *find_doubtful_framing(const struct head *head,
                                         bool is_http_1_0)
{
    struct span coding = head->values[HEAD_TRANSFER_ENCODING];
    if (head->has_twice)
        return fields[head->twice].twice;
    if (coding.ptr != NULL && head->values[HEAD_CONTENT_LENGTH].ptr != NULL)
        return "Content-Length and Transfer-Encoding must not be sent together";
    if (coding.ptr != NULL && !is_word(coding, "chunked"))
        return "the only supported Transfer-Encoding is chunked";
    if (coding.ptr != NULL && is_http_1_0)
        return "HTTP/1.0 has no Transfer-Encoding";
    if (head->values[HEAD_HOST].ptr == NULL && !is_http_1_0)
        return "the header field Host is missing";
    return NULL;
}

static bool has_body(const struct head *head)
{
    return head->values[HEAD_CONTENT_LENGTH].ptr != NULL ||
           head->values[HEAD_TRANSFER_ENCODING].ptr != NULL;
}

struct head_refusal head_check(const struct head *head, bool is_http_1_0)
{
    struct span expected = head->values[HEAD_EXPECT];
    struct span encoding = head->values[HEAD_CONTENT_ENCODING];
    const char *reason = find_doubtful_text(head);
    if (reason == NULL)
        reason = find_doubtful_framing(head, is_http_1_0);
    if (reason != NULL)
        return (struct head_refusal){PROBLEM_BAD_REQUEST, reason};
    if (head->cost > HEAD_COST_MAX)
        return (struct head_refusal){
            PROBLEM_HEAD_TOO_LARGE,
            "the request line and the header fields are too large in total; "
            "send fewer or shorter fields, arguments or cookies"};
    if (expected.ptr != NULL && !is_word(expected, "100-continue"))
        return (struct head_refusal){
            PROBLEM_EXPECTATION_FAILED,
            "the only supported expectation is 100-continue"};
    if (has_body(head) && encoding.ptr != NULL &&
        !is_word(encoding, "identity"))
        return (struct head_refusal){
            PROBLEM_UNSUPPORTED_MEDIA_TYPE,
            "Content-Encoding is not supported; send the body unencoded"};
    return (struct head_refusal){0};
}

int64_t head_content_length(const struct head *head)
{
    const char *text = head->values[HEAD_CONTENT_LENGTH].ptr;
    /* digits, or the HTTP library had refused it; too many are INT64_MAX */
    return text == NULL ? -1 : strtoll(text, NULL, 10);
}

/* ---- media types -------------------------------------------------------- */

/* Takes what stands in front of the next ';' out of rest. */
static struct span next_part(struct span *rest)
{
    const char *end = rest->len > 0 ? memchr(rest->ptr, ';', rest->len) : NULL;
    size_t len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;
    size_t taken = end != NULL ? len + 1 : len;
    struct span part = {rest->ptr, len};
    *rest = (struct span){rest->ptr + taken, rest->len - taken};
    return head_trim(part);
}

/* name=value; of a charset only UTF-8. */
static bool is_parameter(struct span part)
{
    const char *equals = memchr(part.ptr, '=', part.len);
    if (equals == NULL)
        return false;
    struct span name = {part.ptr, (size_t)(equals - part.ptr)};
    struct span value = {equals + 1, part.len - name.len - 1};
    if (value.len >= 2 && value.ptr[0] == '"' &&
        value.ptr[value.len - 1] == '"')
        value = (struct span){value.ptr + 1, value.len - 2};
    return is_token(name) && is_token(value) &&
           (!is_word(name, "charset") || is_word(value, "utf-8"));
}

bool head_is_json(struct span content_type)
{
    if (content_type.ptr == NULL ||
        !is_word(next_part(&content_type), "application/json"))
        return false;
    while (content_type.len > 0) {
        struct span part = next_part(&content_type);
        if (part.len > 0 && !is_parameter(part))
            return false;
    }
    return true;
}
