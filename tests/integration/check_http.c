/*
 * The paths around the locks, and what HTTP itself asks for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"

enum { N = 3 };

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
        char path[32];
        snprintf(path, sizeof path, "nodes.%d.node", i);
        const char *name = textf("127.0.0.1:%d", world.nodes[i].port);
        ck_assert_str_eq(answer_text(a, path), name);
        snprintf(path, sizeof path, "nodes.%d.state", i);
        ck_assert_uint_gt(strlen(answer_text(a, path)), 0);
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
    struct lock lock;

    lock_take(server, "api:head", 9000, &lock);
    const struct answer *a = answer_expect(
        HTTP(server, .method = "HEAD", .path = get_paths[_i]), 200, NULL);
    ck_assert_ptr_nonnull(answer_header(a, "Content-Length"));
    answer_expect(lock_release(server, &lock), 200, NULL);
}

static const struct {
    const char *path, *allow[5];
} paths[] = {
    {"/locks", {"POST", "OPTIONS"}},
    {"/locks/x", {"GET", "HEAD", "DELETE", "OPTIONS"}},
    {"/locks/x/extend", {"PUT", "OPTIONS"}},
    {"/nodes", {"GET", "HEAD", "OPTIONS"}},
    {"/livez", {"GET", "HEAD", "OPTIONS"}},
    {"/readyz", {"GET", "HEAD", "OPTIONS"}},
    {"/metrics", {"GET", "HEAD", "OPTIONS"}},
    {"/openapi.yaml", {"GET", "HEAD", "OPTIONS"}},
    {"/", {"GET", "HEAD", "OPTIONS"}},
    {"/page.css", {"GET", "HEAD", "OPTIONS"}},
    {"/page.js", {"GET", "HEAD", "OPTIONS"}},
    {"/page.svg", {"GET", "HEAD", "OPTIONS"}},
    {"/docs", {"GET", "HEAD", "OPTIONS"}},
};

/* True if method is one of the comma-separated names in allow. */
static bool is_listed(const char *allow, const char *method)
{
    size_t len = strlen(method);

    while (allow) {
        allow += strspn(allow, ", ");
        if (strcspn(allow, ", ") == len && strncmp(allow, method, len) == 0)
            return true;
        allow = strchr(allow, ',');
    }
    return false;
}

TEST_EACH(other_methods_get_405_with_allow, paths)
{
    static const char *const methods[] = {"GET",   "POST",  "PUT", "DELETE",
                                          "PATCH", "TRACE", "FROB"};
    const char *path = paths[_i].path;

    const struct answer *a = HTTP(server, .method = "OPTIONS", .path = path);
    answer_expect(a, 204, NULL);
    for (int i = 0; paths[_i].allow[i]; i++)
        ck_assert_msg(is_listed(answer_header(a, "Allow"), paths[_i].allow[i]),
                      "%s not allowed for %s", paths[_i].allow[i], path);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char allow[128];
        snprintf(allow, sizeof allow, "%s", answer_header(a, "Allow"));
        if (is_listed(allow, methods[i]))
            continue;
        a = HTTP(server, .method = methods[i], .path = path);
        answer_expect(a, 405, "method_not_allowed");
        ck_assert_str_eq(answer_header(a, "Allow"), allow);
    }
}

static const char *const unknown[] = {
    "/page",    "/lock",      "/locks/",          "//locks",
    "/locks//", "/locks/a/b", "/locks/a/extend/", "/locks/a/",
    "/Locks",   "/nodes/",    "/livez/x",         "/locks/a/extend/b",
};

TEST_EACH(unknown_path_is_404, unknown)
{
    answer_expect(HTTP(server, .method = "GET", .path = unknown[_i]), 404,
                  "not_found");
    answer_expect(HTTP(server, .method = "POST", .path = unknown[_i],
                       .json = "{\"resource\":\"x\"}"),
                  404, "not_found");
}

TEST(request_id_is_echoed_if_it_is_harmless)
{
    const struct answer *a = HTTP(server, .method = "GET", .path = "/livez",
                                  .headers = {"X-Request-Id: Ab-1._z"});

    ck_assert_str_eq(answer_header(a, "X-Request-Id"), "Ab-1._z");
    a = HTTP(server, .method = "GET", .path = "/nope",
             .headers = {"X-Request-Id: Ab-1._z"});
    ck_assert_str_eq(answer_text(a, "request_id"), "Ab-1._z");
    a = HTTP(server, .method = "GET", .path = "/livez",
             .headers = {"X-Request-Id: a\tb\"c"});
    ck_assert_ptr_null(strchr(answer_header(a, "X-Request-Id"), '"'));
    char long_id[100] = "X-Request-Id: ";
    memset(long_id + 14, 'x', 65);
    a = HTTP(server, .method = "GET", .path = "/livez", .headers = {long_id});
    ck_assert_uint_le(strlen(answer_header(a, "X-Request-Id")), 64);
}

TEST(ids_of_requests_differ)
{
    const struct answer *a = HTTP(server, .method = "GET", .path = "/livez");

    const char *first = textf("%s", answer_header(a, "X-Request-Id"));
    a = HTTP(server, .method = "GET", .path = "/livez");
    ck_assert_str_ne(first, answer_header(a, "X-Request-Id"));
}

TEST(content_type_may_have_parameters)
{
    const char *body = "{\"resource\":\"api:type\"}";
    answer_expect(
        HTTP(server, .method = "POST", .path = "/locks", .json = body,
             .headers = {"Content-Type: Application/JSON; charset=utf-8"}),
        201, NULL);
}

/* Two requests in one packet: two answers, in order. */
TEST(pipelined_requests_are_answered_in_order)
{
    static const char both[] =
        "POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Content-Length: 24\r\n\r\n{\"resource\":\"api:pipe1\"}"
        "GET /locks/api:pipe1 HTTP/1.1\r\nHost: x\r\n"
        "Connection: close\r\n\r\n";
    char out[8192];
    int fd = raw_connect(server);

    raw_send(fd, both, strlen(both));
    raw_read(fd, out, sizeof out, NULL, 20000);
    char *first = strstr(out, "HTTP/1.1 201");
    char *second = strstr(out, "HTTP/1.1 200");
    ck_assert_msg(first && second && first < second, "%s", out);
}

TEST(absolute_target_is_routed_by_its_path)
{
    static const char text[] =
        "GET http://any.example:1/livez HTTP/1.1\r\nHost: x\r\n\r\n";
    char out[4096];

    ck_assert_int_eq(raw_status(server, text, strlen(text), out, sizeof out),
                     200);
    static const char stars[] = "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n";
    ck_assert_int_eq(raw_status(server, stars, strlen(stars), out, sizeof out),
                     204);
}
