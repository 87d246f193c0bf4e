/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include <assert.h>

#include "../server/base/clock.h"
#include "access/access.h"
#include "access/audit.h"
#include "batch.h"
#include "handler.h"
#include "locks.h"
#include "message/problem.h"

/* Without memory for its body an answer cannot be sent. */
static enum exchange_step exchange_answer(const struct exchange *it)
{
    const struct http_response *response = it->request.call.response;
    bool has_body = response->content_type == NULL || response->body != NULL;
    return has_body ? EXCHANGE_ANSWER : EXCHANGE_CLOSE;
}

/* ---- the head ----------------------------------------------------------- */

/* A key may be a string of RFC 8941, in quotes: the draft of the IETF on the
 * field wants that. Parameters are left out: none is defined. */
static struct span unquoted(struct span value)
{
    if (value.len < 2 || value.ptr[0] != '"')
        return value;
    struct span rest = span_behind(value, 1);
    struct span key = span_take(&rest, '"');
    if (key.len + 1 == value.len) /* without an end */
        return value;
    while (rest.len > 0 && *rest.ptr == ' ')
        rest = span_behind(rest, 1);
    return rest.len == 0 || *rest.ptr == ';' ? key : value;
}

static void take_fields(const struct service *service,
                        struct http_request *request, const struct head *head)
{
    const char *proxies = service->config->trusted_proxies;
    struct span id = head->values[HEAD_REQUEST_ID];
    request->content_type = head->values[HEAD_CONTENT_TYPE];
    request->call.lock_token = head->values[HEAD_LOCK_TOKEN];
    request->call.idempotency_key =
        unquoted(head->values[HEAD_IDEMPOTENCY_KEY]);
    request->query = head->query;
    request->is_chunked = head->values[HEAD_TRANSFER_ENCODING].ptr != NULL;
    if (requestid_is_valid(id))
        request->id[span_copy(request->id, id)] = '\0';
    else
        requestid_make(service->ids, request->id);
    trace_read(&request->trace, head->values[HEAD_TRACEPARENT]);
    if (*proxies == '\0' || request->client == NULL)
        return;
    /* the peer may be a proxy */
    struct span client = head_client(head, proxies, request->client);
    request->forwarded[span_copy(request->forwarded, client)] = '\0';
    if (client.len > 0)
        request->client = request->forwarded;
}

/* What is refused whoever asks. */
static struct head_refusal exchange_check(const struct service *service,
                                          const struct http_request *request,
                                          const struct head *head,
                                          bool is_http_1_0)
{
    struct head_refusal refusal = head_check(head, is_http_1_0);
    return refusal.reason != NULL
               ? refusal
               : head_check_page(head, service->config->allowed_hosts,
                                 service->access == NULL,
                                 strcmp(request->method, "GET") == 0);
}

void exchange_open(struct exchange *it, const struct service *service,
                   const char *method, const char *target, int64_t now_us)
{
    const struct tls_session *tls = it->connection.tls;
    it->service = service;
    connection_begin(&it->connection, now_us);
    it->connection.body_max = HTTP_BODY_MAX;
    it->caller = (struct caller){.granted = 0};
    it->request = (struct http_request){
        .method = method,
        .target = target,
        .call = {.request = &it->request, .caller = &it->caller},
        .login = &it->login,
        .client = it->connection.peer,
        .head_read_us = now_us,
        .counted_as = METRICS_OTHER,
        .answers_due = 1,
        .peer_names = tls != NULL ? tls_session_peer_names(tls) : ""};
}

enum exchange_step exchange_begin(struct exchange *it, const struct head *head,
                                  bool is_http_1_0,
                                  struct http_response *response)
{
    const struct service *service = it->service;
    struct http_request *request = &it->request;
    const struct head_refusal refusal =
        exchange_check(service, request, head, is_http_1_0);
    take_fields(service, request, head);
    http_find_call(request);
    it->connection.body_max = http_body_max(&request->match);
    http_response_init(response);
    response->close = true;
    request->call.response = response;
    if (refusal.reason != NULL) {
        request->counted_as = METRICS_OTHER;
        problem_respond_plain(&request->call, refusal.code, refusal.reason);
        return exchange_answer(it);
    }
    int64_t length = head_content_length(head);
    bool is_worth_reading = head->values[HEAD_EXPECT].ptr == NULL &&
                            length <= (int64_t)it->connection.body_max;
    access_admit(service->access, request, head->values[HEAD_AUTHORIZATION]);
    it->connection.body_is_unwanted =
        request->call.caller->refusal.detail != NULL;
    if (request->call.caller->refusal.detail != NULL && !is_worth_reading)
        access_respond_refusal(&request->call);
    else if (length > CONNECTION_DISCARD_MAX)
        handler_refuse_body(request);
    else
        return EXCHANGE_READ;
    return exchange_answer(it);
}

