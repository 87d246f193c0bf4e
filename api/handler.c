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

static void handler_respond_page(enum route route,
                                 struct http_response *response)
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

/* ---- what operators ask: nodes, probes, metrics ------------------------- */

static void respond_memory(const struct http_request *request,
                           struct http_response *response)
{
    problem_respond_overloaded("not enough memory for the answer", request->id,
                               response);
}

/* Answers 200 with the body, which is of this type; without one, 503. */
static void respond_with(const char *content_type,
                         const struct http_request *request,
                         struct http_response *response)
{
    if (response->body == NULL) {
        respond_memory(request, response);
        return;
    }
    response->status = 200;
    response->content_type = content_type;
}

static void handler_count_nodes(const struct service *service,
                                struct render_nodes *nodes)
{
    *nodes = (struct render_nodes){
        .quorum = engine_quorum(service->engine),
        .voting = engine_voting(service->engine),
        .total = service->config->nodes_count,
    };
}

static void list_nodes(const struct service *service,
                       struct render_nodes *nodes)
{
    nodes->has_list = true;
    nodes->now_us = clock_now_us();
    for (int i = 0; i < nodes->total; i++)
        engine_view_node(service->engine, i, &nodes->list[i]);
}

static void respond_nodes(const struct service *service,
                          const struct http_request *request,
                          struct http_response *response)
{
    struct render_nodes nodes;
    handler_count_nodes(service, &nodes);
    list_nodes(service, &nodes);
    response->body = render_nodes(&nodes, &response->body_len);
    respond_with(HTTP_JSON, request, response);
}

static void respond_livez(const struct http_request *request,
                          struct http_response *response)
{
    static const char text[] = "{\"status\":\"alive\"}\n";
    response->body = strdup(text);
    response->body_len = sizeof text - 1;
    respond_with(HTTP_JSON, request, response);
}

static void respond_unready(const struct service *service,
                            const struct http_request *request,
                            const struct render_nodes *nodes,
                            struct http_response *response)
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
        problem.detail = "this server is about to stop";
    }
    int len =
        snprintf(detail, sizeof detail,
                 "%d of %d nodes may vote, %d are needed; GET /nodes shows why",
                 nodes->voting, nodes->total, nodes->quorum);
    if (wait_us > 0)
        (void)snprintf(detail + len, sizeof detail - (size_t)len,
                       "; a quorum is expected in %d s",
                       (int)divide_up(wait_us, US_PER_S));
    problem_respond(&problem, request->id, response);
}

/*
 * 200 if locks can be granted, or at least extended: no other server could do
 * more while nodes are above maxmemory. 503 while the quorum for that is lost,
 * or draining. ?verbose lists the nodes.
 */
static void respond_readyz(const struct service *service,
                           const struct http_request *request,
                           struct http_response *response)
{
    struct render_nodes nodes;
    handler_count_nodes(service, &nodes);
    if (query_has(&request->query, QUERY_VERBOSE))
        list_nodes(service, &nodes);
    if (service->is_draining || !engine_has_quorum(service->engine)) {
        respond_unready(service, request, &nodes, response);
        return;
    }
    nodes.status = "ready";
    response->body = render_nodes(&nodes, &response->body_len);
    respond_with(HTTP_JSON, request, response);
}

static void respond_metrics(const struct service *service,
                            const struct http_request *request,
                            struct http_response *response)
{
    FILE *out = open_memstream(&response->body, &response->body_len);
    if (out == NULL) {
        response->body = NULL;
        respond_memory(request, response);
        return;
    }
    bool is_whole = metrics_print(service->metrics, out) &&
                    access_print(service->access, request->head_read_us, out);
    /* the C library succeeds even without memory to hand the text over */
    if (fclose(out) != 0 || !is_whole || response->body == NULL) {
        free(response->body);
        respond_memory(request, response);
        return;
    }
    response->status = 200;
    response->content_type = "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- lists: a page of locks
 * ------------------------------------------------------------- */

/* The texts that the spans of a list lie in. */
struct list_texts {
    char prefix[RESOURCE_MAX];
    char other[CURSOR_MAX];
};

static const char *read_size(struct span text, int *size)
{
    *size = http_list_size(text);
    return *size > 0 ? NULL : "must be from 1 to 1000";
}

static_assert((int)PAGE_SIZE_MAX == (int)POOL_SLOTS_MAX, "one text is enough");

/*
 * Reads an argument that is there into room, and what it means into list. NULL,
 * or why it is refused.
 */
static const char *read_argument(const struct query *query,
                                 enum query_argument argument, struct span room,
                                 struct engine_list *list)
{
    struct span text;
    const char *reason =
        query_read(query, argument, (char *)room.ptr, room.len, &text);
    if (reason != NULL)
        return reason;
    switch (argument) {
    case QUERY_PREFIX:
        list->prefix = text;
        return text.len > 0 ? id_check_resource(text) : NULL;
    case QUERY_PAGE_SIZE:
        return read_size(text, &list->limit);
    default:
        return cursor_decode(text, &list->cursor)
                   ? NULL
                   : "is none; take it from the page before, unchanged";
    }
}

static bool list_read_list(const struct http_request *request,
                           struct engine_list *list, struct list_texts *texts,
                           struct http_response *response)
{
    static const enum query_argument arguments[] = {
        QUERY_PREFIX, QUERY_PAGE_SIZE, QUERY_CURSOR};
    struct faults errors = {.in = "query"};
    *list =
        (struct engine_list){.limit = PAGE_SIZE_DEFAULT, .is_name = id_is_name};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        enum query_argument argument = arguments[i];
        struct span room = {texts->other, sizeof texts->other};
        if (argument == QUERY_PREFIX)
            room = (struct span){texts->prefix, sizeof texts->prefix};
        const char *reason =
            query_has(&request->query, argument)
                ? read_argument(&request->query, argument, room, list)
                : NULL;
        if (reason == NULL)
            continue;
        char pointer[FAULT_POINTER_MAX];
        (void)snprintf(pointer, sizeof pointer, "/%s", query_names[argument]);
        faults_add(&errors, pointer, "the argument %s %s",
                   query_names[argument], reason);
    }
    if (errors.count > 0)
        problem_respond_faults(&errors, request->id, response);
    return errors.count == 0;
}

