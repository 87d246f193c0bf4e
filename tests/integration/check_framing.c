/*
 * Requests that no HTTP library sends: each is refused, and the server goes on.
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

#define POST "POST /locks HTTP/1.1\r\nContent-Type: application/json\r\n"
#define GET "GET /livez HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

/* status 0: closed without an answer is as good as a 400 */
static const struct {
    const char *text;
    int status, other;
} framings[] = {
    {POST HOST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400, 400},
    {POST HOST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, 400},
    {POST HOST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
               "2\r\n{}\r\n0\r\n\r\n",
     400, 400},
    {POST HOST "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n"
               "2\r\n{}\r\n0\r\n\r\n",
     400, 400},
    {POST HOST "Transfer-Encoding: gzip\r\n\r\n{}", 400, 501},
    {POST HOST "Transfer-Encoding: chunked, gzip\r\n\r\n{}", 400, 501},
    {POST HOST "Transfer-Encoding: chunked\r\n"
               "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
     400, 400},
    {POST HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", 400, 0},
    {POST HOST "Content-Length: -1\r\n\r\n{}", 400, 0},
    {POST HOST "Content-Length: 2x\r\n\r\n{}", 400, 0},
    {POST HOST "Content-Length: 99999999999999999999\r\n\r\n{}", 400, 413},
    {POST HOST HOST "Content-Length: 2\r\n\r\n{}", 400, 400},
    {POST "Content-Length: 2\r\n\r\n{}", 400, 400},
    {"GET /livez HTTP/1.1\r\n\r\n", 400, 400},
    {"GET /livez HTTP/1.1\r\n" HOST HOST "\r\n", 400, 400},
    {"GET\r\n\r\n", 400, 0},
    {"\x16\x03\x01\x02\x01\x01\x01\x01\xfc\x03\x03\r\n\r\n", 400, 0},
    {"GET /livez HTTP/9.9\r\n" HOST "\r\n", 505, 400},
    /* a CR alone is a part of the value to some, and ends it to others */
    {GET HOST "X-A: a\rX-B: b\r\n\r\n", 400, 400},
    {POST HOST "X-A: a\rContent-Length: 2\r\n\r\n{}", 400, 400},
    {POST HOST "X-A: a\nContent-Length: 2\r\n\r\n{}", 400, 400},
    {"GET /livez HTTP/1.1\r" HOST "\r\n", 400, 400},
    {"GET /livez HTTP/1.1\n" HOST "\r\n", 400, 400},
    {GET HOST "X-A: a\x01\r\n\r\n", 400, 400},
    {GET HOST "X-A: a\x7f\r\n\r\n", 400, 400},
    {GET HOST "X\x01: a\r\n\r\n", 400, 400},
    {GET HOST "X\x7f: a\r\n\r\n", 400, 400},
    {GET "Host: x y\r\n\r\n", 400, 400},
    {GET HOST "Expect: a-cup-of-tea\r\n\r\n", 417, 417},
    {POST HOST "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415,
     415},
};

SUITE(framing, .timeout_s = 60, WORLD_ONCE);

TEST_EACH(bad_framing_is_refused, framings)
{
    char out[8192];
    const char *text = framings[_i].text;
    int status = raw_status(server, text, strlen(text), out, sizeof out);

    ck_assert_msg(status == framings[_i].status || status == framings[_i].other,
                  "status %d: %s", status, out);
    next_request_works();
}

/* What stands behind a doubtful body must never be taken for a request. */
TEST(smuggled_request_is_not_served)
{
    static const char text[] =
        POST HOST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    char out[8192];
    int fd = raw_connect(server);

    raw_send(fd, text, strlen(text));
    raw_read(fd, out, sizeof out, NULL, 20000);
    close(fd);
    ck_assert_has(out, " 400 ");
    ck_assert_lacks(out, " 200 ");
    next_request_works();
}

/*
 * A field that goes on in the next line: a proxy in front of us joins the lines
 * and takes the next request for the body, whose length follows.
 */
static const char *const folds[] = {
    "Content-Length:\r\n ",
    "Content-Length: \r\n\t",
    "X-A: a\r\n b\r\nContent-Length:\r\n ",
};

TEST_EACH(request_in_a_body_of_folded_length_is_not_served, folds)
{
    static const char body[] =
        "GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n";
    static const char next[] =
        "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char text[1024], out[8192];
    snprintf(text, sizeof text, POST HOST "%s%zu\r\n\r\n%s%s", folds[_i],
             strlen(body), body, next);
    int fd = raw_connect(server);

    raw_send(fd, text, strlen(text));
    raw_read(fd, out, sizeof out, NULL, 20000);
    close(fd);
    ck_assert_has(out, " 400 ");
    ck_assert_msg(strstr(out, "smuggled") == NULL, "%s", out);
    next_request_works();
}

/*
 * The HTTP library takes an LF alone for the end of a line of a chunk. A proxy
 * in front of us may read on to the CR LF, or take the end for a part of the
 * data: what it then passes on as a body must not be a request for us.
 */
static const char *const chunks[] = {
    "2\r\n{}\r\n0\r\n\r\n",   "2\n{}\r\n0\r\n\r\n", "2\r\n{}\n0\r\n\r\n",
    "2\r\n{}\r\n0\n\r\n",     "2\r\n{}\r\n0\r\n\n", "2;a=b\n{}\r\n0\r\n\r\n",
    "2\r\n{}\r\n0;a=b\n\r\n",
};

TEST_EACH(request_behind_a_chunked_body_is_not_served, chunks)
{
    char text[1024], out[8192];
    snprintf(text, sizeof text,
             POST HOST "Transfer-Encoding: chunked\r\n\r\n%s" GET HOST
                       "X-Request-Id: smuggled\r\nConnection: close\r\n\r\n",
             chunks[_i]);
    int fd = raw_connect(server);

    raw_send(fd, text, strlen(text));
    raw_read(fd, out, sizeof out, NULL, 20000);
    close(fd);
    ck_assert_has(out, "Connection: close");
    ck_assert_msg(strstr(out, "smuggled") == NULL, "%s", out);
    next_request_works();
}

TEST(http_1_0_needs_no_host)
{
    static const char text[] = "GET /livez HTTP/1.0\r\n\r\n";
    char out[4096];

    ck_assert_int_eq(raw_status(server, text, strlen(text), out, sizeof out),
                     200);
}

TEST(two_thousand_headers_are_refused)
{
    char *text = harness_repeat("GET /livez HTTP/1.1\r\nHost: x\r\n#\r\n",
                                "X-Header: some value\r\n", 2000);
    char out[8192];
    int status = raw_status(server, text, strlen(text), out, sizeof out);

    ck_assert_msg(status >= 400 || status == 0, "%d", status);
    free(text);
    next_request_works();
}

TEST(long_target_is_refused)
{
    char *text =
        harness_repeat("GET /# HTTP/1.1\r\nHost: x\r\n\r\n", "x", 100000);
    char out[8192];
    int status = raw_status(server, text, strlen(text), out, sizeof out);

    ck_assert_msg(status >= 400 || status == 0, "%d", status);
    free(text);
    next_request_works();
}

/* What makes a head large, '#' being the pad; and how large it may get. */
static const struct {
    const char *line, *fields, *pad;
    int most;
} large[] = {
    {"POST /locks?#", "", "a", 7500},   /* near 8,000 nobody answers */
    {"POST /locks?#", "", "a=b&", 400}, /* nor beyond */
    {"POST /locks", "X-Pad: #\r\n", "a", 7500},
    {"POST /locks", "#", "A: b\r\n", 20000},
    {"POST /locks", "Cookie: a=#\r\n", "b", 20000},
    {"POST /locks", "Cookie: #\r\n", "a=b; ", 20000},
};

static char *large_request(int kind, int bytes, const char *resource)
{
    char body[128];
    int len = snprintf(body, sizeof body, "{\"resource\":\"%s\"}", resource);
    return harness_repeat(
        textf("%s HTTP/1.1\r\n%sHost: x\r\nContent-Type: application/json\r\n"
              "Content-Length: %d\r\n\r\n%s",
              large[kind].line, large[kind].fields, len, body),
        large[kind].pad, bytes / (int)strlen(large[kind].pad));
}

/* Carried out and told, or neither. */
TEST_EACH(a_head_of_any_size_is_told_what_became_of_it, large)
{
    int counts[2] = {0};
    for (int bytes = 100; bytes <= large[_i].most; bytes += 150) {
        char resource[64], out[8192];
        snprintf(resource, sizeof resource, "large:%d:%d", _i, bytes);
        char *text = large_request(_i, bytes, resource);
        int status = raw_status(server, text, strlen(text), out, sizeof out);
        ck_assert_msg(status == 201 || status == 431 || status == 414 ||
                          status == 0,
                      "%d bytes: %d", bytes, status);
        ck_assert_msg((status == 201) == (world_count_keys(&world, resource)),
                      "%d bytes: %d", bytes, status);
        counts[status == 201]++;
        free(text);
    }
    ck_assert_int_gt(counts[0], 0);
    ck_assert_int_gt(counts[1], 0);
    next_request_works();
}
