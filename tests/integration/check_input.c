/*
 * Bad input: each row gets its status and code, and the server goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

WORLD(world_start, 1, "");
static const struct server *const server = &world.servers[0];

/* Every bad request is followed by a good one, on the same connection too. */
static void next_request_works(void)
{
    lock_expect_cycle(server, "input:next");
}

/* ---- bodies ------------------------------------------------------------- */

static const struct {
    const char *body;
    const char *pointer; /* of the member at fault; NULL: the whole body */
} bodies[] = {
    {"{", NULL},
    {"{\"resource\":\"x\"} x", NULL},
    {"{\"resource\":\"x\"}{}", NULL},
    {"[]", NULL},
    {"[{\"resource\":\"x\"}]", NULL},
    {"\"x\"", NULL},
    {"null", "/resource"},
    {"{\"resource\":\"x\",\"resource\":\"y\"}", NULL},
    {"{\"resource\":\"x\",}", NULL},
    {"{'resource':'x'}", NULL},
    {"{\"resource\":\"\xff\xfe\"}", NULL},
    {"{\"resource\":\"\xc0\xaf\"}", NULL},
    {"{\"resource\":\"\\ud800\"}", NULL},
    {"{\"resource\":\"\\udc00x\"}", NULL},
    {"{\"resource\":\"x\",\"ttl_ms\":9223372036854775808}", NULL},
    {"{\"resource\":\"x\",\"ttl_ms\":1e400}", NULL},
    {"{}", "/resource"},
    {"{\"ttl_ms\":1000}", "/resource"},
    {"{\"resource\":\"x\",\"unknown\":1}", "/unknown"},
    {"{\"resource\":\"x\",\"TTL_MS\":1000}", "/TTL_MS"},
    {"{\"resource\":\"\"}", "/resource"},
    {"{\"resource\":1}", "/resource"},
    {"{\"resource\":null}", "/resource"},
    {"{\"resource\":[\"x\"]}", "/resource"},
    {"{\"resource\":\"a\\u0000b\"}", NULL},
    {"{\"resource\":\"a\\u001fb\"}", "/resource"},
    {"{\"resource\":\"a\\nb\"}", "/resource"},
    {"{\"resource\":\"a\\u007fb\"}", "/resource"},
    {"{\"resource\":\"redlockd:x\"}", "/resource"},
    {"{\"resource\":\"redlockd:\"}", "/resource"},
    {"{\"resource\":\"other:redlockd:state\"}", "/resource"},
    {"{\"resource\":\"x\",\"ttl_ms\":0}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":-1}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":99}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":60001}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":9223372036854775807}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":1.5}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":1000.0}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":\"1000\"}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":true}", "/ttl_ms"},
    {"{\"resource\":\"x\",\"owner\":\"a b\"}", "/owner"},
    {"{\"resource\":\"x\",\"owner\":\"\"}", "/owner"},
    {"{\"resource\":\"x\",\"owner\":7}", "/owner"},
    {"{\"resource\":\"x\",\"owner\":\"caf\xc3\xa9\"}", "/owner"},
    {"{\"resource\":\"x\",\"owner\":\"a+b\"}", "/owner"},
    {"{\"resource\":\"x\",\"token\":\"y\"}", "/token"},
    {"{\"resource\":\"x\",\"wait_ms\":-1}", "/wait_ms"},
    {"{\"resource\":\"x\",\"wait_ms\":45001}", "/wait_ms"},
    {"{\"resource\":\"x\",\"wait_ms\":100.5}", "/wait_ms"},
    {"{\"resource\":\"x\",\"wait_ms\":\"100\"}", "/wait_ms"},
    {"{\"resources\":\"x\"}", "/resources"},
};