/* Asks the nodes; true: it could not, which it has answered. */
static bool ask_nodes(const struct service *service,
                      struct http_request *request,
                      const struct engine_list *list, void *client,
                      struct http_response *response)
{
    if (!access_take_place(service->access, &request->call, PLACE_LIST,
                           ENGINE_LISTS_MAX, response))
        return true;
    request->call.op = engine_list(service->engine, list, client);
    if (request->call.op == 0)
        problem_respond_overloaded(
            "too many lists at once, or no memory; try again later",
            request->id, response);
    return request->call.op == 0;
}

/* ---- the slots of a pool ------------------------------------------------ */

/* False: there is no limit, and response tells why. */
static bool read_pool_limit(struct http_request *request,
                            struct http_response *response)
{
    char digits[4];
    struct span text;
    struct faults errors = {.in = "query"};
    const char *reason =
        query_read(&request->query, QUERY_LIMIT, digits, sizeof digits, &text);
    if (reason == NULL)
        reason = read_size(text, &request->call.limit);
    if (reason == NULL)
        return true;
    faults_add(&errors, "/limit", "the argument limit %s", reason);
    problem_respond_faults(&errors, request->id, response);
    return false;
}

static bool list_begin_pool(const struct service *service,
                            struct http_request *request, void *client,
                            struct http_response *response)
{
    char names[NAMES_LEN_MAX];
    struct span name = route_names(&request->match, names);
    if (!read_pool_limit(request, response))
        return true;
    if (id_check_pool(name) != NULL) {
        problem_respond_plain(PROBLEM_INVALID_REQUEST,
                              "the id in the path must be that of a pool: of "
                              "one resource of at most 251 characters",
                              request->id, response);
        return true;
    }
    const struct engine_list list = {.pool = name,
                                     .limit = request->call.limit};
    return ask_nodes(service, request, &list, client, response);
}

static bool list_begin(const struct service *service,
                       struct http_request *request, void *client,
                       struct http_response *response)
{
    struct engine_list list;
    struct list_texts texts;
    if (request->match.route == ROUTE_POOL)
        return list_begin_pool(service, request, client, response);
    return !list_read_list(request, &list, &texts, response) ||
           !access_narrow(service->access, &request->call, &list.prefix,
                          response) ||
           ask_nodes(service, request, &list, client, response);
}

static void list_respond_page(const struct service *service,
                              const struct http_request *request,
                              const struct engine_page *page,
                              struct http_response *response)
{
    char cursor[CURSOR_MAX];
    struct json json;
    render_page_begin(&json);
    for (int i = 0; i < page->count; i++) {
        const struct engine_result *lock =
            engine_page_lock(service->engine, request->call.op, i);
        if (access_shows(service->access, &request->call, lock->resource))
            render_page_lock(&json, lock, service->config->max_hold_ms);
    }
    if (page->has_next)
        cursor_encode(cursor, &page->next);
    response->body = render_page_end(&json, page->has_next ? cursor : NULL,
                                     &response->body_len);
    response->status = 200;
    response->content_type = HTTP_JSON;
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
                         const struct engine_page *page,
                         struct http_response *response)
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
    pool.waiters = engine_pool_waiters(service->engine, pool.name);
    response->body = render_pool(&pool, &response->body_len);
    response->status = 200;
    response->content_type = HTTP_JSON;
}

