/* SPDX-License-Identifier: MIT */
#include "batch.h"

#include <assert.h>
#include <stdlib.h>

#include "../server/base/clock.h"
#include "../server/engine/port/token.h"
#include "../server/lock/names.h"
#include "access/access.h"
#include "access/audit.h"
#include "locks.h"
#include "message/body.h"
#include "message/head.h"
#include "message/json.h"
#include "message/problem.h"

/* What is around an answer, at most: {"status":503,"problem":},  */
enum { FRAME_MAX = sizeof "{\"status\":503,\"problem\":}," };

/* Of all operations: a node runs nothing else while it sets so many locks. */
enum { WEIGHT_MAX = 200 };

/* One operation. An answer is large: only its status and body are kept. */
struct item {
    struct http_call call; /* op 0: it has its answer, or was undone */
    struct caller caller;
    char *body; /* malloc'ed: the answer; NULL: there is none, or no memory */
    size_t body_len;
    int status;
};

struct http_batch {
    int count;
    bool has_left;               /* the client; its acquires were undone */
    struct http_response answer; /* of the one that is read, begun, answered */
    struct item items[];
};

static void keep_answer(struct item *item)
{
    item->body = item->call.response->body;
    item->body_len = item->call.response->body_len;
    item->status = item->call.response->status;
}

/* ---- two operations of one lock ----------------------------------------- */

/* What an operation names. */
struct claim {
    struct span text; /* a resource, or a token */
    bool is_token;
    int n; /* the operation's place in the batch */
};

/* Several of one kind may be of one lock. */
enum sharing { SHARING_NONE, SHARING_READERS, SHARING_PERMITS };

static enum sharing sharing_of(const struct body *body)
{
    if (body->call == LOCK_ACQUIRE && body->limit > 0)
        return SHARING_PERMITS;
    bool is_reader = body->call == LOCK_ACQUIRE ? body->is_shared
                                                : token_is_shared(body->token);
    return is_reader ? SHARING_READERS : SHARING_NONE;
}

/* Names before tokens, by text, and those with the same one by their order. */
static int compare_claims(const void *left, const void *right)
{
    const struct claim *a = left, *b = right;
    int order = a->is_token - b->is_token;
    if (order == 0)
        order = names_compare(&a->text, &b->text);
    return order != 0 ? order : a->n - b->n;
}

/* Whether the first claim on a text leaves room for a later one. */
static bool batch_may_share(const struct claim *first,
                            const struct claim *later,
                            const struct body *bodies)
{
    enum sharing sharing = sharing_of(&bodies[first->n]);
    return !first->is_token && sharing != SHARING_NONE &&
           sharing_of(&bodies[later->n]) == sharing;
}

/* Each name has a weight, and each operation with a token has a name. */
enum { CLAIMS_MAX = 2 * WEIGHT_MAX };

/* Returns how many; of what is refused none. */
static int list_claims(const struct http_batch *it, const struct body *bodies,
                       struct claim claims[CLAIMS_MAX])
{
    int count = 0;
    for (int n = 0; n < it->count; n++) {
        struct span names = bodies[n].resource, token = bodies[n].token;
        if (it->items[n].status != 0)
            continue;
        while (names.len > 0)
            claims[count++] = (struct claim){names_next(&names), false, n};
        /* whichever of its two forms it has: see token.h */
        if (token.ptr != NULL)
            claims[count++] = (struct claim){
                span_behind(token, TOKEN_NUMBER_LEN + 1), true, n};
        assert(count <= CLAIMS_MAX); /* check_weight let no more pass */
    }
    return count;
}

