/*
 * A repair on a real redis-server, through a real link.
 */
#include <stdlib.h>

#include "../../lib/suite/suite.h"
#include "live.h"

#define SLOT "p:redlockd:state 7"

static struct call call;

static void setup(void)
{
    live_setup_admitted();
    call = live_call(CALL_REPAIR, "r", "A");
}

static bool is_set(void)
{
    return master_integer(&live.master, "EXISTS p:r") == 1;
}

static long long slot_number(void)
{
    return atoll(master_text(&live.master, "HGET " SLOT));
}

SUITE(lua_repair, .timeout_s = 60, .set_up = setup, .tear_down = live_teardown);

TEST(a_missing_lock_is_set_and_its_number_taken_over)
{
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, 0);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(live_holder("r"), "A");
    long long pttl_ms = master_integer(&live.master, "PTTL p:r");
    ck_assert_int_gt(pttl_ms, LIVE_TTL_MS - 10000);
    ck_assert_int_le(pttl_ms, LIVE_TTL_MS);
    ck_assert_int_eq(slot_number(), call.number);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_EXTENDED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(live.downs, 0);
}

/* A lock may have been held for a long time, but its number must not block the
 * slot. */
TEST(the_number_may_be_old_but_not_far_ahead)
{
    int64_t now_us = call.number;
    call.number = now_us + LIVE_WINDOW_US + 1000000;
    ck_assert_int_eq(live_ask(&call), VOTE_OUT_OF_RANGE);
    ck_assert(!is_set());
    call.number = now_us - 100 * (int64_t)LIVE_WINDOW_US;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(slot_number(), call.number);
}

static const char *const others[] = {"SET p:r %s PX 60000",
                                     "SET p:r %s PX 60000", "SET p:r %s",
                                     "HSET p:r %s 1"};

TEST_EACH(what_is_there_stays, others)
{
    static const char *const values[] = {"B", "A", "B", ""};
    master_text(&live.master, others[_i],
                live_token(values[_i][0] != '\0' ? values[_i] : "field"));
    ck_assert_int_eq(live_ask(&call), VOTE_HELD);
    ck_assert_str_eq(live.value, values[_i]);
    ck_assert_int_eq(master_integer(&live.master, "HEXISTS " SLOT), 0);
    ck_assert_int_eq(live.downs, 0);
}

/* A release may have come in between: it must not be undone. */
TEST(only_one_repair_of_those_that_found_no_key_is_done)
{
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert(!is_set());

    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, call.number);
    call.seen = live.reply.highest;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(slot_number(), call.number + 1);
    master_integer(&live.master, "DEL p:r");
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert(!is_set());
}

TEST(nor_the_acquire_after_it)
{
    struct call acquire = live_call(CALL_ACQUIRE, "r", "A");
    acquire.number = call.number;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&acquire), VOTE_STALE);
    ck_assert(!is_set());
}

TEST(nor_is_it_done_after_the_acquire)
{
    struct call acquire = live_call(CALL_ACQUIRE, "r", "A");
    ck_assert_int_eq(live_ask(&acquire), VOTE_GRANTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    call.number = acquire.number;
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert(!is_set());
}

TEST(a_spoilt_slot_is_left_alone)
{
    live_write_slot(7, "spoilt");
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, 0);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    live_write_slot(7, "1e300");
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, -1);
    ck_assert(!is_set());
    ck_assert_int_eq(live.downs, 0);
}

TEST(an_error_is_no_repair)
{
    master_text(&live.master, "ACL SETUSER default -set");
    ck_assert_int_eq(live_ask(&call), UNFIT(NO_PERMISSION));
    ck_assert_int_eq(master_integer(&live.master, "HEXISTS " SLOT), 0);
}
