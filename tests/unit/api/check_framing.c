/* SPDX-License-Identifier: MIT */
/*
 * Requests that no HTTP library sends: each is refused, and the server goes on.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "served.h"

#define POST "POST /locks HTTP/1.1\r\nContent-Type: application/json\r\n"
#define GET "GET /livez HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

/* Sends what ends its connection, and returns all that comes. */
static const char *exchange(const char *text)
{
    int fd = served_ask(text);
    const char *answer = served_read(fd, NULL);
    close(fd);
    return answer;
}

/* 0: closed without an answer. */
static int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.", 7) == 0 ? atoi(answer + 9) : 0;
}

static void tear_down(void)
{
    int fd = served_ask(SERVED_GET("/livez"));
    served_expect(fd, " 200 ");
    close(fd);
    ck_assert_int_eq(play.sent_count, 0);
    served_end();
}

/* Some are refused by the library; another version of it may say it so. */
static const struct {
    const char *text;
    int status, other;
} framings[] = {
    {POST HOST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, 400},
    {POST HOST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
               "2\r\n{}\r\n0\r\n\r\n",
     400, 400},
    {POST HOST "Transfer-Encoding: gzip\r\n\r\n{}", 400, 501},
    {POST HOST "Transfer-Encoding: chunked\r\n"
               "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
     400, 400},
    {POST HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", 400, 0},
    {POST HOST "Content-Length: -1\r\n\r\n{}", 400, 0},
    {POST HOST "Content-Length: 2x\r\n\r\n{}", 400, 0},
    {POST HOST "Content-Length: 99999999999999999999\r\n\r\n{}", 400, 413},
    {GET "\r\n", 400, 400},
    {GET HOST HOST "\r\n", 400, 400},
    {"GET\r\n\r\n", 400, 0},
    {"\x16\x03\x01\x02\x01\x01\x01\x01\xfc\x03\x03\r\n\r\n", 400, 0},
    {"GET /livez HTTP/9.9\r\n" HOST "\r\n", 505, 400},
    /* a CR alone is a part of the value to some, and ends it to others */
    {GET HOST "X-A: a\rX-B: b\r\n\r\n", 400, 400},
    {POST HOST "X-A: a\rContent-Length: 2\r\n\r\n{}", 400, 400},
    {POST HOST "X-A: a\nContent-Length: 2\r\n\r\n{}", 400, 400},
    {"GET /livez HTTP/1.1\r" HOST "\r\n", 400, 400},
    {"GET /livez HTTP/1.1\n" HOST "\r\n", 400, 400},
};

SUITE(framing, .set_up = served_begin, .tear_down = tear_down);

TEST_EACH(bad_framing_is_refused, framings)
{
    const char *answer = exchange(framings[_i].text);
    int status = status_of(answer);
    ck_assert_msg(status == framings[_i].status || status == framings[_i].other,
                  "status %d: %s", status, answer);
}

/* ---- a request within another -------------------------------------------- */

#define SMUGGLED GET HOST "X-Request-Id: smuggled\r\n\r\n"
#define LAST GET HOST "Connection: close\r\n\r\n"
#define CHUNKED POST HOST "Transfer-Encoding: chunked\r\n\r\n"

static const char *const smuggling[] = {
    POST HOST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
              "0\r\n\r\n" SMUGGLED,
    /*
     * A field that goes on in the next line: a proxy in front of us joins the
     * lines and takes the next request for the body, whose length follows.
     */
    POST HOST "Content-Length:\r\n 56\r\n\r\n" SMUGGLED LAST,
    POST HOST "Content-Length: \r\n\t56\r\n\r\n" SMUGGLED LAST,
    POST HOST "X-A: a\r\n b\r\nContent-Length:\r\n 56\r\n\r\n" SMUGGLED LAST,
    /*
     * The HTTP library takes an LF alone for the end of a line of a chunk. A
     * proxy in front of us may read on to the CR LF, or take the end for a part
     * of the data: what it then passes on as a body must not be a request.
     */
    CHUNKED "2\r\n{}\r\n0\r\n\r\n" SMUGGLED,
    CHUNKED "2\n{}\r\n0\r\n\r\n" SMUGGLED,
    CHUNKED "2\r\n{}\n0\r\n\r\n" SMUGGLED,
    CHUNKED "2\r\n{}\r\n0\n\r\n" SMUGGLED,
    CHUNKED "2\r\n{}\r\n0\r\n\n" SMUGGLED,
    CHUNKED "2;a=b\n{}\r\n0\r\n\r\n" SMUGGLED,
    CHUNKED "2\r\n{}\r\n0;a=b\n\r\n" SMUGGLED,
};

TEST_EACH(a_request_in_another_is_not_served, smuggling)
{
    const char *answer = exchange(smuggling[_i]);
    ck_assert_int_eq(status_of(answer), 400);
    ck_assert_has(answer, "Connection: close");
    ck_assert_lacks(answer, "smuggled");
    ck_assert_lacks(answer, " 200 ");
}

/* ---- large heads --------------------------------------------------------- */

/* 0: the library closes without an answer. */
static const char *const large[] = {GET HOST "X-Header: %060000d\r\n\r\n",
                                    "GET /%060000d HTTP/1.1\r\n" HOST "\r\n"};

TEST_EACH(what_no_head_may_be_is_refused, large)
{
    int status = status_of(exchange(textf(large[_i], 0)));
    ck_assert_msg(status >= 400 || status == 0, "%d", status);
}
