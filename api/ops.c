#include "ops.h"

#include <stdio.h>
#include <stdlib.h>

#include "../server/base/clock.h"
#include "access/access.h"
#include "message/problem.h"
#include "message/render.h"

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

static void count_nodes(const struct service *service,
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

void ops_nodes(const struct service *service,
               const struct http_request *request,
               struct http_response *response)
{
    struct render_nodes nodes;
    count_nodes(service, &nodes);
    list_nodes(service, &nodes);
    response->body = render_nodes(&nodes, &response->body_len);
    respond_with(HTTP_JSON, request, response);
}

void ops_livez(const struct service *service,
               const struct http_request *request,
               struct http_response *response)
{
    static const char text[] = "{\"status\":\"alive\"}\n";
    (void)service;
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

void ops_readyz(const struct service *service,
                const struct http_request *request,
                struct http_response *response)
{
    struct render_nodes nodes;
    count_nodes(service, &nodes);
    if (query_has(&request->query, QUERY_VERBOSE))
        list_nodes(service, &nodes);
    if (service->is_draining || nodes.voting < nodes.quorum) {
        respond_unready(service, request, &nodes, response);
        return;
    }
    nodes.status = "ready";
    response->body = render_nodes(&nodes, &response->body_len);
    respond_with(HTTP_JSON, request, response);
}

void ops_metrics(const struct service *service,
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