/* ---- the answer --------------------------------------------------------- */

static enum exchange_step refuse_stopped(const struct exchange *it)
{
    const struct http_call *call = &it->request.call;
    call->response->close = true;
    problem_respond_plain(call, PROBLEM_SHUTTING_DOWN,
                          "this server has stopped; the outcome of this "
                          "request is unknown; use another server");
    return exchange_answer(it);
}

/* Nobody needs it when its client has left, or may not ask any more. */
static bool is_for_client(const struct http_request *request)
{
    return request->batch != NULL ? batch_is_for_client(request->batch)
                                  : locks_are_for_client(&request->call);
}

static bool exchange_is_trusted(struct exchange *it)
{
    return connection_is_trusted(&it->connection, it->request.target);
}

/* No client learns what was granted, if anything: it is released. */
static enum exchange_step exchange_abandon(struct exchange *it, int64_t now_us)
{
    struct http_request *request = &it->request;
    if (request->batch != NULL)
        batch_end(it->service, request, false, now_us);
    else if (request->call.op != 0)
        locks_abandon(it->service, &request->call);
    return EXCHANGE_CLOSE;
}

static enum exchange_step answer_settled(struct exchange *it, int64_t now_us)
{
    const struct service *service = it->service;
    struct http_request *request = &it->request;
    if (is_for_client(request)) {
        if (connection_has_left(&it->connection) || !exchange_is_trusted(it))
            return exchange_abandon(it, now_us);
        /* what let it in may not hold any more; a batch looks itself */
        if (request->batch == NULL && !locks_stand(service, &request->call)) {
            locks_revoke(service, &request->call);
            return exchange_answer(it);
        }
    }
    handler_answer(service, request, now_us);
    return exchange_answer(it);
}

static enum exchange_step handle(struct exchange *it, int64_t now_us)
{
    const struct service *service = it->service;
    struct http_request *request = &it->request;
    struct connection *connection = &it->connection;
    connection_hold(connection, now_us);
    if (service->is_stopping)
        return refuse_stopped(it);
    if (request->call.caller->refusal.detail == NULL)
        (void)access_stands(service->access, &request->call, (struct span){0});
    if (request->call.caller->refusal.detail != NULL) {
        if (it->caller.refusal.is_late &&
            connection_delay(connection, now_us)) {
            it->caller.refusal.is_late = false;
            return EXCHANGE_DELAY;
        }
        access_respond_refusal(&request->call);
        return exchange_answer(it);
    }
    request->body = (struct span){connection->body, connection->body_len};
    request->body_is_too_large = connection->body_is_too_large;
    bool is_answered = handler_begin(service, request, it);
    request->body = (struct span){0}; /* the engine has what it needs */
    if (is_answered)
        return exchange_answer(it);
    assert(exchange_has_grant(it)); /* or handler_begin has answered */
    /* the engine may have its outcome at once */
    return connection->state == CONNECTION_SETTLED ? answer_settled(it, now_us)
                                                   : EXCHANGE_WAIT;
}

enum exchange_step exchange_go_on(struct exchange *it, int64_t now_us,
                                  struct http_response *response)
{
    const struct service *service = it->service;
    http_response_init(response);
    it->request.call.response = response;
    /* a client that keeps a connection must not keep it to this server; and
     * nobody may see the end of a chunked body elsewhere than we, since the
     * library takes an LF alone for the end of its lines */
    response->close = service->is_draining || it->request.is_chunked;
    switch (it->connection.state) {
    case CONNECTION_READING:
        if (!exchange_is_trusted(it))
            return EXCHANGE_CLOSE;
        return handle(it, now_us);
    case CONNECTION_SETTLED:
        return answer_settled(it, now_us);
    case CONNECTION_WAITING: /* woken without an outcome */
        if (it->caller.refusal.detail != NULL && !service->is_stopping) {
            locks_revoke(service, &it->request.call);
            return exchange_answer(it);
        }
        /* the process ends before the operation does */
        (void)exchange_abandon(it, now_us);
        return refuse_stopped(it);
    case CONNECTION_GONE:
        return exchange_abandon(it, now_us);
    default:
        return EXCHANGE_CLOSE; /* the client has its answer */
    }
}

void exchange_on_answer(void *client)
{
    struct exchange *it = client;
    if (--it->request.answers_due == 0)
        connection_settle(&it->connection);
}

