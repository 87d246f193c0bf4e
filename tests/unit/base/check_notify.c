/*
 * What a service manager hears: the test is one.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/base/notify.h"
#include "../../lib/suite/suite.h"
#include "../said.h"

enum { MESSAGE_MAX = 512 };

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int manager;

static void set_up(void)
{
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/check_notify.%d",
             (int)getpid());
    unlink(address.sun_path); /* of a test that crashed */
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(manager, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&address, sizeof address),
                     0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
    said_begin();
}

static void tear_down(void)
{
    said_end();
    unsetenv("NOTIFY_SOCKET");
    close(manager);
    unlink(address.sun_path);
}

/* The next message; "" if none was sent. */
static const char *heard(void)
{
    static char message[MESSAGE_MAX];
    ssize_t len = recv(manager, message, sizeof message - 1, 0);
    message[len > 0 ? len : 0] = '\0';
    return message;
}

SUITE(notify, .set_up = set_up, .tear_down = tear_down);

TEST(readiness_has_a_status)
{
    notify_ready("serving");
    ck_assert_str_eq(heard(), "READY=1\nSTATUS=serving");
    ck_assert_str_eq(heard(), "");
    ck_assert_str_eq(said(), "");
}

/* systemd ignores a reload that is older than the one it asked for */
TEST(a_reload_tells_the_clock)
{
    int64_t before_us = clock_monotonic_us(), told_us = 0;
    char status[32];
    notify_reloading();
    ck_assert_int_eq(
        sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%" SCNd64 "\nSTATUS=%31s",
               &told_us, status),
        2);
    ck_assert_int_ge(told_us, before_us);
    ck_assert_int_le(told_us, clock_monotonic_us());
}

TEST(the_end_asks_for_the_time_it_needs)
{
    notify_stopping(620000000, "draining");
    ck_assert_str_eq(
        heard(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=620000000\nSTATUS=draining");
}

static void say_all(void)
{
    notify_ready("serving");
    notify_reloading();
    notify_stopping(1, "draining");
}

TEST(nothing_is_said_without_a_manager)
{
    unsetenv("NOTIFY_SOCKET");
    say_all();
    ck_assert_str_eq(heard(), "");
    ck_assert_str_eq(said(), "");
}

/* One that is gone, and what is no address; the log tells. */
static const char *const nowhere[] = {"/tmp/nobody/listens/here", "relative",
                                      "@abstract-and-nobody-there", ""};

TEST_EACH(a_manager_that_is_away_stops_nothing, nowhere)
{
    setenv("NOTIFY_SOCKET", nowhere[_i], 1);
    say_all();
    ck_assert_str_eq(heard(), "");
    ck_assert_ptr_nonnull(strstr(said(), "event=notify_failed"));
}
