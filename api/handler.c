/* SPDX-License-Identifier: MIT */
#include "handler.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "../server/base/clock.h"
#include "access/access.h"
#include "access/audit.h"
#include "batch.h"
#include "locks.h"
#include "message/problem.h"
#include "message/render.h"

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

/* False: it is no page. */
static bool handler_respond_page(const struct http_request *request)
{
    struct http_response *response = request->call.response;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (pages[i].route != request->match.route)
            continue;
        response->status = 200;
        response->content_type = pages[i].content_type;
        response->body = (char *)pages[i].text;
        response->body_len = pages[i].len;
        response->is_static = true;
        response->is_page = true;
        return true;
    }
    return false;
}

/* ---- what operators ask: nodes, probes, metrics ------------------------- */

/* Answers 200 with this body, malloc'ed, of this type; NULL: 503. */
static void respond_with(const struct http_request *request,
                         const char *content_type, char *body, size_t len)
{
    struct http_response *response = request->call.response;
    response->status = 200;
    response->content_type = content_type;
    response->body = body;
    response->body_len = len;
    if (body == NULL)
        problem_respond_overloaded(&request->call,
                                   "not enough memory for the response");
}

static void respond_json(const struct http_request *request, char *body,
                         size_t len)
{
    respond_with(request, HTTP_JSON, body, len);
}

static struct render_nodes handler_nodes(const struct service *service,
                                         bool has_list)
{
    struct render_nodes nodes = {
        .quorum = quorum_of(service->config->nodes_count),
        .voting = engine_voting(service->engine),
        .total = service->config->nodes_count,
        .has_list = has_list,
        .now_us = clock_now_us(),
    };
    for (int i = 0; has_list && i < nodes.total; i++)
        engine_view_node(service->engine, i, &nodes.list[i]);
    return nodes;
}

static void respond_nodes(const struct service *service,
                          const struct http_request *request)
{
    const struct render_nodes nodes = handler_nodes(service, true);
    size_t len;
    char *body = render_nodes(&nodes, &len);
    respond_json(request, body, len);
}

static void respond_livez(const struct http_request *request)
{
    static const char text[] = "{\"status\":\"alive\"}\n";
    respond_json(request, strdup(text), sizeof text - 1);
}

static void respond_unready(const struct service *service,
                            const struct http_request *request,
                            const struct render_nodes *nodes)
{
    char detail[PROBLEM_DETAIL_MAX];
    int64_t wait_us = engine_quorum_in_us(service->engine);
    struct problem problem = {
        .code = PROBLEM_NO_QUORUM,
        .detail = detail,
        .retry_after_ms = retry_within_ms(RETRY_MAX_MS),
        .states = nodes->has_list ? nodes : NULL,
    };
    if (service->is_draining) {
        problem.code = PROBLEM_SHUTTING_DOWN;
        problem.detail = "this server is shutting down; use another server";
    }
    int len =
        snprintf(detail, sizeof detail,
                 "%d of %d nodes may vote, %d are needed; GET /nodes shows why",
                 nodes->voting, nodes->total, nodes->quorum);
    if (wait_us > 0)
        (void)snprintf(detail + len, sizeof detail - (size_t)len,
                       "; a quorum is expected in %d s",
                       (int)divide_up(wait_us, US_PER_S));
    problem_respond(&request->call, &problem);
}

/*
 * 200 if locks can be granted, or at least extended: no other server could do
 * more while nodes are above maxmemory. 503 while the quorum for that is lost,
 * or draining. ?verbose lists the nodes.
 */
static void respond_readyz(const struct service *service,
                           const struct http_request *request)
{
    struct render_nodes nodes =
        handler_nodes(service, query_has(&request->query, QUERY_VERBOSE));
    size_t len;
    if (service->is_draining || !engine_has_quorum(service->engine)) {
        respond_unready(service, request, &nodes);
        return;
    }
    nodes.status = "ready";
    char *body = render_nodes(&nodes, &len);
    respond_json(request, body, len);
}

