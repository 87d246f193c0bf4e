/* SPDX-License-Identifier: MIT */
/*
 * Requests over real sockets: what is read of them, answered, counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../api/http/connection.h"
#include "../../../api/message/http.h"
#include "../../lib/suite/suite.h"
#include "served.h"

static void expect_status(int fd, int status)
{
    const char *text = served_read(fd, "}\n");
    ck_assert_msg(strncmp(text, "HTTP/1.", 7) == 0 && atoi(text + 9) == status,
                  "%s", text);
}

/* A client that asks, and has this answer. */
static int ask(const char *text, int status)
{
    int fd = served_ask(text);
    expect_status(fd, status);
    return fd;
}

SUITE(front, .set_up = served_begin, .tear_down = served_end);

/* ---- answers ------------------------------------------------------------ */

static const struct {
    const char *line, *status, *fields[5];
} answers[] = {
    {"GET /livez",
     "200 OK",
     {"X-Request-Id: r-1", "Cache-Control: no-store",
      "Content-Type: application/json", "X-Content-Type-Options: nosniff",
      "Content-Length: 19"}},
    {"OPTIONS /livez", "204 No Content", {"Allow: GET, HEAD, OPTIONS"}},
    {"GET /",
     "200 OK",
     {"Content-Type: text/html; charset=utf-8",
      "Content-Security-Policy: default-src 'self'; base-uri 'none'; "
      "frame-ancestors 'none'; form-action 'none'"}},
};

TEST_EACH(an_answer_has_its_fields, answers)
{
    int fd = served_ask(textf("%s HTTP/1.1\r\nHost: x\r\nX-Request-Id: r-1\r\n"
                              "\r\n",
                              answers[_i].line));
    const char *answer = served_read(fd, "\r\n\r\n");
    const char *status = textf("HTTP/1.1 %s\r\n", answers[_i].status);
    ck_assert_ptr_eq(strstr(answer, status), answer);
    for (int i = 0; i < 5 && answers[_i].fields[i] != NULL; i++)
        ck_assert_has(answer, textf("\r\n%s\r\n", answers[_i].fields[i]));
    ck_assert_lacks(answer, "\r\nConnection: ");
    close(fd);
}

TEST(a_connection_serves_one_request_after_the_other)
{
    int fd = ask(SERVED_GET("/livez"), 200);
    served_send(fd, SERVED_GET("/nope"));
    expect_status(fd, 404);
    served_send(fd, SERVED_GET("/livez"));
    expect_status(fd, 200);
    served_pass();
    ck_assert_uint_eq(play.metrics.connections, 1);
    ck_assert_uint_eq(play.metrics.requests_accepted, 3);
    ck_assert_uint_eq(play.metrics.requests_answered, 3);
    ck_assert_uint_eq(play.metrics.responses[METRICS_PROBE][200], 2);
    ck_assert_uint_eq(play.metrics.responses[METRICS_OTHER][404], 1);
    ck_assert_int_eq(front_in_flight(served.front), 0);
    close(fd);
}

static int count(const char *text, const char *part)
{
    int found = 0;
    while ((text = strstr(text, part)) != NULL) {
        found++;
        text++;
    }
    return found;
}

/* And the nodes have their turns in between. */
TEST(requests_that_come_at_once_are_answered_in_a_row)
{
    enum { REQUESTS = 100, TURNS_LEAST = REQUESTS / 20 };
    static const char request[] = SERVED_GET("/livez");
    char text[REQUESTS * (sizeof request - 1) + 64] = "";
    for (int i = 1; i < REQUESTS; i++)
        strcat(text, request);
    strcat(text, "GET /last HTTP/1.1\r\nHost: x\r\n\r\n");
    int before = served.turns;
    const char *got = served_read(served_ask(text), "HTTP/1.1 404 ");
    ck_assert_int_eq(count(got, "{\"status\":\"alive\"}\n"), REQUESTS - 1);
    ck_assert_int_ge(served.turns - before, TURNS_LEAST);
}

/* However large it is. */
static const char *const pages[][2] = {{"/livez", "19\r\n"},
                                       {"/openapi.yaml", ""}};

TEST_EACH(who_asks_for_the_head_gets_no_body, pages)
{
    const char *text =
        textf("HEAD %s HTTP/1.1\r\nHost: x\r\n\r\n", pages[_i][0]);
    int fd = served_ask(text);
    const char *answer = served_read(fd, "\r\n\r\n");
    const char *length = strstr(answer, "\r\nContent-Length: ");
    ck_assert_ptr_nonnull(length);
    ck_assert_int_eq(strncmp(length + 18, pages[_i][1], strlen(pages[_i][1])),
                     0);
    ck_assert_str_eq(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    served_pass();
    served_send(fd, SERVED_GET("/nope"));
    const char *next = served_read(fd, "}\n");
    ck_assert_ptr_eq(strstr(next, "HTTP/1.1 404 "), next);
    close(fd);
}

/* The value of X-Request-Id that a request without one is given. */
static void ask_for_id(char id[64])
{
    int fd = served_ask(SERVED_GET("/livez"));
    const char *answer = served_read(fd, "}\n");
    const char *at = strstr(answer, "X-Request-Id: ");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at, "X-Request-Id: %63s", id), 1);
    close(fd);
}

