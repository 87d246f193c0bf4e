/* SPDX-License-Identifier: MIT */
#include "../../../server/base/types.h"
#include "../../lib/suite/suite.h"

/* ---- order -------------------------------------------------------------- */

SUITE(types);

TEST(each_rank_has_its_number)
{
    static const int64_t sorted[] = {INT64_MIN, -3, 7, 7, INT64_MAX};
    for (int rank = 0; rank < 5; rank++) {
        int64_t numbers[] = {7, INT64_MAX, -3, INT64_MIN, 7};
        ck_assert_int_eq(order_statistic(numbers, 5, rank), sorted[rank]);
    }
}

TEST(of_one_number_it_is_that)
{
    int64_t number = -1;
    ck_assert_int_eq(order_statistic(&number, 1, 0), -1);
}