static void list_answer(const struct service *service,
                        struct http_request *request,
                        struct http_response *response)
{
    char detail[PROBLEM_DETAIL_MAX];
    const struct engine_page *page =
        engine_take_page(service->engine, request->call.op);
    if (page->outcome == LIST_PAGE && request->match.route == ROUTE_POOL) {
        respond_pool(service, request, page, response);
    } else if (page->outcome == LIST_PAGE) {
        list_respond_page(service, request, page, response);
    } else if (page->outcome == LIST_LOST) {
        problem_respond_plain(PROBLEM_CURSOR_EXPIRED,
                              "the cursor has expired: a node that this list "
                              "reads has disconnected or restarted; start the "
                              "list again, without cursor",
                              request->id, response);
    } else if (page->outcome == LIST_NO_QUORUM) {
        (void)snprintf(
            detail, sizeof detail,
            "too few nodes answered; %d of %d may vote, %d are needed; "
            "GET /nodes shows why",
            engine_voting(service->engine), service->config->nodes_count,
            engine_quorum(service->engine));
        problem_respond_busy(PROBLEM_NO_QUORUM, detail, request->id, response);
    } else if (page->outcome == LIST_REFUSED) {
        struct engine_node_view view;
        engine_view_node(service->engine, page->node, &view);
        (void)snprintf(detail, sizeof detail,
                       "the node %s does not let its user list keys; add +scan "
                       "to the user's ACL (ACL SETUSER … +scan)",
                       view.name);
        problem_respond_plain(PROBLEM_KEY_REFUSED, detail, request->id,
                              response);
    }
    if (response->body == NULL) /* there is no memory for a page */
        problem_respond_overloaded("not enough memory to look at the locks",
                                   request->id, response);
    audit_note_list(service->audit, &request->call, response);
    engine_close(service->engine, request->call.op);
    request->call.op = 0;
}

/* ---- requests ----------------------------------------------------------- */

/* target: of a request without a call. Static. */
static const char *why_not_found(const char *target)
{
    if (strncmp(target, HTTP_LOCKS_PATH, strlen(HTTP_LOCKS_PATH)) == 0)
        return "there is no such path: an id has no /; a / in a resource is "
               "sent as %2F, which a proxy must pass on undecoded; the field "
               "id of an answer is safe";
    if (strstr(target, "/locks") != NULL)
        return "there is no such path; a proxy that has a part in front of "
               "/locks must take it off; the paths are /locks, /locks/<id> "
               "and /locks/<id>/extend";
    return "there is no such path; the paths are /, /locks, /locks/<id>, "
           "/locks/<id>/extend, /batch, /nodes, /livez, /readyz, /metrics, "
           "/openapi.yaml and /docs";
}

/* Answers what needs no node. */
static void answer_other(const struct service *service,
                         const struct http_request *request,
                         struct http_response *response)
{
    const struct route_match *match = &request->match;
    char detail[PROBLEM_DETAIL_MAX];
    switch (match->route) {
    case ROUTE_NODES:
        respond_nodes(service, request, response);
        break;
    case ROUTE_LIVEZ:
        respond_livez(request, response);
        break;
    case ROUTE_READYZ:
        respond_readyz(service, request, response);
        break;
    case ROUTE_METRICS:
        respond_metrics(service, request, response);
        break;
    case ROUTE_PAGE:
    case ROUTE_PAGE_CSS:
    case ROUTE_PAGE_JS:
    case ROUTE_PAGE_ICON:
    case ROUTE_DOCS:
    case ROUTE_OPENAPI:
        handler_respond_page(match->route, response);
        break;
    case ROUTE_OPTIONS:
        response->status = 204;
        response->allow = match->allow;
        break;
    case ROUTE_NOT_ALLOWED:
        (void)snprintf(detail, sizeof detail, "this path supports only %s%s",
                       match->allow,
                       strcmp(request->method, "POST") == 0
                           ? "; a lock is acquired by POST /locks"
                           : "");
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
        problem_respond_plain(PROBLEM_NOT_FOUND, why_not_found(request->target),
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
        return locks_begin(service, &request->call, client, response);
    if (match->route == ROUTE_LIST || match->route == ROUTE_POOL)
        return list_begin(service, request, client, response);
    if (match->route == ROUTE_BATCH)
        return batch_begin(service, request, client, response);
    answer_other(service, request, response);
    return true;
}

void handler_answer(const struct service *service, struct http_request *request,
                    int64_t now_us, struct http_response *response)
{
    const enum route route = request->match.route;
    if (route == ROUTE_LIST || route == ROUTE_POOL)
        list_answer(service, request, response);
    else if (route == ROUTE_BATCH)
        batch_answer(service, request, now_us, response);
    else
        locks_answer(service, &request->call, now_us, response);
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
