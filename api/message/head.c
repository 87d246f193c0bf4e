/* SPDX-License-Identifier: MIT */
#include "head.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../server/base/address.h"

/* What the library takes for each field, query parameter and cookie, beside its
 * text.
 */
enum { VALUE_COST = 80 };

#define ONCE(name)                                                             \
    {                                                                          \
        name, "the header field " name " occurs twice"                         \
    }

static const struct field {
    const char *name;
    const char *twice; /* why a second one is refused; NULL: the first counts */
} fields[HEAD_FIELDS] = {
    [HEAD_HOST] = ONCE("Host"),
    [HEAD_CONTENT_LENGTH] = ONCE("Content-Length"),
    [HEAD_TRANSFER_ENCODING] = ONCE("Transfer-Encoding"),
    [HEAD_CONTENT_TYPE] = ONCE("Content-Type"),
    [HEAD_CONTENT_ENCODING] = ONCE("Content-Encoding"),
    [HEAD_EXPECT] = ONCE("Expect"),
    [HEAD_LOCK_TOKEN] = ONCE("X-Lock-Token"),
    [HEAD_IDEMPOTENCY_KEY] = ONCE("Idempotency-Key"),
    [HEAD_REQUEST_ID] = {"X-Request-Id", NULL},
    [HEAD_TRACEPARENT] = {"traceparent", NULL},
    [HEAD_AUTHORIZATION] = ONCE("Authorization"),
    [HEAD_ORIGIN] = ONCE("Origin"),
    /* no page can set these */
    [HEAD_SEC_FETCH_SITE] = {"Sec-Fetch-Site", NULL},
    [HEAD_SEC_FETCH_MODE] = {"Sec-Fetch-Mode", NULL},
    [HEAD_SEC_FETCH_DEST] = {"Sec-Fetch-Dest", NULL},
};

/* ---- texts -------------------------------------------------------------- */

static bool head_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct span head_trim(struct span text)
{
    while (text.len > 0 && head_is_blank(text.ptr[text.len - 1]))
        text.len--;
    while (text.len > 0 && head_is_blank(*text.ptr)) {
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
static bool head_is_token(struct span text)
{
    return text.len > 0 && span_has_only(text, "!#$%&'*+-.^_`|~");
}

/* ---- fields ------------------------------------------------------------- */

void head_init(struct head *head, size_t bytes, size_t path_len)
{
    size_t uncounted = path_len < HEAD_PATH_MAX ? path_len : HEAD_PATH_MAX;
    *head = (struct head){.cost = bytes > uncounted ? bytes - uncounted : 0};
}

static void head_pick(struct head *head, enum head_field field,
                      struct span value)
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
    head->has_bad_name |= !head_is_token(name);
    /* RFC 9110 §5.5: nothing that controls, but TAB */
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        head->has_bad_value |= (c < 0x20 && c != '\t') || c == 0x7f;
    }
    if (is_word(name, "X-Forwarded-For")) {
        /* each proxy may add one behind those that it was sent */
        if (head->forwarded_count < HEAD_FORWARDED_MAX)
            head->forwarded_count++;
        for (int i = head->forwarded_count - 1; i > 0; i--)
            head->forwarded[i] = head->forwarded[i - 1];
        head->forwarded[0] = value;
    }
    for (int i = 0; i < HEAD_FIELDS; i++)
        if (is_word(name, fields[i].name))
            head_pick(head, (enum head_field)i, value);
}

void head_add_line(struct head *head, struct span name, struct span value)
{
    /* where both were read, the name comes first; a copy of it lies behind */
    head->has_fold |=
        value.ptr != NULL && (uintptr_t)name.ptr > (uintptr_t)value.ptr;
    if (name.ptr == head->line_end + 1)
        head->has_bare_cr = true;
    if (value.ptr == NULL)
        value = span_of("");
    else
        head->line_end = value.ptr + value.len;
    head_add(head, name, value);
}

void head_add_parameter(struct head *head, struct span name, struct span value)
{
    head->cost += VALUE_COST;
    query_add(&head->query, name, value);
}

/* ---- what is refused ---------------------------------------------------- */

/* What can be read in two ways: texts first, then framing. */
static const char *find_doubt(const struct head *head, bool is_http_1_0)
{
    struct span coding = head->values[HEAD_TRANSFER_ENCODING];
    struct span host = head->values[HEAD_HOST];
    if (head->has_bare_cr)
        return "the request line or a header field ends with a single CR or "
               "LF; end it with CR LF";
    if (head->has_fold)
        return "a header field is folded onto a second line; send it on one "
               "line";
    if (head->has_bad_name)
        return "a header field's name is empty, or contains a character that "
               "is not allowed";
    if (head->has_bad_value)
        return "a header field's value contains a control character; remove it";
    for (size_t i = 0; i < host.len; i++)
        if (head_is_blank(host.ptr[i]) || host.ptr[i] == ',')
            return "the header field Host is not a valid host";
    if (head->has_twice)
        return fields[head->twice].twice;
    if (coding.ptr != NULL && head->values[HEAD_CONTENT_LENGTH].ptr != NULL)
        return "Content-Length and Transfer-Encoding must not be sent together";
    if (coding.ptr != NULL && !is_word(coding, "chunked"))
        return "the only supported Transfer-Encoding is chunked";
    if (coding.ptr != NULL && is_http_1_0)
        return "HTTP/1.0 has no Transfer-Encoding; send Content-Length";
    if (head->values[HEAD_HOST].ptr == NULL && !is_http_1_0)
        return "the header field Host is missing";
    return NULL;
}