TEST(the_ids_of_two_servers_differ)
{
    char first[64], second[64];
    ask_for_id(first);
    served_end();
    served_begin();
    ask_for_id(second);
    ck_assert_str_ne(first, second);
}

/* ---- heads -------------------------------------------------------------- */

#define HOST "Host: x\r\n"

static const struct {
    const char *text;
    int status;
} heads[] = {
    {"GET /livez HTTP/1.0\r\n\r\n", 200},
    {"GET /livez HTTP/1.1\r\n" HOST "A: b\r\nC: d\r\n\r\n", 200},
    /* a library that decodes it would end it there */
    {"GET /locks/a%00b HTTP/1.1\r\n" HOST "\r\n", 400},
    {"DELETE /locks/a HTTP/1.1\r\n" HOST "X-Lock-Token: no\r\n\r\n", 400},
};

TEST_EACH(a_head_is_read_as_it_was_sent, heads)
{
    close(ask(heads[_i].text, heads[_i].status));
    ck_assert_int_eq(play.sent_count, 0);
}

/* By the bytes that were sent, and what each of its parts takes. */
TEST(a_head_that_is_too_large_is_refused)
{
    char pad[6300];
    memset(pad, 'a', sizeof pad - 1);
    pad[5500] = '\0';
    close(ask(textf(SERVED_GET("/livez?%s"), pad), 200));
    pad[5500] = 'a';
    pad[sizeof pad - 1] = '\0';
    int fd = ask(textf(SERVED_GET("/livez?%s"), pad), 431);
    served_expect_last(fd, NULL);
}

TEST(arguments_are_no_part_of_the_path)
{
    int fd = served_ask(SERVED_GET("/readyz?verbose"));
    const char *answer = served_read(fd, "}\n");
    ck_assert_int_eq(count(answer, "\"state\":\"voting\""), PLAY_NODES);
    ck_assert_has(answer, "\"node\":\"a\"");
    ck_assert_has(answer, "\"node\":\"e\"");
    served_send(fd, SERVED_GET("/readyz"));
    ck_assert_int_eq(count(served_read(fd, "}\n"), "\"state\""), 0);
    close(fd);
}

/* ---- locks -------------------------------------------------------------- */

TEST(a_grant_is_answered_when_the_nodes_have_voted)
{
    int fd = served_ask(SERVED_ACQUIRE);
    served_await_acquires(1);
    ck_assert_int_eq(front_in_flight(served.front), 1);
    ck_assert_uint_eq(play.metrics.requests_answered, 0);
    served_grant();
    const char *answer = served_read(fd, "}\n");
    ck_assert_ptr_eq(strstr(answer, "HTTP/1.1 201 Created\r\n"), answer);
    ck_assert_has(answer, "\r\nLocation: /locks/a\r\n");
    ck_assert_has(answer, "\"resource\":\"a\"");
    served_pass();
    ck_assert_int_eq(front_in_flight(served.front), 0);
    ck_assert_uint_eq(play.metrics.requests_answered, 1);
    close(fd);
    served_pass();
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
    ck_assert_uint_eq(play.metrics.connections, 0);
}

#define CHUNKED                                                                \
    "POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"    \
    "Transfer-Encoding: chunked\r\n\r\n"

/* Byte by byte, whole and in chunks. */
static const char *const bodies[] = {
    SERVED_ACQUIRE, CHUNKED "6\r\n{\"reso\r\na\r\nurce\":\"a\"}\r\n0\r\n\r\n"};

TEST_EACH(a_body_is_put_together, bodies)
{
    int fd = served_connect();
    for (const char *at = bodies[_i]; *at != '\0'; at++) {
        served_send(fd, (char[]){*at, '\0'});
        served_pass();
    }
    served_await_acquires(1);
    served_grant();
    expect_status(fd, 201);
    close(fd);
}

/* Of a body without end only so much is read. */
TEST(a_body_far_too_large_is_cut_off)
{
    int fd = served_ask(CHUNKED);
    int chunks = 0;
    const char *chunk = textf("1000\r\n%0*d\r\n", 0x1000, 0);
    while (chunks < 1000) {
        if (send(fd, chunk, strlen(chunk), MSG_NOSIGNAL) < 0)
            break;
        chunks++;
        served_pass();
    }
    ck_assert_int_ge(chunks, CONNECTION_DISCARD_MAX / 0x1000);
    ck_assert_int_lt(chunks, 1000);
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
    ck_assert_uint_eq(play.metrics.connections, 0);
    close(fd);
}

/* The client cannot have read it. */
TEST(an_answer_that_was_not_taken_whole_is_none)
{
    enum { REQUESTS = 300 }; /* more than the kernel has room for */
    uint64_t answered;
    int fd = served_connect();
    for (int i = 0; i < REQUESTS; i++)
        served_send(fd, SERVED_GET("/openapi.yaml"));
    do {
        answered = play.metrics.requests_answered;
        served_pass();
    } while (play.metrics.requests_answered > answered);
    ck_assert_int_eq(front_in_flight(served.front), 1);
    close(fd);
    served_await_leave();
    ck_assert_uint_eq(play.metrics.requests_answered, answered);
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
}
