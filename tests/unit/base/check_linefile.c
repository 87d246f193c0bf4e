/* SPDX-License-Identifier: MIT */
/*
 * Files, pipes and terminals that take lines, take some of them, or none.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../server/base/linefile.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"

/* Check writes files, too, but no such ones. */
enum { KEPT = 20000, FILLED = 1 << 20 };

static char dir[] = "/tmp/redlockd-linefile.XXXXXX";
static char path[64], moved[64];
static const char *reason;
static struct linefile *file;

/* Each test is a process of its own. */
static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/log", dir);
    (void)snprintf(moved, sizeof moved, "%s/log.1", dir);
    (void)umask(0);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    file = NULL;
}

static void tear_down(void)
{
    linefile_free(file);
    (void)unlink(path);
    (void)unlink(moved);
    ck_assert_int_eq(rmdir(dir), 0);
}

static void begin(void)
{
    file = linefile_open(path, KEPT, &reason);
    ck_assert_msg(file != NULL, "%s", reason);
}

static bool flush(void)
{
    return linefile_flush(file) == 0;
}

static bool add(const char *line)
{
    return linefile_add(file, span_of(line));
}

/* All of a file, behind what fills it. */
static const char *read_all(const char *name)
{
    struct stat info;
    static char text[2 * KEPT];
    int fd = open(name, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &info), 0);
    if (info.st_size >= FILLED)
        ck_assert_int_eq(lseek(fd, FILLED, SEEK_SET), FILLED);
    ssize_t len = read(fd, text, sizeof text - 1);
    ck_assert_int_ge(len, 0);
    text[len] = '\0';
    close(fd);
    return text;
}

/* A line of so many bytes, its number in front. */
static const char *line_of(size_t len, int number)
{
    static char text[KEPT];
    memset(text, 'x', len);
    text[snprintf(text, sizeof text, "%d", number)] = ' ';
    text[len - 1] = '\n';
    text[len] = '\0';
    return text;
}

/* The file is full but for so many bytes; 0: it may grow. */
static void limit_size(rlim_t room)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = room > 0 ? FILLED + room : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

SUITE(linefile, .set_up = set_up, .tear_down = tear_down);

/* ---- opening ------------------------------------------------------------ */

TEST(a_file_is_made_for_its_owner_and_group)
{
    struct stat info;
    begin();
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq((int)(info.st_mode & 0777), 0640);
    ck_assert(flush());
    ck_assert_str_eq(read_all(path), "");
}

TEST(a_file_that_is_there_is_appended_to)
{
    begin();
    ck_assert(add("one\n") && flush());
    linefile_free(file);
    begin();
    ck_assert(add("two\n") && add("three\n"));
    ck_assert_int_eq(linefile_pending(file), 2);
    ck_assert(flush());
    ck_assert_int_eq(linefile_pending(file), 0);
    ck_assert_str_eq(read_all(path), "one\ntwo\nthree\n");
}

TEST(what_cannot_be_opened_says_why)
{
    ck_assert_ptr_null(linefile_open(dir, KEPT, &reason));
    ck_assert_str_eq(reason, strerror(EISDIR));
    ck_assert_ptr_null(linefile_open("/nowhere/log", KEPT, &reason));
    ck_assert_str_eq(reason, strerror(ENOENT));
    close(STDOUT_FILENO);
    ck_assert_ptr_null(linefile_open("-", KEPT, &reason));
    ck_assert_str_eq(reason, strerror(EBADF));
    ck_assert_int_eq(open("/dev/null", O_RDONLY), STDOUT_FILENO);
    ck_assert_ptr_null(linefile_open("-", KEPT, &reason));
    ck_assert_str_eq(reason, strerror(EBADF));
}

TEST_RANGE(without_memory_nothing_is_opened, 0, 2)
{
    starve = (struct starve){.is_on = true, .left = _i + 1};
    ck_assert_ptr_null(linefile_open(path, KEPT, &reason));
    starve.is_on = false;
    ck_assert_str_eq(reason, strerror(ENOMEM));
    ck_assert_int_ne(access(path, F_OK), 0);
}

/* ---- pipes -------------------------------------------------------------- */

TEST(a_fifo_needs_no_reader)
{
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    begin();
    ck_assert(add("early\n") && flush());
    ck_assert_int_eq(strncmp(read_all(path), "early\n", 6), 0);
    ck_assert(add("later\n") && flush());
    ck_assert_str_eq(read_all(path), "later\n");
}

/* Reads what is in the pipe; each line must be the next one, and whole. */
static int read_lines(int fd, int next)
{
    static char rest[KEPT];
    static size_t kept;
    ssize_t got;
    while ((got = read(fd, rest + kept, sizeof rest - kept)) > 0) {
        struct span text = {rest, kept + (size_t)got};
        const char *end;
        for (; (end = memchr(text.ptr, '\n', text.len)) != NULL; next++) {
            ck_assert_int_eq(atoi(text.ptr), next);
            text.len -= (size_t)(end + 1 - text.ptr);
            text.ptr = end + 1;
        }
        memmove(rest, text.ptr, text.len);
        kept = text.len;
    }
    return next;
}

