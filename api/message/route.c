#include "route.h"

#include <stdio.h>
#include <strings.h>

#include "percent.h"

struct method {
    const char *name;
    enum lock_call call; /* of ROUTE_LOCK */
};

enum { METHODS_MAX = 4 };

/* A path: its segments, and what is asked there. */
struct path {
    const char *first;
    bool has_id;
    const char *last; /* behind the id, or NULL */
    enum route route;
    const char *allow;
    struct method methods[METHODS_MAX];
};

static const struct path paths[] = {
    {"locks",
     false,
     NULL,
     ROUTE_LOCK,
     "GET, HEAD, POST, OPTIONS",
     {{"POST", LOCK_ACQUIRE}, {"GET", LOCK_INSPECT}, {"HEAD", LOCK_INSPECT}}},
    {"locks",
     true,
     NULL,
     ROUTE_LOCK,
     "GET, HEAD, DELETE, OPTIONS",
     {{"GET", LOCK_INSPECT}, {"HEAD", LOCK_INSPECT}, {"DELETE", LOCK_RELEASE}}},
    {"locks",
     true,
     "extend",
     ROUTE_LOCK,
     "PUT, OPTIONS",
     {{"PUT", LOCK_EXTEND}}},
    {"nodes",
     false,
     NULL,
     ROUTE_NODES,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"livez",
     false,
     NULL,
     ROUTE_LIVEZ,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"readyz",
     false,
     NULL,
     ROUTE_READYZ,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"metrics",
     false,
     NULL,
     ROUTE_METRICS,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"",
     false,
     NULL,
     ROUTE_PAGE,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"page.css",
     false,
     NULL,
     ROUTE_PAGE_CSS,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"page.js",
     false,
     NULL,
     ROUTE_PAGE_JS,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"page.svg",
     false,
     NULL,
     ROUTE_PAGE_ICON,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"docs",
     false,
     NULL,
     ROUTE_DOCS,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
    {"openapi.yaml",
     false,
     NULL,
     ROUTE_OPENAPI,
     "GET, HEAD, OPTIONS",
     {{"GET", 0}, {"HEAD", 0}}},
};

enum { PATHS = sizeof paths / sizeof *paths, SEGMENTS_MAX = 3 };

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

/* Splits "/a/b/c"; returns the number of segments, -1: too many, or none. */
static int split(const char *path, struct span segments[SEGMENTS_MAX])
{
    int count = 0;
    while (*path == '/') {
        if (count == SEGMENTS_MAX)
            return -1;
        size_t len = strcspn(path + 1, "/");
        segments[count++] = (struct span){path + 1, len};
        path += 1 + len;
    }
    return *path == '\0' && count > 0 ? count : -1;
}

static bool is_text(struct span segment, const char *text)
{
    return segment.len == strlen(text) &&
           memcmp(segment.ptr, text, segment.len) == 0;
}

static bool fits(const struct path *path, const struct span segments[],
                 int count)
{
    int wanted = 1 + path->has_id + (path->last != NULL);
    if (count != wanted || !is_text(segments[0], path->first))
        return false;
    if (path->has_id && segments[1].len == 0)
        return false;
    return path->last == NULL || is_text(segments[count - 1], path->last);
}

/* NULL: the path does not take it. */
static const struct method *find_method(const struct path *path,
                                        const char *name)
{
    for (int i = 0; i < METHODS_MAX && path->methods[i].name != NULL; i++)
        if (strcmp(path->methods[i].name, name) == 0)
            return &path->methods[i];
    return NULL;
}

struct span route_names(const struct route_match *match,
                        char names[NAMES_LEN_MAX])
{
    char id[ID_MAX];
    size_t id_len, len;
    return match->id.len > 0 &&
                   percent_decode(match->id, id, sizeof id, &id_len) &&
                   id_decode((struct span){id, id_len}, names, &len)
               ? (struct span){names, len}
               : (struct span){0};
}

/* Whether it can be one. */
static bool take_id(struct route_match *match, struct span segment)
{
    char names[NAMES_LEN_MAX];
    match->id = segment;
    bool is_id = route_names(match, names).len > 0;
    if (!is_id)
        match->id = (struct span){0};
    return is_id;
}

static void ask(struct route_match *match, const struct path *path,
                const char *name, struct span id)
{
    const struct method *method = find_method(path, name);
    match->allow = path->allow;
    if (method != NULL)
        match->call = method->call;
    if (method == NULL) {
        bool is_options = strcmp(name, "OPTIONS") == 0;
        match->route = is_options ? ROUTE_OPTIONS : ROUTE_NOT_ALLOWED;
    } else if (path->has_id && !take_id(match, id)) {
        match->route = ROUTE_BAD_ID;
    } else {
        bool is_list = method->call == LOCK_INSPECT && !path->has_id;
        match->route = is_list ? ROUTE_LIST : path->route;
    }
}

void route_find(struct route_match *match, const char *method,
                const char *target)
{
    struct span segments[SEGMENTS_MAX] = {{NULL, 0}};
    match->route = ROUTE_NOT_FOUND;
    match->allow = "GET, HEAD, POST, PUT, DELETE, OPTIONS";
    match->id = (struct span){0};
    if (strcmp(target, "*") == 0 && strcmp(method, "OPTIONS") == 0) {
        match->route = ROUTE_OPTIONS;
        return;
    }
    int count = split(path_of(target), segments);
    for (int i = 0; i < PATHS; i++) {
        if (fits(&paths[i], segments, count)) {
            ask(match, &paths[i], method, segments[1]);
            return;
        }
    }
}

const char *route_path(int n, char path[ROUTE_PATH_MAX])
{
    if (n >= PATHS)
        return NULL;
    const struct path *it = &paths[n];
    (void)snprintf(path, ROUTE_PATH_MAX, "/%s%s%s%s", it->first,
                   it->has_id ? "/{id}" : "", it->last != NULL ? "/" : "",
                   it->last != NULL ? it->last : "");
    return it->allow;
}
