/*
 * What of its start a process cannot be given from outside; the rest is in
 * tests/integration/check_start.c. Each test is a process of its own: its
 * limits and descriptors are nobody else's.
 */
#include <sys/resource.h>
#include <unistd.h>

#include "../../../server/base/process.h"
#include "../../lib/suite/suite.h"

SUITE(process);

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
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {0, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert(process_fill_descriptors()); /* none is needed */
    close(STDIN_FILENO);
    ck_assert(!process_fill_descriptors());
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}
