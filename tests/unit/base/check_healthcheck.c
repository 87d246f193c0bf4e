/*
 * --healthcheck against a server that serves what the test says.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../server/healthcheck.h"
#include "../../lib/suite/suite.h"
#include "../node/names.h"
#include "../said.h"

enum { PIECES_MAX = 4, LONG = 5000, PAUSE_US = 20000, TIMEOUT_S = 60 };

static struct {
    int listener;
    int port;
    pid_t child;
    int asked[2]; /* a pipe: the request that came in */
} server;

/* ---- the server ---------------------------------------------------------- */

static void listen_on(const struct sockaddr *address, socklen_t len)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four; /* both have the port in the same place */
        struct sockaddr_in6 six;
    } bound = {0};
    socklen_t bound_len = sizeof bound;

    server.listener = socket(address->sa_family, SOCK_STREAM, 0);
    ck_assert_int_ge(server.listener, 0);
    ck_assert_int_eq(bind(server.listener, address, len), 0);
    ck_assert_int_eq(listen(server.listener, 1), 0);
    ck_assert_int_eq(getsockname(server.listener, &bound.any, &bound_len), 0);
    server.port = ntohs(bound.four.sin_port);
}

static void setup(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listen_on((struct sockaddr *)&address, sizeof address);
    ck_assert_int_eq(pipe(server.asked), 0);
    said_begin();
}

static void teardown(void)
{
    said_end();
    close(server.listener);
    if (server.child > 0) {
        kill(server.child, SIGKILL);
        waitpid(server.child, NULL, 0);
    }
}

/* In the child: the request, up to its empty line. */
static void take_request(int fd)
{
    char request[1024] = "";
    size_t len = 0;

    while (len < sizeof request - 1 && !strstr(request, "\r\n\r\n")) {
        ssize_t got = recv(fd, request + len, sizeof request - 1 - len, 0);
        if (got <= 0)
            _exit(1);
        len += (size_t)got;
    }
    if (write(server.asked[1], request, len) != (ssize_t)len)
        _exit(2);
}

/* To one client, in a child: the pieces, with a pause behind each. */
static void serve(const char *const pieces[], int count, unsigned pause_us)
{
    server.child = fork();
    if (server.child != 0)
        return;
    int fd = accept(server.listener, NULL, NULL);
    if (fd < 0)
        _exit(3);
    take_request(fd);
    for (int i = 0; i < count && pieces[i] != NULL; i++) {
        /* a client that has read enough is gone */
        (void)send(fd, pieces[i], strlen(pieces[i]), MSG_NOSIGNAL);
        usleep(pause_us);
    }
    _exit(0);
}

/* ---- the client ---------------------------------------------------------- */

/* Its exit code. */
static int run(const char *host)
{
    return healthcheck_run(host, server.port, false);
}

/* What it says if there was no answer, for this reason. */
static void expect_no_answer(const char *reason)
{
    char expected[512];

    snprintf(expected, sizeof expected, "redlockd: no answer on port %d: %s\n",
             server.port, reason);
    ck_assert_str_eq(said(), expected);
}

/* ---- answers ------------------------------------------------------------- */

