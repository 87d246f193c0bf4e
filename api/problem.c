#include "problem.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>

#include "json.h"
#include "retry.h"

static const struct kind {
    int status;
    const char *code;
    const char *title;
} kinds[PROBLEM_CODES] = {
    [PROBLEM_INVALID_REQUEST] = {400, "invalid_request", "Invalid request"},
    [PROBLEM_BAD_REQUEST] = {400, "bad_request", "Malformed HTTP"},
    [PROBLEM_KEY_REFUSED] = {403, "key_refused", "Nodes refuse the key"},
    [PROBLEM_NOT_FOUND] = {404, "not_found", "No such path"},
    [PROBLEM_LOCK_NOT_FOUND] = {404, "lock_not_found", "No such lock"},
    [PROBLEM_METHOD_NOT_ALLOWED] = {405, "method_not_allowed",
                                    "Method not allowed"},
    [PROBLEM_BODY_TOO_LARGE] = {413, "body_too_large", "Body too large"},
    [PROBLEM_UNSUPPORTED_MEDIA_TYPE] = {415, "unsupported_media_type",
                                        "Unsupported media type"},
    [PROBLEM_EXPECTATION_FAILED] = {417, "expectation_failed",
                                    "Expectation failed"},
    [PROBLEM_HEAD_TOO_LARGE] = {431, "head_too_large", "Head too large"},
    [PROBLEM_LOCK_HELD] = {409, "lock_held", "Lock is held"},
    [PROBLEM_NOT_OWNER] = {409, "not_owner", "Not the holder of the lock"},
    [PROBLEM_MAX_HOLD_REACHED] = {409, "max_hold_reached",
                                  "Longest hold time reached"},
    [PROBLEM_NO_QUORUM] = {503, "no_quorum", "Not enough nodes"},
    [PROBLEM_VALIDITY_EXHAUSTED] = {503, "validity_exhausted",
                                    "Answered too late"},
    [PROBLEM_OVERLOADED] = {503, "overloaded", "Overloaded"},
    [PROBLEM_SHUTTING_DOWN] = {503, "shutting_down", "Shutting down"},
};

int problem_status(enum problem_code code)
{
    assert(code < PROBLEM_CODES);
    return kinds[code].status;
}

const char *problem_name(enum problem_code code)
{
    assert(code < PROBLEM_CODES);
    return kinds[code].code;
}

/* ---- members ------------------------------------------------------------ */

/* What fails here for lack of memory, json_render finds at the end. */
static json_t *errors_of(const struct faults *errors)
{
    json_t *list = json_array();
    for (int i = 0; i < errors->count; i++)
        (void)json_array_append_new(
            list, json_pack("{ss,ss}", "pointer", errors->list[i].pointer,
                            "detail", errors->list[i].detail));
    return list;
}

/* A vote that speaks of the node's state has that state's reason. */
static json_t *nodes_of(const struct problem *problem)
{
    const struct engine_result *result = problem->votes;
    json_t *list = json_array();
    for (int i = 0; i < result->total; i++) {
        struct engine_node_view view;
        struct ballot vote = result->votes[i];
        engine_view_node(problem->engine, i, &view);
        const char *detail = strcmp(view.state, ballot_name(vote)) == 0
                                 ? view.detail
                                 : ballot_detail(vote);
        (void)json_array_append_new(
            list, json_pack("{ss,ss,ss}", "node", problem->node_names[i],
                            "vote", ballot_name(vote), "detail", detail));
    }
    return list;
}

static json_t *holder_of(const struct engine_result *result)
{
    json_t *holder = json_object();
    json_set_holder(holder, result);
    return holder;
}

static json_t *make(const struct problem *problem, const char *request_id)
{
    const struct kind *kind = &kinds[problem->code];
    char type[64];
    (void)snprintf(type, sizeof type, "urn:redlockd:problem:%s", kind->code);
    json_t *root =
        json_pack("{ss,ss,si,ss,ss,ss}", "type", type, "title", kind->title,
                  "status", kind->status, "code", kind->code, "detail",
                  problem->detail, "request_id", request_id);
    if (problem->resource.len > 0)
        json_set_lock(root, problem->resource);
    if (problem->retry_after_ms > 0)
        (void)json_object_set_new(root, "retry_after_ms",
                                  json_integer(problem->retry_after_ms));
    if (problem->errors != NULL)
        (void)json_object_set_new(root, "errors", errors_of(problem->errors));
    if (problem->held_by != NULL)
        (void)json_object_set_new(root, "held_by", holder_of(problem->held_by));
    if (problem->votes != NULL)
        (void)json_object_set_new(root, "nodes", nodes_of(problem));
    if (problem->states != NULL)
        (void)json_object_set_new(root, "nodes",
                                  json_node_list(problem->states));
    return root;
}

static void set_kind(const struct kind *kind, int64_t retry_after_ms,
                     struct http_response *response)
{
    response->status = kind->status;
    response->code = kind->code;
    response->retry_after_ms = retry_after_ms;
    response->content_type = "application/problem+json";
}

void problem_respond(const struct problem *problem, const char *request_id,
                     struct http_response *response)
{
    set_kind(&kinds[problem->code], problem->retry_after_ms, response);
    json_t *root = make(problem, request_id);
    response->body = json_render(root, &response->body_len);
    if (response->body == NULL)
        problem_respond_overloaded("there is no memory for the answer",
                                   request_id, response);
}

/* A single allocation: the library's many would rather fail. */
void problem_respond_overloaded(const char *detail, const char *request_id,
                                struct http_response *response)
{
    const struct kind *kind = &kinds[PROBLEM_OVERLOADED];
    set_kind(kind, retry_within_ms(RETRY_MAX_MS), response);
    int len = asprintf(&response->body,
                       "{\"type\":\"urn:redlockd:problem:%s\",\"title\":\"%s\","
                       "\"status\":%d,\"code\":\"%s\",\"detail\":\"%s\","
                       "\"request_id\":\"%s\",\"retry_after_ms\":%lld}\n",
                       kind->code, kind->title, kind->status, kind->code,
                       detail, request_id, (long long)response->retry_after_ms);
    if (len < 0)
        response->body = NULL;
    else
        response->body_len = (size_t)len;
}

void problem_respond_plain(enum problem_code code, const char *detail,
                           const char *request_id,
                           struct http_response *response)
{
    struct problem problem = {.code = code, .detail = detail};
    problem_respond(&problem, request_id, response);
}
