/* SPDX-License-Identifier: MIT */
/*
 * What the log tells at the start of likely mistakes, such as secrets that
 * others can read; and a service manager that is away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../server/notify.h"
#include "../lib/folder/folder.h"
#include "../lib/suite/suite.h"
#include "base/words.h"
#include "said.h"

enum { CONNECTIONS = 20000, TEXT_SIZE = 400 };

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
    strcpy(path + sizeof path - 7, "XXXXXX");
}

static void write_file(const char *text, unsigned mode)
{
    folder_write(path, text);
    ck_assert_int_eq(chmod(path, mode), 0);
}

/* What a start by such a configuration says. */
static const char *start(const char *env, const char *args)
{
    char error[CONFIG_ERROR_MAX];
    ck_assert_msg(words_load(&config, env, args, error), "%s", error);
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
    PRINT_TO(args, "--nodes %s", nodes[_i].nodes);
    PRINT_TO(expected, "event=nodes_in_the_clear nodes=%d ", nodes[_i].count);
    const char *lines = start("", args);
    ck_assert_lacks(lines, "secret");
    if (nodes[_i].count > 0)
        ck_assert_has(lines, expected);
    else
        ck_assert_lacks(lines, "in_the_clear");
}

static const struct {
    unsigned mode;
    bool is_open;
} modes[] = {{0600, false}, {0640, false}, {0644, true}, {0602, true}};

TEST_EACH(a_file_of_nodes_that_others_may_read_or_write_is_told, modes)
{
    write_file("redis://:secret@127.0.0.1:1\n", modes[_i].mode);
    const char *lines = start(textf("REDLOCKD_NODES_FILE=%s", path), "");
    ck_assert_int_eq(strstr(lines, "event=nodes_file_is_open") != NULL,
                     modes[_i].is_open);
    ck_assert_int_eq(strstr(lines, path) != NULL, modes[_i].is_open);
}

/* Then its readers learn nothing that --help would not tell. */
TEST(a_file_of_nodes_without_passwords_may_be_open)
{
    write_file("127.0.0.1:1\n", 0644);
    ck_assert_str_eq(start(textf("REDLOCKD_NODES_FILE=%s", path), ""), "");
}

TEST_EACH(a_key_for_nodes_that_others_may_read_or_write_is_told, modes)
{
    write_file("", modes[_i].mode);
    const char *lines =
        start("", textf("--nodes rediss://10.0.0.1:1 --node-cert c "
                        "--node-key %s",
                        path));
    ck_assert_int_eq(strstr(lines, "event=node_key_is_open") != NULL,
                     modes[_i].is_open);
}

static const struct {
    const char *args, *event;
} unwise[] = {
    {"--nodes 127.0.0.1:1 --restart-guard=off", "event=restart_guard_off "},
    {"--nodes 127.0.0.1:1,127.0.0.1:2", "event=even_number_of_nodes nodes=2 "},
};

TEST_EACH(what_is_unwise_is_told, unwise)
{
    ck_assert_has(start("", unwise[_i].args), unwise[_i].event);
}

/* ---- the service manager ------------------------------------------------- */

/* What one hears is in tests/integration/check_notify.c. */
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
    ck_assert_str_eq(said(), "");
}

/* One that is gone, and what is no address; the log tells. */
static const char *const nowhere[] = {"/tmp/nobody/listens/here", "relative",
                                      "@abstract-and-nobody-there", ""};

TEST_EACH(a_manager_that_is_away_stops_nothing, nowhere)
{
    setenv("NOTIFY_SOCKET", nowhere[_i], 1);
    say_all();
    ck_assert_has(said(), "event=notify_failed");
}
