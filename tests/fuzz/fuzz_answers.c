/* SPDX-License-Identifier: MIT */
/*
 * Lines: resource, owner, the value of a foreign lock, numbers. Each answer is
 * JSON that another reader takes, and says what was to be said.
 */
#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../api/message/id.h"
#include "../../api/message/render.h"
#include "../../server/engine/port/token.h"
#include "../../server/lock/names.h"
#include "input.h"

struct numbers {
    int64_t number;
    int64_t remaining_ms;
    int64_t validity_ms;
    struct render_times times;
    int64_t waited_ms;
    int votes;
};

/* jansson takes UTF-8 alone. */
static json_t *load(char *body, size_t len)
{
    assert(body != NULL && len > 0 && body[len - 1] == '\n');
    json_t *root = json_loadb(body, len, JSON_REJECT_DUPLICATES, NULL);
    assert(root != NULL);
    free(body);
    return root;
}

static void check_text(const json_t *root, const char *name, struct span text)
{
    const json_t *value = json_object_get(root, name);
    assert(json_string_length(value) == text.len);
    assert(text.len == 0 ||
           memcmp(json_string_value(value), text.ptr, text.len) == 0);
}

static void check_integer(const json_t *root, const char *name, int64_t number)
{
    const json_t *value = json_object_get(root, name);
    assert(json_is_integer(value) && json_integer_value(value) == number);
}

/* What every answer says of the lock. */
static void check_lock(const json_t *root, const struct engine_result *result,
                       const char *votes)
{
    char id[ID_MAX];
    struct span pool;
    int slot = names_slot(result->resource, &pool);
    const json_t *slots = json_object_get(root, "slots");
    check_text(root, "resource", slot >= 0 ? pool : result->resource);
    assert(json_array_size(slots) == (slot >= 0));
    assert(slot < 0 || json_integer_value(json_array_get(slots, 0)) == slot);
    check_text(root, "id", (struct span){id, id_encode(id, result->resource)});
    check_integer(json_object_get(root, "nodes"), votes, result->votes_for);
}

static void check_grant(const struct engine_result *result,
                        const struct render_times *times)
{
    size_t len;
    char *body = render_grant(result, times, &len);
    json_t *root = load(body, len);
    check_lock(root, result, "granted");
    check_text(root, "token", result->token);
    check_integer(root, "fencing_token", result->number);
    check_integer(root, "validity_ms", result->validity_ms);
    check_integer(root, "elapsed_ms", times->elapsed_ms);
    check_integer(root, "renew_after_ms", times->renew_after_ms);
    check_integer(root, "waited_ms", *times->waited_ms);
    check_text(root, "owner", result->owner);
    json_decref(root);
}

static void check_release(const struct engine_result *result)
{
    size_t len;
    char *body = render_release(result, &len);
    json_t *root = load(body, len);
    check_lock(root, result, "released");
    assert(json_is_true(json_object_get(root, "released")));
    json_decref(root);
}

/* Of a lock with this value, which may be anybody's. */
static void check_inspect(const struct engine_result *mine, struct span value)
{
    size_t len;
    struct engine_result result = {.resource = mine->resource,
                                   .remaining_ms = mine->remaining_ms,
                                   .waiters = mine->waiters,
                                   .votes_for = mine->votes_for};
    result_report_token(&result, value);
    assert((result.number > 0) == token_is_ours(value));
    char *body = render_inspect(&result, 0, &len);
    json_t *root = load(body, len);
    check_lock(root, &result, "held");
    check_text(root, "owner", result.owner);
    check_integer(root, "waiters", result.waiters);
    assert((json_object_get(root, "fencing_token") != NULL) ==
           (result.number > 0));
    assert((json_object_get(root, "remaining_ms") != NULL) ==
           (result.remaining_ms >= 0));
    json_decref(root);
}

static void check_answers(struct span resource, struct span owner,
                          struct span value, const struct numbers *numbers)
{
    static const unsigned char random[TOKEN_RANDOM_BYTES] = {1};
    char token[TOKEN_MAX];
    struct engine_result result = {
        .resource = resource,
        .owner = token_is_owner(owner) ? owner : span_of(""),
        .number = (numbers->number & FENCE_MAX) | 1,
        .remaining_ms = numbers->remaining_ms,
        .validity_ms = numbers->validity_ms,
        .votes_for = numbers->votes,
        .waiters = (int)numbers->waited_ms,
    };
    result.token = (struct span){
        token, token_make(token, random,
                          &(struct token_parts){.number = result.number,
                                                .owner = result.owner})};
    check_grant(&result, &numbers->times);
    check_release(&result);
    check_inspect(&result, value);
}

void fuzz(struct input *input)
{
    struct numbers numbers;
    struct span resource = input_line(input);
    struct span owner = input_line(input);
    struct span value = input_line(input);
    numbers.number = input_number(input);
    numbers.remaining_ms = input_number(input);
    numbers.validity_ms = input_number(input);
    numbers.times.elapsed_ms = input_number(input);
    numbers.times.renew_after_ms = input_number(input);
    numbers.votes = (int)input_number(input);
    numbers.waited_ms = input_number(input);
    numbers.times.waited_ms = &numbers.waited_ms;
    numbers.times.limit = 0;
    if (id_is_name(resource))
        check_answers(resource, owner, value, &numbers);
}
