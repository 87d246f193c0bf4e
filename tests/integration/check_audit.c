/* SPDX-License-Identifier: MIT */
/*
 * The audit log of a real server: each event has one line, which is there
 * before the answer; none is lost or torn by a rotation; and a file that takes
 * no lines keeps nobody from locking.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node.h"
#include "waiter.h"

enum { N = 3, SOON_MS = 20000, CLIENTS = 4, ROTATIONS = 8, LONG_NAMES = 15 };

static char dir[PATH_SIZE], path[PATH_SIZE];

/* A new directory, and the path of a log in it that is not there yet. */
static void name_log(void)
{
    harness_make_dir(dir);
    PRINT_TO(path, "%.200s/audit", dir);
}

static void start(const char *options)
{
    world_start(N, textf("--audit-log %s %s", path, options));
}

/* What the log tells, counted. */
struct tally {
    int lines;
    int grants;
    int releases;
    int lost; /* sum of what the lines "lines_lost" tell */
};

static const char *tally_member(const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));
    return text != NULL ? text : "";
}

static void count(struct tally *tally, const json_t *line)
{
    const char *event = tally_member(line, "event");
    tally->lines++;
    tally->grants += strcmp(event, "grant") == 0;
    tally->releases += strcmp(event, "release") == 0;
    tally->lost += (int)json_integer_value(json_object_get(line, "lost"));
}

/*
 * Adds what the text tells, which it writes over. Each line must be JSON, and
 * the last one whole.
 */
static void tally_text(struct tally *tally, char *text)
{
    for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        *end = '\0';
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        ck_assert_msg(json_is_object(line), "%s", text);
        count(tally, line);
        json_decref(line);
    }
    ck_assert_str_eq(text, "");
}

static struct tally tally_file(const char *name)
{
    struct tally tally = {0};
    char *text = harness_read_file(name);
    tally_text(&tally, text);
    free(text);
    return tally;
}

/* ---- the file ----------------------------------------------------------- */

/* The last line; the caller frees it. */
static json_t *last_line(void)
{
    char *text = harness_read_file(path);
    size_t len = strlen(text);
    ck_assert_uint_gt(len, 0);
    ck_assert_int_eq(text[len - 1], '\n');
    text[len - 1] = '\0';
    const char *before = strrchr(text, '\n');
    json_t *line = json_loads(before != NULL ? before + 1 : text, 0, NULL);
    ck_assert_ptr_nonnull(line);
    free(text);
    return line;
}

/* The answer that is there now has this line already. */
static void expect_line(const struct answer *answer, const char *event)
{
    json_t *line = last_line();
    ck_assert_str_eq(tally_member(line, "event"), event);
    ck_assert_str_eq(tally_member(line, "request_id"),
                     answer_header(answer, "X-Request-Id"));
    ck_assert_int_eq(json_integer_value(json_object_get(line, "status")),
                     answer->status);
    ck_assert_str_eq(tally_member(line, "code"),
                     answer_has(answer, "code") ? answer_text(answer, "code")
                                                : "");
    ck_assert_has(tally_member(line, "client"), "127.0.0.1:");
    json_decref(line);
}

/* ---- events ------------------------------------------------------------- */

static void expect_force(const struct lock *lock, json_int_t number,
                         const char *event)
{
    const char *target = textf("%s?force=%lld", lock->path, (long long)number);
    expect_line(HTTP(here, .method = "DELETE", .path = target), event);
}

/* Neither whole nor the part that nobody can guess is told. */
static void expect_no_token(const struct lock *lock)
{
    char *text = harness_read_file(path);
    ck_assert_lacks(text, textf("%.40s", strchr(lock->token, '.') + 1));
    free(text);
}

SUITE(audit, .timeout_s = 120);

TEST(each_event_has_its_line_before_the_answer)
{
    struct lock lock;
    name_log();
    start("--trusted-proxies 127.0.0.0/8");
    expect_line(lock_acquire(here, "one", 9000, &lock), "grant");
    expect_line(lock_extend(here, &lock, 9000), "extend");
    expect_line(lock_acquire(here, "one", 9000, NULL), "refused");
    expect_force(&lock, lock.number - 1, "refused");
    expect_line(lock_release(here, &lock), "release");
    expect_line(lock_extend(here, &lock, 9000), "refused");
    expect_no_token(&lock);
    expect_line(lock_acquire(here, "one", 9000, &lock), "grant");
    expect_force(&lock, lock.number, "force_release");
    expect_no_token(&lock);
    int before = tally_file(path).lines;
    answer_expect_free(lock_inspect(here, "one"));
    answer_expect(HTTP(here, .method = "POST", .path = "/locks", .json = "{}"),
                  400, "invalid_request");
    ck_assert_int_eq(tally_file(path).lines, before);
    /* the client behind a proxy that is trusted, and the trace */
    answer_expect(
        HTTP(here, .method = "POST", .path = "/locks",
             .json = "{\"resource\":\"two\"}",
             .headers = {"X-Forwarded-For: 203.0.113.9, 127.0.0.5",
                         "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-"
                         "00f067aa0ba902b7-01"}),
        201, NULL);
    json_t *line = last_line();
    ck_assert_str_eq(tally_member(line, "client"), "203.0.113.9");
    ck_assert_str_eq(tally_member(line, "parent_id"), "00f067aa0ba902b7");
    json_decref(line);
    world_stop();
}

/* ---- rotation ----------------------------------------------------------- */

/* What a client has counted. */
struct counted {
    int grants;
    int releases;
};

