#include <stdlib.h>

#include "../../../api/message/problem.h"
#include "../../lib/suite/suite.h"

enum { DRAWS = 20000 };

/* What the draws of a call have been. */
static int64_t least, most, sum;

static void note(int64_t ms)
{
    if (sum == 0 || ms < least)
        least = ms;
    if (ms > most)
        most = ms;
    sum += ms;
}

/* All over the range, and evenly. */
static void expect_range(int64_t range_ms)
{
    ck_assert_int_ge(least, 1);
    ck_assert_int_le(least, 1 + range_ms / 20);
    ck_assert_int_le(most, range_ms);
    ck_assert_int_ge(most, range_ms - range_ms / 20);
    ck_assert_int_ge(sum / DRAWS, range_ms * 9 / 20);
    ck_assert_int_le(sum / DRAWS, range_ms * 11 / 20 + 1);
    least = most = sum = 0;
}

SUITE(problem_retry);

static const struct {
    int64_t held_ms, remaining_ms, range_ms;
} locks[] = {
    {600, 30000, 600},    /* for as long as it has been held */
    {30000, 400, 400},    /* or will be at most */
    {50000, 50000, 1000}, /* nobody waits longer than a second */
    {-1, -1, 1000},       /* another library's, without end */
    {-1, 700, 700},
    {2, 30000, 40}, /* not so often that asking is what keeps it busy */
    {500, 0, 40},
};

TEST_EACH(a_held_lock_is_asked_for_in_a_part_of_what_is_known, locks)
{
    for (int i = 0; i < DRAWS; i++)
        note(retry_held_ms(locks[_i].held_ms, locks[_i].remaining_ms));
    expect_range(locks[_i].range_ms);
}

TEST(an_extension_is_tried_again_within_its_validity)
{
    for (int i = 0; i < DRAWS; i++)
        note(retry_extend_ms(3000));
    expect_range(300);
    for (int i = 0; i < DRAWS; i++)
        note(retry_extend_ms(30000));
    expect_range(1000);
    ck_assert_int_eq(retry_extend_ms(1), 1);
    ck_assert_int_eq(retry_extend_ms(10), 1);
    for (int i = 0; i < DRAWS; i++)
        note(retry_extend_ms(20));
    ck_assert_int_eq(least, 1);
    ck_assert_int_eq(most, 2);
}
