
#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"

SUITE(fence);

TEST(slots_are_those_of_redis_cluster)
{
    /* CLUSTER KEYSLOT of redis-server 7.0.15 */
    ck_assert_int_eq(fence_slot(span_of("123456789")), 12739);
    ck_assert_int_eq(fence_slot(span_of("foo")), 12182);
    ck_assert_int_eq(fence_slot(span_of("")), 0);
    /* no hash tags: each resource is hashed whole */
    ck_assert_int_ne(fence_slot(span_of("{a}1")), fence_slot(span_of("{a}2")));
}

TEST(numbers_rise_above_all_that_is_known)
{
    ck_assert_int_eq(fence_next(1000, 0), 1000);
    ck_assert_int_eq(fence_next(1000, 1000), 1001);
    ck_assert_int_eq(fence_next(1000, 5000), 5001);
    ck_assert_int_eq(fence_next(fence_next(1000, 0), 1000), 1001);
    ck_assert_int_eq(fence_next(fence_next(1000, 2000), 7000), 7001);
    ck_assert_int_eq(fence_next(fence_next(1000, 2000), FENCE_MAX), FENCE_MAX);
    ck_assert_int_eq(fence_next(FENCE_MAX, FENCE_MAX), FENCE_MAX);
}