static void respond_metrics(const struct service *service,
                            const struct http_request *request)
{
    char *body = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&body, &len);
    bool is_whole = out != NULL && metrics_print(service->metrics, out) &&
                    access_print(service->access, request->head_read_us, out);
    /* the C library succeeds even without memory to hand the text over */
    if (out != NULL && (fclose(out) != 0 || !is_whole)) {
        free(body);
        body = NULL;
    }
    respond_with(request, "text/plain; version=0.0.4; charset=utf-8", body,
                 len);
}

/* ---- lists: of locks, and of the permits of a pool ---------------------- */

/* reason NULL: the query parameter is good. */
static void list_note_fault(struct faults *errors,
                            enum query_parameter parameter, const char *reason)
{
    char pointer[FAULT_POINTER_MAX];
    (void)snprintf(pointer, sizeof pointer, "/%s", query_names[parameter]);
    if (reason != NULL)
        faults_add(errors, pointer, "the query parameter %s %s",
                   query_names[parameter], reason);
}

static_assert((int)PAGE_SIZE_MAX == (int)POOL_SLOTS_MAX, "one text is enough");

/* Of text as long as room. NULL, or why it is refused. */
static const char *list_read_size(const struct query *query,
                                  enum query_parameter parameter,
                                  struct span room, int *size)
{
    struct span text;
    const char *reason =
        query_read(query, parameter, (char *)room.ptr, room.len, &text);
    if (reason != NULL)
        return reason;
    *size = http_list_size(text);
    return *size > 0 ? NULL : "must be from 1 to 1000";
}

/* False: the response gives the reason, as below. The prefix lies in text. */
static bool list_read_page(const struct http_request *request,
                           char text[RESOURCE_MAX], struct engine_list *list)
{
    const struct query *query = &request->query;
    struct faults errors = {.in = "query"};
    char cursor[CURSOR_MAX];
    struct span room = {cursor, sizeof cursor}, value;
    const char *reason;
    *list =
        (struct engine_list){.limit = PAGE_SIZE_DEFAULT, .is_name = id_is_name};
    if (query_has(query, QUERY_PREFIX)) {
        reason =
            query_read(query, QUERY_PREFIX, text, RESOURCE_MAX, &list->prefix);
        if (reason == NULL && list->prefix.len > 0)
            reason = id_check_resource(list->prefix);
        list_note_fault(&errors, QUERY_PREFIX, reason);
    }
    if (query_has(query, QUERY_PAGE_SIZE))
        list_note_fault(
            &errors, QUERY_PAGE_SIZE,
            list_read_size(query, QUERY_PAGE_SIZE, room, &list->limit));
    if (query_has(query, QUERY_CURSOR)) {
        reason = query_read(query, QUERY_CURSOR, cursor, sizeof cursor, &value);
        if (reason == NULL && !cursor_decode(value, &list->cursor))
            reason = "is not valid; send the field next_cursor of the previous "
                     "page, unchanged";
        list_note_fault(&errors, QUERY_CURSOR, reason);
    }
    if (errors.count > 0)
        problem_respond_faults(&request->call, &errors);
    return errors.count == 0;
}

/* The pool's name lies in text. */
static bool list_read_pool(struct http_request *request,
                           char text[NAMES_LEN_MAX], struct engine_list *list)
{
    struct faults errors = {.in = "query"};
    char digits[4];
    *list = (struct engine_list){.pool = route_names(&request->match, text)};
    list_note_fault(&errors, QUERY_LIMIT,
                    list_read_size(&request->query, QUERY_LIMIT,
                                   (struct span){digits, sizeof digits},
                                   &request->call.limit));
    list->limit = request->call.limit;
    if (errors.count > 0)
        problem_respond_faults(&request->call, &errors);
    else if (id_check_pool(list->pool) != NULL)
        problem_respond_plain(&request->call, PROBLEM_INVALID_REQUEST,
                              "the id in the path must name a pool: one "
                              "resource of at most 251 characters");
    else
        return true;
    return false;
}