/* False: two operations are of one lock; the response says so. */
static bool check_clashes(const struct http_request *request,
                          const struct http_batch *it,
                          const struct body *bodies)
{
    struct claim claims[CLAIMS_MAX];
    const struct claim *first = claims, *clash = NULL; /* as early as can be */
    int count = list_claims(it, bodies, claims), other = 0;
    qsort(claims, (size_t)count, sizeof *claims, compare_claims);
    for (const struct claim *at = claims + 1; at < claims + count; at++) {
        if (at->is_token != first->is_token ||
            !span_is_same(at->text, first->text)) {
            first = at;
        } else if (!batch_may_share(first, at, bodies) &&
                   (clash == NULL || at->n < clash->n)) {
            clash = at;
            other = first->n;
        }
    }
    if (clash == NULL)
        return true;
    struct faults errors = {.item = clash->n + 1};
    faults_add(&errors, "",
               "this operation and operations/%d are on the same lock; send "
               "one of them in another request",
               other);
    problem_respond_faults(&request->call, &errors);
    return false;
}

/* False: they are too much for one turn of the nodes; the response says so. */
static bool check_weight(const struct http_request *request,
                         const struct http_batch *it, const struct body *bodies)
{
    int weight = 0;
    for (int n = 0; n < it->count; n++)
        if (it->items[n].status == 0)
            weight += locks_weight(&bodies[n]);
    if (weight <= WEIGHT_MAX)
        return true;
    struct faults errors = {.in = "body"};
    faults_add(&errors, "/operations",
               "operations have %d resources in all, where each hundred "
               "permits of a pool count as one more; the limit is %d; send the "
               "rest in another request",
               weight, WEIGHT_MAX);
    problem_respond_faults(&request->call, &errors);
    return false;
}

/* ---- begin -------------------------------------------------------------- */

/* False: the response says what is wrong with the request as a whole. */
static bool batch_read_list(const struct http_request *request,
                            struct body_list *list)
{
    static const char text[] =
        "a batch takes no header %s; send the field %s in each operation";
    struct faults errors = {.in = "header"};
    if (!head_is_json(request->content_type)) {
        problem_respond_not_json(&request->call);
        return false;
    }
    if (request->call.idempotency_key.ptr != NULL)
        faults_add(&errors, "/Idempotency-Key", text, "Idempotency-Key",
                   "idempotency_key");
    if (request->call.lock_token.ptr != NULL)
        faults_add(&errors, "/X-Lock-Token", text, "X-Lock-Token", "token");
    if (errors.count > 0) {
        problem_respond_faults(&request->call, &errors);
        return false;
    }
    if (body_list_read(list, request->body, &errors))
        return true;
    problem_respond_body(&request->call, &errors);
    return false;
}

/* It is asked for by the same client, in the same request. */
static void open_item(struct http_batch *it, int n,
                      const struct http_request *request)
{
    struct item *item = &it->items[n];
    *item = (struct item){
        .call = {.request = request,
                 .caller = &item->caller,
                 .response = &it->answer,
                 .item = n + 1},
        .caller = *request->call.caller,
    };
}

/* What the operation asks, or the answer that it is not asked right. */
static void read_item(const struct service *service, struct item *item,
                      const struct body_list *list, struct body *body)
{
    struct http_response *response = item->call.response;
    struct faults errors;
    bool is_read = body_read_item(list, item->call.item - 1, body,
                                  service->config->max_ttl_ms, &errors);
    item->call.kind = body->call;
    item->call.idempotency_key = body->key;
    if (is_read)
        return;
    http_response_init(response);
    problem_respond_body(&item->call, &errors);
    keep_answer(item);
}

static struct http_batch *open_batch(const struct http_request *request,
                                     int count)
{
    struct http_batch *it =
        malloc(sizeof *it + (size_t)count * sizeof it->items[0]);
    if (it == NULL)
        return NULL;
    it->count = count;
    it->has_left = false;
    for (int i = 0; i < count; i++)
        open_item(it, i, request);
    return it;
}

static void free_batch(struct http_batch *it)
{
    for (int i = 0; it != NULL && i < it->count; i++)
        free(it->items[i].body);
    free(it);
}

/*
 * True: the item has its answer. One that was not asked right is charged, too,
 * as it would be alone.
 */
