/*
 * From method and target to what is asked: the path, and those arguments that a
 * call knows; others are ignored. Pure.
 */
#ifndef REDLOCKD_ROUTE_H
#define REDLOCKD_ROUTE_H

#include "../../server/base/types.h"
#include "../../server/engine/page.h"
#include "../../server/lock/lock.h"
#include "id.h"

enum route {
    ROUTE_LOCK,  /* a call on a lock: call tells which */
    ROUTE_BATCH, /* many of them */
    ROUTE_LIST,  /* of the locks */
    ROUTE_POOL,  /* which permits of a pool are held */
    ROUTE_NODES,
    ROUTE_LIVEZ,
    ROUTE_READYZ,
    ROUTE_METRICS,
    ROUTE_PAGE, /* the status page, and what it loads */
    ROUTE_PAGE_CSS,
    ROUTE_PAGE_JS,
    ROUTE_PAGE_ICON,
    ROUTE_DOCS,
    ROUTE_OPENAPI,
    ROUTE_OPTIONS,     /* any known path, or "*": allow tells */
    ROUTE_NOT_FOUND,   /* no such path */
    ROUTE_NOT_ALLOWED, /* no such method here: allow tells */
    ROUTE_BAD_ID,      /* the path's id cannot be one */
};

struct route_match {
    enum route route;
    enum lock_call call; /* of ROUTE_LOCK … ROUTE_POOL, ROUTE_BAD_ID */
    const char *allow;   /* methods of the path; static */
    struct span id;      /* as it stands in the path; borrowed; len 0: none */
};

/*
 * target: as sent, without the query; an absolute form counts by its path
 * (RFC 9112 §3.2.2). It is split at '/' first and percent-decoded then, once.
 */
void route_find(struct route_match *match, const char *method,
                const char *target);

/*
 * The resources that its id names, as in names.h, in names; or the resource
 * that stands in the path itself. len 0: none.
 */
struct span route_names(const struct route_match *match,
                        char names[NAMES_LEN_MAX]);

enum { ROUTE_PATH_MAX = 32 }; /* with its NUL */

/*
 * Writes the n-th path, from 0, with {id} for an id, and returns the methods
 * that it takes, as in Allow. NULL: there are no more.
 */
const char *route_path(int n, char path[ROUTE_PATH_MAX]);

/* ---- arguments ---------------------------------------------------------- */

enum query_argument {
    QUERY_VERBOSE,
    QUERY_FORCE,
    QUERY_PREFIX,
    QUERY_LIMIT,
    QUERY_PAGE_SIZE,
    QUERY_CURSOR,
    QUERY_AFTER,
    QUERY_WAIT,
    QUERY_ARGUMENTS
};

struct query {
    struct span values[QUERY_ARGUMENTS]; /* borrowed, still percent-encoded;
                                            ptr NULL: not there */
    bool is_twice[QUERY_ARGUMENTS];
};

extern const char *const query_names[QUERY_ARGUMENTS];

/* Takes one argument. value.ptr NULL: it has none, and counts as empty. */
void query_add(struct query *query, struct span name, struct span value);

static inline bool query_has(const struct query *query,
                             enum query_argument argument)
{
    return query->values[argument].ptr != NULL;
}

/*
 * Decodes the value of an argument into out, which has room for size bytes;
 * value is it then. NULL, or why it is refused (static); value is empty then,
 * as it is if the argument is not there.
 */
const char *query_read(const struct query *query, enum query_argument argument,
                       char *out, size_t size, struct span *value);

enum { CURSOR_MAX = 64 };

/* Writes the position of a list as a text, opaque to clients, with a NUL. */
void cursor_encode(char text[CURSOR_MAX], const struct list_cursor *cursor);

/* False: not one that cursor_encode writes. */
bool cursor_decode(struct span text, struct list_cursor *cursor);

#endif
