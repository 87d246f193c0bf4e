/*
 * Who may ask what: tokens, scopes, prefixes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define KEY "Idempotency-Key: 6f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e"

enum { N = 3, SOON_MS = 9000 };

static struct world world;
static struct server *const server = &world.servers[0];
static char path[PATH_SIZE];

static void start(void)
{
    auth_start(&world, N, path);
}

static void finish(void)
{
    auth_finish(&world);
}

/* ---- 401 ---------------------------------------------------------------- */

static const struct {
    const char *method, *path, *json;
} calls[] = {
    {"POST", "/locks", "{\"resource\":\"r/a\"}"},
    {"POST", "/locks", "{"},
    {"PUT", "/locks/a/extend", "{}"},
    {"DELETE", "/locks/a", NULL},
    {"DELETE", "/locks/a?force=1", NULL},
    {"GET", "/locks/a", NULL},
    {"HEAD", "/locks/a", NULL},
    {"GET", "/locks", NULL},
    {"GET", "/nodes", NULL},
    {"GET", "/metrics", NULL},
    {"GET", "/locks/~", NULL},
};

SUITE(auth, .timeout_s = 60, .set_up_once = start, .tear_down_once = finish);

TEST_EACH(who_is_not_known_is_refused, calls)
{
    for (int i = 0; i < 2; i++) {
        const struct answer *a =
            AUTH(server, i == 0 ? NULL : "reds", .method = calls[_i].method,
                 .path = calls[_i].path, .json = calls[_i].json);
        ck_assert_int_eq(a->status, 401);
        ck_assert_str_eq(
            answer_header(a, "WWW-Authenticate"),
            i == 0 ? "Bearer realm=\"redlockd\""
                   : "Bearer realm=\"redlockd\", error=\"invalid_token\"");
        ck_assert_ptr_null(answer_header(a, "Connection"));
        if (a->json != NULL)
            answer_expect(a, 401, "unauthorized");
    }
}

static const char *const open_paths[] = {
    "/livez",   "/readyz",   "/",     "/page.css",
    "/page.js", "/page.svg", "/docs", "/openapi.yaml",
};

TEST_EACH(some_paths_are_open, open_paths)
{
    ck_assert_int_eq(http_probe(server, open_paths[_i]), 200);
}

#define ASK(authorization)                                                     \
    "GET /nodes HTTP/1.1\r\nHost: x\r\n" authorization "\r\n"

static const struct {
    const char *text;
    int status;
} heads[] = {
    {ASK("Authorization: Bearer red\r\n"), 200},
    {ASK("authorization:bearer red\r\n"), 200},
    {ASK("AUTHORIZATION: \tBEARER    red  \t \r\n"), 200},
    {ASK("Authorization: Bearer red\r\nAuthorization: Bearer red\r\n"), 400},
    {ASK("Authorization: Bearer red\r\nauthorization: Bearer x\r\n"), 400},
    {ASK("Authorization:\r\n"), 401},
    {ASK("Authorization: \r\n"), 401},
    {ASK("Authorization: Bearer\r\n"), 401},
    {ASK("Authorization: Bearer \r\n"), 401},
    {ASK("Authorization: Basic cmVkOnJlZA==\r\n"), 401},
    {ASK("Authorization: red\r\n"), 401},
    {ASK("Authorization: Bearer red green\r\n"), 401},
    {ASK("Authorization: Bearer red,Bearer red\r\n"), 401},
    {ASK("Authorization: Bearer \"red\"\r\n"), 401},
    {ASK("Authorization: Bearer Red\r\n"), 401},
    {ASK("Authorization: Bearer re\r\n"), 401},
    {ASK("Authorization: Bearer red\x01\r\n"), 400},
    {ASK("Authorization : Bearer red\r\n"), 400},
    {ASK("Proxy-Authorization: Bearer red\r\n"), 401},
    {ASK("X-Authorization: Bearer red\r\n"), 401},
    {ASK("Cookie: Authorization=Bearer red\r\n"), 401},
    {"GET /nodes?access_token=red HTTP/1.1\r\nHost: x\r\n\r\n", 401},
    {"GET http://x/nodes HTTP/1.1\r\nHost: x\r\n\r\n", 401},
    {"GET /nodes HTTP/1.0\r\n\r\n", 401},
    {"GET //nodes HTTP/1.1\r\nHost: x\r\n\r\n", 404},
    {"GET /./nodes HTTP/1.1\r\nHost: x\r\n\r\n", 404},
    {"GET /livez/../nodes HTTP/1.1\r\nHost: x\r\n\r\n", 404},
    {"GET /%6eodes HTTP/1.1\r\nHost: x\r\n\r\n", 404},
};