/* ---- what becomes of it ------------------------------------------------- */

/*
 * Abandons acquires: nobody would own the locks; and a watch. Other calls still
 * take effect; only their answer is lost.
 */
bool exchange_on_leave(struct connection *connection)
{
    struct exchange *it = exchange_of(connection);
    if (!is_for_client(&it->request))
        return false;
    if (it->request.batch != NULL)
        return batch_leave(it->service, &it->request);
    (void)exchange_abandon(it, clock_now_us());
    return true;
}

void exchange_on_end(struct connection *connection, bool is_answered)
{
    struct exchange *it = exchange_of(connection);
    struct http_request *request = &it->request;
    if (request->batch != NULL)
        batch_end(it->service, request, is_answered, clock_now_us());
    else if (request->call.op != 0 && is_answered)
        engine_close(it->service->engine, request->call.op);
    else
        (void)exchange_abandon(it, clock_now_us());
    request->call.op = 0;
    access_end(it->service->access, &request->call, is_answered);
}

bool exchange_goes_on(const struct exchange *it)
{
    const struct http_call *call = &it->request.call;
    if (it->request.batch != NULL)
        return batch_goes_on(it->request.batch);
    return call->kind == LOCK_EXTEND || call->kind == LOCK_FORCE ||
           (call->kind == LOCK_RELEASE && call->caller->reservation != NULL);
}

bool exchange_has_grant(const struct exchange *it)
{
    return it->request.call.op != 0 || it->request.batch != NULL;
}

void exchanges_review(struct connections *connections)
{
    for (struct connection *connection = TAILQ_FIRST(&connections->list);
         connection != NULL; connection = TAILQ_NEXT(connection, link)) {
        struct exchange *it = exchange_of(connection);
        const struct http_call *call = &it->request.call;
        if (connection->state != CONNECTION_WAITING ||
            !is_for_client(&it->request))
            continue;
        if (!exchange_is_trusted(it))
            connection_leave(connection);
        else if (it->request.batch == NULL &&
                 !access_stands(
                     it->service->access, &it->request.call,
                     engine_peek(it->service->engine, call->op)->resource))
            /* its operation still runs then: see exchange_go_on. That of a
             * batch does not wait, and is looked at when it is answered */
            connections->events->wake(connection);
    }
}

/* ---- what is counted and logged of it ----------------------------------- */

enum { SLOW_US = US_PER_S };

const struct log_limit exchange_log_limit = {.every_us = US_PER_S, .burst = 10};

static void exchange_log(enum log_level level,
                         const struct http_request *request, int64_t took_us,
                         int64_t dropped)
{
    const struct http_response *response = request->call.response;
    bool is_traced = request->trace.id[0] != '\0';
    bool is_known = request->client != NULL && *request->client != '\0';
    const struct log_field fields[] = {
        LOG_S("request_id", request->id),
        LOG_S("call", metrics_call_names[request->counted_as]),
        LOG_N("status", response->status),
        LOG_S("code", response->code != NULL ? response->code : "-"),
        LOG_N("took_us", took_us),
        LOG_S("client", is_known ? request->client : "-"),
        LOG_N("dropped", dropped), /* such lines, since the last one */
        is_traced ? LOG_S("trace_id", request->trace.id) : LOG_END,
        LOG_S("parent_id", request->trace.parent),
        LOG_END,
    };
    log_write(level, "request", fields);
}

void exchange_note_answer(const struct exchange *it, struct log_limit *limit,
                          int64_t now_us)
{
    const struct http_request *request = &it->request;
    const struct http_response *response = request->call.response;
    struct metrics *metrics = it->service->metrics;
    int64_t took_us = now_us - request->head_read_us;
    int64_t slow_us = SLOW_US + request->call.waited_ms * US_PER_MS;
    assert(response->status > 0 && response->status < METRICS_STATUSES);
    metrics->responses[request->counted_as][response->status]++;
    if (request->call.wait_ms == 0)
        metrics_observe(&metrics->request_duration[request->counted_as],
                        took_us);
    /* of a probe the log has a line already for why: the quorum, or the end */
    bool is_reported =
        response->status >= 500 &&
        !(request->counted_as == METRICS_PROBE && response->status == 503);
    if (log_is_enabled(LOG_DEBUG))
        exchange_log(LOG_DEBUG, request, took_us, 0);
    else if ((is_reported || took_us > slow_us) &&
             log_limit_take(limit, now_us))
        exchange_log(LOG_INFO, request, took_us, limit->dropped);
}