/* Until the file called stop is there. */
static void work(int client, const char *stop, int out)
{
    struct counted counted = {0};
    struct lock lock;
    const char *resource = textf("r%d", client % 3);
    while (access(stop, F_OK) != 0) {
        if (lock_acquire(here, resource, 9000, &lock)->status != 201)
            continue;
        counted.grants++;
        counted.releases += lock_release(here, &lock)->status == 200;
    }
    ck_assert_int_eq(write(out, &counted, sizeof counted), (int)sizeof counted);
    _exit(0);
}

static bool exists(const char *name)
{
    return access(name, F_OK) == 0;
}

/* Moves the file away, as logrotate does, in the middle of everything. */
static void rotate(int number)
{
    struct stat info = {0};
    const char *moved = textf("%s.%d", path, number);
    AWHILE(stat(path, &info) == 0 && info.st_size > 0);
    ck_assert_int_eq(rename(path, moved), 0);
    pause_ms(number % 3 * 5); /* the old one is still written to */
    ck_assert_int_eq(kill(here->pid, SIGHUP), 0);
    AWHILE(exists(path));
}

TEST(a_rotation_loses_and_tears_no_line)
{
    struct counted sum = {0}, counted;
    struct tally tally = {0};
    pid_t pids[CLIENTS];
    int ends[2];
    name_log();
    start("--log-level info");
    const char *stop = textf("%.200s/stop", dir);
    ck_assert_int_eq(pipe(ends), 0);
    for (int i = 0; i < CLIENTS; i++) {
        pids[i] = harness_fork();
        if (pids[i] == 0)
            work(i, stop, ends[1]);
    }
    for (int i = 0; i < ROTATIONS; i++)
        rotate(i);
    ck_assert_int_ge(open(stop, O_WRONLY | O_CREAT, 0600), 0);
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_int_eq(read(ends[0], &counted, sizeof counted),
                         (int)sizeof counted);
        ck_assert_int_eq(harness_reap(pids[i], SOON_MS), 0);
        sum.grants += counted.grants;
        sum.releases += counted.releases;
    }
    world_stop();
    for (int i = 0; i <= ROTATIONS; i++) {
        const char *moved = textf(i < ROTATIONS ? "%s.%d" : "%s", path, i);
        char *text = harness_read_file(moved);
        tally_text(&tally, text);
        free(text);
    }
    ck_assert_int_gt(sum.grants, ROTATIONS);
    ck_assert_int_eq(tally.grants, sum.grants);
    ck_assert_int_eq(tally.releases, sum.releases);
    ck_assert_int_eq(tally.lost, 0);
}

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
    grant_take(here, json, NULL, &grant);
    lock_drop(here, &grant);
}

static int lost(void)
{
    return (int)http_metric(here, "redlockd_audit_lost_total");
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
            pause_ms(5);
    }
}

TEST(a_reader_that_stopped_keeps_nobody_from_locking)
{
    struct tally tally = {0};
    name_log();
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    start("--log-level info"); /* nobody reads yet */
    int lines = overflow();
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(fd, 0);
    read_fifo(fd, &tally, lines - lost());
    cycle_long(0); /* the hole is told with the next line */
    read_fifo(fd, &tally, lines + 2);
    ck_assert_int_eq(tally.lost, lost());
    ck_assert_int_eq(tally.grants + tally.releases + tally.lost, lines + 2);
    world_stop();
    ck_assert(server_count_log(here, "level=error event=audit_lines_lost "));
}

/* The file takes ten more bytes; or any number again. */
static void limit_file(bool is_full)
{
    struct stat info;
    struct rlimit limit;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(prlimit(here->pid, RLIMIT_FSIZE, NULL, &limit), 0);
    limit.rlim_cur = is_full ? (rlim_t)info.st_size + 10 : limit.rlim_max;
    ck_assert_int_eq(prlimit(here->pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

/* Under --audit-required it does; what is held can be looked at. */
TEST(a_required_line_that_is_not_taken_stops_changes)
{
    struct lock lock;
    name_log();
    start("--audit-required on --log-level off");
    lock_take(here, "a", 60000, &lock);
    WAIT_UNTIL(5000, count_keys("a") == N);
    limit_file(true);
    for (int i = 0; i < 3; i++) {
        answer_expect(lock_acquire(here, "b", 60000, NULL), 503,
                      "audit_unavailable");
        answer_expect(lock_extend(here, &lock, 60000), 503,
                      "audit_unavailable");
        answer_expect(lock_release(here, &lock), 503, "audit_unavailable");
    }
    answer_expect_held(lock_inspect(here, "a"));
    ck_assert_int_eq(count_keys("a"), N);
    ck_assert_int_eq(count_keys("b"), 0);
    limit_file(false);
    lock_drop(here, &lock);
    lock_expect_cycle(here, "b");
    struct tally tally = tally_file(path);
    ck_assert_int_eq(tally.grants, 2);
    ck_assert_int_eq(tally.releases, 2);
    ck_assert_int_eq(lost(), 0);
    world_stop();
}

/* ---- stdout, and what is no file ---------------------------------------- */

TEST(lines_go_to_stdout)
{
    PRINT_TO(path, "-");
    start("--log-format json"); /* into the same file here */
    lock_expect_cycle(here, "a");
    ck_assert_int_eq(kill(here->pid, SIGHUP), 0);
    lock_expect_cycle(here, "b");
    world_stop();
    struct tally tally = tally_file(here->log);
    ck_assert_int_eq(tally.grants, 2);
    ck_assert_int_eq(tally.releases, 2);
}