TEST_EACH(a_head_is_read_in_one_way, heads)
{
    char out[8192];
    int status = raw_status(server, heads[_i].text, strlen(heads[_i].text), out,
                            sizeof out);
    ck_assert_msg(status == heads[_i].status, "%d for %s", status,
                  heads[_i].text);
}

/* Whatever the library makes of it, it is not another token. */
TEST(a_folded_head_opens_nothing)
{
    static const char *const folded[] = {
        ASK("Authorization: Bearer re\r\n d\r\n"),
        ASK("Authorization: Bearer\r\n x\r\n red\r\n"),
        ASK("X-A: b\r\n Authorization: Bearer red\r\n"),
        ASK("X-A: b\rAuthorization: Bearer red\r\n"),
        ASK("X-A: b\nAuthorization: Bearer red\r\n"),
    };
    char out[8192];
    for (size_t i = 0; i < COUNT(folded); i++) {
        int status =
            raw_status(server, folded[i], strlen(folded[i]), out, sizeof out);
        ck_assert_msg(status == 400 || status == 401, "%d for %s", status,
                      folded[i]);
    }
}

TEST(a_long_token_is_refused)
{
    static const int lengths[] = {64, 1000, 5000, 10000, 100000};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        char out[8192];
        char *text = harness_repeat(ASK("Authorization: Bearer red#\r\n"), "a",
                                    lengths[i]);
        int status = raw_status(server, text, strlen(text), out, sizeof out);
        ck_assert_msg(status == 401 || (lengths[i] > 5000 && status == 431),
                      "%d", status);
        free(text);
    }
}

/* ---- bodies of what is refused ------------------------------------------ */

static void ask_twice(int body_len, const char *fields, bool is_kept)
{
    static const char next[] = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    char head[256], out[8192];
    char *body = harness_repeat("#", "x", body_len);
    int fd = raw_connect(server);
    snprintf(head, sizeof head,
             "POST /locks HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n",
             body_len, fields);
    raw_send(fd, head, strlen(head));
    if (is_kept)
        raw_send(fd, body, (size_t)body_len);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg(strncmp(out, "HTTP/1.1 401 ", 13) == 0, "%s", out);
    ck_assert((strstr(out, "Connection: close") == NULL) == is_kept);
    raw_send(fd, next, sizeof next - 1);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg((strstr(out, "alive") != NULL) == is_kept, "%s", out);
    close(fd);
    free(body);
}

TEST(a_refusal_keeps_the_connection_if_the_body_is_small)
{
    ask_twice(0, "", true);
    ask_twice(2, "Content-Type: application/json\r\n", true);
    ask_twice(16384, "", true);
    ask_twice(16385, "", false);
    ask_twice(2000000, "", false);
    ask_twice(5, "Expect: 100-continue\r\n", false);
}

/* ---- 403 ---------------------------------------------------------------- */

TEST(scopes_are_needed)
{
    struct lock lock;
    answer_expect(AUTH(server, "red", .method = "GET", .path = "/metrics"), 403,
                  "forbidden");
    answer_expect(auth_acquire(server, "red", "{\"resource\":\"r/f\"}", &lock),
                  201, NULL);
    const char *target =
        textf("%s?force=%lld", lock.path, (long long)lock.number);
    answer_expect(AUTH(server, "red", .method = "DELETE", .path = target), 403,
                  "forbidden");
    answer_expect(AUTH(server, "blue", .method = "DELETE", .path = target), 200,
                  NULL);
}

static const struct {
    const char *json;
    int status; /* for red */
} acquires[] = {
    {"{\"resource\":\"r/1\"}", 201},
    {"{\"resource\":\"shared /1\"}", 201},
    {"{\"resource\":\"r/../g/1\"}", 201},
    {"{\"resource\":\"\\u0072/2\"}", 201},
    {"{\"resources\":[\"r/4\",\"r/3\",\"shared /2\"]}", 201},
    {"{\"resource\":\"r\"}", 403},
    {"{\"resource\":\"R/1\"}", 403},
    {"{\"resource\":\"/r/1\"}", 403},
    {"{\"resource\":\"g/1\"}", 403},
    {"{\"resource\":\"r%2F1\"}", 403},
    {"{\"resource\":\"\\u0280/1\"}", 403},
    {"{\"resources\":[\"r/5\",\"g/5\"]}", 403},
    {"{\"resources\":[\"g/5\",\"r/5\"]}", 403},
    {"{\"resources\":[\"r/5\",\"r/6\",\"s\",\"shared /5\"]}", 403},
    {"{\"resource\":\"g/1\",\"resources\":[\"r/1\"]}", 400},
    {"{\"resource\":\"r/\\nx\"}", 400},
    {"{\"resource\":\"r/\\u0000\"}", 400},
};

