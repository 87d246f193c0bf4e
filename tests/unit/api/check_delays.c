
#include "../../../api/http/delays.h"
#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "../turns.h"

static struct loop *loop;
static struct delays all;
static struct delay list[3];
static const struct delay *due[3];
static int due_count;

static void on_due(struct delay *it)
{
    due[due_count++] = it;
}

static void set_up(void)
{
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
    ck_assert(delays_init(&all, loop, on_due));
    all.most = 3;
    memset(list, 0, sizeof list);
    due_count = 0;
}

static void tear_down(void)
{
    delays_fini(&all);
    loop_free(loop);
}

SUITE(delays, .set_up = set_up, .tear_down = tear_down);

TEST(each_is_due_in_its_turn_and_not_before)
{
    int64_t now_us = clock_now_us();
    for (int i = 0; i < 3; i++) {
        ck_assert(delays_have_room(&all));
        delay_begin(&all, &list[i], now_us - DELAYS_US + 20000 * (i + 1));
    }
    ck_assert(!delays_have_room(&all));
    for (int i = 0; i < 3; i++) {
        turns_until_count(loop, &due_count, i + 1);
        ck_assert_int_ge(clock_now_us(), now_us + 20000 * (i + 1));
        ck_assert_ptr_eq(due[i], &list[i]);
    }
    ck_assert_int_eq(all.count, 0);
}

TEST(those_taken_out_are_not_due)
{
    int64_t now_us = clock_now_us();
    for (int i = 0; i < 3; i++)
        delay_begin(&all, &list[i], now_us - DELAYS_US);
    delay_end(&all, &list[1]);
    delay_end(&all, &list[1]);
    delay_end(&all, &list[2]);
    delay_begin(&all, &list[2], now_us - DELAYS_US);
    delay_end(&all, &list[0]);
    ck_assert_int_eq(all.count, 1);
    turns_until_count(loop, &due_count, 1);
    ck_assert_ptr_eq(due[0], &list[2]);
    turns_expect_rest(loop);
    ck_assert_int_eq(due_count, 1);
}

TEST(without_room_none_is_delayed)
{
    all.most = 0;
    ck_assert(!delays_have_room(&all));
}