static bool begin_item(const struct service *service, struct item *item,
                       const struct body *body, void *client)
{
    struct http_call *call = &item->call;
    http_response_init(call->response);
    /* the head of the request was charged as the first */
    if (call->item == 1 || access_charge_item(service->access, call)) {
        if (item->status != 0)
            return true;
        if ((call->kind == LOCK_ACQUIRE || /* which looks itself */
             access_allows(service->access, call, body->resource)) &&
            !locks_start(service, call, body, client))
            return false;
    }
    audit_note_refusal(service->audit, call,
                       item->status == 0 ? body->resource : (struct span){0});
    free(item->body);
    keep_answer(item);
    return true;
}

/* False: all of them are answered already. */
static bool begin_all(const struct service *service,
                      struct http_request *request, const struct body *bodies,
                      void *client)
{
    struct http_batch *it = request->batch;
    /* each of them is counted instead */
    request->call.caller->has_result = false;
    /* one more: it must not get to 0 while others are yet to begin */
    request->answers_due = it->count + 1;
    for (int i = 0; i < it->count; i++)
        if (begin_item(service, &it->items[i], &bodies[i], client))
            request->answers_due--;
    return --request->answers_due > 0;
}

/* Reads all before any is begun: two may be of one lock. */
static bool begin_list(const struct service *service,
                       struct http_request *request,
                       const struct body_list *list, void *client)
{
    int count = list->count;
    struct http_batch *it = open_batch(request, count);
    struct body *bodies = calloc((size_t)count, sizeof *bodies);
    bool is_pending = false;
    if (it == NULL || bodies == NULL) {
        problem_respond_overloaded(
            &request->call, "not enough memory for this batch; nothing was "
                            "done; try again later, or send fewer operations");
        goto done;
    }
    for (int i = 0; i < count; i++)
        read_item(service, &it->items[i], list, &bodies[i]);
    if (!check_weight(request, it, bodies) ||
        !check_clashes(request, it, bodies))
        goto done;
    request->batch = it;
    it = NULL;
    is_pending = begin_all(service, request, bodies, client);
    if (!is_pending)
        batch_answer(service, request, clock_now_us());
done:
    for (int i = 0; bodies != NULL && i < count; i++)
        body_fini(&bodies[i]);
    free(bodies);
    free_batch(it);
    return !is_pending;
}

bool batch_begin(const struct service *service, struct http_request *request,
                 void *client)
{
    struct body_list list = {.root = NULL};
    bool is_answered = !batch_read_list(request, &list) ||
                       begin_list(service, request, &list, client);
    body_list_fini(&list);
    return is_answered;
}

/* ---- end ---------------------------------------------------------------- */

static bool has_outcome(const struct service *service, const struct item *item)
{
    return engine_peek(service->engine, item->call.op)->outcome !=
           OUTCOME_PENDING;
}

static void answer_item(const struct service *service, struct item *item,
                        int64_t now_us)
{
    http_response_init(item->call.response);
    if (item->call.kind == LOCK_ACQUIRE && !locks_stand(service, &item->call))
        locks_revoke(service, &item->call);
    else
        locks_answer(service, &item->call, now_us);
    keep_answer(item);
}

/* No client is notified; what came of it is audited and counted. */
static void end_item(const struct service *service, struct item *item,
                     int64_t now_us)
{
    struct http_call *call = &item->call;
    if (call->kind == LOCK_ACQUIRE || !has_outcome(service, item)) {
        locks_abandon(service, call);
        return;
    }
    answer_item(service, item, now_us);
}

void batch_end(const struct service *service, struct http_request *request,
               bool is_answered, int64_t now_us)
{
    struct http_batch *it = request->batch;
    /* What is undone may let another of them have its outcome now: too late. */
    request->answers_due++;
    for (int i = 0; i < it->count; i++) {
        struct http_call *call = &it->items[i].call;
        if (call->op != 0 && is_answered)
            engine_close(service->engine, call->op);
        else if (call->op != 0)
            end_item(service, &it->items[i], now_us);
        call->op = 0;
        access_end(service->access, call, is_answered);
    }
    free_batch(it);
    request->batch = NULL;
}

