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

#define OK "HTTP/1.1 200 OK\r\n"

/* What comes, and what is said of it: nothing, a status, or that it is none. */
static const struct {
    const char *pieces[PIECES_MAX];
    int status;
} answers[] = {
    {{OK "Content-Length: 3\r\n\r\nok\n"}, 200},
    {{"HTTP/1.0 200 OK\r\n\r\n"}, 200},
    {{"H", "TTP/1.1 2", "00 OK\r", "\n\r\n"}, 200},
    {{OK, "\r\n", "ok\n"}, 200},
    {{"HTTP/1.1 503 Service Unavailable\r\n\r\n"}, 503},
    {{"HTTP/1.1 ", "404 Not Found\r\n\r\n"}, 404},
    {{"HTTP/1.1 201 Created\r\n\r\n"}, 201},
    {{"HTTP/1.1 199 x\r\n\r\n"}, 199},
    {{NULL}, 0},
    {{"HTTP/1.1 000 x\r\n\r\n"}, 0},
    {{"HTTP/1.1 OK\r\n\r\n"}, 0},
    {{"HTTP/2 200\r\n\r\n"}, 0},
    {{"HTTP/3.1 200 OK\r\n\r\n"}, 0},
    {{"SSH-2.0-OpenSSH_9.2p1\r\n"}, 0},
    {{"\r\n" OK "\r\n"}, 0},
    {{"ok\n"}, 0},
};

SUITE(healthcheck, .set_up = setup, .tear_down = teardown,
      .timeout_s = TIMEOUT_S);

TEST_EACH(what_comes_is_an_answer_or_none, answers)
{
    char unready[64] = "";
    int status = answers[_i].status;

    serve(answers[_i].pieces, PIECES_MAX, PAUSE_US);
    ck_assert_int_eq(run("127.0.0.1"), status == 200 ? 0 : 1);
    if (status == 0) {
        expect_no_answer("Protocol error");
        return;
    }
    if (status != 200)
        snprintf(unready, sizeof unready, "redlockd: not ready: status %d\n",
                 status);
    ck_assert_str_eq(said(), unready);
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
    serve(answers[0].pieces, PIECES_MAX, 0);
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
    serve(answers[0].pieces, PIECES_MAX, 0);
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