struct head_refusal head_check(const struct head *head, bool is_http_1_0)
{
    struct span expected = head->values[HEAD_EXPECT];
    struct span encoding = head->values[HEAD_CONTENT_ENCODING];
    bool has_body = head->values[HEAD_CONTENT_LENGTH].ptr != NULL ||
                    head->values[HEAD_TRANSFER_ENCODING].ptr != NULL;
    const char *reason = find_doubt(head, is_http_1_0);
    if (reason != NULL)
        return (struct head_refusal){PROBLEM_BAD_REQUEST, reason};
    if (head->cost > HEAD_COST_MAX)
        return (struct head_refusal){
            PROBLEM_HEAD_TOO_LARGE,
            "the request line and the header fields are too large in total; "
            "send fewer or shorter header fields, query parameters or cookies"};
    if (expected.ptr != NULL && !is_word(expected, "100-continue"))
        return (struct head_refusal){
            PROBLEM_EXPECTATION_FAILED,
            "the only supported expectation is 100-continue"};
    if (has_body && encoding.ptr != NULL && !is_word(encoding, "identity"))
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

/* ---- proxies ------------------------------------------------------------ */

/* Takes what stands behind the last comma off the list; false: it is empty. */
static bool take_last(struct span *list, struct span *entry)
{
    const char *comma =
        list->len > 0 ? memrchr(list->ptr, ',', list->len) : NULL;
    size_t before = comma != NULL ? (size_t)(comma - list->ptr) : 0;
    size_t skipped = comma != NULL ? before + 1 : 0;
    if (list->len == 0)
        return false;
    *entry = head_trim((struct span){list->ptr + skipped, list->len - skipped});
    list->len = before;
    return true;
}

struct span head_client(const struct head *head, const char *proxies,
                        const char *peer)
{
    struct span client = {NULL, 0}, entry, address;
    if (!networks_read_address(span_of(peer), &address) ||
        !networks_have(proxies, address))
        return client;
    for (int i = 0; i < head->forwarded_count; i++) {
        struct span list = head->forwarded[i];
        while (take_last(&list, &entry)) {
            if (!networks_read_address(entry, &address))
                return client; /* the one before told nonsense */
            client = address;
            if (!networks_have(proxies, address))
                return client;
        }
    }
    return client;
}

/* ---- media types -------------------------------------------------------- */

/* A proxy may have joined two lines: the type may come twice. */
bool head_is_json(struct span content_type)
{
    struct span type = span_take(&content_type, ';');
    bool is_more = type.len > 0;
    while (is_more) {
        is_more = memchr(type.ptr, ',', type.len) != NULL;
        if (!is_word(head_trim(span_take(&type, ',')), "application/json"))
            return false;
        if (!is_more)
            return true;
    }
    return false;
}

/* ---- web pages ---------------------------------------------------------- */

/* host:port, [address]:port, or the same without a port. */
static struct span host_of(struct span authority)
{
    bool is_bracketed = authority.len > 0 && authority.ptr[0] == '[';
    for (size_t i = 0; i < authority.len; i++) {
        if (is_bracketed && authority.ptr[i] == ']')
            return (struct span){authority.ptr, i + 1};
        if (!is_bracketed && authority.ptr[i] == ':')
            return (struct span){authority.ptr, i};
    }
    return authority;
}

static bool head_is_local(struct span host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr v4;
    if (host.len == 0 || host.ptr[0] == '[')
        return true; /* of IPv6: no name begins so */
    if (memchr(host.ptr, '.', host.len) == NULL)
        return true; /* a name without a dot cannot be bought */
    if (host.len >= sizeof text)
        return false;
    text[span_copy(text, host)] = '\0';
    return inet_pton(AF_INET, text, &v4) == 1;
}

static bool head_is_cross_origin(struct span origin, struct span host,
                                 const char *allowed_hosts)
{
    const char *mark = memmem(origin.ptr, origin.len, "://", 3);
    if (mark == NULL)
        return true; /* null: a page that must not say where it is from */
    const char *start = mark + 3;
    struct span authority = {start, origin.len - (size_t)(start - origin.ptr)};
    return !span_is_like(authority, host) &&
           !hosts_have(allowed_hosts, host_of(authority));
}

struct head_refusal head_check_page(const struct head *head,
                                    const char *allowed_hosts, bool is_open,
                                    bool is_get)
{
    struct span host = head->values[HEAD_HOST];
    struct span origin = head->values[HEAD_ORIGIN];
    struct span site = head->values[HEAD_SEC_FETCH_SITE];
    if (host.ptr == NULL)
        host = span_of(""); /* HTTP/1.0 */
    struct span name = host_of(host);
    /* a link that somebody follows opens a page here; it tells the other site
     * nothing */
    bool opens_page =
        is_get &&
        span_is_like(head->values[HEAD_SEC_FETCH_MODE], span_of("navigate")) &&
        span_is_like(head->values[HEAD_SEC_FETCH_DEST], span_of("document"));
    if (is_open && !head_is_local(name) && !hosts_have(allowed_hosts, name))
        return (struct head_refusal){
            PROBLEM_HOST_NOT_ALLOWED,
            "Host is not an IP address, localhost, a name without a dot, or in "
            "--allowed-hosts; add it there"};
    if ((origin.ptr != NULL &&
         head_is_cross_origin(origin, host, allowed_hosts)) ||
        (span_is_like(site, span_of("cross-site")) && !opens_page))
        return (struct head_refusal){
            PROBLEM_FOREIGN_ORIGIN,
            "a web page of another origin may not use this server; if a proxy "
            "serves this server to the page, add its host to --allowed-hosts"};
    return (struct head_refusal){0};
}