bool batch_is_for_client(const struct http_batch *it)
{
    for (int i = 0; i < it->count; i++)
        if (it->items[i].call.op != 0 && it->items[i].call.kind == LOCK_ACQUIRE)
            return true;
    return it->has_left; /* it was, and its answer is not whole any more */
}

bool batch_goes_on(const struct http_batch *it)
{
    for (int i = 0; i < it->count; i++) {
        const struct item *item = &it->items[i];
        if (item->call.op != 0 && (item->call.kind == LOCK_EXTEND ||
                                   (item->call.kind == LOCK_RELEASE &&
                                    item->caller.reservation != NULL)))
            return true;
    }
    return false;
}

bool batch_leave(const struct service *service, struct http_request *request)
{
    struct http_batch *it = request->batch;
    it->has_left = batch_is_for_client(it);
    /* What is undone may let another of them have its outcome now. */
    request->answers_due++;
    for (int i = 0; i < it->count; i++) {
        struct item *item = &it->items[i];
        if (item->call.op == 0 || item->call.kind != LOCK_ACQUIRE)
            continue;
        request->answers_due -= !has_outcome(service, item);
        locks_abandon(service, &item->call);
    }
    return --request->answers_due == 0;
}

/* ---- answer ------------------------------------------------------------- */

/* The answer of one, without the newline behind. */
static struct span text_of(const struct item *item)
{
    assert(item->body_len > 1);
    return (struct span){item->body, item->body_len - 1};
}

/* As a single call is. */
static void count_answer(struct metrics *metrics, const struct item *item,
                         int64_t took_us)
{
    metrics->responses[item->call.kind][item->status]++;
    metrics_observe(&metrics->request_duration[item->call.kind], took_us);
}

static void batch_put_answer(struct json *json, const struct item *item)
{
    const char *name = item->status >= 300               ? "problem"
                       : item->call.kind == LOCK_RELEASE ? "release"
                                                         : "grant";
    json_open_object(json, NULL);
    json_put_integer(json, "status", item->status);
    json_put_json(json, name, text_of(item));
    json_close_object(json);
}

/* Answers all that have none yet; false: no memory for one. size: of all. */
static bool answer_all(const struct service *service, struct http_batch *it,
                       int64_t now_us, size_t *size)
{
    bool is_whole = true;
    *size = 0;
    for (int i = 0; i < it->count; i++) {
        struct item *item = &it->items[i];
        if (item->call.op != 0)
            answer_item(service, item, now_us);
        is_whole &= item->body != NULL;
        *size += item->body_len + FRAME_MAX;
    }
    return is_whole;
}

/* NULL: no memory. */
static char *join_answers(const struct http_batch *it, size_t size, size_t *len)
{
    struct json json;
    json_begin(&json);
    json_open_array(&json, "results");
    (void)json_reserve(&json, size); /* at once; json_end says so */
    for (int i = 0; i < it->count; i++)
        batch_put_answer(&json, &it->items[i]);
    json_close_array(&json);
    return json_end(&json, len);
}

void batch_answer(const struct service *service, struct http_request *request,
                  int64_t now_us)
{
    struct http_batch *it = request->batch;
    struct http_response *response = request->call.response;
    size_t size;
    response->body = answer_all(service, it, now_us, &size)
                         ? join_answers(it, size, &response->body_len)
                         : NULL;
    response->status = 200;
    response->content_type = HTTP_JSON;
    if (response->body != NULL) {
        for (int i = 0; i < it->count; i++)
            count_answer(service->metrics, &it->items[i],
                         now_us - request->head_read_us);
        if (!batch_is_for_client(it))
            batch_end(service, request, true, now_us);
        return;
    }
    batch_end(service, request, false, now_us);
    problem_respond_overloaded(
        &request->call,
        "not enough memory for the response; granted locks were released "
        "again, and the outcome of the other operations is unknown");
}
