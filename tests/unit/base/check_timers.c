
#include "../../../server/base/clock.h"
#include "../../../server/base/timers.h"
#include "../../lib/suite/suite.h"
#include "../turns.h"

enum { SLOTS = 200 };

static struct loop *loop;
static struct timers *timers;
static int fired, fired_of[SLOTS];

static void on_timer(void *arg, uint32_t slot)
{
    ck_assert_ptr_eq(arg, &fired);
    ck_assert_uint_lt(slot, SLOTS);
    fired++;
    fired_of[slot]++;
}

static void setup(void)
{
    fired = 0;
    for (int i = 0; i < SLOTS; i++)
        fired_of[i] = 0;
    loop = loop_new();
    timers = timers_new(loop, on_timer, &fired);
    ck_assert_ptr_nonnull(timers);
}

static void teardown(void)
{
    timers_free(timers);
    loop_free(loop);
}

SUITE(timers, .set_up = setup, .tear_down = teardown);

TEST(each_slot_has_a_timer_of_its_own)
{
    int64_t now_us = clock_now_us();
    for (uint32_t i = 0; i < SLOTS; i++)
        ck_assert(timers_set(timers, i, now_us + 1000));
    turns_until_count(loop, &fired, SLOTS);
    for (int i = 0; i < SLOTS; i++)
        ck_assert_int_eq(fired_of[i], 1);
}

TEST(a_timer_can_be_put_off_and_stopped)
{
    int64_t now_us = clock_now_us();
    ck_assert(timers_set(timers, 130, now_us));
    ck_assert(timers_set(timers, 3, now_us));
    ck_assert(timers_set(timers, 130, 0));
    ck_assert(timers_set(timers, 3, now_us + 20000));
    ck_assert(timers_set(timers, 4, now_us + 10000));
    turns_until_count(loop, &fired, 1);
    ck_assert_int_eq(fired_of[4], 1);
    turns_until_count(loop, &fired, 2);
    ck_assert_int_eq(fired_of[3], 1);
    ck_assert_int_eq(fired_of[130], 0);
}

TEST(a_timer_can_be_put_forward)
{
    int64_t now_us = clock_now_us();
    ck_assert(timers_set(timers, 5, now_us + 60000000));
    ck_assert(timers_set(timers, 5, now_us + 1000));
    turns_until_count(loop, &fired, 1);
    ck_assert_int_eq(fired_of[5], 1);
}

/* Neither before its time, nor for what it was before. */
TEST(a_timer_that_was_put_off_fires_once_and_in_time)
{
    int64_t now_us = clock_now_us();
    ck_assert(timers_set(timers, 7, now_us + 5000));
    ck_assert(timers_set(timers, 7, 0));
    ck_assert(timers_set(timers, 7, now_us + 30000));
    turns_until_count(loop, &fired, 1);
    ck_assert_int_ge(clock_now_us(), now_us + 30000);
    ck_assert(timers_set(timers, 8, clock_now_us() + 10000));
    turns_until_count(loop, &fired, 2);
    ck_assert_int_eq(fired_of[7], 1);
}

TEST(a_timer_that_has_fired_can_be_set_again)
{
    for (int i = 1; i <= 3; i++) {
        ck_assert(timers_set(timers, 9, clock_now_us() + 1000));
        turns_until_count(loop, &fired, i);
    }
    ck_assert_int_eq(fired_of[9], 3);
}
