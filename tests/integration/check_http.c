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
WORLD(world_start, N, "");
static const struct server *const server = &world.servers[0];

SUITE(http, .timeout_s = 60, WORLD_ONCE);

TEST(probes_answer)
{
    answer_expect(HTTP(server, .method = "GET", .path = "/livez"), 200, NULL);
    answer_expect(HTTP(server, .method = "GET", .path = "/readyz"), 200, NULL);
    const struct answer *a = answer_expect(
        HTTP(server, .method = "GET", .path = "/readyz?verbose"), 200, NULL);
    const char *name = textf("127.0.0.1:%d", world.nodes[N - 1].port);
    ck_assert_has(a->body, name);
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
