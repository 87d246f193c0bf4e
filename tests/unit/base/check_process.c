/*
 * What of its start a process cannot be given from outside; the rest is in
 * tests/integration/check_start.c. Each test is a process of its own: its
 * limits and descriptors are nobody else's.
 */
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

/* ---- random ------------------------------------------------------------- */

enum { GUARD = 0x5a, LONG = 2000, PIECES = 500, PIECE = 20 };

GROUP(random);

/* Whatever is left of the buffer in between. */
TEST(as_many_bytes_are_filled_as_were_asked_for)
{
    static unsigned char bytes[LONG + 1];
    for (size_t len = 0; len <= LONG; len += 37) {
        memset(bytes, GUARD, sizeof bytes);
        random_fill(bytes, len);
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
        random_fill(pieces[i], PIECE);
    for (int i = 0; i < PIECES; i++)
        for (int j = 0; j < i; j++)
            ck_assert(memcmp(pieces[i], pieces[j], PIECE) != 0);
}
