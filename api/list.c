#include "list.h"

#include <assert.h>
#include <stdio.h>

#include "access/access.h"
#include "access/audit.h"
#include "message/cursor.h"
#include "message/problem.h"
#include "message/render.h"
#include "message/retry.h"

/* ---- begin -------------------------------------------------------------- */

static bool is_resource(struct span name)
{
    return id_check_resource(name) == NULL;
}

/* What the text of an argument means; NULL, or why it is refused. */
typedef const char *read_fn(struct span text, struct engine_list *list);

static const char *read_prefix(struct span text, struct engine_list *list)
{
    list->prefix = text;
    return text.len > 0 ? id_check_resource(text) : NULL;
}

static const char *read_limit(struct span text, struct engine_list *list)
{
    list->limit = http_list_limit(text);
    return list->limit == 0 ? "must be from 1 to 1000" : NULL;
}

static const char *read_cursor(struct span text, struct engine_list *list)
{
    return cursor_decode(text, &list->cursor)
               ? NULL
               : "is none; take it from the page before, unchanged";
}

/* The texts that the spans of a list lie in. */
struct list_texts {
    char prefix[RESOURCE_MAX];
    char other[CURSOR_MAX];
};

static void read_argument(const struct query *query,
                          enum query_argument argument, struct span room,
                          read_fn *read, struct engine_list *list,
                          struct faults *errors)
{
    size_t len;
    char *text = (char *)room.ptr;
    if (!query_has(query, argument))
        return;
    const char *reason = query_read(query, argument, text, room.len, &len);
    if (reason == NULL)
        reason = read((struct span){text, len}, list);
    if (reason == NULL)
        return;
    const char *name = query_names[argument];
    char pointer[FAULT_POINTER_MAX];
    (void)snprintf(pointer, sizeof pointer, "/%s", name);
    faults_add(errors, pointer, "the argument %s %s", name, reason);
}

static bool read_list(const struct http_request *request,
                      struct engine_list *list, struct list_texts *texts,
                      struct http_response *response)
{
    const struct query *query = &request->query;
    struct faults errors = {.count = 0};
    struct span prefix = {texts->prefix, sizeof texts->prefix};
    struct span other = {texts->other, sizeof texts->other};
    *list = (struct engine_list){.limit = LIST_LIMIT_DEFAULT,
                                 .is_resource = is_resource};
    read_argument(query, QUERY_PREFIX, prefix, read_prefix, list, &errors);
    read_argument(query, QUERY_LIMIT, other, read_limit, list, &errors);
    read_argument(query, QUERY_CURSOR, other, read_cursor, list, &errors);
    if (errors.count > 0)
        problem_respond_faults(&errors, request->id, response);
    return errors.count == 0;
}

bool list_begin(const struct service *service, struct http_request *request,
                void *client, struct http_response *response)
{
    struct engine_list list;
    struct list_texts texts;
    if (!read_list(request, &list, &texts, response) ||
        !access_narrow(service->access, request, &list.prefix, response) ||
        !access_take_place(service->access, request, PLACE_LIST,
                           ENGINE_LISTS_MAX, response))
        return true;
    request->op = engine_list(service->engine, &list, client);
    if (request->op == 0)
        problem_respond_overloaded(
            "too many lists at once, or no memory; try again later",
            request->id, response);
    return request->op == 0;
}

/* ---- answer ------------------------------------------------------------- */

static void respond_page(const struct service *service,
                         const struct http_request *request,
                         const struct engine_page *page,
                         struct http_response *response)
{
    char cursor[CURSOR_MAX];
    struct json json;
    render_page_begin(&json);
    for (int i = 0; i < page->count; i++) {
        const struct engine_result *lock =
            engine_page_lock(service->engine, request->op, i);
        if (access_shows(service->access, request, lock->resource))
            render_page_lock(&json, lock);
    }
    if (page->has_next)
        cursor_encode(cursor, &page->next);
    response->body = render_page_end(&json, page->has_next ? cursor : NULL,
                                     &response->body_len);
    if (response->body == NULL) {
        problem_respond_overloaded("not enough memory for the answer",
                                   request->id, response);
        return;
    }
    response->status = 200;
    response->content_type = HTTP_JSON;
}

static void respond_lost(const struct http_request *request,
                         struct http_response *response)
{
    struct faults errors = {.count = 0};
    faults_add(&errors, "/cursor",
               "the argument cursor is of a list that has ended: a node that "
               "it goes through is away or was restarted; begin again without "
               "cursor");
    problem_respond_faults(&errors, request->id, response);
}

static void respond_refused(const struct service *service,
                            const struct http_request *request, int node,
                            struct http_response *response)
{
    char detail[PROBLEM_DETAIL_MAX];
    (void)snprintf(detail, sizeof detail,
                   "the node %s does not let its user list keys; add +scan to "
                   "the user's ACL (ACL SETUSER … +scan)",
                   service->node_names[node]);
    problem_respond_plain(PROBLEM_KEY_REFUSED, detail, request->id, response);
}

static void respond_no_quorum(const struct service *service,
                              const struct http_request *request,
                              struct http_response *response)
{
    char detail[PROBLEM_DETAIL_MAX];
    struct problem problem = {
        .code = PROBLEM_NO_QUORUM,
        .detail = detail,
        .retry_after_ms = retry_within_ms(RETRY_MAX_MS),
    };
    (void)snprintf(detail, sizeof detail,
                   "too few nodes answered; %d of %d may vote, %d are needed; "
                   "GET /nodes shows why",
                   engine_voting(service->engine), service->config->nodes_count,
                   engine_quorum(service->engine));
    problem_respond(&problem, request->id, response);
}

void list_answer(const struct service *service, struct http_request *request,
                 struct http_response *response)
{
    const struct engine_page *page =
        engine_take_page(service->engine, request->op);
    switch (page->outcome) {
    case LIST_PAGE:
        respond_page(service, request, page, response);
        break;
    case LIST_LOST:
        respond_lost(request, response);
        break;
    case LIST_REFUSED:
        respond_refused(service, request, page->node, response);
        break;
    case LIST_NO_MEMORY:
        problem_respond_overloaded("not enough memory to look at the locks",
                                   request->id, response);
        break;
    default:
        assert(page->outcome == LIST_NO_QUORUM);
        respond_no_quorum(service, request, response);
    }
    audit_note_list(service->audit, request, response);
    engine_close(service->engine, request->op);
    request->op = 0;
}