static const struct {
    const char *pieces[PIECES_MAX];
} ready[] = {
    {{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"}},
    {{"HTTP/1.0 200 OK\r\n\r\n"}},
    {{"H", "TTP/1.1 2", "00 OK\r", "\n\r\n"}},
    {{"HTTP/1.1 200 OK\r\n", "\r\n", "ok\n"}},
};

SUITE(healthcheck, .set_up = setup, .tear_down = teardown,
      .timeout_s = TIMEOUT_S);

TEST_EACH(a_server_that_is_ready_is_ready, ready)
{
    serve(ready[_i].pieces, PIECES_MAX, PAUSE_US);
    ck_assert_int_eq(run("127.0.0.1"), 0);
    ck_assert_str_eq(said(), "");
}

static const struct {
    const char *pieces[PIECES_MAX];
    const char *said;
} unready[] = {
    {{"HTTP/1.1 503 Service Unavailable\r\n\r\n"}, "status 503\n"},
    {{"HTTP/1.1 ", "404 Not Found\r\n\r\n"}, "status 404\n"},
    {{"HTTP/1.1 201 Created\r\n\r\n"}, "status 201\n"},
    {{"HTTP/1.1 199 x\r\n\r\n"}, "status 199\n"},
};

TEST_EACH(another_status_is_told, unready)
{
    char expected[64];

    serve(unready[_i].pieces, PIECES_MAX, PAUSE_US);
    ck_assert_int_eq(run("127.0.0.1"), 1);
    snprintf(expected, sizeof expected, "redlockd: not ready: %s",
             unready[_i].said);
    ck_assert_str_eq(said(), expected);
}

static const struct {
    const char *pieces[PIECES_MAX];
} strange[] = {
    {{NULL}},
    {{"HTTP/1.1 000 x\r\n\r\n"}},
    {{"HTTP/1.1 OK\r\n\r\n"}},
    {{"HTTP/2 200\r\n\r\n"}},
    {{"HTTP/3.1 200 OK\r\n\r\n"}},
    {{"SSH-2.0-OpenSSH_9.2p1\r\n"}},
    {{"\r\nHTTP/1.1 200 OK\r\n\r\n"}},
    {{"ok\n"}},
};

TEST_EACH(what_is_no_answer_of_ours_is_told, strange)
{
    serve(strange[_i].pieces, PIECES_MAX, PAUSE_US);
    ck_assert_int_eq(run("127.0.0.1"), 1);
    expect_no_answer("Protocol error");
}

/* Longer than any buffer, with the end of the line or without. */
TEST_RANGE(of_a_first_line_without_end_its_status_counts, 0, 2)
{
    static char line[LONG + 3];
    const char *const pieces[] = {"HTTP/1.1 200 ", line, NULL};

    memset(line, 'x', LONG);
    if (_i == 0)
        memcpy(line + LONG, "\r\n", 3);
    serve(pieces, 2, PAUSE_US);
    ck_assert_int_eq(run("127.0.0.1"), 0);
}

TEST(garbage_without_end_is_no_answer)
{
    static char line[LONG + 1];
    const char *const pieces[] = {line, NULL};

    memset(line, 'x', LONG);
    serve(pieces, 1, PAUSE_US);
    ck_assert_int_eq(run("127.0.0.1"), 1);
    expect_no_answer("Protocol error");
}

/* A byte now and then puts the end of the wait off no further. */
TEST(a_server_that_does_not_come_to_the_point_is_not_waited_for)
{
    enum { BYTES = 100, PACE_US = 1900000 };
    const char *bytes[BYTES];

    for (int i = 0; i < BYTES; i++)
        bytes[i] = "H";
    serve(bytes, BYTES, PACE_US);
    ck_assert_int_eq(run("127.0.0.1"), 1);
    expect_no_answer("Connection timed out");
}

/* ---- the request --------------------------------------------------------- */

static void expect_request(const char *host)
{
    char request[1024], expected[256];

    ssize_t got = read(server.asked[0], request, sizeof request - 1);
    ck_assert_int_gt(got, 0);
    request[got] = '\0';
    ck_assert_msg(strncmp(request, "GET /readyz HTTP/1.1\r\n", 22) == 0, "%s",
                  request);
    snprintf(expected, sizeof expected, "\r\nHost: %s:%d\r\n", host,
             server.port);
    ck_assert_msg(strstr(request, expected) != NULL, "%s", request);
    ck_assert_str_eq(strstr(request, "\r\n\r\n"), "\r\n\r\n");
}

TEST_RANGE(who_listens_on_every_address_is_asked_at_loopback, 0, 2)
{
    serve(ready[0].pieces, PIECES_MAX, 0);
    ck_assert_int_eq(run(_i == 0 ? "127.0.0.1" : "0.0.0.0"), 0);
    expect_request("127.0.0.1");
}

TEST_RANGE(so_is_who_listens_on_every_address_of_ipv6, 0, 2)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool is_there =
        fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;

    close(fd);
    if (!is_there)
        return; /* a container may have no IPv6 */
    close(server.listener);
    listen_on((struct sockaddr *)&address, sizeof address);
    serve(ready[0].pieces, PIECES_MAX, 0);
    ck_assert_int_eq(run(_i == 0 ? "::1" : "::"), 0);
    expect_request("[::1]");
}

/* ---- nobody there -------------------------------------------------------- */

TEST(where_nobody_listens_there_is_no_answer)
{
    close(server.listener);
    ck_assert_int_eq(run("127.0.0.1"), 1);
    expect_no_answer("Connection refused");
}

TEST(a_host_that_is_none_has_no_answer)
{
    names_resolve_to("", 0);
    ck_assert_int_eq(run("none.test"), 1);
    expect_no_answer("Cannot assign requested address");
}
