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

/* False: this machine does not have this address. */
static bool listen_on(const char *host)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four; /* both have the port in the same place */
        struct sockaddr_in6 six;
    } at = {0};
    bool is_six = inet_pton(AF_INET6, host, &at.six.sin6_addr) == 1;
    socklen_t len = is_six ? sizeof at.six : sizeof at.four;

    at.any.sa_family = is_six ? AF_INET6 : AF_INET;
    if (!is_six)
        ck_assert_int_eq(inet_pton(AF_INET, host, &at.four.sin_addr), 1);
    server.listener = socket(at.any.sa_family, SOCK_STREAM, 0);
    if (server.listener < 0 || bind(server.listener, &at.any, len) != 0)
        return false;
    ck_assert_int_eq(listen(server.listener, 1), 0);
    ck_assert_int_eq(getsockname(server.listener, &at.any, &len), 0);
    server.port = ntohs(at.four.sin_port);
    return true;
}

static void setup(void)
{
    ck_assert(listen_on("127.0.0.1"));
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
    ck_assert_str_eq(said(), textf("redlockd: no answer on port %d: %s\n",
                                   server.port, reason));
}

/* ---- answers ------------------------------------------------------------- */

/* Longer than any buffer. */
static char long_text[LONG + 1];

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
    {{"HTTP/1.1 200 ", long_text}, 200},
    {{"HTTP/1.1 200 ", long_text, "\r\n"}, 200},
    {{long_text}, 0},
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

    memset(long_text, 'x', LONG);
    serve(answers[_i].pieces, PIECES_MAX, PAUSE_US);
    ck_assert_int_eq(run("127.0.0.1"), status == 200 ? 0 : 1);
    if (status == 0) {
        expect_no_answer("Protocol error");
        return;
    }
    if (status != 200)
        PRINT_TO(unready, "redlockd: not ready: status %d\n", status);
    ck_assert_str_eq(said(), unready);
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

/* Where it listens, what it is told to ask, and whom it asks. */
static const char *const hosts[][3] = {
    {"127.0.0.1", "127.0.0.1", "127.0.0.1"},
    {"127.0.0.1", "0.0.0.0", "127.0.0.1"},
    {"::1", "::1", "[::1]"},
    {"::1", "::", "[::1]"},
};

TEST_EACH(who_listens_on_every_address_is_asked_at_loopback, hosts)
{
    char request[1024];

    close(server.listener);
    if (!listen_on(hosts[_i][0]))
        return; /* a container may have no IPv6 */
    serve(answers[0].pieces, PIECES_MAX, 0);
    ck_assert_int_eq(run(hosts[_i][1]), 0);
    ssize_t got = read(server.asked[0], request, sizeof request - 1);
    ck_assert_int_gt(got, 0);
    request[got] = '\0';
    const char *expected = textf("GET /readyz HTTP/1.1\r\nHost: %s:%d\r\n",
                                 hosts[_i][2], server.port);
    ck_assert_msg(strncmp(request, expected, strlen(expected)) == 0, "%s",
                  request);
    ck_assert_str_eq(strstr(request, "\r\n\r\n"), "\r\n\r\n");
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
