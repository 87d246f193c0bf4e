#include "handler.h"

#include <assert.h>
#include <stdio.h>

#include "heartbeat.h"
#include "list.h"
#include "locks.h"
#include "message/problem.h"
#include "ops.h"

/* ---- what is served as it was when this was built ----------------------- */

/* The files, made strings by the Makefile. */
static const char index_html[] =
#include "index.html.h"
    ;
static const char page_css[] =
#include "page.css.h"
    ;
static const char page_js[] =
#include "page.js.h"
    ;
static const char page_svg[] =
#include "page.svg.h"
    ;
static const char docs_html[] =
#include "docs.html.h"
    ;
static const char openapi[] =
#include "openapi.yaml.h"
    ;

struct page {
    enum route route;
    const char *content_type;
    const char *text;
    size_t len;
};

#define TEXT(name) (name), sizeof(name) - 1

static const struct page pages[] = {
    {ROUTE_PAGE, "text/html; charset=utf-8", TEXT(index_html)},
    {ROUTE_PAGE_CSS, "text/css; charset=utf-8", TEXT(page_css)},
    {ROUTE_PAGE_JS, "text/javascript; charset=utf-8", TEXT(page_js)},
    {ROUTE_PAGE_ICON, "image/svg+xml", TEXT(page_svg)},
    {ROUTE_DOCS, "text/html; charset=utf-8", TEXT(docs_html)},
    {ROUTE_OPENAPI, "application/yaml", TEXT(openapi)},
};

static void respond_page(enum route route, struct http_response *response)
{
    const struct page *page = pages;
    while (page->route != route) {
        page++;
        assert(page < pages + sizeof pages / sizeof *pages);
    }
    response->status = 200;
    response->content_type = page->content_type;
    response->body = (char *)page->text;
    response->body_len = page->len;
    response->is_static = true;
    response->is_page = true;
}

/* ---- requests ----------------------------------------------------------- */

/* Answers what needs no node. */
static void answer_other(const struct service *service,
                         const struct http_request *request,
                         struct http_response *response)
{
    const struct route_match *match = &request->match;
    char detail[PROBLEM_DETAIL_MAX];
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
        respond_page(match->route, response);
        break;
    case ROUTE_OPTIONS:
        response->status = 204;
        response->allow = match->allow;
        break;
    case ROUTE_NOT_ALLOWED:
        (void)snprintf(detail, sizeof detail, "this path supports only %s",
                       match->allow);
        response->allow = match->allow;
        problem_respond_plain(PROBLEM_METHOD_NOT_ALLOWED, detail, request->id,
                              response);
        break;
    case ROUTE_BAD_ID:
        problem_respond_plain(
            PROBLEM_INVALID_REQUEST,
            "the path names no lock: it must have the id of one, or a "
            "resource, percent-encoded; the field id of an answer is safe",
            request->id, response);
        break;
    default:
        problem_respond_plain(
            PROBLEM_NOT_FOUND,
            "there is no such path; the paths are /, /locks, /locks/<id>, "
            "/locks/<id>/extend, /nodes, /livez, /readyz, /metrics, "
            "/openapi.yaml and /docs",
            request->id, response);
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
    if (match->route == ROUTE_LIST || match->route == ROUTE_POOL)
        return list_begin(service, request, client, response);
    if (match->route == ROUTE_HEARTBEAT)
        return heartbeat_begin(service, request, client, response);
    answer_other(service, request, response);
    return true;
}

void handler_refuse_body(const struct http_request *request,
                         struct http_response *response)
{
    char detail[PROBLEM_DETAIL_MAX];
    (void)snprintf(detail, sizeof detail,
                   "the body is too large; the limit is %d bytes",
                   (int)http_body_max(&request->match));
    problem_respond_plain(PROBLEM_BODY_TOO_LARGE, detail, request->id,
                          response);
}
