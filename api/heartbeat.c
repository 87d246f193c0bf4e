#include "heartbeat.h"

#include <assert.h>
#include <stdlib.h>

#include "../server/base/clock.h"
#include "../server/lock/names.h"
#include "access/access.h"
#include "access/audit.h"
#include "locks.h"
#include "message/body.h"
#include "message/head.h"
#include "message/json.h"
#include "message/problem.h"

/* The extend of one lock. A response is large: only its body is kept. */
struct beat {
    struct http_call call; /* op 0: it has its answer */
    struct caller caller;
    char *body; /* malloc'ed: the answer; NULL: there is none, or no memory */
    size_t body_len;
    int status;
};

struct heartbeat {
    int count;
    struct beat beats[];
};

/* ---- begin -------------------------------------------------------------- */

static bool read_list(const struct service *service,
                      const struct http_request *request, struct locklist *list,
                      struct http_response *response)
{
    struct faults errors;
    if (!head_is_json(request->content_type)) {
        problem_respond_not_json(request->id, response);
        return false;
    }
    if (locklist_read(list, request->body, service->config->max_ttl_ms,
                      &errors))
        return true;
    problem_respond_body(&errors, request->id, response);
    return false;
}

static void refuse_id(const struct http_request *request,
                      struct http_response *response)
{
    struct faults errors = {.count = 0};
    faults_add(&errors, "/id",
               "id names no lock; send the field id of the response to POST "
               "/locks, unchanged");
    problem_respond_faults(&errors, request->id, response);
}

static void keep_answer(struct beat *beat, const struct http_response *response)
{
    beat->body = response->body;
    beat->body_len = response->body_len;
    beat->status = response->status;
}

/* True: the beat has its answer. */
static bool begin_beat(const struct service *service, struct beat *beat,
                       const struct locklist *list,
                       const struct locklist_lock *lock, void *client)
{
    char names[NAMES_LEN_MAX];
    const struct body body = {
        .resource = id_find_names(lock->id, names),
        .token = lock->token,
        .ttl_ms = list->ttl_ms,
    };
    struct http_call *call = &beat->call;
    struct http_response response;
    http_response_init(&response);
    if (body.resource.len == 0)
        refuse_id(call->request, &response);
    else if (access_allows(service->access, call, body.resource, &response) &&
             !locks_extend(service, call, &body, client, &response))
        return false;
    else
        audit_note_refusal(service->audit, call, body.resource, &response);
    keep_answer(beat, &response);
    return true;
}

/* It is asked for by the same client, in the same request. */
static void open_beat(struct beat *beat, const struct http_request *request)
{
    beat->call = request->call;
    beat->caller = *request->call.caller;
    beat->caller.has_result = false; /* the request is counted, once */
    beat->call.caller = &beat->caller;
    beat->body = NULL;
    beat->body_len = 0;
}

static struct heartbeat *open_heartbeat(const struct http_request *request,
                                        int count)
{
    size_t size =
        sizeof(struct heartbeat) + (size_t)count * sizeof(struct beat);
    struct heartbeat *it = malloc(size);
    if (it == NULL)
        return NULL;
    it->count = count;
    for (int i = 0; i < count; i++)
        open_beat(&it->beats[i], request);
    return it;
}

/* False: all of them are answered already. */
static bool begin_all(const struct service *service,
                      struct http_request *request, const struct locklist *list,
                      void *client)
{
    struct heartbeat *it = request->heartbeat;
    /* one more: it must not get to 0 while others are yet to begin */
    request->answers_due = it->count + 1;
    for (int i = 0; i < it->count; i++)
        if (begin_beat(service, &it->beats[i], list, &list->locks[i], client))
            request->answers_due--;
    return --request->answers_due > 0;
}

bool heartbeat_begin(const struct service *service,
                     struct http_request *request, void *client,
                     struct http_response *response)
{
    struct locklist list = {.root = NULL};
    bool is_pending = false;
    if (!read_list(service, request, &list, response) ||
        !access_charge(service->access, &request->call, list.count - 1,
                       response))
        goto done;
    request->heartbeat = open_heartbeat(request, list.count);
    if (request->heartbeat == NULL) {
        problem_respond_overloaded(
            "not enough memory for so many locks; nothing was done",
            request->id, response);
        goto done;
    }
    is_pending = begin_all(service, request, &list, client);
    if (!is_pending)
        heartbeat_answer(service, request, clock_now_us(), response);
done:
    locklist_fini(&list);
    return !is_pending;
}

/* ---- answer ------------------------------------------------------------- */

static void end(const struct service *service, struct http_request *request)
{
    struct heartbeat *it = request->heartbeat;
    for (int i = 0; i < it->count; i++) {
        free(it->beats[i].body);
        access_end(service->access, &it->beats[i].call, true);
    }
    free(it);
    request->heartbeat = NULL;
}

static void answer_beat(const struct service *service, struct beat *beat,
                        int64_t now_us)
{
    struct http_response response;
    http_response_init(&response);
    locks_answer(service, &beat->call, now_us, &response);
    keep_answer(beat, &response);
}

/* The answer of one, without the newline behind. */
static struct span text_of(const struct beat *beat)
{
    assert(beat->body_len > 1);
    return (struct span){beat->body, beat->body_len - 1};
}

static void put_answer(struct json *json, const struct beat *beat)
{
    json_open_object(json, NULL);
    json_put_integer(json, "status", beat->status);
    json_put_json(json, beat->status < 300 ? "grant" : "problem",
                  text_of(beat));
    json_close_object(json);
}

void heartbeat_answer(const struct service *service,
                      struct http_request *request, int64_t now_us,
                      struct http_response *response)
{
    struct heartbeat *it = request->heartbeat;
    struct json json;
    bool is_whole = true;
    json_begin(&json);
    json_open_array(&json, "locks");
    for (int i = 0; i < it->count; i++) {
        struct beat *beat = &it->beats[i];
        if (beat->call.op != 0)
            answer_beat(service, beat, now_us);
        if (beat->body != NULL)
            put_answer(&json, beat);
        else
            is_whole = false; /* no memory */
    }
    json_close_array(&json);
    end(service, request);
    response->body = json_end(&json, &response->body_len);
    response->status = 200;
    response->content_type = HTTP_JSON;
    if (is_whole && response->body != NULL)
        return;
    free(response->body);
    problem_respond_overloaded("not enough memory for the answer; the outcome "
                               "is unknown; the old validities still stand",
                               request->id, response);
}

void heartbeat_abandon(const struct service *service,
                       struct http_request *request)
{
    struct heartbeat *it = request->heartbeat;
    for (int i = 0; i < it->count; i++) {
        struct http_call *one = &it->beats[i].call;
        if (one->op == 0)
            continue;
        const struct engine_result *result =
            engine_peek(service->engine, one->op);
        audit_note_abandoned(service->audit, one, result);
        access_note_abandoned(service->access, one, result, clock_now_us());
        (void)engine_abandon(service->engine, one->op);
    }
    end(service, request);
}