TEST_EACH(acquires_need_a_prefix, acquires)
{
    struct lock lock;
    const struct answer *a =
        auth_acquire(server, "red", acquires[_i].json, &lock);
    ck_assert_msg(a->status == acquires[_i].status, "%s: %s", acquires[_i].json,
                  a->body);
    if (a->status == 403)
        answer_expect(a, 403, "forbidden");
    if (a->status == 201)
        answer_expect(auth_release(server, "red", &lock), 200, NULL);
}

TEST(ids_need_a_prefix)
{
    struct lock lock;
    answer_expect(
        auth_acquire(server, "blue", "{\"resources\":[\"r/9\",\"z\"]}", &lock),
        201, NULL);
    answer_expect(AUTH(server, "red", .method = "GET", .path = lock.path), 403,
                  "forbidden");
    answer_expect(auth_release(server, "red", &lock), 403, "forbidden");
    const char *target = textf("%s/extend", lock.path);
    answer_expect(AUTH(server, "red", .method = "PUT", .path = target,
                       .token = lock.token),
                  403, "forbidden");
    answer_expect(auth_release(server, "blue", &lock), 200, NULL);
    answer_expect(AUTH(server, "red", .method = "GET", .path = "/locks/%67"),
                  403, "forbidden");
}

TEST(a_locks_token_is_good_for_all_within_the_prefix)
{
    struct lock lock;
    answer_expect(
        auth_acquire(server, "red", "{\"resource\":\"shared /t\"}", &lock), 201,
        NULL);
    const char *target = textf("%s/extend", lock.path);
    answer_expect(AUTH(server, "green", .method = "PUT", .path = target,
                       .token = lock.token),
                  200, NULL);
    answer_expect(auth_release(server, "green", &lock), 200, NULL);
}

/* ---- owner and key ------------------------------------------------------ */

TEST(the_identity_is_the_owner)
{
    struct lock lock;
    const struct answer *a =
        auth_acquire(server, "red", "{\"resource\":\"r/o\"}", &lock);
    ck_assert_str_eq(answer_text(a, "owner"), "red");
    a = AUTH(server, "blue", .method = "POST", .path = "/locks",
             .json = "{\"resource\":\"r/o\"}");
    answer_expect(a, 409, "lock_held");
    ck_assert_str_eq(answer_text(a, "held_by.owner"), "red");
    answer_expect(auth_release(server, "red", &lock), 200, NULL);
    a = auth_acquire(server, "red", "{\"resource\":\"r/o\",\"owner\":\"me\"}",
                     &lock);
    ck_assert_str_eq(answer_text(a, "owner"), "me");
    answer_expect(auth_release(server, "red", &lock), 200, NULL);
}

TEST(another_identity_cannot_repeat_an_acquire)
{
    static const char json[] = "{\"resource\":\"shared /k\"}";
    answer_expect(AUTH(server, "red", .method = "POST", .path = "/locks",
                       .json = json, .headers = {KEY}),
                  201, NULL);
    answer_expect(AUTH(server, "green", .method = "POST", .path = "/locks",
                       .json = json, .headers = {KEY}),
                  409, "lock_held");
    answer_expect(AUTH(server, "red", .method = "POST", .path = "/locks",
                       .json = json, .headers = {KEY}),
                  200, NULL);
}

/* ---- lists -------------------------------------------------------------- */

static int count_listed(const char *token, const char *target)
{
    const struct answer *a = answer_expect(
        AUTH(server, token, .method = "GET", .path = target), 200, NULL);
    return (int)json_array_size(json_object_get(a->json, "locks"));
}

