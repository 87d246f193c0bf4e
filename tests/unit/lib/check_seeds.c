/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../lib/seeds/seeds.h"
#include "../../lib/suite/suite.h"

SUITE(seeds);

enum { MOST = 20 };

/* What was played, in this order; those above bad fail. */
struct played {
    int count;
    uint64_t seed[MOST];
    uint64_t bad;
};

static bool play(void *ctx, uint64_t seed)
{
    struct played *played = ctx;
    ck_assert_int_lt(played->count, MOST);
    played->seed[played->count++] = seed;
    return seed < played->bad;
}

/* Plays seeds, of which those of text are kept; SEED as given, or NULL. */
static struct seeds_played run(struct played *played, const char *text,
                               const struct seeds *seeds, const char *given)
{
    char path[] = "/tmp/redlockd-seeds-XXXXXX";
    int fd = mkstemp(path);
    struct seeds all = *seeds;
    ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
    close(fd);
    all.kept = path;
    all.replay = "program";
    if (given == NULL)
        unsetenv("SEED"); /* of whoever runs this */
    else
        setenv("SEED", given, 1);
    struct seeds_played result = seeds_play(&all, play, played);
    unlink(path);
    return result;
}

TEST(kept_ones_come_first_and_new_ones_last)
{
    struct played played = {.bad = 1000};
    const struct seeds seeds = {.first = 3, .count = 2, .fresh = 2};
    struct seeds_played result = run(
        &played, "# two\n\n77 kept: an earlier one\n1 tidy\n", &seeds, "500");
    static const uint64_t expected[] = {77, 1, 3, 4, 500, 501};
    ck_assert_int_eq(played.count, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(played.seed[i], expected[i]);
    ck_assert_uint_eq(result.passed, 6);
    ck_assert_uint_eq(result.failed, 0);
}

TEST(new_ones_differ_from_run_to_run)
{
    struct played first = {.bad = UINT64_MAX}, second = {.bad = UINT64_MAX};
    const struct seeds seeds = {.first = 1, .fresh = 2};
    (void)run(&first, "", &seeds, NULL);
    usleep(10);
    (void)run(&second, "", &seeds, "");
    ck_assert_uint_eq(first.seed[1], first.seed[0] + 1);
    ck_assert_uint_ne(first.seed[0], second.seed[0]);
    ck_assert_uint_gt(first.seed[0], 100000);
}

TEST(each_failure_counts_and_the_others_are_played)
{
    struct played played = {.bad = 4};
    const struct seeds seeds = {.first = 1, .count = 5, .fresh = 1};
    struct seeds_played result = run(&played, "9 kept\n", &seeds, "30");
    ck_assert_int_eq(played.count, 7);
    ck_assert_uint_eq(result.passed, 3);
    ck_assert_uint_eq(result.failed, 4);
}

/* A line that is not understood must not pass for one that is kept. */
static const char *const bad[] = {"seed 5 kept\n",
                                  "5\n",
                                  "5 \n",
                                  "5kept\n",
                                  "1 tidy\n-5 kept\n",
                                  "99999999999999999999 kept\n"};

TEST_EACH(a_bad_file_fails_at_once, bad)
{
    const struct seeds seeds = {.first = 1, .count = 1};
    struct played played = {.bad = 1000};
    struct seeds_played result = run(&played, bad[_i], &seeds, NULL);
    ck_assert_int_eq(played.count, 0);
    ck_assert_uint_eq(result.failed, 1);
}

TEST(what_is_no_number_fails_at_once)
{
    const struct seeds seeds = {.first = 1, .count = 1, .fresh = 1};
    struct played played = {.bad = 1000};
    ck_assert_uint_eq(run(&played, "", &seeds, "12x").failed, 1);
    ck_assert_int_eq(played.count, 0);
    const struct seeds lost = {.kept = "/nowhere", .count = 1};
    ck_assert_uint_eq(seeds_play(&lost, play, &played).failed, 1);
    ck_assert_int_eq(played.count, 0);
}

static bool die_of_two(void *ctx, uint64_t seed)
{
    (void)ctx;
    if (seed == 2)
        abort();
    return seed != 4;
}

TEST(a_seed_that_ends_its_process_has_failed_and_the_next_one_is_played)
{
    const struct seeds seeds = {
        .first = 1, .count = 5, .replay = "program", .are_apart = true};
    (void)unsetenv("SEED"); /* of a test before, if they share a process */
    struct seeds_played result = seeds_play(&seeds, die_of_two, NULL);
    ck_assert_uint_eq(result.passed, 3);
    ck_assert_uint_eq(result.failed, 2);
}
