/* SPDX-License-Identifier: MIT */
/*
 * One HTTP request and its response, in plain data: what the front hands to
 * the handlers and gets back; and from method and target to what is asked. No
 * HTTP library here.
 */
#ifndef REDLOCKD_HTTP_H
#define REDLOCKD_HTTP_H

#include "../../server/base/address.h"
#include "../../server/base/types.h"
#include "../../server/engine/engine.h"
#include "../../server/engine/page.h"
#include "../../server/lock/lock.h"
#include "../../server/lock/metrics.h"
#include "id.h"

#define HTTP_JSON "application/json"
#define HTTP_LOCKS_PATH "/locks/" /* and the id */

enum {
    HTTP_IDENTITY_MAX = 64,
    HTTP_BODY_MAX = 16 * 1024,  /* of one lock */
    HTTP_BATCH_MAX = 64 * 1024, /* of many */
    HTTP_LOCATION_MAX = sizeof HTTP_LOCKS_PATH - 1 + ID_MAX,
    PAGE_SIZE_DEFAULT = 100, /* locks */
    PAGE_SIZE_MAX = 1000,
};

/* ---- what method and path ask ------------------------------------------- */

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
 * (RFC 9112 §3.2.2). The id ends at a '/', and is percent-decoded then, once.
 */
void route_find(struct route_match *match, const char *method,
                const char *target);

/* What its id names, as in names.h, written to names; len 0: nothing. */
struct span route_names(const struct route_match *match,
                        char names[NAMES_LEN_MAX]);

/* The n-th path, from 0, with {id} for an id; returns the methods that it
 * takes, as in Allow. NULL: there are no more. */
const char *route_path(int n, const char **path);

/* ---- query parameters --------------------------------------------------- */

enum query_parameter {
    QUERY_VERBOSE,
    QUERY_FORCE,
    QUERY_PREFIX,
    QUERY_LIMIT,
    QUERY_PAGE_SIZE,
    QUERY_CURSOR,
    QUERY_AFTER,
    QUERY_WAIT,
    QUERY_PARAMETERS
};

struct query {
    struct span values[QUERY_PARAMETERS]; /* borrowed, still percent-encoded;
                                            ptr NULL: not there */
    bool is_twice[QUERY_PARAMETERS];
};

extern const char *const query_names[QUERY_PARAMETERS];

/* Takes one query parameter. value.ptr NULL: it has none, and counts as empty.
 */
void query_add(struct query *query, struct span name, struct span value);

static inline bool query_has(const struct query *query,
                             enum query_parameter parameter)
{
    return query->values[parameter].ptr != NULL;
}

/*
 * Decodes the value of a query parameter into out, which has room for size
 * bytes; value is it then. NULL, or why it is refused (static); value is empty
 * then, as it is if the query parameter is not there.
 */
const char *query_read(const struct query *query,
                       enum query_parameter parameter, char *out, size_t size,
                       struct span *value);

enum { CURSOR_MAX = 64 };

/* Writes the position of a list as a text, opaque to clients, with a NUL. */
void cursor_encode(char text[CURSOR_MAX], const struct list_cursor *cursor);

/* False: not one that cursor_encode writes. */
bool cursor_decode(struct span text, struct list_cursor *cursor);

/* ---- ids of requests, and the traces that they belong to ---------------- */

/* An id ties an answer to its log line. A trace (W3C Trace Context, §3.2) is
 * logged, and not passed on: behind this server nobody takes part in it. */
enum { REQUESTID_MAX = 64, REQUESTID_LEN = 16 };

/* Where own ids come from. */
struct requestid_source {
    uint64_t seed; /* another in every process */
    uint64_t made;
};

/* True for 1 to 64 of [A-Za-z0-9._-]: may be echoed and logged as it is. */
bool requestid_is_valid(struct span text);

/* An id of our own, 16 hex digits and a NUL. No source makes one twice. */
void requestid_make(struct requestid_source *source,
                    char id[REQUESTID_LEN + 1]);

enum { TRACE_ID_LEN = 32, TRACE_PARENT_LEN = 16 };

/* Lower-case hex, with a NUL; both "": the request belongs to none. */
struct trace {
    char id[TRACE_ID_LEN + 1];
    char parent[TRACE_PARENT_LEN + 1]; /* what the caller calls this request */
};

/* Reads the value of the field traceparent; one that is not valid is as none.
 * Of a version after 00 what 00 has is read. */
void trace_read(struct trace *trace, struct span value);

