
#include "../../../api/access/accounts.h"
#include "../../lib/suite/suite.h"

static struct bucket bucket;
static int64_t wait_us;

/* How many it gives in a row at this moment. */
static int count(int64_t rate, int64_t burst, int64_t now_us)
{
    int taken = 0;
    while (bucket_take(&bucket, rate, burst, 1, now_us, &wait_us))
        taken++;
    return taken;
}

SUITE(bucket);

TEST(it_gives_its_burst_and_then_its_rate)
{
    bucket_init(&bucket, 20, 1000);
    ck_assert_int_eq(count(10, 20, 1000), 20);
    ck_assert_int_eq(wait_us, 100000);
    ck_assert_int_eq(count(10, 20, 1000 + 99999), 0);
    ck_assert_int_eq(wait_us, 1);
    ck_assert_int_eq(count(10, 20, 1000 + 100000), 1);
    ck_assert_int_eq(count(10, 20, 1000 + 1100000), 10);
}

TEST(it_never_holds_more_than_its_burst)
{
    bucket_init(&bucket, 3, 0);
    ck_assert_int_eq(count(IDENTITY_RATE_MAX, 3, INT64_MAX / 2), 3);
    ck_assert_int_eq(count(1, 3, INT64_MAX / 2 + 3000000), 3);
    ck_assert_int_eq(count(1, 3, INT64_MAX / 2 + 6000001), 3);
}

TEST(the_largest_numbers_fit)
{
    bucket_init(&bucket, IDENTITY_RATE_MAX, 0);
    ck_assert_int_eq(count(IDENTITY_RATE_MAX, IDENTITY_RATE_MAX, 0),
                     IDENTITY_RATE_MAX);
    ck_assert_int_eq(wait_us, 1);
    ck_assert_int_eq(count(IDENTITY_RATE_MAX, IDENTITY_RATE_MAX, 999999),
                     999999);
    ck_assert_int_eq(count(1, IDENTITY_RATE_MAX, INT64_MAX), IDENTITY_RATE_MAX);
}

TEST(what_a_reload_takes_away_is_gone)
{
    bucket_init(&bucket, 100, 0);
    ck_assert_int_eq(count(10, 5, 0), 5);
    ck_assert_int_eq(count(10, 100, 1000000), 10);
}

TEST(time_that_stands_still_gives_nothing)
{
    bucket_init(&bucket, 1, 5000);
    ck_assert_int_eq(count(1, 1, 4000), 1);
    ck_assert_int_eq(count(1, 1, 5000), 0);
    ck_assert_int_eq(wait_us, 1000000);
}

/* Taking as often as possible gives the rate, whatever it is. */
TEST(over_time_it_gives_its_rate)
{
    static const int64_t rates[] = {1, 3, 7, 999, 1001, 999999};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        int64_t taken = 0;
        bucket_init(&bucket, 1, 0);
        for (int64_t now_us = 0; now_us <= 10000000; now_us += 11)
            taken += bucket_take(&bucket, rates[i], 1000, 1, now_us, &wait_us);
        int64_t most = rates[i] * 10 + 1;
        if (most > 10000000 / 11 + 1)
            most = 10000000 / 11 + 1;
        ck_assert_int_ge(taken, most - 1);
        ck_assert_int_le(taken, most);
    }
}
