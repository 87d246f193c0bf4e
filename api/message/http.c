/* SPDX-License-Identifier: MIT */
#include "http.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "../../server/base/encoding.h"
#include "../../server/lock/names.h"

enum { LOCKS_EACH = 10 }; /* of a page count as one request */

/* ---- what method and path ask ------------------------------------------- */

/* A path: its segments, and what is asked there. */
#define READ "GET, HEAD, OPTIONS"

static const struct path {
    enum route route;
    const char *text; /* {id}: one that is not empty */
    const char *allow;
} paths[] = {
    /* a GET of it is ROUTE_LIST */
    {ROUTE_LOCK, "/locks", "GET, HEAD, POST, OPTIONS"},
    {ROUTE_LOCK, "/locks/{id}", "GET, HEAD, DELETE, OPTIONS"},
    {ROUTE_LOCK, "/locks/{id}/extend", "PUT, OPTIONS"},
    /* any of its calls: all need the same right */
    {ROUTE_BATCH, "/batch", "POST, OPTIONS"},
    {ROUTE_POOL, "/pools/{id}", READ},
    {ROUTE_NODES, "/nodes", READ},
    {ROUTE_LIVEZ, "/livez", READ},
    {ROUTE_READYZ, "/readyz", READ},
    {ROUTE_METRICS, "/metrics", READ},
    {ROUTE_PAGE, "/", READ},
    {ROUTE_PAGE_CSS, "/page.css", READ},
    {ROUTE_PAGE_JS, "/page.js", READ},
    {ROUTE_PAGE_ICON, "/page.svg", READ},
    {ROUTE_DOCS, "/docs", READ},
    {ROUTE_OPENAPI, "/openapi.yaml", READ},
};

/* What a method asks of a lock, or of many. */
static const struct {
    const char *name;
    enum lock_call call;
} methods[] = {
    {"POST", LOCK_ACQUIRE}, {"PUT", LOCK_EXTEND},   {"DELETE", LOCK_RELEASE},
    {"GET", LOCK_INSPECT},  {"HEAD", LOCK_INSPECT},
};

enum { PATHS = sizeof paths / sizeof *paths };

/* The path of a target: what follows the authority of an absolute form. */
static const char *path_of(const char *target)
{
    size_t scheme_len;
    if (strncasecmp(target, "http://", 7) == 0)
        scheme_len = 7;
    else if (strncasecmp(target, "https://", 8) == 0)
        scheme_len = 8;
    else
        return target;
    const char *path = strchr(target + scheme_len, '/');
    return path != NULL ? path : "/";
}

/* id: what stands in place of {id}; len 0: nothing. */
static bool route_fits(const char *form, const char *path, struct span *id)
{
    static const char mark[] = "{id}";
    const char *at = strstr(form, mark);
    *id = (struct span){0};
    if (at == NULL)
        return strcmp(form, path) == 0;
    size_t before = (size_t)(at - form);
    if (strncmp(form, path, before) != 0)
        return false;
    *id = (struct span){path + before, strcspn(path + before, "/")};
    return id->len > 0 && strcmp(at + sizeof mark - 1, id->ptr + id->len) == 0;
}

struct span route_names(const struct route_match *match,
                        char names[NAMES_LEN_MAX])
{
    char text[ID_MAX];
    size_t text_len;
    if (match->id.len == 0 ||
        !percent_decode(match->id, text, sizeof text, &text_len))
        return (struct span){0};
    return id_find_names((struct span){text, text_len}, names);
}

static bool route_allows(const char *allow, const char *method)
{
    struct span list = span_of(allow);
    while (list.len > 0) {
        if (span_is(span_take(&list, ','), method))
            return true;
        list = span_behind(list, list.len > 0); /* the blank */
    }
    return false;
}

static void route_ask(struct route_match *match, const struct path *path,
                      const char *name, struct span id)
{
    const int count = sizeof methods / sizeof *methods;
    int method = 0;
    match->allow = path->allow;
    while (method < count && strcmp(methods[method].name, name) != 0)
        method++;
    if (method == count || !route_allows(path->allow, name)) {
        bool is_options = strcmp(name, "OPTIONS") == 0;
        match->route = is_options ? ROUTE_OPTIONS : ROUTE_NOT_ALLOWED;
        return;
    }
    match->call = methods[method].call;
    match->route = path->route;
    if (id.len > 0) {
        char names[NAMES_LEN_MAX];
        match->id = id;
        if (route_names(match, names).len > 0)
            return;
        match->id = (struct span){0};
        match->route = ROUTE_BAD_ID;
    } else if (path->route == ROUTE_LOCK && match->call != LOCK_ACQUIRE) {
        match->route = ROUTE_LIST;
    }
}

