#include "handler.h"

#include <stdio.h>

#include "list.h"
#include "locks.h"
#include "message/problem.h"
#include "ops.h"
#include "pages.h"

static void refuse(enum problem_code code, const char *detail,
                   const struct http_request *request,
                   struct http_response *response)
{
    problem_respond_plain(code, detail, request->id, response);
}

static void refuse_method(const struct http_request *request,
                          struct http_response *response)
{
    char detail[PROBLEM_DETAIL_MAX];
    (void)snprintf(detail, sizeof detail, "this path supports only %s",
                   request->match.allow);
    response->allow = request->match.allow;
    refuse(PROBLEM_METHOD_NOT_ALLOWED, detail, request, response);
}

/* Answers what needs no node. */
static void answer_other(const struct service *service,
                         const struct http_request *request,
                         struct http_response *response)
{
    const struct route_match *match = &request->match;
    switch (match->route) {
    case ROUTE_NODES:
        ops_nodes(service, request, response);
        break;
    case ROUTE_LIVEZ:
        ops_livez(service, request, response);
        break;
    case ROUTE_READYZ:
        ops_readyz(service, request, response);
        break;
    case ROUTE_METRICS:
        ops_metrics(service, request, response);
        break;
    case ROUTE_PAGE:
    case ROUTE_PAGE_CSS:
    case ROUTE_PAGE_JS:
    case ROUTE_PAGE_ICON:
    case ROUTE_DOCS:
    case ROUTE_OPENAPI:
        pages_respond(match->route, response);
        break;
    case ROUTE_OPTIONS:
        response->status = 204;
        response->allow = match->allow;
        break;
    case ROUTE_NOT_ALLOWED:
        refuse_method(request, response);
        break;
    case ROUTE_BAD_ID:
        refuse(PROBLEM_INVALID_REQUEST,
               "the id in the path is not the canonical id of a resource; "
               "take it from the Location header or the field id of a response",
               request, response);
        break;
    default:
        refuse(PROBLEM_NOT_FOUND,
               "there is no such path; the paths are /, /locks, /locks/<id>, "
               "/locks/<id>/extend, /nodes, /livez, /readyz, /metrics, "
               "/openapi.yaml and /docs",
               request, response);
    }
}

bool handler_begin(const struct service *service, struct http_request *request,
                   void *client, struct http_response *response)
{
    const struct route_match *match = &request->match;
    if (request->body_is_too_large) {
        handler_refuse_body(request, response);
        return true;
    }
    if (match->route == ROUTE_LOCK)
        return locks_begin(service, request, client, response);
    if (match->route == ROUTE_LIST)
        return list_begin(service, request, client, response);
    answer_other(service, request, response);
    return true;
}

void handler_refuse_body(const struct http_request *request,
                         struct http_response *response)
{
    char detail[PROBLEM_DETAIL_MAX];
    (void)snprintf(detail, sizeof detail,
                   "the body is too large; the limit is %d bytes",
                   HTTP_BODY_MAX);
    refuse(PROBLEM_BODY_TOO_LARGE, detail, request, response);
}