static_assert((int)RESOURCE_MAX <= (int)NAMES_LEN_MAX, "");

/* As locks_begin. */
static bool list_begin(const struct service *service,
                       struct http_request *request, void *client)
{
    char text[NAMES_LEN_MAX];
    struct engine_list list;
    bool is_good =
        request->match.route == ROUTE_POOL
            ? list_read_pool(request, text, &list)
            : list_read_page(request, text, &list) &&
                  access_narrow(service->access, &request->call, &list.prefix);
    if (!is_good || !access_take_place(service->access, &request->call,
                                       PLACE_LIST, ENGINE_LISTS_MAX))
        return true;
    request->call.op = engine_list(service->engine, &list, client);
    if (request->call.op == 0)
        problem_respond_overloaded(&request->call,
                                   "this server runs too many lists, or is out "
                                   "of memory; try again later");
    return request->call.op == 0;
}

static void list_respond_page(const struct service *service,
                              const struct http_request *request,
                              const struct engine_page *page)
{
    char cursor[CURSOR_MAX];
    struct json json;
    size_t len;
    render_page_begin(&json);
    for (int i = 0; i < page->count; i++) {
        const struct engine_result *lock =
            engine_page_lock(service->engine, request->call.op, i);
        if (access_shows(service->access, &request->call, lock->resource))
            render_page_lock(&json, lock, service->config->max_hold_ms);
    }
    if (page->has_next)
        cursor_encode(cursor, &page->next);
    char *body = render_page_end(&json, page->has_next ? cursor : NULL, &len);
    respond_json(request, body, len);
}

struct slots {
    struct engine *engine;
    engine_op op;
};

static const struct engine_result *slot_of(void *ctx, int n)
{
    const struct slots *slots = ctx;
    return engine_page_lock(slots->engine, slots->op, n);
}

static void respond_pool(const struct service *service,
                         const struct http_request *request,
                         const struct engine_page *page)
{
    char names[NAMES_LEN_MAX];
    struct slots slots = {service->engine, request->call.op};
    struct render_pool pool = {
        .name = route_names(&request->match, names),
        .limit = request->call.limit,
        .count = page->count,
        .slot = slot_of,
        .ctx = &slots,
    };
    size_t len;
    pool.waiters = engine_pool_waiters(service->engine, pool.name);
    char *body = render_pool(&pool, &len);
    respond_json(request, body, len);
}

static void list_answer(const struct service *service,
                        struct http_request *request)
{
    struct http_call *call = &request->call;
    char detail[PROBLEM_DETAIL_MAX];
    struct engine_node_view view;
    const struct engine_page *page =
        engine_take_page(service->engine, call->op);
    switch (page->outcome) {
    case LIST_PAGE:
        if (request->match.route == ROUTE_POOL)
            respond_pool(service, request, page);
        else
            list_respond_page(service, request, page);
        break;
    case LIST_LOST:
        problem_respond_plain(call, PROBLEM_CURSOR_EXPIRED,
                              "the cursor has expired: a node that this list "
                              "reads has disconnected or restarted; start the "
                              "list again, without a cursor");
        break;
    case LIST_NO_QUORUM:
        (void)snprintf(detail, sizeof detail,
                       "too few nodes replied; %d of %d may vote, %d are "
                       "needed; GET /nodes shows why",
                       engine_voting(service->engine),
                       service->config->nodes_count,
                       quorum_of(service->config->nodes_count));
        problem_respond_busy(call, PROBLEM_NO_QUORUM, detail);
        break;
    case LIST_REFUSED:
        engine_view_node(service->engine, page->node, &view);
        (void)snprintf(
            detail, sizeof detail,
            "the node %s does not allow redlockd's user to list keys; add "
            "+scan to the user's ACL (ACL SETUSER … +scan)",
            view.name);
        problem_respond_plain(call, PROBLEM_KEY_REFUSED, detail);
        break;
    default: /* there is no memory for a page */
        problem_respond_overloaded(
            call, "not enough memory to list the locks; try again later");
    }
    audit_note_list(service->audit, call);
    engine_close(service->engine, call->op);
    call->op = 0;
}

