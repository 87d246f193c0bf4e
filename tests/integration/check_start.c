/* SPDX-License-Identifier: MIT */
/*
 * The start as a shell, a service manager or an operator may give it: closed
 * descriptors, few of them, an output that is full, a terminal that hangs up.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"

static struct server server;

/*
 * Starts a server without nodes by command, which must end with exec "$@" and
 * what the shell is to do with its descriptors. Returns when it serves.
 */
static void start(const char *command)
{
    char listen[32], dir[PATH_SIZE];
    char *argv[] = {"sh",       "-c",   (char *)command, "sh",          NULL,
                    "--listen", listen, "--nodes",       "127.0.0.1:1", NULL};

    argv[4] = (char *)harness_binary();
    server = (struct server){.port = harness_free_port()};
    harness_make_dir(dir);
    snprintf(server.log, sizeof server.log, "%.200s/server.log", dir);
    snprintf(listen, sizeof listen, "127.0.0.1:%d", server.port);
    server.pid = harness_spawn(argv, NULL, server.log);
    AWHILE(http_probe(&server, "/livez") == 200);
}

/* Interrupts it; it must end with 0. */
static void stop(void)
{
    kill(server.pid, SIGINT);
    server_await_end(&server);
}

/* ---- descriptors --------------------------------------------------------- */

static const struct {
    const char *command;
    int first, last;
} closings[] = {
    {"exec \"$@\" <&-", 0, 0},      {"exec \"$@\" >&-", 1, 1},
    {"exec \"$@\" 2>&-", 2, 2},     {"exec \"$@\" <&- >&-", 0, 1},
    {"exec \"$@\" >&- 2>&-", 1, 2}, {"exec \"$@\" <&- >&- 2>&-", 0, 2},
};

SUITE(start, .timeout_s = 60);

/* What is written to them must not reach a node, a client or the loop. */
TEST_EACH(closed_standard_descriptor_is_taken_by_nothing_else, closings)
{
    start(closings[_i].command);
    for (int fd = closings[_i].first; fd <= closings[_i].last; fd++) {
        char path[64], target[PATH_MAX] = "";
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)server.pid, fd);
        ck_assert_int_gt(readlink(path, target, sizeof target - 1), 0);
        ck_assert_str_eq(target, "/dev/null");
    }
    stop();
}

static const struct {
    const char *command, *says, *says_not;
} limits[] = {
    {"ulimit -n 80; exec \"$@\"", " connections=16", "?"},
    {"ulimit -n 80; exec \"$@\"", "event=few_connections", "?"},
    {"ulimit -n 1063; exec \"$@\"", "event=few_connections", "?"},
    {"ulimit -n 1064; exec \"$@\"", " connections=1000", "few_connections"},
    {"ulimit -S -n 70; exec \"$@\"", " connections=", "connections=6"},
};

TEST_EACH(start_tells_for_how_many_connections, limits)
{
    start(limits[_i].command);
    stop();
    char *log = harness_read_file(server.log);
    ck_assert_msg(strstr(log, limits[_i].says), "%s", log);
    ck_assert_msg(!strstr(log, limits[_i].says_not), "%s", log);
    free(log);
}

TEST(descriptors_for_hardly_any_connection_are_refused)
{
    char command[] = "ulimit -n 79; exec \"$0\" --nodes 127.0.0.1:1 "
                     "--listen 203.0.113.1:80 --allow-anonymous";
    char *argv[] = {"sh", "-c", command, (char *)harness_binary(), NULL};
    char *output;

    ck_assert_int_eq(harness_run(argv, NULL, &output), 1);
    ck_assert_str_eq(output, "redlockd: the limit of open files (ulimit -n) is "
                             "79; at least 80 are needed\n");
    free(output);
}

/* ---- signals ------------------------------------------------------------- */

TEST(hangup_does_not_end_it)
{
    start("exec \"$@\"");
    kill(server.pid, SIGHUP);
    ck_assert_int_eq(http_probe(&server, "/livez"), 200);
    stop();
}

/* Its reader ends behind the first line. */
TEST(a_log_that_nobody_reads_does_not_end_it)
{
    start("f=$(mktemp -u) && mkfifo $f && { head -n 1 <$f & exec 2>$f; rm $f; "
          "exec \"$@\" --log-level debug; }");
    for (int i = 0; i < 3; i++) /* each has a line */
        ck_assert_int_eq(http_probe(&server, "/livez"), 200);
    stop();
}
