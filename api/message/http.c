#include "http.h"

enum { LOCKS_EACH = 10 }; /* of a page count as one request */

static int counter_of(const struct route_match *match)
{
    switch (match->route) {
    case ROUTE_LOCK:
        return (int)match->call;
    case ROUTE_LIST:
    case ROUTE_POOL:
        return METRICS_LIST;
    case ROUTE_HEARTBEAT:
        return METRICS_HEARTBEAT;
    case ROUTE_LIVEZ:
    case ROUTE_READYZ:
        return METRICS_PROBE;
    case ROUTE_METRICS:
        return METRICS_SCRAPE;
    default:
        return METRICS_OTHER;
    }
}

int http_list_limit(struct span text)
{
    int64_t limit = span_number(text, 4);
    return limit >= 1 && limit <= LIST_LIMIT_MAX ? (int)limit : 0;
}

size_t http_body_max(const struct route_match *match)
{
    return match->route == ROUTE_HEARTBEAT ? HTTP_HEARTBEAT_MAX : HTTP_BODY_MAX;
}

int http_price(const struct http_request *request)
{
    const struct query *query = &request->query;
    int limit = LIST_LIMIT_DEFAULT;
    if (request->match.route != ROUTE_LIST &&
        request->match.route != ROUTE_POOL)
        return 1;
    if (query_has(query, QUERY_LIMIT)) {
        char digits[4];
        size_t len;
        limit = 0; /* it is refused, unless it can be read */
        if (query_read(query, QUERY_LIMIT, digits, sizeof digits, &len) == NULL)
            limit = http_list_limit((struct span){digits, len});
    }
    return limit > LOCKS_EACH ? limit / LOCKS_EACH : 1;
}

void http_find_call(struct http_request *request)
{
    struct route_match *match = &request->match;
    route_find(match, request->method, request->target);
    if ((match->route == ROUTE_LOCK || match->route == ROUTE_BAD_ID) &&
        match->call == LOCK_RELEASE && query_has(&request->query, QUERY_FORCE))
        match->call = LOCK_FORCE;
    if (match->route == ROUTE_LOCK && match->call == LOCK_INSPECT &&
        query_has(&request->query, QUERY_LIMIT))
        match->route = ROUTE_POOL;
    request->counted_as = counter_of(match);
}