/* ---- requests ----------------------------------------------------------- */

/* target: of a request without a call. Static. */
static const char *why_not_found(const char *target)
{
    if (strncmp(target, HTTP_LOCKS_PATH, strlen(HTTP_LOCKS_PATH)) == 0)
        return "there is no such path: an id contains no /; send a / of a "
               "resource as %2F, which no proxy may decode, or send the field "
               "id of a response";
    if (strstr(target, "/locks") != NULL)
        return "there is no such path; if a proxy serves redlockd under a "
               "prefix, the proxy must strip it; the paths are /locks, "
               "/locks/<id> and /locks/<id>/extend";
    return "there is no such path; the paths are /, /locks, /locks/<id>, "
           "/locks/<id>/extend, /batch, /nodes, /livez, /readyz, /metrics, "
           "/openapi.yaml and /docs";
}

/* Answers what needs no node. */
static void answer_other(const struct service *service,
                         const struct http_request *request)
{
    const struct route_match *match = &request->match;
    const struct http_call *call = &request->call;
    char detail[PROBLEM_DETAIL_MAX];
    switch (match->route) {
    case ROUTE_NODES:
        respond_nodes(service, request);
        break;
    case ROUTE_LIVEZ:
        respond_livez(request);
        break;
    case ROUTE_READYZ:
        respond_readyz(service, request);
        break;
    case ROUTE_METRICS:
        respond_metrics(service, request);
        break;
    case ROUTE_OPTIONS:
        call->response->status = 204;
        call->response->allow = match->allow;
        break;
    case ROUTE_NOT_ALLOWED:
        (void)snprintf(detail, sizeof detail, "this path supports only %s%s",
                       match->allow,
                       strcmp(request->method, "POST") == 0
                           ? "; to acquire a lock, send POST /locks"
                           : "");
        call->response->allow = match->allow;
        problem_respond_plain(call, PROBLEM_METHOD_NOT_ALLOWED, detail);
        break;
    case ROUTE_BAD_ID:
        problem_respond_plain(
            call, PROBLEM_INVALID_REQUEST,
            "the path names no lock: it must contain a percent-encoded "
            "resource, or the field id of a response");
        break;
    default:
        if (!handler_respond_page(request))
            problem_respond_plain(call, PROBLEM_NOT_FOUND,
                                  why_not_found(request->target));
    }
}

bool handler_begin(const struct service *service, struct http_request *request,
                   void *client)
{
    const struct route_match *match = &request->match;
    if (request->body_is_too_large) {
        handler_refuse_body(request);
        return true;
    }
    if (match->route == ROUTE_LOCK)
        return locks_begin(service, &request->call, client);
    if (match->route == ROUTE_LIST || match->route == ROUTE_POOL)
        return list_begin(service, request, client);
    if (match->route == ROUTE_BATCH)
        return batch_begin(service, request, client);
    answer_other(service, request);
    return true;
}

void handler_answer(const struct service *service, struct http_request *request,
                    int64_t now_us)
{
    const enum route route = request->match.route;
    if (route == ROUTE_LIST || route == ROUTE_POOL)
        list_answer(service, request);
    else if (route == ROUTE_BATCH)
        batch_answer(service, request, now_us);
    else
        locks_answer(service, &request->call, now_us);
}

void handler_refuse_body(const struct http_request *request)
{
    char detail[PROBLEM_DETAIL_MAX];
    (void)snprintf(detail, sizeof detail,
                   "the body is too large; the limit is %d bytes",
                   (int)http_body_max(&request->match));
    problem_respond_plain(&request->call, PROBLEM_BODY_TOO_LARGE, detail);
}
