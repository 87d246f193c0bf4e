/*
 * What a process is given when it starts. Each test is a process of its own:
 * its limits and descriptors are nobody else's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../../server/base/process.h"
#include "../../lib/suite/suite.h"
#include "../said.h"

/* ---- the limit of open files --------------------------------------------- */

static struct rlimit limit_now(void)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit;
}

SUITE(process);

TEST(the_limit_is_raised_as_far_as_it_may_be)
{
    const struct rlimit low = {64, 200};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    ck_assert_int_eq(process_raise_descriptors(), 200);
    ck_assert_uint_eq(limit_now().rlim_cur, 200);
    ck_assert_uint_eq(limit_now().rlim_max, 200);
}

TEST(a_limit_that_is_high_enough_stays)
{
    const struct rlimit equal = {200, 200};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &equal), 0);
    ck_assert_int_eq(process_raise_descriptors(), 200);
    ck_assert_uint_eq(limit_now().rlim_cur, 200);
}

/* ---- descriptors --------------------------------------------------------- */

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Bits: those of 0, 1 and 2 that are closed. */
TEST_RANGE(what_is_closed_of_the_first_three_is_filled, 0, 8)
{
    int next = dup(STDERR_FILENO);
    ck_assert_int_gt(next, STDERR_FILENO);
    close(next);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (_i & (1 << fd))
            close(fd);
    bool is_filled = process_fill_descriptors();
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        ck_assert_msg(is_open(fd), "%d", fd);
    ck_assert(is_filled);
    ck_assert_msg(!is_open(next), "more was opened than was closed");
}

TEST(what_was_open_is_left_as_it_was)
{
    char word[8] = "";
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[0], STDIN_FILENO);
    close(STDERR_FILENO);
    ck_assert(process_fill_descriptors());
    ck_assert_int_eq(write(ends[1], "still", 5), 5);
    ck_assert_int_eq(read(STDIN_FILENO, word, sizeof word - 1), 5);
    ck_assert_str_eq(word, "still");
}

TEST(without_room_for_a_descriptor_it_says_so)
{
    const struct rlimit before = limit_now();
    const struct rlimit none = {0, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert(process_fill_descriptors()); /* none is needed */
    close(STDIN_FILENO);
    ck_assert(!process_fill_descriptors());
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- standard output ----------------------------------------------------- */

static void lead_output_to(int fd)
{
    ck_assert_int_ge(fd, 0);
    (void)fflush(stdout);
    dup2(fd, STDOUT_FILENO);
}

TEST(what_was_printed_is_written_out)
{
    char text[32] = "";
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    lead_output_to(ends[1]);
    said_begin();
    fputs("a line\n", stdout);
    ck_assert(process_end_output());
    ck_assert_int_eq(read(ends[0], text, sizeof text - 1), 7);
    ck_assert_str_eq(text, "a line\n");
    ck_assert_str_eq(said(), "");
}

/* Either by the last flush, or by one before it. */
TEST_RANGE(what_could_not_be_written_is_told, 0, 2)
{
    lead_output_to(open("/dev/full", O_WRONLY));
    said_begin();
    fputs("a line\n", stdout);
    if (_i > 0)
        (void)fflush(stdout);
    ck_assert(!process_end_output());
    ck_assert_str_eq(said(), "redlockd: standard output: No space left on "
                             "device\n");
}
