/*
 * HTTP around the locks: what is served beside them, one refusal of each kind,
 * and no request within another. The units have every case of it; here a real
 * server has one of each, and goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"

enum { N = 3 };

#define POST "POST /locks HTTP/1.1\r\nContent-Type: application/json\r\n"
#define GET "GET /livez HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

WORLD(world_start, N, "");
static const struct server *const server = &world.servers[0];

SUITE(http, .timeout_s = 60, WORLD_ONCE);

TEST(nodes_are_listed)
{
    const struct answer *a = answer_expect(
        HTTP(server, .method = "GET", .path = "/nodes"), 200, NULL);
    ck_assert_int_eq(answer_int(a, "total"), N);
    ck_assert_int_eq(answer_int(a, "quorum"), 2);
    ck_assert_int_eq(answer_int(a, "voting"), N);
    for (int i = 0; i < N; i++) {
        const char *name = textf("127.0.0.1:%d", world.nodes[i].port);
        ck_assert_str_eq(answer_text(a, textf("nodes.%d.node", i)), name);
        ck_assert_uint_gt(strlen(answer_text(a, textf("nodes.%d.state", i))),
                          0);
    }
}

TEST(probes_answer)
{
    answer_expect(HTTP(server, .method = "GET", .path = "/livez"), 200, NULL);
    answer_expect(HTTP(server, .method = "GET", .path = "/readyz"), 200, NULL);
    const struct answer *a = answer_expect(
        HTTP(server, .method = "GET", .path = "/readyz?verbose"), 200, NULL);
    const char *name = textf("127.0.0.1:%d", world.nodes[N - 1].port);
    ck_assert_has(a->body, name);
}

/* make runs this where the file lies. */
TEST(openapi_is_served_byte_by_byte)
{
    char *text = harness_read_file("openapi.yaml");

    const struct answer *a = answer_expect(
        HTTP(server, .method = "GET", .path = "/openapi.yaml"), 200, NULL);
    ck_assert_str_eq(answer_header(a, "Content-Type"), "application/yaml");
    ck_assert(strcmp(a->body, text) == 0); /* too long to be printed */
    free(text);
}

static const char *const get_paths[] = {
    "/livez",        "/readyz",         "/nodes", "/metrics",
    "/openapi.yaml", "/locks/api:head", "/",      "/page.css",
    "/page.js",      "/page.svg",       "/docs"};

TEST_EACH(head_is_get_without_a_body, get_paths)
{
    const struct answer *a = answer_expect(
        HTTP(server, .method = "HEAD", .path = get_paths[_i]), 200, NULL);
    ck_assert_ptr_nonnull(answer_header(a, "Content-Length"));
}

/* ---- what is refused ----------------------------------------------------- */

#define EXTEND "/locks/x/extend"

static const struct {
    const char *method, *path, *json, *header;
    int status;
    const char *code;
} refused[] = {
    {"GET", "/nope", NULL, NULL, 404, "not_found"},
    {"PATCH", "/livez", NULL, NULL, 405, "method_not_allowed"},
    {"POST", "/locks", "{", NULL, 400, "invalid_request"},
    {"POST", "/locks", "", NULL, 400, "invalid_request"},
    {"POST", "/locks", "{\"resource\":1}", NULL, 400, "invalid_request"},
    {"POST", "/locks", "{\"resource\":\"x\"}", "Content-Type: text/plain", 415,
     "unsupported_media_type"},
    {"POST", "/locks", "{\"resource\":\"x\"}", "Content-Type:", 415,
     "unsupported_media_type"},
    {"POST", "/locks", "{\"resource\":\"x\"}", "Idempotency-Key: 1", 400,
     "invalid_request"},
    {"GET", "/locks/~YS9", NULL, NULL, 400, "invalid_request"},
    {"GET", "/locks/a%00b", NULL, NULL, 400, "invalid_request"},
    {"DELETE", "/locks/x", NULL, "X-Lock-Token: a b", 400, "invalid_request"},
    {"PUT", EXTEND, "{\"token\":\"t\"}", NULL, 400, "invalid_request"},
    {"PUT", EXTEND, "{\"token\":\"" MADE_UP_TOKEN "\"}", NULL, 404,
     "lock_not_found"},
};

TEST_EACH(what_is_wrong_is_refused_with_its_code, refused)
{
    answer_expect(HTTP(server, .method = refused[_i].method,
                       .path = refused[_i].path, .json = refused[_i].json,
                       .headers = {refused[_i].header}),
                  refused[_i].status, refused[_i].code);
    lock_expect_cycle(server, "input:next"); /* on the same connection, too */
}

TEST(a_body_above_16_kib_is_413)
{
    static const struct {
        int length;
        const char *header;
    } bodies[] = {
        {16385, NULL}, {16385, "Transfer-Encoding: chunked"}, {200000, NULL}};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char *body = harness_repeat("#", " ", bodies[i].length);
        answer_expect(HTTP(server, .method = "POST", .path = "/locks",
                           .json = body, .headers = {bodies[i].header}),
                      413, "body_too_large");
        free(body);
        lock_expect_cycle(server, "input:next");
    }
}

/* ---- requests one behind the other --------------------------------------- */

/* Sends what ends its connection, and returns all that comes. */
static const char *exchange(const char *text)
{
    static char out[8192];
    int fd = raw_connect(server);
    raw_send(fd, text, strlen(text));
    raw_read(fd, out, sizeof out, NULL, 20000);
    close(fd);
    return out;
}

/* Two requests in one packet: two answers, in order. */
TEST(pipelined_requests_are_answered_in_order)
{
    const char *out = exchange(
        POST HOST "Content-Length: 24\r\n\r\n{\"resource\":\"api:pipe1\"}"
                  "GET /locks/api:pipe1 HTTP/1.1\r\n" HOST
                  "Connection: close\r\n\r\n");
    const char *first = strstr(out, "HTTP/1.1 201");
    const char *second = strstr(out, "HTTP/1.1 200");
    ck_assert_msg(first && second && first < second, "%s", out);
}

/* What stands behind a doubtful body must never be taken for a request. */
static const char *const smuggled[] = {
    POST HOST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
              "0\r\n\r\n" GET HOST "\r\n",
    POST HOST "Content-Length:\r\n 32\r\n\r\n" GET HOST "\r\n",
    POST HOST "X-A: a\rContent-Length: 2\r\n\r\n{}" GET HOST "\r\n",
};

TEST_EACH(a_smuggled_request_is_not_served, smuggled)
{
    const char *out = exchange(smuggled[_i]);
    ck_assert_has(out, " 400 ");
    ck_assert_lacks(out, " 200 ");
    lock_expect_cycle(server, "input:next");
}
