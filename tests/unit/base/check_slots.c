
#include "../../../server/base/slots.h"
#include "../../lib/suite/suite.h"

struct thing {
    struct slots_head head;
    int value;
};

static struct slots slots;

static void setup(void)
{
    slots_init(&slots, sizeof(struct thing), 200);
}

static void teardown(void)
{
    slots_fini(&slots);
}

SUITE(slots, .set_up = setup, .tear_down = teardown);

TEST(a_handle_finds_its_object_only)
{
    struct thing *a = slots_take(&slots);
    struct thing *b = slots_take(&slots);
    uint64_t handle = slots_handle(a, 5);
    ck_assert_uint_ne(handle, 0);
    ck_assert_ptr_eq(slots_find(&slots, handle), a);
    ck_assert_ptr_eq(slots_at(&slots, b->head.index), b);
    ck_assert_uint_eq(slots_user_bits(handle), 5);
    ck_assert_ptr_null(slots_find(&slots, 0));
    ck_assert_ptr_null(slots_find(&slots, handle + 1000));
}

TEST(a_handle_of_an_earlier_use_finds_nothing)
{
    struct thing *a = slots_take(&slots);
    uint64_t handle = slots_handle(a, 0);
    uint32_t index = a->head.index;
    slots_give(&slots, a);
    ck_assert_ptr_null(slots_find(&slots, handle));
    ck_assert_ptr_null(slots_at(&slots, index));
    struct thing *again = slots_take(&slots);
    ck_assert_ptr_eq(again, a);
    ck_assert_ptr_null(slots_find(&slots, handle));
}

TEST(objects_stay_where_they_are_up_to_the_limit)
{
    struct thing *things[200];
    for (int i = 0; i < 200; i++) {
        things[i] = slots_take(&slots);
        ck_assert_ptr_nonnull(things[i]);
        things[i]->value = i;
    }
    ck_assert_ptr_null(slots_take(&slots));
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(things[i]->value, i);
    slots_give(&slots, things[7]);
    ck_assert_ptr_nonnull(slots_take(&slots));
}
