#include "exchange.h"

#include "handler.h"
#include "list.h"
#include "locks.h"
#include "problem.h"

/* Without memory for its body an answer cannot be sent. */
static enum exchange_step answer(const struct http_response *response)
{
    bool has_body = response->content_type == NULL || response->body != NULL;
    return has_body ? EXCHANGE_ANSWER : EXCHANGE_CLOSE;
}

/* ---- the head ----------------------------------------------------------- */

enum exchange_step exchange_begin(struct http_request *request,
                                  const struct head *head, bool is_http_1_0,
                                  struct requestid_source *ids,
                                  struct http_response *response)
{
    struct span id = head->values[HEAD_REQUEST_ID];
    request->content_type = head->values[HEAD_CONTENT_TYPE];
    request->lock_token = head->values[HEAD_LOCK_TOKEN];
    request->idempotency_key = head->values[HEAD_IDEMPOTENCY_KEY];
    request->query = head->query;
    if (requestid_is_valid(id))
        request->id[span_copy(request->id, id)] = '\0';
    else
        requestid_make(ids, request->id);

    const struct head_refusal refusal = head_check(head, is_http_1_0);
    http_response_init(response);
    response->close = true;
    if (refusal.reason != NULL)
        problem_respond_plain(refusal.code, refusal.reason, request->id,
                              response);
    else if (head_content_length(head) > HTTP_DISCARD_MAX)
        handler_refuse_body(request, response);
    else
        return EXCHANGE_READ;
    return answer(response);
}

/* ---- the answer --------------------------------------------------------- */

static void refuse_stopped(const struct http_request *request,
                           struct http_response *response)
{
    response->close = true;
    problem_respond_plain(PROBLEM_SHUTTING_DOWN,
                          "this server has stopped; the outcome of this "
                          "request is unknown; ask another server",
                          request->id, response);
}

/* The process ends before the operation does. */
static enum exchange_step give_up(const struct service *service,
                                  struct http_request *request,
                                  struct http_response *response)
{
    (void)engine_abandon(service->engine, request->op);
    request->op = 0;
    refuse_stopped(request, response);
    return answer(response);
}

static enum exchange_step answer_settled(const struct service *service,
                                         struct connection *it, int64_t now_us,
                                         struct http_response *response)
{
    if (it->request.call == LOCK_ACQUIRE && it->has_left)
        return EXCHANGE_CLOSE; /* connection_end releases what was granted */
    if (it->request.is_list)
        list_answer(service, &it->request, response);
    else
        locks_answer(service, &it->request, now_us, response);
    return answer(response);
}

static enum exchange_step handle(const struct service *service,
                                 struct connection *it, int64_t now_us,
                                 struct http_response *response)
{
    connection_hold(it, now_us);
    if (service->is_stopping) {
        refuse_stopped(&it->request, response);
        return answer(response);
    }
    if (handler_begin(service, &it->request, it, response))
        return answer(response);
    /* the engine may have its outcome at once */
    return it->state == CONNECTION_SETTLED
               ? answer_settled(service, it, now_us, response)
               : EXCHANGE_WAIT;
}

enum exchange_step exchange_go_on(const struct service *service,
                                  struct connection *it, int64_t now_us,
                                  struct http_response *response)
{
    http_response_init(response);
    /* a client that keeps a connection must not keep it to this server */
    response->close = service->is_draining;
    switch (it->state) {
    case CONNECTION_READING:
        return handle(service, it, now_us, response);
    case CONNECTION_SETTLED:
        return answer_settled(service, it, now_us, response);
    case CONNECTION_WAITING: /* woken without an outcome: the process ends */
        return give_up(service, &it->request, response);
    default:
        return EXCHANGE_CLOSE; /* the client left */
    }
}
