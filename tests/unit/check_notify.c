/*
 * What is told of the life of the process. The log: likely mistakes, such as
 * secrets that others can read. A service manager: the test is one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../server/base/clock.h"
#include "../../server/notify.h"
#include "../lib/suite/suite.h"
#include "base/words.h"
#include "said.h"

enum { CONNECTIONS = 20000, TEXT_SIZE = 400, MESSAGE_MAX = 512 };

static struct config config;
static char path[] = "/tmp/redlockd.start.XXXXXX";

static void set_up(void)
{
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    said_begin();
    log_set_level(LOG_WARN);
}

static void tear_down(void)
{
    said_end();
    (void)unlink(path);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
}

static void write_file(const char *text, unsigned mode)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
}

/* What a start by such a configuration says; "%s" in it is the file. */
static const char *start(const char *env, const char *args)
{
    char error[CONFIG_ERROR_MAX], envs[TEXT_SIZE], flags[TEXT_SIZE];
    snprintf(envs, sizeof envs, env, path);
    snprintf(flags, sizeof flags, args, path);
    ck_assert_msg(words_load(&config, envs, flags, error), "%s", error);
    notify_start(&config, CONNECTIONS);
    return said();
}

/* ---- the log ------------------------------------------------------------- */

SUITE(notify, .set_up = set_up, .tear_down = tear_down);

static const struct {
    const char *nodes;
    int count; /* of those that give their password to the network */
} nodes[] = {
    {"redis://:secret@10.0.0.1:1", 1},
    {"redis://me:secret@redis.example:1", 1},
    {"redis://:secret@10.0.0.1:1,b:1,redis://:secret@10.0.0.3:1", 2},
    {"rediss://:secret@10.0.0.1:1", 0},
    {"10.0.0.1:1", 0},
    {"redis://:secret@127.0.0.1:1", 0},
    {"redis://:secret@localhost:1", 0},
    {"redis://:secret@[::1]:1", 0},
    {"unix://:secret@/run/redis.sock", 0},
};

TEST_EACH(a_password_that_crosses_the_network_in_the_clear_is_told, nodes)
{
    char args[TEXT_SIZE], expected[64];
    snprintf(args, sizeof args, "--nodes %s", nodes[_i].nodes);
    snprintf(expected, sizeof expected, "event=nodes_in_the_clear nodes=%d ",
             nodes[_i].count);
    const char *lines = start("", args);
    ck_assert_ptr_null(strstr(lines, "secret"));
    if (nodes[_i].count > 0)
        ck_assert_ptr_nonnull(strstr(lines, expected));
    else
        ck_assert_ptr_null(strstr(lines, "in_the_clear"));
}

static const struct {
    unsigned mode;
    bool is_open;
} modes[] = {{0600, false}, {0640, false}, {0644, true}, {0602, true}};

TEST_EACH(a_file_of_nodes_that_others_may_read_or_write_is_told, modes)
{
    write_file("redis://:secret@127.0.0.1:1\n", modes[_i].mode);
    const char *lines = start("REDLOCKD_NODES_FILE=%s", "");
    ck_assert_int_eq(strstr(lines, "event=nodes_file_is_open") != NULL,
                     modes[_i].is_open);
    ck_assert_int_eq(strstr(lines, path) != NULL, modes[_i].is_open);
}

/* Then its readers learn nothing that --help would not tell. */
TEST(a_file_of_nodes_without_passwords_may_be_open)
{
    write_file("127.0.0.1:1\n", 0644);
    ck_assert_str_eq(start("REDLOCKD_NODES_FILE=%s", ""), "");
}

TEST_EACH(a_key_for_nodes_that_others_may_read_or_write_is_told, modes)
{
    write_file("", modes[_i].mode);
    const char *lines =
        start("", "--nodes rediss://10.0.0.1:1 --node-cert c --node-key %s");
    ck_assert_int_eq(strstr(lines, "event=node_key_is_open") != NULL,
                     modes[_i].is_open);
}

/* ---- the service manager ------------------------------------------------- */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int manager;

static void begin_to_manage(void)
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
    log_set_level(LOG_WARN);
    config = (struct config){
        .listen_host = "::1", .listen_port = 80, .nodes_count = 5};
}

static void end_to_manage(void)
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

GROUP(manager, .set_up = begin_to_manage, .tear_down = end_to_manage);

TEST(readiness_has_a_status)
{
    notify_ready(&config);
    ck_assert_str_eq(heard(),
                     "READY=1\nSTATUS=serving on [::1]:80 over 5 nodes");
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
    log_set_level(LOG_INFO);
    notify_draining(600000, 620000000);
    ck_assert_str_eq(heard(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=620000000\n"
                              "STATUS=draining for 600000 ms");
    ck_assert_ptr_nonnull(strstr(said(), "event=draining drain_ms=600000\n"));
}

static void say_all(void)
{
    notify_ready(&config);
    notify_reloading();
    notify_draining(0, 1);
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
