#include "pool.h"

#include <assert.h>
#include <stdio.h>

#include "../server/lock/names.h"
#include "list.h"
#include "locks.h"
#include "message/problem.h"
#include "message/render.h"

/* The limit; 0: there is none, and response tells why. */
static int read_limit(const struct http_request *request,
                      struct http_response *response)
{
    char digits[4];
    size_t len;
    struct faults errors = {.count = 0};
    const char *reason =
        query_read(&request->query, QUERY_LIMIT, digits, sizeof digits, &len);
    int limit =
        reason == NULL ? http_list_limit((struct span){digits, len}) : 0;
    if (limit > 0)
        return limit;
    faults_add(&errors, "/limit", "the argument limit %s",
               reason != NULL ? reason : "must be from 1 to 1000");
    problem_respond_faults(&errors, request->id, response);
    return 0;
}

static_assert((int)LIST_LIMIT_MAX == (int)POOL_SLOTS_MAX, "one text is enough");

bool pool_begin(const struct service *service, struct http_request *request,
                void *client, struct http_response *response)
{
    char names[NAMES_LEN_MAX];
    struct span name = route_names(&request->match, names);
    struct watch unused; /* a pool is not watched */
    request->limit = read_limit(request, response);
    if (request->limit == 0 || !locks_read_watch(request, &unused, response))
        return true;
    if (names_are_several(name) || name.ptr[name.len - 1] == '#' ||
        name.len + sizeof "#999" - 1 > RESOURCE_MAX) {
        problem_respond_plain(PROBLEM_INVALID_REQUEST,
                              "with the argument limit, the id in the path "
                              "must be that of a pool: of one resource, which "
                              "does not end with #",
                              request->id, response);
        return true;
    }
    const struct engine_list list = {.pool = name, .limit = request->limit};
    return list_ask(service, request, &list, client, response);
}

struct page {
    struct engine *engine;
    engine_op op;
};

static const struct engine_result *slot_of(void *ctx, int n)
{
    const struct page *page = ctx;
    return engine_page_lock(page->engine, page->op, n);
}

void pool_answer(const struct service *service, struct http_request *request,
                 struct http_response *response)
{
    char names[NAMES_LEN_MAX];
    const struct engine_page *page =
        engine_take_page(service->engine, request->op);
    struct page locks = {service->engine, request->op};
    struct render_pool pool = {
        .name = route_names(&request->match, names),
        .limit = request->limit,
        .count = page->count,
        .slot = slot_of,
        .ctx = &locks,
    };
    pool.waiters = engine_pool_waiters(service->engine, pool.name);
    if (page->outcome == LIST_PAGE) {
        response->body = render_pool(&pool, &response->body_len);
        response->status = 200;
        response->content_type = HTTP_JSON;
    }
    list_end(service, request, page->outcome, response);
}