/* True if one of the problem's errors has this pointer. */
static bool has_pointer(const struct answer *answer, const char *pointer)
{
    json_t *errors = json_object_get(answer->json, "errors");
    json_t *error;
    size_t i;

    json_array_foreach(errors, i, error)
    {
        const char *text = json_string_value(json_object_get(error, "pointer"));
        if (text && strcmp(text, pointer) == 0)
            return json_is_string(json_object_get(error, "detail"));
    }
    return false;
}

SUITE(input, .timeout_s = 60, WORLD_ONCE);

TEST_EACH(bad_body_is_400_and_names_the_member, bodies)
{
    const struct answer *a = HTTP(server, .method = "POST", .path = "/locks",
                                  .json = bodies[_i].body);

    answer_expect(a, 400, "invalid_request");
    if (bodies[_i].pointer)
        ck_assert_msg(has_pointer(a, bodies[_i].pointer), "no %s in %s",
                      bodies[_i].pointer, a->body);
    next_request_works();
}

static const struct {
    const char *form;
    const char *unit;
    int count;
    const char *code;
} long_bodies[] = {
    {"{\"resource\":\"#\"}", "x", 256, "invalid_request"},
    {"{\"resource\":\"#\"}", "\xc3\xa9", 256, "invalid_request"},
    {"{\"resource\":\"x\",\"owner\":\"#\"}", "x", 65, "invalid_request"},
    {"{\"resource\":\"x\",\"ttl_ms\":#}", "9", 400, "invalid_request"},
    {"#", "[", 2000, "invalid_request"},
    {"{\"resource\":#}", "[", 2000, "invalid_request"},
    {"#", "{\"a\":", 2000, "invalid_request"},
    {"{#\"resource\":\"x\"}", " ", 16300, NULL},
};

TEST_EACH(long_body_is_checked, long_bodies)
{
    char *body = harness_repeat(long_bodies[_i].form, long_bodies[_i].unit,
                                long_bodies[_i].count);
    const struct answer *a =
        HTTP(server, .method = "POST", .path = "/locks", .json = body);

    if (long_bodies[_i].code)
        answer_expect(a, 400, long_bodies[_i].code);
    else
        ck_assert_int_eq(a->status, 201);
    if (a->status == 201) {
        struct lock lock = {.path = "/locks/x"};
        snprintf(lock.token, sizeof lock.token, "%s", answer_text(a, "token"));
        answer_expect(lock_release(server, &lock), 200, NULL);
    }
    free(body);
    next_request_works();
}

TEST(longest_resource_and_owner_are_accepted)
{
    char *body = harness_repeat(
        "{\"resource\":\"#\",\"owner\":\"az.AZ:09@/-_\"}", "x", 255);
    const struct answer *a = answer_expect(
        HTTP(server, .method = "POST", .path = "/locks", .json = body), 201,
        NULL);
    free(body);
    body =
        harness_repeat("{\"resource\":\"owner64\",\"owner\":\"#\"}", "o", 64);
    a = HTTP(server, .method = "POST", .path = "/locks", .json = body);
    answer_expect(a, 201, NULL);
    free(body);
}

TEST(empty_body_is_400)
{
    const struct answer *a =
        answer_expect(HTTP(server, .method = "POST", .path = "/locks",
                           .headers = {"Content-Type: application/json"}),
                      400, "invalid_request");
    a = HTTP(server, .method = "POST", .path = "/locks", .json = "");
    answer_expect(a, 400, "invalid_request");
    next_request_works();
}

static const char *const types[] = {
    "Content-Type: application/x-www-form-urlencoded",
    "Content-Type: text/plain",
    "Content-Type: application/jsonx",
    "Content-Type: application/json+x",
    "Content-Type;", /* curl: sent, but empty */
    "Content-Type:", /* curl: not sent */
};

TEST_EACH(other_content_type_is_415_and_names_json, types)
{
    const struct answer *a = answer_expect(
        HTTP(server, .method = "POST", .path = "/locks",
             .json = "{\"resource\":\"x\"}", .headers = {types[_i]}),
        415, "unsupported_media_type");
    ck_assert_has(answer_text(a, "detail"), "-H 'Content-Type");
    next_request_works();
}

