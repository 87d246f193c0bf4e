/*
 * Requests that no HTTP library sends: each is refused, and the server goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"

Suite *check_framing(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct world world;
static const struct server *const server = &world.servers[0];

static void set_up(void)
{
    world_start(&world, 1, "");
}

static void tear_down(void)
{
    world_finish(&world);
}

/* Every bad request is followed by a good one, on the same connection too. */
static void next_request_works(void)
{
    lock_expect_cycle(server, "input:next");
}

#define POST "POST /locks HTTP/1.1\r\nContent-Type: application/json\r\n"
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
    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, 0},
    {"GET /livez HTTP/9.9\r\n" HOST "\r\n", 505, 400},
};

START_TEST(bad_framing_is_refused)
{
    char out[8192];
    const char *text = framings[_i].text;
    int status = raw_status(server, text, strlen(text), out, sizeof out);

    ck_assert_msg(status == framings[_i].status || status == framings[_i].other,
                  "status %d: %s", status, out);
    next_request_works();
}
END_TEST

/* What stands behind a doubtful body must never be taken for a request. */
START_TEST(smuggled_request_is_not_served)
{
    static const char text[] =
        POST HOST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    char out[8192];
    int fd = raw_connect(server);

    raw_send(fd, text, strlen(text));
    raw_read(fd, out, sizeof out, NULL, 20000);
    close(fd);
    ck_assert_ptr_nonnull(strstr(out, " 400 "));
    ck_assert_ptr_null(strstr(out, " 200 "));
    next_request_works();
}
END_TEST

START_TEST(http_1_0_needs_no_host)
{
    static const char text[] = "GET /livez HTTP/1.0\r\n\r\n";
    char out[4096];

    ck_assert_int_eq(raw_status(server, text, strlen(text), out, sizeof out),
                     200);
}
END_TEST

START_TEST(two_thousand_headers_are_refused)
{
    char *text = harness_repeat("GET /livez HTTP/1.1\r\nHost: x\r\n#\r\n",
                                "X-Header: some value\r\n", 2000);
    char out[8192];
    int status = raw_status(server, text, strlen(text), out, sizeof out);

    ck_assert_msg(status >= 400 || status == 0, "%d", status);
    free(text);
    next_request_works();
}
END_TEST

START_TEST(long_target_is_refused)
{
    char *text =
        harness_repeat("GET /# HTTP/1.1\r\nHost: x\r\n\r\n", "x", 100000);
    char out[8192];
    int status = raw_status(server, text, strlen(text), out, sizeof out);

    ck_assert_msg(status >= 400 || status == 0, "%d", status);
    free(text);
    next_request_works();
}
END_TEST

Suite *check_framing(void)
{
    Suite *suite = suite_create("framing");
    TCase *tcase = tcase_create("framing");

    tcase_set_timeout(tcase, 60);
    tcase_add_unchecked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, bad_framing_is_refused, 0, COUNT(framings));
    tcase_add_test(tcase, smuggled_request_is_not_served);
    tcase_add_test(tcase, http_1_0_needs_no_host);
    tcase_add_test(tcase, two_thousand_headers_are_refused);
    tcase_add_test(tcase, long_target_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
