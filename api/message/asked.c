#include "asked.h"

enum { LOCKS_EACH = 10 }; /* of a page count as one request */

static int counter_of(const struct route_match *match)
{
    switch (match->route) {
    case ROUTE_LOCK:
        return (int)match->call;
    case ROUTE_LIST:
        return METRICS_LIST;
    case ROUTE_LIVEZ:
    case ROUTE_READYZ:
        return METRICS_PROBE;
    case ROUTE_METRICS:
        return METRICS_SCRAPE;
    default:
        return METRICS_OTHER;
    }
}

int asked_limit(struct span text)
{
    int64_t limit = span_number(text, 4);
    return limit >= 1 && limit <= LIST_LIMIT_MAX ? (int)limit : 0;
}

/* 0: it is none of 1 to LIST_LIMIT_MAX. */
static int read_limit(const struct query *query)
{
    char digits[4];
    size_t len;
    return query_read(query, QUERY_LIMIT, digits, sizeof digits, &len) == NULL
               ? asked_limit((struct span){digits, len})
               : 0;
}

int asked_price(const struct http_request *request)
{
    const struct query *query = &request->query;
    if (request->match.route != ROUTE_LIST)
        return 1;
    int limit =
        query_has(query, QUERY_LIMIT) ? read_limit(query) : LIST_LIMIT_DEFAULT;
    return limit > LOCKS_EACH ? limit / LOCKS_EACH : 1;
}

void asked_find(struct http_request *request)
{
    struct route_match *match = &request->match;
    route_find(match, request->method, request->target);
    if ((match->route == ROUTE_LOCK || match->route == ROUTE_BAD_ID) &&
        match->call == LOCK_RELEASE && query_has(&request->query, QUERY_FORCE))
        match->call = LOCK_FORCE;
    request->counted_as = counter_of(match);
}