void route_find(struct route_match *match, const char *method,
                const char *target)
{
    struct span id;
    match->route = ROUTE_NOT_FOUND;
    match->allow = "GET, HEAD, POST, PUT, DELETE, OPTIONS";
    match->id = (struct span){0};
    if (strcmp(target, "*") == 0 && strcmp(method, "OPTIONS") == 0) {
        match->route = ROUTE_OPTIONS;
        return;
    }
    for (int i = 0; i < PATHS; i++) {
        if (route_fits(paths[i].text, path_of(target), &id)) {
            route_ask(match, &paths[i], method, id);
            return;
        }
    }
}

const char *route_path(int n, const char **path)
{
    if (n >= PATHS)
        return NULL;
    *path = paths[n].text;
    return paths[n].allow;
}

/* ---- query parameters --------------------------------------------------- */

const char *const query_names[QUERY_PARAMETERS] = {
    [QUERY_VERBOSE] = "verbose",     [QUERY_FORCE] = "force",
    [QUERY_PREFIX] = "prefix",       [QUERY_LIMIT] = "limit",
    [QUERY_PAGE_SIZE] = "page_size", [QUERY_CURSOR] = "cursor",
    [QUERY_AFTER] = "after",         [QUERY_WAIT] = "wait_ms",
};

void query_add(struct query *query, struct span name, struct span value)
{
    for (int i = 0; i < QUERY_PARAMETERS; i++) {
        if (!span_is(name, query_names[i]))
            continue;
        query->is_twice[i] = query->values[i].ptr != NULL;
        query->values[i] = value.ptr != NULL ? value : span_of("");
    }
}

const char *query_read(const struct query *query,
                       enum query_parameter parameter, char *out, size_t size,
                       struct span *value)
{
    *value = (struct span){out, 0};
    if (query->is_twice[parameter])
        return "occurs twice";
    if (percent_decode(query->values[parameter], out, size, &value->len))
        return NULL;
    value->len = 0;
    return "is too long, or not percent-encoded";
}

/* ---- cursors of lists --------------------------------------------------- */

/* nodes in hex, the one it is at, its cursor, the hash of the servers in hex */
static const char form[] = "%" PRIx16 ".%d.%" PRId64 ".%016" PRIx64;

static const int64_t scan_max = INT64_C(999999999999999);

void cursor_encode(char text[CURSOR_MAX], const struct list_cursor *cursor)
{
    (void)snprintf(text, CURSOR_MAX, form, cursor->nodes, cursor->at,
                   cursor->scan, cursor->runs);
}

/*
 * There is one form: what is written again must be the same. So anything else
 * may be read as some other cursor.
 */
bool cursor_decode(struct span text, struct list_cursor *cursor)
{
    char copy[CURSOR_MAX], again[CURSOR_MAX];
    char *at = copy;
    if (text.len >= sizeof copy)
        return false;
    copy[span_copy(copy, text)] = '\0';
    cursor->nodes = (uint16_t)strtoul(at, &at, 16);
    at += *at == '.';
    cursor->at = (int)strtol(at, &at, 10);
    at += *at == '.';
    cursor->scan = strtoll(at, &at, 10);
    at += *at == '.';
    cursor->runs = strtoull(at, NULL, 16);
    cursor_encode(again, cursor);
    return cursor->nodes != 0 && cursor->at >= 0 && cursor->at <= 9 &&
           cursor->scan >= 0 && cursor->scan <= scan_max &&
           span_is(text, again);
}

/* ---- what a request counts as ------------------------------------------- */

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
    enum query_parameter parameter =
        match->route == ROUTE_POOL ? QUERY_LIMIT : QUERY_PAGE_SIZE;
    int size = PAGE_SIZE_DEFAULT;
    if (match->route == ROUTE_LOCK && match->call == LOCK_INSPECT) {
        char names[NAMES_LEN_MAX];
        return names_count(route_names(match, names));
    }
    if (match->route != ROUTE_LIST && match->route != ROUTE_POOL)
        return 1;
    if (query_has(query, parameter)) {
        char digits[4];
        struct span text; /* empty if it is refused */
        (void)query_read(query, parameter, digits, sizeof digits, &text);
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
