#include <stdlib.h>

#include "../../../api/retry.h"
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

static void draw_held(int64_t held_ms, int64_t remaining_ms)
{
    for (int i = 0; i < DRAWS; i++)
        note(retry_held_ms(held_ms, remaining_ms));
}

SUITE(retry);

TEST(a_held_lock_is_asked_for_in_a_part_of_what_is_known)
{
    draw_held(600, 30000); /* for as long as it has been held */
    expect_range(600);
    draw_held(30000, 400); /* or will be at most */
    expect_range(400);
    draw_held(50000, 50000); /* nobody waits longer than a second */
    expect_range(1000);
    draw_held(-1, -1); /* another library's, without end */
    expect_range(1000);
    draw_held(-1, 700);
    expect_range(700);
    draw_held(2, 30000); /* not so often that asking is what keeps it busy */
    expect_range(40);
    draw_held(500, 0);
    expect_range(40);
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
