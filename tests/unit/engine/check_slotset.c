/* SPDX-License-Identifier: MIT */
#include "../../../server/engine/permits/pool.h"
#include "../../lib/suite/suite.h"

SUITE(slotset);

TEST(slots_are_added_and_dropped)
{
    static const int slots[] = {0, 63, 64, 127, 999};
    struct slotset set = {{0}};
    for (size_t i = 0; i < 5; i++) {
        ck_assert(!slotset_has(&set, slots[i]));
        slotset_add(&set, slots[i]);
        ck_assert(slotset_has(&set, slots[i]));
        ck_assert_int_eq(slotset_count(&set), (int)i + 1);
    }
    slotset_drop(&set, 64);
    ck_assert(!slotset_has(&set, 64));
    ck_assert_int_eq(slotset_count(&set), 4);
}

TEST(those_below_a_limit_are_so_many)
{
    for (int limit = 0; limit <= POOL_SLOTS_MAX; limit++) {
        struct slotset set = slotset_below(limit);
        ck_assert_int_eq(slotset_count(&set), limit);
        ck_assert_int_eq(slotset_next(&set, 0), limit > 0 ? 0 : -1);
        if (limit > 0)
            ck_assert_int_eq(slotset_nth(&set, limit - 1), limit - 1);
    }
}

TEST(the_next_is_found_in_any_word)
{
    struct slotset set = {{0}};
    slotset_add(&set, 5);
    slotset_add(&set, 64);
    slotset_add(&set, 999);
    ck_assert_int_eq(slotset_next(&set, 0), 5);
    ck_assert_int_eq(slotset_next(&set, 5), 5);
    ck_assert_int_eq(slotset_next(&set, 6), 64);
    ck_assert_int_eq(slotset_next(&set, 65), 999);
    ck_assert_int_eq(slotset_next(&set, 1000), -1);
    ck_assert_int_eq(slotset_nth(&set, 2), 999);
}

TEST(two_sets_are_compared)
{
    struct slotset set = slotset_below(10), other = slotset_below(3);
    slotset_add(&other, 700);
    slotset_remove(&set, &other);
    ck_assert_int_eq(slotset_count(&set), 7);
    ck_assert_int_eq(slotset_next(&set, 0), 3);
    slotset_add(&set, 700);
    slotset_keep(&set, &other);
    ck_assert_int_eq(slotset_count(&set), 1);
    ck_assert_int_eq(slotset_next(&set, 0), 700);
}