/* Lines longer than what a pipe takes at once, too. */
TEST_RANGE(a_pipe_without_reader_keeps_nobody_waiting, 0, 2)
{
    int ends[2], taken = 0, seen = 0;
    size_t len = _i == 0 ? 300 : 9000;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    file = linefile_open("-", KEPT, &reason);
    ck_assert_ptr_nonnull(file);
    for (int round = 0; round < 3; round++) {
        while (linefile_add(file, (struct span){line_of(len, taken), len})) {
            taken++;
            (void)linefile_flush(file);
        }
        ck_assert_int_eq(linefile_flush(file), EAGAIN);
        ck_assert_int_gt(linefile_pending(file), 0);
        seen = read_lines(ends[0], seen);
        ck_assert_int_gt(seen, 0);
        while (!flush())
            seen = read_lines(ends[0], seen);
        seen = read_lines(ends[0], seen);
        ck_assert_int_eq(seen, taken);
    }
}

TEST(a_pipe_whose_reader_left_is_an_error)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    close(ends[0]);
    file = linefile_open("-", KEPT, &reason);
    ck_assert(add("line\n") && linefile_flush(file) == EPIPE);
    ck_assert_int_eq(linefile_pending(file), 1);
}

/* ---- a full disk -------------------------------------------------------- */

TEST(a_full_device_keeps_lines_up_to_the_limit)
{
    file = linefile_open("/dev/full", KEPT, &reason);
    for (int i = 0; i < KEPT / 100; i++)
        ck_assert(add(line_of(100, i)) && linefile_flush(file) == ENOSPC);
    ck_assert(!add("x\n"));
    ck_assert_int_eq(linefile_pending(file), KEPT / 100);
}

TEST(a_line_that_was_cut_goes_on_where_it_was_cut)
{
    begin();
    ck_assert_int_eq(truncate(path, FILLED), 0);
    limit_size(7);
    ck_assert(add("12345\n") && add("67890\n"));
    ck_assert(linefile_flush(file) == EFBIG);
    ck_assert_int_eq(linefile_pending(file), 1);
    ck_assert_str_eq(read_all(path), "12345\n6");
    limit_size(0);
    ck_assert(add("after\n") && flush());
    ck_assert_str_eq(read_all(path), "12345\n67890\nafter\n");
}

TEST(what_is_written_makes_room_for_more)
{
    enum { LEN = 9000, ROOM_MORE = KEPT - LEN };
    begin();
    ck_assert_int_eq(truncate(path, FILLED), 0);
    limit_size(LEN + 7);
    ck_assert(add(line_of(LEN, 1)) && add(line_of(LEN, 2)));
    ck_assert(!flush());
    ck_assert(!add(line_of(ROOM_MORE + 1, 3)));
    ck_assert(add(line_of(ROOM_MORE, 3)));
    ck_assert(!add("\n"));
    ck_assert_int_eq(linefile_pending(file), 2);
    limit_size(0);
    ck_assert(flush());
    const char *text = read_all(path);
    ck_assert_uint_eq(strlen(text), 2 * LEN + ROOM_MORE);
    ck_assert_mem_eq(text, line_of(LEN, 1), LEN);
    ck_assert_mem_eq(text + LEN, line_of(LEN, 2), LEN);
    ck_assert_str_eq(text + 2 * (size_t)LEN, line_of(ROOM_MORE, 3));
}

/* ---- another file under the name ---------------------------------------- */

TEST(behind_a_rotation_lines_go_into_the_new_file)
{
    begin();
    ck_assert(add("one\n") && flush());
    ck_assert_int_eq(rename(path, moved), 0);
    ck_assert(add("two\n") && flush() && add("three\n"));
    ck_assert(linefile_reopen(file, &reason));
    ck_assert(add("four\n") && flush());
    ck_assert_str_eq(read_all(moved), "one\ntwo\nthree\n");
    ck_assert_str_eq(read_all(path), "four\n");
}

TEST(a_line_that_was_cut_is_whole_in_the_new_file)
{
    begin();
    ck_assert_int_eq(truncate(path, FILLED), 0);
    limit_size(7);
    ck_assert(add("12345\n") && add("67890\n") && !flush());
    ck_assert_int_eq(rename(path, moved), 0);
    ck_assert(linefile_reopen(file, &reason) && flush());
    ck_assert_str_eq(read_all(moved), "12345\n6");
    ck_assert_str_eq(read_all(path), "67890\n");
}

TEST(a_rotation_that_fails_keeps_the_old_file)
{
    begin();
    ck_assert_int_eq(rename(path, moved), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert(!linefile_reopen(file, &reason));
    ck_assert_str_eq(reason, strerror(EISDIR));
    ck_assert(add("one\n") && flush());
    ck_assert_str_eq(read_all(moved), "one\n");
    ck_assert_int_eq(rmdir(path), 0);
}

TEST(stdout_stays_what_it_is)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    file = linefile_open("-", KEPT, &reason);
    ck_assert(add("one\n") && linefile_reopen(file, &reason));
    ck_assert(add("two\n") && flush());
    ck_assert_str_eq(read_all(path), "one\ntwo\n");
    linefile_free(file);
    file = NULL;
    ck_assert_int_ge(fcntl(STDOUT_FILENO, F_GETFD), 0);
}