/* ---- requests and answers ----------------------------------------------- */

struct caller;
struct http_batch;
struct http_request;
struct login;

/*
 * One call on a lock, or on the list of them: what a request asks, or one of
 * many that it asks at once. All of it lives until the answer.
 */
struct http_call {
    const struct http_request *request; /* that it came in */
    struct caller *caller;              /* what access keeps of it */
    struct http_response *response; /* to it, while it is begun or answered */
    enum lock_call kind;
    int item; /* of a batch, from 1; 0: it is the only one */

    /* what was read */
    struct span lock_token;      /* X-Lock-Token; ptr NULL: not sent */
    struct span idempotency_key; /* Idempotency-Key, likewise */

    /* what was begun; set by locks and list */
    engine_op op;      /* waited for, or being answered; 0 none */
    int64_t ttl_ms;    /* acquire */
    int64_t wait_ms;   /* acquire, watch: how long it may wait; 0: not */
    int64_t waited_ms; /* how long it did wait; set by locks_answer */
    int limit;         /* of the pool that it asks for or about; 0: none */
    bool is_watch;     /* inspect: waits for another version */
    bool is_shared;    /* asks for a lock that others may hold as well */

    /* for the audit log; set by locks, and is_audited by audit */
    bool is_audited;           /* it tells what came of the call */
    char owner[OWNER_MAX + 1]; /* of an acquire, or of the token; "": none */
    int64_t number;            /* of the token, or to force; 0: none, or
                                  to force: all readers */
};

/* What came over HTTP. All of it lives until the answer. */
struct http_request {
    /* what was read; set by exchange */
    const char *method;
    const char *target;         /* as sent, undecoded, without the query */
    struct query query;         /* of the target */
    struct span content_type;   /* Content-Type; ptr NULL: not sent */
    struct trace trace;         /* that it belongs to */
    char id[REQUESTID_MAX + 1]; /* X-Request-Id of the answer */
    int64_t head_read_us;       /* when its head was read */
    bool is_chunked;            /* the body */
    bool body_is_too_large;
    struct span body;
    const char *peer_names; /* in the client's certificate; NULL, "": none */
    const char *client;     /* address:port, or what a trusted proxy says;
                               NULL, "": unknown */
    char forwarded[NETWORKS_ADDRESS_MAX]; /* what it says; "": nothing */

    /* what it asks; set by http_find_call, as is call.kind */
    struct route_match match;
    int counted_as; /* enum lock_call, or metrics_call */

    /* who asks; set by access */
    struct login *login; /* of the connection; NULL: none is kept */
    char identity[HTTP_IDENTITY_MAX + 1]; /* "": anybody */

    struct http_call call;    /* the only one, or for all of them */
    struct http_batch *batch; /* all of them; NULL: it is one */
    int answers_due;          /* of the engine, until there is an outcome */
};

/* The answer. */
struct http_response {
    int status;
    const char *content_type; /* static; NULL: there is no body */
    char *body;               /* malloc'ed, the front's to free; or NULL */
    size_t body_len;
    bool is_static;                       /* the body is not to be freed */
    bool is_page;                         /* may be shown by a browser */
    const char *code;                     /* static: of a problem; NULL: none */
    const char *allow;                    /* static; NULL: none */
    const char *challenge;                /* static; NULL: none */
    int64_t retry_after_ms;               /* 0: none */
    bool close;                           /* close the connection after it */
    char location[HTTP_LOCATION_MAX + 1]; /* "": none */
};

/* NULL: it was not asked to wait. */
static inline const int64_t *http_waited_ms(const struct http_call *call)
{
    return call->wait_ms > 0 ? &call->waited_ms : NULL;
}

/* Spares the clearing of location for every answer. */
static inline void http_response_init(struct http_response *response)
{
    memset(response, 0, offsetof(struct http_response, location) + 1);
}

/*
 * The head was read: sets match, counted_as and call.kind. A release by a
 * number is another call.
 */
void http_find_call(struct http_request *request);

/*
 * As how many requests it counts against rate=: a list as one for each ten
 * locks that its page may have, an inspection as one for each name of its id,
 * any other as one. The bodies of an acquire and of a batch tell of more.
 */
int http_price(const struct http_request *request);

/* How many bytes a body may have. */
size_t http_body_max(const struct route_match *match);

/* The page_size of a list, or the limit of a pool; 0: neither, as it must be
 * from 1 to 1000. */
int http_list_size(struct span text);

#endif
