/*
 * An audit log that takes no lines keeps nobody from locking.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auditlog.h"
#include "grant.h"
#include "node.h"
#include "tally.h"

enum { N = 3, SOON_MS = 20000, LONG_NAMES = 15 };

static struct world world;
static const struct server *const server = &world.servers[0];
static char dir[PATH_SIZE], path[PATH_SIZE];

SUITE(audit_file, .timeout_s = 120);

/* ---- the file ----------------------------------------------------------- */

/* ---- files that take no lines ------------------------------------------- */

/* An acquire and a release whose lines are long: 10 KB each. */
static void cycle_long(int number)
{
    static char json[8192];
    struct lock grant;
    size_t len = (size_t)PRINT_TO(json, "{\"resources\":[\"%d\"", number);
    for (int i = 0; i < LONG_NAMES; i++)
        len += (size_t)snprintf(json + len, sizeof json - len, ",\"%c%0254d\"",
                                'a' + i, i);
    (void)snprintf(json + len, sizeof json - len, "]}");
    grant_take(server, json, NULL, &grant);
    answer_expect(lock_release(server, &grant), 200, NULL);
}

static int lost(void)
{
    return (int)http_metric(server, "redlockd_audit_lost_total");
}

/* Until lines are lost; returns the number of all. */
static int overflow(void)
{
    int lines = 0;
    for (; lost() == 0; lines += 2)
        cycle_long(0);
    for (int i = 0; i < 5; i++, lines += 2)
        cycle_long(0);
    ck_assert_int_ge(lost(), 10);
    return lines;
}

/* Reads until so many grants and releases were told, or lost. */
static void read_fifo(int fd, struct tally *tally, int lines)
{
    static char text[4 * 1024 * 1024];
    size_t len = 0;
    int64_t deadline_ms = harness_now_ms() + SOON_MS;
    for (;;) {
        ck_assert_int_lt(harness_now_ms(), deadline_ms);
        ssize_t got = read(fd, text + len, sizeof text - 1 - len);
        if (got > 0)
            len += (size_t)got;
        text[len] = '\0';
        if (got > 0 && text[len - 1] == '\n') {
            tally_text(tally, text);
            len = 0;
        }
        if (len == 0 && tally->grants + tally->releases + tally->lost >= lines)
            return;
        if (got <= 0)
            harness_pause_ms(5);
    }
}

TEST(a_reader_that_stopped_keeps_nobody_from_locking)
{
    struct tally tally = {0};
    auditlog_name(dir, path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    auditlog_start(&world, N, path, "--log-level info"); /* nobody reads yet */
    int lines = overflow();
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(fd, 0);
    read_fifo(fd, &tally, lines - lost());
    cycle_long(0); /* the hole is told with the next line */
    read_fifo(fd, &tally, lines + 2);
    ck_assert_int_eq(tally.lost, lost());
    ck_assert_int_eq(tally.grants + tally.releases + tally.lost, lines + 2);
    world_stop(&world);
    ck_assert(server_count_log(server, "level=error event=audit_lines_lost "));
}

/* The file takes ten more bytes; or any number again. */
static void limit_file(bool is_full)
{
    struct stat info;
    struct rlimit limit;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(prlimit(server->pid, RLIMIT_FSIZE, NULL, &limit), 0);
    limit.rlim_cur = is_full ? (rlim_t)info.st_size + 10 : limit.rlim_max;
    ck_assert_int_eq(prlimit(server->pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

/* Under --audit-required it does; what is held can be looked at. */
TEST(a_required_line_that_is_not_taken_stops_changes)
{
    struct lock lock;
    auditlog_name(dir, path);
    auditlog_start(&world, N, path, "--audit-required on --log-level off");
    lock_take(server, "a", 60000, &lock);
    WAIT_UNTIL(5000, world_count_keys(&world, "a") == N);
    limit_file(true);
    for (int i = 0; i < 3; i++) {
        answer_expect(lock_acquire(server, "b", 60000, NULL), 503,
                      "audit_unavailable");
        answer_expect(lock_extend(server, &lock, 60000), 503,
                      "audit_unavailable");
        answer_expect(lock_release(server, &lock), 503, "audit_unavailable");
    }
    answer_expect_held(lock_inspect(server, "a"));
    ck_assert_int_eq(world_count_keys(&world, "a"), N);
    ck_assert_int_eq(world_count_keys(&world, "b"), 0);
    limit_file(false);
    answer_expect(lock_release(server, &lock), 200, NULL);
    lock_expect_cycle(server, "b");
    struct tally tally = tally_file(path);
    ck_assert_int_eq(tally.grants, 2);
    ck_assert_int_eq(tally.releases, 2);
    ck_assert_int_eq(lost(), 0);
    world_stop(&world);
}

/* ---- stdout, and what is no file ---------------------------------------- */

TEST(lines_go_to_stdout)
{
    PRINT_TO(path, "-");
    auditlog_start(&world, N, path,
                   "--log-format json"); /* into the same file here */
    lock_expect_cycle(server, "a");
    ck_assert_int_eq(kill(server->pid, SIGHUP), 0);
    lock_expect_cycle(server, "b");
    world_stop(&world);
    struct tally tally = tally_file(server->log);
    ck_assert_int_eq(tally.grants, 2);
    ck_assert_int_eq(tally.releases, 2);
}

TEST(what_is_no_file_is_refused_in_one_line)
{
    char *output;
    char *argv[] = {
        (char *)harness_binary(), "--nodes", "127.0.0.1:1", "--audit-log",
        "/nowhere/audit",         NULL};
    ck_assert_int_eq(harness_run(argv, NULL, &output), 1);
    ck_assert_ptr_eq(strstr(output, "redlockd: --audit-log: \""), output);
    ck_assert_has(output, "/nowhere/audit");
    ck_assert_str_eq(strchr(output, '\n'), "\n");
    free(output);
}

TEST(a_closed_stdout_is_refused)
{
    char command[2 * PATH_SIZE], *output;
    char *argv[] = {"sh", "-c", command, NULL};
    PRINT_TO(command, "exec %s --nodes 127.0.0.1:1 --audit-log - >&-",
             harness_binary());
    ck_assert_int_eq(harness_run(argv, NULL, &output), 1);
    ck_assert_ptr_eq(strstr(output, "redlockd: --audit-log: \"-\": "), output);
    free(output);
}
