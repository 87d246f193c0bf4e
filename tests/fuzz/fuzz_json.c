/* SPDX-License-Identifier: MIT */
/*
 * A line with the call, a for acquire, e, r, or b for a batch, and then a
 * body. What is accepted is within the limits, and means the same when it is
 * written again; what is refused is answered by a problem that clients can
 * read.
 */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../api/message/body.h"
#include "../../api/message/id.h"
#include "../../api/message/json.h"
#include "../../api/message/jsonload.h"
#include "../../api/message/problem.h"
#include "../../server/engine/port/token.h"
#include "../../server/lock/names.h"
#include "input.h"

enum { TTL_MAX_MS = 60000 };

/* ---- accepted ----------------------------------------------------------- */

/* What an id could stand for. */
static void check_names(struct span names)
{
    char id[ID_MAX], back[NAMES_LEN_MAX];
    size_t len;
    assert(names.len >= 1 && names.len <= NAMES_LEN_MAX);
    struct span made = {id, id_encode(id, names)};
    bool is_id = id_decode(made, back, &len);
    assert(is_id && span_is_same((struct span){back, len}, names));
}

static void check_limits(const struct body *body, enum lock_call call)
{
    assert(body->has_resource + body->has_resources == (call == LOCK_ACQUIRE));
    assert(body->owner.ptr == NULL || call == LOCK_ACQUIRE);
    assert(body->token.ptr == NULL || call != LOCK_ACQUIRE);
    assert(body->ttl_ms == 0 || call != LOCK_RELEASE);
    if (body->has_resource)
        assert(id_check_resource(body->resource) == NULL);
    if (body->has_resources)
        check_names(body->resource);
    if (body->owner.ptr != NULL)
        assert(token_is_owner(body->owner));
    if (body->ttl_ms > 0)
        assert(body->ttl_ms >= TTL_MIN_MS && body->ttl_ms <= TTL_MAX_MS);
    assert(body->wait_ms >= 0 && body->wait_ms <= WAIT_MAX_MS);
    assert(body->wait_ms == 0 || call == LOCK_ACQUIRE);
}

static void put_names(struct json *json, struct span names)
{
    json_open_array(json, "resources");
    while (names.len > 0)
        json_put_text(json, NULL, names_next(&names));
    json_close_array(json);
}

static void write_again(const struct body *body, enum lock_call call)
{
    struct body again;
    struct faults errors;
    struct json json;
    size_t len;
    json_begin(&json);
    if (body->has_resource)
        json_put_text(&json, "resource", body->resource);
    if (body->has_resources)
        put_names(&json, body->resource);
    if (body->owner.ptr != NULL)
        json_put_text(&json, "owner", body->owner);
    if (body->token.ptr != NULL)
        json_put_text(&json, "token", body->token);
    if (body->ttl_ms > 0)
        json_put_integer(&json, "ttl_ms", body->ttl_ms);
    if (body->wait_ms > 0)
        json_put_integer(&json, "wait_ms", body->wait_ms);
    char *text = json_end(&json, &len);
    assert(text != NULL);
    bool is_good =
        body_read(&again, (struct span){text, len}, call, TTL_MAX_MS, &errors);
    assert(is_good && again.ttl_ms == body->ttl_ms &&
           again.wait_ms == body->wait_ms);
    assert(span_is_same(again.resource, body->resource) &&
           span_is_same(again.owner, body->owner) &&
           span_is_same(again.token, body->token));
    body_fini(&again);
    free(text);
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
    problem_respond(
        &(struct http_call){.request = &(struct http_request){.id = "id"},
                            .response = &response},
        &problem);
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
static void check_silence(const struct body *body, enum lock_call call,
                          const struct faults *errors)
{
    struct body other;
    struct faults others;
    if (!json_is_string(json_object_get(body->root, "token")))
        return;
    json_t *copy = json_copy(body->root);
    (void)json_object_set_new(copy, "token", json_string("other"));
    char *text = json_dumps(copy, 0);
    assert(text != NULL);
    bool is_good = body_read(&other, span_of(text), call, TTL_MAX_MS, &others);
    assert(!is_good && others.count == errors->count);
    for (int i = 0; i < errors->count; i++)
        assert(strcmp(others.list[i].detail, errors->list[i].detail) == 0);
    body_fini(&other);
    json_decref(copy);
    free(text);
}

static void check_text(struct span text, enum lock_call call)
{
    struct body body;
    struct faults errors;
    if (body_read(&body, text, call, TTL_MAX_MS, &errors)) {
        assert(errors.count == 0);
        check_limits(&body, call);
        write_again(&body, call);
    } else {
        check_errors(&errors);
        check_problem(&errors);
        check_silence(&body, call, &errors);
    }
    body_fini(&body);
}

/* ---- batches ------------------------------------------------------------ */

/* What was read as an operation is the same alone, but for what only an
 * operation has. */
static void check_item(const struct body *body)
{
    struct body alone = *body;
    if (body->call == LOCK_ACQUIRE) {
        check_limits(body, body->call);
    } else {
        assert(token_is_ours(body->token));
        check_names(body->resource);
        alone.has_resource = false;
        alone.resource = (struct span){0};
        check_limits(&alone, body->call);
    }
    write_again(&alone, body->call);
}

static void check_refused_item(const struct faults *errors, int n)
{
    char begin[sizeof "/operations/99"];
    check_errors(errors);
    check_problem(errors);
    (void)snprintf(begin, sizeof begin, "/operations/%d", n);
    for (int i = 0; i < errors->count; i++)
        assert(strncmp(errors->list[i].pointer, begin, strlen(begin)) == 0);
}

static void check_batch(struct span text)
{
    struct body_list list;
    struct faults errors;
    struct body body;
    if (!body_list_read(&list, text, &errors)) {
        check_errors(&errors);
        check_problem(&errors);
    } else {
        assert(errors.count == 0);
        assert(list.count >= 1 && list.count <= BODY_LIST_MAX);
        for (int n = 0; n < list.count; n++) {
            if (body_read_item(&list, n, &body, TTL_MAX_MS, &errors))
                check_item(&body);
            else
                check_refused_item(&errors, n);
            body_fini(&body);
        }
    }
    body_list_fini(&list);
}

/* ---- what this reads in jansson's place --------------------------------- */

static void check_load(struct span text)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
    json_error_t error;
    json_t *wanted = json_loadb(text.ptr, text.len, flags, &error);
    json_t *it = jsonload(text.ptr, text.len, flags, &error);
    assert((it == NULL) == (wanted == NULL));
    if (it != NULL) {
        char *one = json_dumps(it, JSON_ENCODE_ANY);
        char *other = json_dumps(wanted, JSON_ENCODE_ANY);
        assert(one != NULL && other != NULL && strcmp(one, other) == 0);
        free(one);
        free(other);
    }
    json_decref(it);
    json_decref(wanted);
}

void fuzz(struct input *input)
{
    const char *name = input_text(input);
    struct span text = input_rest(input);
    check_load(text);
    if (name[0] == 'b') {
        check_batch(text);
        return;
    }
    check_text(text, name[0] == 'e'   ? LOCK_EXTEND
                     : name[0] == 'r' ? LOCK_RELEASE
                                      : LOCK_ACQUIRE);
}
