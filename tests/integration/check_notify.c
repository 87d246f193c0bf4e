/* SPDX-License-Identifier: MIT */
/*
 * What the service manager hears of a server; the test is the manager.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "http.h"

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int manager;

static void set_up(void)
{
    char dir[PATH_SIZE];
    harness_make_dir(dir);
    int len = PRINT_TO(address.sun_path, "%s/notify", dir);
    ck_assert_int_lt(len, (int)sizeof address.sun_path);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, sizeof address),
                     0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
}

static void tear_down(void)
{
    unsetenv("NOTIFY_SOCKET");
    close(manager);
}

/* The next message, which has to come. */
static const char *heard(void)
{
    static char message[512];
    ssize_t len = -1;
    SOON((len = recv(manager, message, sizeof message - 1, 0)) > 0);
    message[len] = '\0';
    return message;
}

static bool hears_nothing(void)
{
    char byte;
    return recv(manager, &byte, 1, 0) < 0;
}

static int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

SUITE(notify, .timeout_s = 60, .set_up = set_up, .tear_down = tear_down);

/* On READY=1 systemd starts what comes after: it must find a server. */
TEST(ready_is_told_when_clients_can_connect)
{
    world_start_nodes(3);
    world_start_server(0, "");
    const char *message = heard();
    ck_assert_int_eq(http_probe(here, "/livez"), 200);
    const char *status = textf(
        "READY=1\nSTATUS=serving on 127.0.0.1:%d with 3 nodes", here->port);
    ck_assert_str_eq(message, status);
    ck_assert(hears_nothing());
    world_stop();
}

TEST(a_reload_is_told_from_begin_to_end)
{
    world_start(1, AT_SIGHT);
    heard();
    for (int i = 0; i < 3; i++) {
        char status[32];
        int64_t reported_us = 0, before_us = monotonic_us();
        kill(here->pid, SIGHUP);
        ck_assert_int_eq(sscanf(heard(),
                                "RELOADING=1\nMONOTONIC_USEC=%" SCNd64
                                "\nSTATUS=%31s",
                                &reported_us, status),
                         2);
        /* systemd ignores a reload that is older than the one it asked for */
        ck_assert_int_ge(reported_us, before_us);
        ck_assert_int_le(reported_us, monotonic_us());
        ck_assert_has(heard(), "READY=1\n");
    }
    ck_assert(hears_nothing());
    world_stop();
}

/* It would be READY=1, which takes the end back. */
TEST(who_drains_tells_of_no_reload)
{
    world_start(1, AT_SIGHT " --drain-ms 60000");
    heard();
    kill(here->pid, SIGTERM);
    ck_assert_str_eq(heard(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=73000000\n"
                              "STATUS=draining for 60000 ms");
    kill(here->pid, SIGHUP);
    SOON(http_probe(here, "/readyz") == 503);
    kill(here->pid, SIGTERM);
    server_await_end(here);
    ck_assert(hears_nothing());
    world_stop();
}
