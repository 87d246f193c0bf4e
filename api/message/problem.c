/* SPDX-License-Identifier: MIT */
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "../../server/base/encoding.h"
#include "../../server/base/process.h"
#include "render.h"

const struct problem_kind problem_kinds[PROBLEM_CODES] = {
    [PROBLEM_INVALID_REQUEST] = {400, "invalid_request", "Invalid request"},
    [PROBLEM_BAD_REQUEST] = {400, "bad_request", "Malformed HTTP"},
    [PROBLEM_UNAUTHORIZED] = {401, "unauthorized", "Not authenticated"},
    [PROBLEM_FORBIDDEN] = {403, "forbidden", "Not allowed"},
    [PROBLEM_FOREIGN_ORIGIN] = {403, "foreign_origin",
                                "Web page of another origin"},
    [PROBLEM_KEY_REFUSED] = {403, "key_refused", "Nodes refuse the key"},
    [PROBLEM_NOT_FOUND] = {404, "not_found", "No such path"},
    [PROBLEM_LOCK_NOT_FOUND] = {404, "lock_not_found", "No such lock"},
    [PROBLEM_CURSOR_EXPIRED] = {410, "cursor_expired", "Cursor has expired"},
    [PROBLEM_METHOD_NOT_ALLOWED] = {405, "method_not_allowed",
                                    "Method not allowed"},
    [PROBLEM_BODY_TOO_LARGE] = {413, "body_too_large", "Body too large"},
    [PROBLEM_UNSUPPORTED_MEDIA_TYPE] = {415, "unsupported_media_type",
                                        "Unsupported media type"},
    [PROBLEM_EXPECTATION_FAILED] = {417, "expectation_failed",
                                    "Expectation failed"},
    [PROBLEM_HOST_NOT_ALLOWED] = {421, "host_not_allowed", "Host not allowed"},
    [PROBLEM_HEAD_TOO_LARGE] = {431, "head_too_large",
                                "Header fields too large"},
    [PROBLEM_LOCK_HELD] = {409, "lock_held", "Lock is held"},
    [PROBLEM_TOO_MANY_READERS] = {409, "too_many_readers", "Too many readers"},
    [PROBLEM_NOT_OWNER] = {409, "not_owner", "Not the holder of the lock"},
    [PROBLEM_MAX_HOLD_REACHED] = {409, "max_hold_reached",
                                  "Maximum hold time reached"},
    [PROBLEM_UPGRADE_REFUSED] = {409, "upgrade_refused",
                                 "Shared lock cannot become exclusive"},
    [PROBLEM_TOO_MANY_WAITERS] = {429, "too_many_waiters", "Too many waiters"},
    [PROBLEM_RATE_LIMITED] = {429, "rate_limited", "Limit reached"},
    [PROBLEM_LOCK_QUOTA_EXCEEDED] = {429, "lock_quota_exceeded",
                                     "Too many locks"},
    [PROBLEM_NO_QUORUM] = {503, "no_quorum", "Not enough nodes"},
    [PROBLEM_VALIDITY_EXHAUSTED] = {503, "validity_exhausted",
                                    "No validity left"},
    [PROBLEM_OVERLOADED] = {503, "overloaded", "Overloaded"},
    [PROBLEM_AUDIT_UNAVAILABLE] = {503, "audit_unavailable",
                                   "Audit log cannot be written"},
    [PROBLEM_SHUTTING_DOWN] = {503, "shutting_down", "Shutting down"},
};

/* ---- faults ------------------------------------------------------------- */

/* A text that was cut must not end within a character. */
static void problem_trim(char *text)
{
    struct span rest = span_of(text);
    for (size_t len; (len = utf8_len(rest)) > 0; rest.len -= len)
        rest.ptr += len;
    text[rest.ptr - text] = '\0';
}

void faults_add(struct faults *errors, const char *pointer, const char *format,
                ...)
{
    if (errors->count == FAULTS_MAX)
        return;
    struct fault *error = &errors->list[errors->count++];
    va_list args;
    /* both may be cut: they are for people */
    if (errors->item > 0)
        (void)snprintf(error->pointer, sizeof error->pointer,
                       "/operations/%d%s", errors->item - 1, pointer);
    else
        (void)snprintf(error->pointer, sizeof error->pointer, "%s", pointer);
    va_start(args, format);
    (void)vsnprintf(error->detail, sizeof error->detail, format, args);
    va_end(args);
    problem_trim(error->pointer);
    problem_trim(error->detail);
}

/* ---- members ------------------------------------------------------------ */

static void put_errors(struct json *json, const struct faults *errors)
{
    json_open_array(json, "errors");
    for (int i = 0; i < errors->count; i++) {
        json_open_object(json, NULL);
        json_put_text(json, "in",
                      span_of(errors->in != NULL ? errors->in : "body"));
        json_put_text(json, "pointer", span_of(errors->list[i].pointer));
        json_put_text(json, "detail", span_of(errors->list[i].detail));
        json_close_object(json);
    }
    json_close_array(json);
}

