#include "http.h"

#include <stdio.h>

#include "../../server/lock/names.h"

enum { LOCKS_EACH = 10 }; /* of a page count as one request */

static int counter_of(const struct route_match *match)
{
    switch (match->route) {
    case ROUTE_LOCK:
        return (int)match->call;
    case ROUTE_LIST:
    case ROUTE_POOL:
        return METRICS_LIST;
    case ROUTE_BATCH:
        return METRICS_BATCH;
    case ROUTE_LIVEZ:
    case ROUTE_READYZ:
        return METRICS_PROBE;
    case ROUTE_METRICS:
        return METRICS_SCRAPE;
    default:
        return METRICS_OTHER;
    }
}

int http_list_size(struct span text)
{
    int64_t size = span_number(text, 4);
    return size >= 1 && size <= PAGE_SIZE_MAX ? (int)size : 0;
}

size_t http_body_max(const struct route_match *match)
{
    return match->route == ROUTE_BATCH ? HTTP_BATCH_MAX : HTTP_BODY_MAX;
}

int http_price(const struct http_request *request)
{
    const struct query *query = &request->query;
    const struct route_match *match = &request->match;
    enum query_argument argument =
        match->route == ROUTE_POOL ? QUERY_LIMIT : QUERY_PAGE_SIZE;
    int size = PAGE_SIZE_DEFAULT;
    if (match->route == ROUTE_LOCK && match->call == LOCK_INSPECT) {
        char names[NAMES_LEN_MAX];
        return names_count(route_names(match, names));
    }
    if (match->route != ROUTE_LIST && match->route != ROUTE_POOL)
        return 1;
    if (query_has(query, argument)) {
        char digits[4];
        struct span text; /* empty if it is refused */
        (void)query_read(query, argument, digits, sizeof digits, &text);
        size = http_list_size(text);
    }
    return size > LOCKS_EACH ? size / LOCKS_EACH : 1;
}

void http_find_call(struct http_request *request)
{
    struct route_match *match = &request->match;
    route_find(match, request->method, request->target);
    if ((match->route == ROUTE_LOCK || match->route == ROUTE_BAD_ID) &&
        match->call == LOCK_RELEASE && query_has(&request->query, QUERY_FORCE))
        match->call = LOCK_FORCE;
    request->call.kind = match->call;
    request->counted_as = counter_of(match);
}

/* ---- ids of requests ---------------------------------------------------- */

bool requestid_is_valid(struct span text)
{
    return text.len > 0 && text.len <= REQUESTID_MAX &&
           span_has_only(text, "._-");
}

void requestid_make(struct requestid_source *source, char id[REQUESTID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    /* SplitMix64 is one to one: other counts, other ids. */
    uint64_t mixed = source->seed + ++source->made * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    for (int i = 0; i < REQUESTID_LEN; i++, mixed >>= 4)
        id[i] = digits[mixed & 15];
    id[REQUESTID_LEN] = '\0';
}

/* ---- traces ------------------------------------------------------------- */

/*
 *   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *   |  trace id                         parent id        flags
 *   version; after 00, "-" and more may follow
 *
 * Version ff is none, and neither is an id that is all zeros.
 */
enum {
    VERSION_LEN = 2,
    FLAGS_LEN = 2,
    ID_AT = VERSION_LEN + 1,
    PARENT_AT = ID_AT + TRACE_ID_LEN + 1,
    FLAGS_AT = PARENT_AT + TRACE_PARENT_LEN + 1,
    LEN = FLAGS_AT + FLAGS_LEN,
};

static bool http_is_valid(struct span value)
{
    static const char digits[] = "0123456789abcdef";
    static const char zeros[TRACE_ID_LEN + 1] =
        "00000000000000000000000000000000";
    const char *text = value.ptr;
    if (value.len < LEN)
        return false;
    for (int i = 0; i < LEN; i++) {
        bool is_dash =
            i == ID_AT - 1 || i == PARENT_AT - 1 || i == FLAGS_AT - 1;
        if (is_dash ? text[i] != '-'
                    : memchr(digits, text[i], sizeof digits - 1) == NULL)
            return false;
    }
    bool is_first = memcmp(text, "00", VERSION_LEN) == 0;
    bool is_none = memcmp(text, "ff", VERSION_LEN) == 0;
    return !is_none && (value.len == LEN || (!is_first && text[LEN] == '-')) &&
           memcmp(text + ID_AT, zeros, TRACE_ID_LEN) != 0 &&
           memcmp(text + PARENT_AT, zeros, TRACE_PARENT_LEN) != 0;
}

void trace_read(struct trace *trace, struct span value)
{
    *trace = (struct trace){0};
    if (!http_is_valid(value))
        return;
    memcpy(trace->id, value.ptr + ID_AT, TRACE_ID_LEN);
    memcpy(trace->parent, value.ptr + PARENT_AT, TRACE_PARENT_LEN);
}

/* ---- the header fields of an answer ------------------------------------- */

static void http_add_field(struct http_fields *fields, const char *name,
                           const char *value)
{
    if (value == NULL)
        return;
    fields->list[fields->count].name = name;
    fields->list[fields->count].value = value;
    fields->count++;
}

void http_fill_fields(struct http_fields *fields,
                      const struct http_request *request,
                      const struct http_response *response)
{
    fields->count = 0;
    http_add_field(fields, "X-Request-Id", request->id);
    http_add_field(fields, "Cache-Control", "no-store");
    http_add_field(fields, "Content-Type", response->content_type);
    /* a text is what its type says */
    http_add_field(fields, "X-Content-Type-Options",
                   response->content_type != NULL ? "nosniff" : NULL);
    http_add_field(fields, "Location",
                   response->location[0] != '\0' ? response->location : NULL);
    http_add_field(fields, "Allow", response->allow);
    http_add_field(fields, "WWW-Authenticate", response->challenge);
    if (response->retry_after_ms > 0) { /* whole seconds, and no sooner */
        (void)snprintf(
            fields->retry_after, sizeof fields->retry_after, "%lld",
            (long long)divide_up(response->retry_after_ms, MS_PER_S));
        http_add_field(fields, "Retry-After", fields->retry_after);
    }
    /* a page takes everything from this server and sends nothing elsewhere; no
     * other page may show it in a frame */
    if (response->is_page)
        http_add_field(
            fields, "Content-Security-Policy",
            "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
            "form-action 'none'");
    http_add_field(fields, "Connection", response->close ? "close" : NULL);
}
