#include "asked.h"

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

void asked_find(struct http_request *request, struct route_match *match)
{
    route_find(match, request->method, request->target);
    if ((match->route == ROUTE_LOCK || match->route == ROUTE_BAD_ID) &&
        match->call == LOCK_RELEASE && query_has(&request->query, QUERY_FORCE))
        match->call = LOCK_FORCE;
    request->counted_as = counter_of(match);
}
