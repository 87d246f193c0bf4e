/*
 * A line with the route, a for acquire, e, or r, and then a body. What is
 * accepted is within the limits, and means the same when it is written again;
 * what is refused is answered by a problem that clients can read.
 */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../api/id.h"
#include "../../api/json.h"
#include "../../api/problem.h"
#include "../../server/engine/token.h"
#include "input.h"

enum { TTL_MAX_MS = 60000 };

static bool is_same(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ---- accepted ----------------------------------------------------------- */

static void check_limits(const struct json_input *input, enum route route)
{
    assert(input->has_resource == (route == ROUTE_ACQUIRE));
    assert(!input->has_owner || route == ROUTE_ACQUIRE);
    assert(!input->has_token || route != ROUTE_ACQUIRE);
    assert(!input->has_ttl || route != ROUTE_RELEASE);
    if (input->has_resource)
        assert(id_check_resource(input->resource) == NULL);
    if (input->has_owner)
        assert(token_is_owner(input->owner));
    if (input->has_ttl)
        assert(input->ttl_ms >= TTL_MIN_MS && input->ttl_ms <= TTL_MAX_MS);
}

static void set(json_t *object, bool is_there, const char *name,
                struct span text)
{
    if (is_there)
        (void)json_object_set_new(object, name,
                                  json_stringn(text.ptr, text.len));
}

static void write_again(const struct json_input *input, enum route route)
{
    struct json_input again;
    struct faults errors;
    size_t len;
    json_t *object = json_object();
    set(object, input->has_resource, "resource", input->resource);
    set(object, input->has_owner, "owner", input->owner);
    set(object, input->has_token, "token", input->token);
    if (input->has_ttl)
        (void)json_object_set_new(object, "ttl_ms",
                                  json_integer(input->ttl_ms));
    char *body = json_render(object, &len);
    assert(body != NULL);
    bool is_good = json_parse(&again, (struct span){body, len}, route,
                              TTL_MAX_MS, &errors);
    assert(is_good && again.has_ttl == input->has_ttl &&
           again.ttl_ms == input->ttl_ms);
    assert(is_same(again.resource, input->resource) &&
           is_same(again.owner, input->owner) &&
           is_same(again.token, input->token));
    json_input_fini(&again);
    free(body);
}

/* ---- refused ------------------------------------------------------------ */

static void check_errors(const struct faults *errors)
{
    assert(errors->count >= 1 && errors->count <= FAULTS_MAX);
    for (int i = 0; i < errors->count; i++) {
        const char *pointer = errors->list[i].pointer;
        assert(pointer[0] == '\0' || pointer[0] == '/');
        assert(errors->list[i].detail[0] != '\0');
    }
}

/* jansson reads UTF-8 alone. */
static void check_problem(const struct faults *errors)
{
    struct http_response response;
    struct problem problem = {.code = PROBLEM_INVALID_REQUEST,
                              .detail = errors->list[0].detail,
                              .errors = errors};
    http_response_init(&response);
    problem_respond(&problem, "id", &response);
    assert(response.status == 400 && response.body != NULL);
    assert(response.body[response.body_len - 1] == '\n');
    json_t *root = json_loadb(response.body, response.body_len,
                              JSON_REJECT_DUPLICATES, NULL);
    const json_t *list = json_object_get(root, "errors");
    assert((int)json_array_size(list) == errors->count);
    for (int i = 0; i < errors->count; i++) {
        const json_t *error = json_array_get(list, (size_t)i);
        const json_t *pointer = json_object_get(error, "pointer");
        const json_t *detail = json_object_get(error, "detail");
        assert(strcmp(json_string_value(pointer), errors->list[i].pointer) ==
               0);
        assert(strcmp(json_string_value(detail), errors->list[i].detail) == 0);
    }
    json_decref(root);
    free(response.body);
}

/* Whatever a token is, the errors are the same. */
static void check_silence(const struct json_input *input, enum route route,
                          const struct faults *errors)
{
    struct json_input other;
    struct faults others;
    size_t len;
    if (!json_is_string(json_object_get(input->root, "token")))
        return;
    json_t *copy = json_copy(input->root);
    (void)json_object_set_new(copy, "token", json_string("other"));
    char *body = json_render(copy, &len);
    assert(body != NULL);
    bool is_good = json_parse(&other, (struct span){body, len}, route,
                              TTL_MAX_MS, &others);
    assert(!is_good && others.count == errors->count);
    for (int i = 0; i < errors->count; i++)
        assert(strcmp(others.list[i].detail, errors->list[i].detail) == 0);
    json_input_fini(&other);
    free(body);
}

static void check_body(struct span body, enum route route)
{
    struct json_input input;
    struct faults errors;
    if (json_parse(&input, body, route, TTL_MAX_MS, &errors)) {
        assert(errors.count == 0);
        check_limits(&input, route);
        write_again(&input, route);
    } else {
        check_errors(&errors);
        check_problem(&errors);
        check_silence(&input, route, &errors);
    }
    json_input_fini(&input);
}

void fuzz(struct input *input)
{
    const char *route = input_text(input);
    struct span body = input_rest(input);
    check_body(body, route[0] == 'e'   ? ROUTE_EXTEND
                     : route[0] == 'r' ? ROUTE_RELEASE
                                       : ROUTE_ACQUIRE);
}