/* A vote that speaks of the node's state has that state's reason. */
static void put_votes(struct json *json, const struct problem *problem)
{
    const struct engine_result *result = problem->votes;
    json_open_array(json, "nodes");
    for (int i = 0; i < result->total; i++) {
        struct engine_node_view view;
        struct ballot vote = result->votes[i];
        engine_view_node(problem->engine, i, &view);
        const char *detail = strcmp(view.state, ballot_name(vote)) == 0
                                 ? view.detail
                                 : ballot_detail(vote);
        json_open_object(json, NULL);
        json_put_text(json, "node", span_of(view.name));
        json_put_text(json, "vote", span_of(ballot_name(vote)));
        json_put_text(json, "detail", span_of(detail));
        json_close_object(json);
    }
    json_close_array(json);
}

static void put_members(struct json *json, const struct problem *problem,
                        const char *request_id)
{
    const struct problem_kind *kind = &problem_kinds[problem->code];
    char type[64];
    (void)snprintf(type, sizeof type, "urn:redlockd:problem:%s", kind->name);
    json_put_text(json, "type", span_of(type));
    json_put_text(json, "title", span_of(kind->title));
    json_put_integer(json, "status", kind->status);
    json_put_text(json, "code", span_of(kind->name));
    json_put_text(json, "detail", span_of(problem->detail));
    json_put_text(json, "request_id", span_of(request_id));
    if (problem->resource.len > 0)
        render_lock(json, problem->resource, false);
    if (problem->retry_after_ms > 0)
        json_put_integer(json, "retry_after_ms", problem->retry_after_ms);
    if (problem->waited_ms != NULL)
        json_put_integer(json, "waited_ms", *problem->waited_ms);
    if (problem->errors != NULL)
        put_errors(json, problem->errors);
    if (problem->held_by != NULL) {
        json_open_object(json, "held_by");
        render_holder(json, problem->held_by);
        json_close_object(json);
    }
    if (problem->votes != NULL)
        put_votes(json, problem);
    if (problem->states != NULL)
        render_node_list(json, problem->states);
}

/* ---- when to try again -------------------------------------------------- */

enum {
    HELD_LEAST_MS = 40, /* 16 clients then ask every 1.3 ms */
    EXTEND_PART = 10,   /* of the TTL */
};

int64_t retry_within_ms(int64_t range_ms)
{
    uint32_t random;
    random_bytes(&random, sizeof random);
    if (range_ms > RETRY_MAX_MS)
        range_ms = RETRY_MAX_MS;
    return range_ms <= 1 ? 1 : 1 + random % range_ms;
}

int64_t retry_held_ms(int64_t held_ms, int64_t remaining_ms)
{
    int64_t range_ms = RETRY_MAX_MS;
    if (held_ms >= 0 && held_ms < range_ms)
        range_ms = held_ms;
    if (remaining_ms >= 0 && remaining_ms < range_ms)
        range_ms = remaining_ms;
    return retry_within_ms(range_ms < HELD_LEAST_MS ? HELD_LEAST_MS : range_ms);
}

int64_t retry_extend_ms(int64_t ttl_ms)
{
    return retry_within_ms(ttl_ms / EXTEND_PART);
}

/* ---- answers ------------------------------------------------------------ */

/* Without memory the body is NULL. */
static void respond(const struct http_call *call, const struct problem *problem)
{
    const struct problem_kind *kind = &problem_kinds[problem->code];
    struct http_response *response = call->response;
    struct json json;
    response->status = kind->status;
    response->code = kind->name;
    response->retry_after_ms = problem->retry_after_ms;
    response->content_type = "application/problem+json";
    json_begin(&json);
    put_members(&json, problem, call->request->id);
    response->body = json_end(&json, &response->body_len);
}

void problem_respond(const struct http_call *call,
                     const struct problem *problem)
{
    respond(call, problem);
    if (call->response->body == NULL)
        problem_respond_overloaded(call, "not enough memory for the response");
}

void problem_respond_plain(const struct http_call *call, enum problem_code code,
                           const char *detail)
{
    const struct problem problem = {.code = code, .detail = detail};
    problem_respond(call, &problem);
}

void problem_respond_busy(const struct http_call *call, enum problem_code code,
                          const char *detail)
{
    const struct problem problem = {
        .code = code,
        .detail = detail,
        .retry_after_ms = retry_within_ms(RETRY_MAX_MS),
    };
    problem_respond(call, &problem);
}

void problem_respond_overloaded(const struct http_call *call,
                                const char *detail)
{
    const struct problem problem = {
        .code = PROBLEM_OVERLOADED,
        .detail = detail,
        .retry_after_ms = retry_within_ms(RETRY_MAX_MS),
    };
    respond(call, &problem);
}

void problem_respond_faults(const struct http_call *call,
                            const struct faults *errors)
{
    char many[PROBLEM_DETAIL_MAX];
    (void)snprintf(many, sizeof many, "%d fields are invalid, see errors",
                   errors->count);
    const struct problem problem = {
        .code = PROBLEM_INVALID_REQUEST,
        .detail = errors->count == 1 ? errors->list[0].detail : many,
        .errors = errors,
    };
    problem_respond(call, &problem);
}

void problem_respond_body(const struct http_call *call,
                          const struct faults *errors)
{
    if (errors->count == 0)
        problem_respond_overloaded(
            call, "not enough memory to read the body; nothing was done");
    else
        problem_respond_faults(call, errors);
}

void problem_respond_not_json(const struct http_call *call)
{
    problem_respond_plain(
        call, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
        "the body must have Content-Type: application/json; with curl, add "
        "-H 'Content-Type: application/json'");
}
