/* SPDX-License-Identifier: MIT */

#include "../../../server/base/entries.h"
#include "../../lib/suite/suite.h"

struct thing {
    struct entries_head head;
    int value;
};

static struct entries entries;

static void setup(void)
{
    entries_init(&entries, sizeof(struct thing), 200);
}

static void teardown(void)
{
    entries_fini(&entries);
}

SUITE(entries, .set_up = setup, .tear_down = teardown);

TEST(a_handle_finds_its_object_only)
{
    struct thing *a = entries_take(&entries);
    struct thing *b = entries_take(&entries);
    uint64_t handle = entries_handle(a, 5);
    ck_assert_uint_ne(handle, 0);
    ck_assert_ptr_eq(entries_find(&entries, handle), a);
    ck_assert_ptr_eq(entries_at(&entries, b->head.index), b);
    ck_assert_uint_eq(entries_user_bits(handle), 5);
    ck_assert_ptr_null(entries_find(&entries, 0));
    ck_assert_ptr_null(entries_find(&entries, handle + 1000));
}

TEST(a_handle_of_an_earlier_use_finds_nothing)
{
    struct thing *a = entries_take(&entries);
    uint64_t handle = entries_handle(a, 0);
    uint32_t index = a->head.index;
    entries_give(&entries, a);
    ck_assert_ptr_null(entries_find(&entries, handle));
    ck_assert_ptr_null(entries_at(&entries, index));
    struct thing *again = entries_take(&entries);
    ck_assert_ptr_eq(again, a);
    ck_assert_ptr_null(entries_find(&entries, handle));
}

TEST(objects_stay_where_they_are_up_to_the_limit)
{
    struct thing *things[200];
    for (int i = 0; i < 200; i++) {
        things[i] = entries_take(&entries);
        ck_assert_ptr_nonnull(things[i]);
        things[i]->value = i;
    }
    ck_assert_ptr_null(entries_take(&entries));
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(things[i]->value, i);
    entries_give(&entries, things[7]);
    ck_assert_ptr_nonnull(entries_take(&entries));
}
