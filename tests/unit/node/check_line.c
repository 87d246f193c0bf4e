/* SPDX-License-Identifier: MIT */

#include "../../../server/node/line.h"
#include "../../lib/suite/suite.h"

SUITE(line);

TEST(waits_double_up_to_the_longest)
{
    static const int64_t longest_us[] = {20000,  40000,  80000, 160000,
                                         320000, 500000, 500000};
    int64_t least = 0, most = 0, again = 0;
    for (int i = 0; i < 7; i++) {
        uint32_t span = (uint32_t)(longest_us[i] / 2 + 1);
        ck_assert_int_eq(line_backoff_us(&least, 0), longest_us[i] / 2);
        ck_assert_int_eq(line_backoff_us(&most, span - 1), longest_us[i]);
        ck_assert_int_eq(line_backoff_us(&again, span), longest_us[i] / 2);
    }
    least = 0;
    ck_assert_int_eq(line_backoff_us(&least, 0), 10000);
}
