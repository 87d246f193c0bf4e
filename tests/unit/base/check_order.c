#include <check.h>

#include "../../../server/base/order.h"

START_TEST(each_rank_has_its_number)
{
    static const int64_t sorted[] = {INT64_MIN, -3, 7, 7, INT64_MAX};
    for (int rank = 0; rank < 5; rank++) {
        int64_t numbers[] = {7, INT64_MAX, -3, INT64_MIN, 7};
        ck_assert_int_eq(order_statistic(numbers, 5, rank), sorted[rank]);
    }
}
END_TEST

START_TEST(of_one_number_it_is_that)
{
    int64_t number = -1;
    ck_assert_int_eq(order_statistic(&number, 1, 0), -1);
}
END_TEST

Suite *check_order(void);

Suite *check_order(void)
{
    Suite *suite = suite_create("order");
    TCase *tcase = tcase_create("order");
    tcase_add_test(tcase, each_rank_has_its_number);
    tcase_add_test(tcase, of_one_number_it_is_that);
    suite_add_tcase(suite, tcase);
    return suite;
}
