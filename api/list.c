#include "list.h"

#include <assert.h>
#include <stdio.h>

#include "access/access.h"
#include "access/audit.h"
#include "message/problem.h"
#include "message/render.h"

/* ---- a page ------------------------------------------------------------- */

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

/* ---- begin -------------------------------------------------------------- */

bool list_begin(const struct service *service, struct http_request *request,
                void *client, struct http_response *response)
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

/* ---- answer ------------------------------------------------------------- */

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

void list_answer(const struct service *service, struct http_request *request,
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