TEST(lists_show_what_lies_inside)
{
    static const char *const resources[] = {"r/l1", "r/l2", "g/l1", "shared /l",
                                            "l"};
    struct lock locks[COUNT(resources)];
    for (size_t i = 0; i < COUNT(resources); i++) {
        const char *json = textf("{\"resource\":\"%s\"}", resources[i]);
        answer_expect(auth_acquire(server, "blue", json, &locks[i]), 201, NULL);
    }
    WAIT_UNTIL(SOON_MS, count_listed("blue", "/locks") >= 5);
    WAIT_UNTIL(SOON_MS, count_listed("red", "/locks?prefix=r/l") == 2);
    const struct answer *a =
        AUTH(server, "red", .method = "GET", .path = "/locks");
    ck_assert_lacks(a->body, "\"g/");
    ck_assert_lacks(a->body, "\"l\"");
    ck_assert_has(a->body, "\"r/l1\"");
    ck_assert_has(a->body, "\"shared /l\"");
    ck_assert_int_eq(count_listed("green", "/locks?prefix=g"), 1);
    answer_expect(
        AUTH(server, "red", .method = "GET", .path = "/locks?prefix=g"), 403,
        "forbidden");
    answer_expect(
        AUTH(server, "red", .method = "GET", .path = "/locks?prefix=l"), 403,
        "forbidden");
    for (size_t i = 0; i < COUNT(resources); i++)
        answer_expect(auth_release(server, "blue", &locks[i]), 200, NULL);
}

/* ---- metrics ------------------------------------------------------------ */

TEST(what_identities_ask_is_counted)
{
    static const char allowed[] =
        "redlockd_identity_requests_total{identity=\"green\","
        "result=\"allowed\"}";
    static const char forbidden[] =
        "redlockd_identity_requests_total{identity=\"green\","
        "result=\"forbidden\"}";
    double was_allowed = auth_metric(server, "blue", allowed);
    double was_forbidden = auth_metric(server, "blue", forbidden);
    double strangers =
        auth_metric(server, "blue", "\nredlockd_unauthorized_total ");
    ck_assert(was_allowed >= 0 && was_forbidden >= 0 && strangers >= 0);
    (void)AUTH(server, "green", .method = "GET", .path = "/nodes");
    (void)AUTH(server, "green", .method = "GET", .path = "/metrics");
    (void)auth_acquire(server, "green", "{\"resource\":\"x\"}", NULL);
    (void)AUTH(server, NULL, .method = "GET", .path = "/nodes");
    ck_assert(auth_metric(server, "blue", allowed) == was_allowed + 1);
    ck_assert(auth_metric(server, "blue", forbidden) == was_forbidden + 2);
    ck_assert(auth_metric(server, "blue", "\nredlockd_unauthorized_total ") ==
              strangers + 1);
}

/* ---- permits ------------------------------------------------------------ */

static const struct {
    const char *prefix;
    bool is_inside;
} pools[] = {
    {"exports", true},   {"export", true},    {"exports/", false},
    {"exports#", false}, {"exports:", false},
};

/* The pool is the resource that must lie inside, for each call. */
TEST_EACH(permits_are_of_a_pool_inside, pools)
{
    struct lock lock, another;
    bool is_inside = pools[_i].is_inside;
    const char *json = "{\"resource\":\"exports\",\"limit\":2}";
    auth_reload(server, path,
                textf("red " AUTH_RED " lock,read prefix=%s\n"
                      "blue " AUTH_BLUE " lock,metrics prefix=*\n",
                      pools[_i].prefix));
    answer_expect(auth_acquire(server, "blue", json, &another), 201, NULL);
    const struct answer *a = auth_acquire(server, "red", json, &lock);
    answer_expect(a, is_inside ? 201 : 403, is_inside ? NULL : "forbidden");
    a = AUTH(server, "red", .method = "GET", .path = another.path);
    answer_expect(a, is_inside ? 200 : 403, is_inside ? NULL : "forbidden");
    a = AUTH(server, "red", .method = "GET", .path = "/pools/exports?limit=2");
    answer_expect(a, is_inside ? 200 : 403, is_inside ? NULL : "forbidden");
    /* a slot of the pool "other" */
    a = AUTH(server, "red", .method = "GET", .path = "/locks/~b3RoZXIfMA");
    answer_expect(a, 403, "forbidden");
    a = AUTH(server, "red", .method = "DELETE", .path = "/locks/~b3RoZXIfMA",
             .token = MADE_UP_TOKEN);
    answer_expect(a, 403, "forbidden");
    if (is_inside) {
        const char *extend = textf("%s/extend", lock.path);
        a = AUTH(server, "red", .method = "PUT", .path = extend,
                 .token = lock.token);
        answer_expect(a, 200, NULL);
        answer_expect(auth_release(server, "red", &lock), 200, NULL);
    }
    answer_expect(auth_release(server, "blue", &another), 200, NULL);
    auth_reload(server, path, auth_standard);
}
