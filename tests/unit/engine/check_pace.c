/* SPDX-License-Identifier: MIT */
#include "../../../server/engine/voting/nodes.h"
#include "../../lib/suite/suite.h"

static struct pace pace;

static void begin(void)
{
    pace_init(&pace, 5);
}

SUITE(pace, .set_up = begin);

/* A call to the node that takes so long. */
static void call(int node, int64_t sent_us, int64_t trip_us)
{
    pace_on_sent(&pace, node, sent_us);
    pace_on_reply(&pace, node, true, sent_us, sent_us + trip_us);
    pace_tick(&pace);
}

static void call_all(int64_t trip_us)
{
    for (int i = 0; i < 5; i++)
        call(i, 1000, trip_us);
}

TEST(at_first_no_node_is_slow)
{
    pace_tick(&pace);
    pace_on_sent(&pace, 0, 0);
    for (int i = 0; i < 5; i++)
        ck_assert(!pace_is_slow(&pace, i, 1000000000));
}

TEST(a_node_is_slow_until_it_is_quick_again)
{
    int calls = 0;
    call_all(200);
    for (int i = 0; i < 20; i++)
        call(1, 1000, 9000);
    ck_assert(pace_is_slow(&pace, 1, 1000));
    ck_assert(!pace_is_slow(&pace, 0, 1000));
    for (; pace_is_slow(&pace, 1, 1000); calls++)
        call(1, 1000, 200);
    ck_assert_int_gt(calls, 5); /* one quick answer is no proof */
    ck_assert_int_lt(calls, 40);
}

TEST(small_differences_make_no_node_slow)
{
    call_all(100);
    for (int i = 0; i < 100; i++)
        call(1, 1000, 590);
    ck_assert(!pace_is_slow(&pace, 1, 1000));
    call_all(20000);
    for (int i = 0; i < 100; i++)
        call(1, 1000, 36000);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 100; j++)
            call(i, 1000, i == 1 ? 36000 : 20000);
    ck_assert(!pace_is_slow(&pace, 1, 1000));
}

/* The nodes were not slow, but this server stood still for a while. */
TEST(one_long_pause_says_little)
{
    for (int i = 0; i < 20; i++)
        call_all(200);
    call_all(1000000);
    ck_assert_int_lt(pace.slow_us, 5000);
    for (int i = 0; i < 40; i++)
        call_all(100000);
    ck_assert_int_gt(pace.slow_us, 150000);
}

/* A quorum needs one of the far nodes, so its calls are no slow ones. */
TEST(a_call_that_a_quorum_needs_is_not_slow)
{
    for (int i = 0; i < 100; i++)
        for (int node = 0; node < 5; node++)
            call(node, 1000, node < 2 ? 200 : 10000);
    ck_assert_int_gt(pace.slow_us, 19000);
    pace_on_down(&pace, 4);
    pace_tick(&pace);
    ck_assert_int_gt(pace.slow_us, 19000);
}

TEST(a_node_that_owes_an_answer_is_slow)
{
    call_all(200);
    pace_on_sent(&pace, 2, 5000);
    pace_on_sent(&pace, 2, 5600);
    ck_assert(!pace_is_slow(&pace, 2, 5700));
    ck_assert(pace_is_slow(&pace, 2, 5701));
    pace_on_reply(&pace, 2, true, 5000, 5800); /* it answers, slowly */
    ck_assert(!pace_is_slow(&pace, 2, 6500));
    ck_assert(pace_is_slow(&pace, 2, 6501));
    pace_on_reply(&pace, 2, true, 5600, 6600);
    ck_assert(!pace_is_slow(&pace, 2, 9999));
}

TEST(other_replies_pay_no_debt)
{
    call_all(200);
    pace_on_sent(&pace, 2, 5000);
    pace_on_reply(&pace, 2, false, 5000, 5100);
    ck_assert(pace_is_slow(&pace, 2, 6000));
}

TEST(a_lost_connection_owes_nothing)
{
    call_all(200);
    pace_on_sent(&pace, 2, 5000);
    pace_on_down(&pace, 2);
    ck_assert(!pace_is_slow(&pace, 2, 1000000));
    pace_on_reply(&pace, 2, true, 5000, 5100); /* of the lost ones */
    pace_on_sent(&pace, 2, 10000);
    ck_assert(pace_is_slow(&pace, 2, 20000));
}