static const char *const bad_keys[] = {
    "Idempotency-Key: 1",
    "Idempotency-Key: fifteen-letters",
    "Idempotency-Key: with a blank in it",
    "Idempotency-Key: 0123456789abcdef, 0123456789abcdef",
    "Idempotency-Key: \"0123456789abcdef",
    "Idempotency-Key: \"fifteen-letters\"",
    "Idempotency-Key: caf\xc3\xa9-0123456789abcdef",
    ("Idempotency-Key: "
     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef-"),
};

TEST_EACH(a_bad_idempotency_key_is_refused, bad_keys)
{
    const struct answer *a = answer_expect(
        HTTP(server, .method = "POST", .path = "/locks",
             .json = "{\"resource\":\"x\"}", .headers = {bad_keys[_i]}),
        400, "invalid_request");
    ck_assert_has(answer_text(a, "detail"), "Idempotency-Key");
    next_request_works();
}

static const char *const places[][2] = {
    {"Idempotency-Key: {0123456789abcdef}", "its byte 1 is {"},
    {"Idempotency-Key: urn:uuid:0123456789abcdef", "its byte 4 is :"},
    {"Idempotency-Key: W/\"0123456789abcdef\"", "its byte 2 is /"},
    {"Idempotency-Key: '0123456789abcdef'", "its byte 1 is '"},
};

TEST_EACH(the_wrong_byte_of_an_idempotency_key_is_told, places)
{
    const struct answer *a = answer_expect(
        HTTP(server, .method = "POST", .path = "/locks",
             .json = "{\"resource\":\"x\"}", .headers = {places[_i][0]}),
        400, "invalid_request");
    ck_assert_has(answer_text(a, "detail"), places[_i][1]);
    next_request_works();
}

static const char *const harmless[] = {
    "Idempotency-Key: \"0123456789abcdef\";a=1",
    "Idempotency-Key: \"0123456789abcdef\" ; a",
    "Content-Type: application/json,application/json",
    "Content-Type: application/json, application/json; charset=utf-8",
};

TEST_EACH(what_is_harmless_in_a_head_is_taken, harmless)
{
    answer_expect(HTTP(server, .method = "POST", .path = "/locks",
                       .json = textf("{\"resource\":\"harmless:%d\"}", _i),
                       .headers = {harmless[_i]}),
                  201, NULL);
}

TEST(two_idempotency_keys_are_refused)
{
    static const char key[] = "Idempotency-Key: 0123456789abcdef";
    answer_expect(HTTP(server, .method = "POST", .path = "/locks",
                       .json = "{\"resource\":\"x\"}", .headers = {key, key}),
                  400, "bad_request");
    next_request_works();
}

TEST(body_above_16_kib_is_413)
{
    char *body = harness_repeat("{#\"resource\":\"x\"}", " ", 16384 + 1 - 16);

    ck_assert_uint_eq(strlen(body), 16385);
    const struct answer *a =
        HTTP(server, .method = "POST", .path = "/locks", .json = body);
    answer_expect(a, 413, "body_too_large");
    next_request_works();
    a = HTTP(server, .method = "POST", .path = "/locks", .json = body,
             .headers = {"Transfer-Encoding: chunked"});
    answer_expect(a, 413, "body_too_large");
    next_request_works();
    free(body);
    body = harness_repeat("#", " ", 200000);
    a = HTTP(server, .method = "POST", .path = "/locks", .json = body);
    answer_expect(a, 413, "body_too_large");
    free(body);
    next_request_works();
}

TEST(chunked_body_works)
{
    answer_expect(HTTP(server, .method = "POST", .path = "/locks",
                       .json = "{\"resource\":\"input:chunked\"}",
                       .headers = {"Transfer-Encoding: chunked"}),
                  201, NULL);
}

/* ---- ids ---------------------------------------------------------------- */

static const char *const bad_ids[] = {
    "a%00b",
    "%zz",
    "a%",
    "a%4",
    "~",
    "~YQ",
    "~YS9",
    "~YS9j!",
    "~YSB",
    "~YS9i=",
    "~YS9iAA",
    "~~YS9i",
    "~cmVkbG9ja2Q6eA",
    "..",
    ".",
    "%2e%2e",
    "~AA",
    "~_w",
    "redlockd:x",
    "other:redlockd:x",
    "~YS9yZWRsb2NrZDpzdGF0ZQ",
    "~Lh",
    "~YSBi%0A",
    "~cB8wMQ",      /* of a slot, U+001F being _: p_01 */
    "~cB8xMDAw",    /* p_1000 */
    "~HzE",         /* _1 */
    "~cB8",         /* p_ */
    "~~cB8xCnE",    /* p_1, q */
    "~~cB8xCnEfMQ", /* two pools */
    "~~cB8yCnAfMQ", /* p_2 before p_1 */
    "p%1F1",
};

TEST_EACH(bad_or_non_canonical_id_is_400, bad_ids)
{
    char path[128];

    snprintf(path, sizeof path, "/locks/%s", bad_ids[_i]);
    const struct answer *a = HTTP(server, .method = "GET", .path = path);
    answer_expect(a, 400, "invalid_request");
    a = HTTP(server, .method = "DELETE", .path = path, .token = MADE_UP_TOKEN);
    answer_expect(a, 400, "invalid_request");
    snprintf(path, sizeof path, "/locks/%s/extend", bad_ids[_i]);
    a = HTTP(server, .method = "PUT", .path = path, .token = MADE_UP_TOKEN);
    answer_expect(a, 400, "invalid_request");
    next_request_works();
}

TEST(id_of_256_characters_is_400)
{
    char *path = harness_repeat("/locks/#", "x", 256);

    answer_expect(HTTP(server, .method = "GET", .path = path), 400,
                  "invalid_request");
    free(path);
    path = harness_repeat("/locks/#", "x", 5000);
    answer_expect(HTTP(server, .method = "GET", .path = path), 400,
                  "invalid_request");
    free(path);
    next_request_works();
}

/* ---- tokens ------------------------------------------------------------- */

static const char *const bad_tokens[] = {
    "{\"token\":\"\"}",
    "{\"token\":\"a b\"}",
    "{\"token\":\"a\\u0001\"}",
    "{\"token\":\"\xc3\xa9\"}",
    "{\"token\":5}",
    "{\"token\":\"t\"}",
    "{\"token\":\"" MADE_UP_TOKEN " \"}",
    "{\"token\":\"" MADE_UP_TOKEN "\\u0000\"}",
    "{\"token\":\"" MADE_UP_TOKEN "\",\"resource\":\"x\"}",
    "{\"token\":\"" MADE_UP_TOKEN "\",",
    "[]",
};

TEST_EACH(bad_token_is_400, bad_tokens)
{
    const char *body = bad_tokens[_i];

    answer_expect(
        HTTP(server, .method = "PUT", .path = "/locks/x/extend", .json = body),
        400, "invalid_request");
    answer_expect(
        HTTP(server, .method = "DELETE", .path = "/locks/x", .json = body), 400,
        "invalid_request");
    next_request_works();
}

TEST(long_token_is_400)
{
    char *token = harness_repeat(MADE_UP_TOKEN ".#", "t", 65);

    answer_expect(HTTP(server, .method = "PUT", .path = "/locks/x/extend",
                       .token = token),
                  400, "invalid_request");
    token[strlen(token) - 1] = '\0';
    answer_expect(HTTP(server, .method = "PUT", .path = "/locks/x/extend",
                       .token = token),
                  404, "lock_not_found");
    answer_expect(
        HTTP(server, .method = "DELETE", .path = "/locks/x", .token = "a b"),
        400, "invalid_request");
    free(token);
    next_request_works();
}
