/* SPDX-License-Identifier: MIT */
/*
 * What of its start a process cannot be given from outside; the rest is in
 * tests/integration/check_start.c. Each test is a process of its own: its
 * limits and descriptors are nobody else's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
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

/* ---- files --------------------------------------------------------------- */

static const struct {
    const char *path;
    size_t most;
    int error; /* 0: it is read */
    bool is_open;
} files[] = {
    {"/proc/self/comm", 100, 0, true}, {"/nowhere", 100, ENOENT, false},
    {"/proc", 100, EISDIR, true},      {"/dev/zero", 100, EFBIG, true},
    {"/dev/null", 0, 0, true},
};

TEST_EACH(a_file_is_read_whole_or_not_at_all, files)
{
    size_t len;
    mode_t mode;
    char *text =
        process_read_file(files[_i].path, 0, files[_i].most, &len, &mode);
    int error = text == NULL ? errno : 0;
    ck_assert_int_eq(error, files[_i].error);
    ck_assert_int_eq(mode != 0, files[_i].is_open);
    ck_assert(text == NULL || strlen(text) == len);
    free(text);
}

TEST(a_file_may_be_as_long_as_the_limit)
{
    size_t len, again;
    mode_t mode;
    char *text = process_read_file("/proc/self/comm", 0, 100, &len, &mode);
    free(text);
    text = process_read_file("/proc/self/comm", 0, len, &again, &mode);
    ck_assert_uint_eq(len, again);
    free(text);
    text = process_read_file("/proc/self/comm", 0, len - 1, &again, &mode);
    ck_assert_ptr_null(text);
    ck_assert_int_eq(errno, EFBIG);
}

/* ---- random ------------------------------------------------------------- */

enum { GUARD = 0x5a, LONG = 2000, PIECES = 500, PIECE = 20 };

GROUP(random);

/* Whatever is left of the buffer in between. */
TEST(as_many_bytes_are_filled_as_were_asked_for)
{
    static unsigned char bytes[LONG + 1];
    for (size_t len = 0; len <= LONG; len += 37) {
        memset(bytes, GUARD, sizeof bytes);
        random_bytes(bytes, len);
        for (size_t i = len; i < sizeof bytes; i++)
            ck_assert_msg(bytes[i] == GUARD, "%zu of %zu", i, len);
        size_t same = 0, empty = 0;
        for (size_t i = 0; i < len; i++) {
            same += bytes[i] == GUARD;
            empty += bytes[i] == 0;
        }
        /* one in 256 by chance */
        ck_assert_msg(same <= 20 + len / 64, "%zu of %zu", same, len);
        ck_assert_msg(empty <= 20 + len / 64, "%zu of %zu", empty, len);
    }
}

TEST(no_token_is_like_another)
{
    static unsigned char pieces[PIECES][PIECE];
    for (int i = 0; i < PIECES; i++)
        random_bytes(pieces[i], PIECE);
    for (int i = 0; i < PIECES; i++)
        for (int j = 0; j < i; j++)
            ck_assert(memcmp(pieces[i], pieces[j], PIECE) != 0);
}
