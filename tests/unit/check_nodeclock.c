#include <check.h>

#include "../../server/nodeclock.h"

START_TEST(first_reply_bounds_the_offset)
{
    struct nodeclock clock = {0};
    ck_assert_int_eq(nodeclock_observe(&clock, 10500, 100, 300), 0);
    ck_assert(clock.is_known);
    ck_assert_int_eq(clock.low_us, 10200);
    ck_assert_int_eq(clock.high_us, 10400);
    ck_assert_int_eq(nodeclock_at(&clock, 1000), 11300);
    ck_assert_int_eq(nodeclock_latest_at(&clock, 1000), 11403);
}
END_TEST

START_TEST(a_faster_reply_narrows_a_slower_one_does_not_widen)
{
    struct nodeclock clock = {0};
    (void)nodeclock_observe(&clock, 10500, 100, 300);
    (void)nodeclock_observe(&clock, 10650, 330, 350);
    ck_assert_int_eq(clock.low_us, 10300);
    ck_assert_int_eq(clock.high_us, 10320);
    (void)nodeclock_observe(&clock, 10900, 400, 1400);
    ck_assert_int_ge(clock.low_us, 10290);
    ck_assert_int_le(clock.high_us, 10330);
}
END_TEST

START_TEST(a_wait_of_seconds_is_not_a_step)
{
    struct nodeclock clock = {0};
    (void)nodeclock_observe(&clock, 1000100, 0, 200);
    /* the node was paused: it read its clock five seconds after the sending */
    ck_assert_int_eq(nodeclock_observe(&clock, 6000100, 100, 5000200), 0);
    /* the server was paused: the reply lay in its socket */
    ck_assert_int_eq(nodeclock_observe(&clock, 6100100, 5100000, 9000000), 0);
}
END_TEST

START_TEST(a_step_is_told_and_believed)
{
    struct nodeclock clock = {0};
    (void)nodeclock_observe(&clock, 1000100, 0, 200);
    int64_t step_us = nodeclock_observe(&clock, 5001100, 1000, 1200);
    ck_assert_int_gt(step_us, 3990000);
    ck_assert_int_lt(step_us, 4000100);
    ck_assert_int_lt(nodeclock_observe(&clock, 1002100, 2000, 2200), -3990000);
    ck_assert_int_eq(nodeclock_at(&clock, 0), 1000000);
}
END_TEST

START_TEST(median_of_the_known)
{
    struct nodeclock a = {true, 10, 10, 0};
    struct nodeclock b = {true, 3000, 3000, 0};
    struct nodeclock c = {true, 20, 20, 0};
    struct nodeclock unknown = {0};
    const struct nodeclock *clocks[] = {&a, &unknown, &b, &c};
    ck_assert_int_eq(nodeclock_median_at(clocks, 4, 100), 120);
    ck_assert_int_eq(nodeclock_median_at(clocks, 3, 100), 110);
    ck_assert_int_eq(nodeclock_median_at(clocks, 1, 100), 110);
    ck_assert_int_eq(nodeclock_median_at(clocks + 1, 1, 100), 0);
    ck_assert_int_eq(nodeclock_median_at(clocks, 0, 100), 0);
}
END_TEST

Suite *check_nodeclock(void);

Suite *check_nodeclock(void)
{
    Suite *suite = suite_create("nodeclock");
    TCase *tc = tcase_create("nodeclock");
    tcase_add_test(tc, first_reply_bounds_the_offset);
    tcase_add_test(tc, a_faster_reply_narrows_a_slower_one_does_not_widen);
    tcase_add_test(tc, a_wait_of_seconds_is_not_a_step);
    tcase_add_test(tc, a_step_is_told_and_believed);
    tcase_add_test(tc, median_of_the_known);
    suite_add_tcase(suite, tc);
    return suite;
}
