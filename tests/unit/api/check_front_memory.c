/* SPDX-License-Identifier: MIT */
/*
 * Each allocation of a request, and of a start, fails once. No request leaves
 * memory behind.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "../starve.h"
#include "served.h"

/* A connection that has no memory for itself and its watch is closed; so is one
 * that has none for the request's body. */
enum { UNTOLD = 2 };

/* Of a lock that was granted just now, as long as it is. */
#define TOKEN                                                                  \
    "X-Lock-Token: "                                                           \
    "0000000000000007.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5\r\n"
#define HEAD(line) line " HTTP/1.1\r\nHost: x\r\n"

static const struct {
    const char *text;
    int status; /* of the answer when there is memory */
    int ballot; /* of each node */
} requests[] = {
    {SERVED_ACQUIRE, 201, VOTE_GRANTED},
    {SERVED_POST(23) "{\"resources\":[\"a\",\"b\"]}", 201, VOTE_GRANTED},
    {HEAD("GET /locks/~~YQpi") "\r\n", 200, VOTE_FREE},
    {HEAD("PUT /locks/a/extend") TOKEN "\r\n", 409, VOTE_EXTENDED},
    {HEAD("DELETE /locks/a") TOKEN "\r\n", 200, VOTE_DELETED},
    {HEAD("GET /locks/a") "\r\n", 200, VOTE_FREE},
    {HEAD("GET /nodes") "\r\n", 200, 0},
    {HEAD("GET /readyz?verbose") "\r\n", 200, 0},
    {HEAD("GET /livez") "\r\n", 200, 0},
    {HEAD("GET /metrics") "\r\n", 200, 0},
    {HEAD("GET /openapi.yaml") "\r\n", 200, 0},
    {HEAD("GET /") "\r\n", 200, 0},
    {HEAD("GET /nope") "\r\n", 404, 0},
};

/* ---- a client, and the nodes -------------------------------------------- */

static struct {
    int fd, ballot;
    int granted; /* votes, of an acquire */
    size_t len;
    char text[100000];
} client;

/* What the nodes were asked is answered at once. */
static void vote(void)
{
    for (int i = 0; i < play.sent_count; i++) {
        struct play_call *sent = &play.sent[i];
        if (sent->is_answered)
            continue;
        bool is_release = sent->call.kind == CALL_RELEASE;
        client.granted += sent->call.kind == CALL_ACQUIRE;
        play_reply(sent, reply_of_ballot(is_release ? (int)VOTE_DELETED
                                                    : client.ballot));
    }
}

/* The answer has come whole, or will never come. */
static bool is_over(void *arg)
{
    (void)arg;
    vote();
    ssize_t got = recv(client.fd, client.text + client.len,
                       sizeof client.text - 1 - client.len, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        return true;
    client.len += got > 0 ? (size_t)got : 0;
    client.text[client.len] = '\0';
    const char *body = strstr(client.text, "\r\n\r\n");
    const char *length = strstr(client.text, "Content-Length: ");
    return body != NULL && length != NULL &&
           strlen(body + 4) == strtoul(length + 16, NULL, 10);
}

/* Its status; 0: closed without an answer. */
static int ask(int number)
{
    client.ballot = requests[number].ballot;
    client.granted = 0;
    client.len = 0;
    client.text[0] = '\0';
    play.sent_count = 0;
    client.fd = served_ask(requests[number].text);
    turns_until(served.loop, is_over, NULL);
    return client.len > 0 ? atoi(client.text + 9) : 0;
}

static bool has_settled(void *arg)
{
    (void)arg;
    vote();
    return play.metrics.connections == 0 &&
           front_in_flight(served.front) == 0 &&
           engine_in_flight(play.engine) == 0;
}

static void ignore_event(void *arg, int events)
{
    (void)arg;
    (void)events;
}

/* libuv ends the process if its table cannot grow: it need not. */
static void set_up(void)
{
    enum { FAR = 200 };
    served_begin();
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(dup2(ends[0], FAR), FAR);
    struct loop_watch *watch =
        loop_watch_new(served.loop, FAR, ignore_event, NULL);
    ck_assert_ptr_nonnull(watch);
    ck_assert(loop_watch_set(watch, LOOP_READABLE));
    loop_watch_free(watch);
}

/* ---- requests ----------------------------------------------------------- */

/* False: the request makes fewer than n allocations. */
static bool ask_without(int n, int number)
{
    starve.left = n;
    int status = ask(number);
    bool has_failed = starve.left == 0;
    starve.left = 0;
    close(client.fd);
    turns_until(served.loop, has_settled, NULL);
    served_pass();
    vote();
    if (status == requests[number].status)
        return has_failed;
    ck_assert(has_failed);
    bool has_body = strstr(requests[number].text, "Content-Length") != NULL;
    ck_assert_msg(status == 503 || (status == 0 && n <= UNTOLD + has_body),
                  "%d: %s", n, client.text);
    if (status == 503)
        ck_assert_has(client.text, "\"code\":\"overloaded\"");
    /* nobody owns it */
    if (client.granted > 0)
        ck_assert_int_eq(play_count(CALL_RELEASE), client.granted);
    return true;
}

SUITE(front_memory, .set_up = set_up, .tear_down = served_end);

TEST_EACH(each_allocation_of_a_request_may_fail, requests)
{
    int n = 1;
    while (ask_without(n, _i))
        n++;
    ck_assert_int_gt(n, 2);
    ck_assert_int_eq(ask(_i), requests[_i].status);
    close(client.fd);
}

static int request;

static void ask_and_close(void)
{
    ck_assert_int_eq(ask(request), requests[request].status);
    close(client.fd);
    turns_until(served.loop, has_settled, NULL);
}

TEST_EACH(a_request_leaves_nothing, requests)
{
    request = _i;
    growth_expect_none(ask_and_close);
}

/* In the midst of its body, and while the nodes are asked. */
static void leave(void)
{
    play.sent_count = 0;
    close(served_ask(SERVED_POST(16) "{"));
    int fd = served_ask(SERVED_ACQUIRE);
    served_await_acquires(1);
    close(fd);
    turns_until(served.loop, has_settled, NULL);
}

TEST(a_client_that_leaves_leaves_nothing)
{
    client.ballot = VOTE_GRANTED;
    growth_expect_none(leave);
}

/* ---- the start ---------------------------------------------------------- */

TEST(each_allocation_of_a_start_may_fail)
{
    const struct front_setup setup = served_setup();
    struct front *front = NULL;
    int n = 0;
    while (front == NULL) {
        char error[FRONT_ERROR_MAX] = "";
        starve = (struct starve){.is_on = true, .left = ++n};
        front = front_new(&setup, error);
        if (front == NULL)
            ck_assert_int_eq(strncmp(error, "out of memory", 13), 0);
        ck_assert_int_eq(starve.left == 0, front == NULL);
    }
    starve = (struct starve){0};
    ck_assert_int_gt(n, 3);
    front_free(front);
}

static void start_and_stop(void)
{
    served_end();
    served_begin();
    ask_and_close();
}

TEST(a_front_leaves_nothing)
{
    growth_expect_none(start_and_stop);
}
