/*
 * A repair on a real redis-server, through a real link.
 */
#include <stdio.h>
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
    ck_assert_int_eq(live.reply.highest, 1);
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

static const char *const others[] = {"SET p:r %s PX 60000", "SET p:r %s",
                                     "HSET p:r %s 1"};

TEST_EACH(what_is_there_stays, others)
{
    static const char *const values[] = {"B", "B", ""};
    master_text(&live.master, others[_i],
                live_token(values[_i][0] != '\0' ? values[_i] : "field"));
    ck_assert_int_eq(live_ask(&call), VOTE_HELD);
    ck_assert_str_eq(live.value, values[_i]);
    ck_assert_int_eq(master_integer(&live.master, "HEXISTS " SLOT), 0);
    ck_assert_int_eq(live.downs, 0);
}

TEST(what_has_the_token_stays_as_it_is)
{
    master_text(&live.master, "SET p:r %s PX 90000", live_token("A"));
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_gt(master_integer(&live.master, "PTTL p:r"), LIVE_TTL_MS);
    ck_assert_int_eq(master_integer(&live.master, "HEXISTS " SLOT), 0);
    ck_assert_int_eq(master_integer(&live.master, "DBSIZE"), 2);
}

/* A release may have come in between: it must not be undone. */
TEST(only_one_repair_of_those_that_found_no_key_is_done)
{
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert(!is_set());
    struct call other = live_call(CALL_REPAIR, "r", "B");
    ck_assert_int_eq(live_ask(&other), VOTE_GRANTED);
}

/* Each tombstone has its own time. */
TEST(until_none_is_under_way_that_found_none)
{
    call.tombstone_ms = 200;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    int64_t ended_us = live_node_now_us() + 250000;
    while (live_node_now_us() < ended_us)
        continue;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
}

/* What it leaves behind is ours, ends, and is no lock. */
TEST(its_tombstone_is_not_listed)
{
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    const char *key = textf("PTTL p:redlockd:tombstone:%s", live_token("A"));
    long long pttl_ms = master_integer(&live.master, key);
    ck_assert_int_gt(pttl_ms, LIVE_TOMBSTONE_MS / 2);
    ck_assert_int_le(pttl_ms, LIVE_TOMBSTONE_MS);
    struct call scan = live_call(CALL_SCAN, "", "");
    scan.count = 100;
    ck_assert_int_eq(live_ask(&scan), VOTE_DONE);
    ck_assert_int_eq((int)live.reply.names.len, 3); /* "1:r" */
}

/* Whether it was there or not: one that found no key may be under way. */
TEST_RANGE(what_was_released_by_force_is_not_set, 0, 2)
{
    struct call acquire = live_call(CALL_ACQUIRE, "r", "A");
    struct call force = live_call(CALL_RELEASE, "r", "A");
    acquire.number = force.number = call.number;
    force.tombstone_ms = LIVE_TOMBSTONE_MS;
    if (_i == 1)
        ck_assert_int_eq(live_ask(&acquire), VOTE_GRANTED);
    ck_assert_int_eq(live_ask(&force), _i == 1 ? VOTE_DELETED : VOTE_FREE);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert(!is_set());
}

/* A node that has lost its state must go on looking empty. */
TEST(but_a_node_without_state_stays_empty)
{
    struct call force = live_call(CALL_RELEASE, "r", "A");
    force.tombstone_ms = LIVE_TOMBSTONE_MS;
    ck_assert_int_eq(master_integer(&live.master, "DEL p:redlockd:state"), 1);
    ck_assert_int_eq(live_ask(&force), VOTE_NOT_ADMITTED);
    ck_assert_int_eq(master_integer(&live.master, "DBSIZE"), 0);
}

TEST(nor_is_the_acquire_done_after_it)
{
    struct call acquire = live_call(CALL_ACQUIRE, "r", "A");
    acquire.number = call.number;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&acquire), VOTE_STALE);
    ck_assert(!is_set());
}

/* Only what an extend found missing. */
TEST(what_was_there_is_not_set)
{
    call.seen = 0;
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert(!is_set());
}

TEST(a_spoilt_slot_is_left_alone)
{
    live_write_slot(7, "spoilt");
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(master_text(&live.master, "HGET " SLOT), "spoilt");
    ck_assert_int_eq(live.downs, 0);
}

TEST(an_error_is_no_repair)
{
    master_text(&live.master, "ACL SETUSER default -set");
    ck_assert_int_eq(live_ask(&call), UNFIT(NO_PERMISSION));
    ck_assert_int_eq(master_integer(&live.master, "HEXISTS " SLOT), 0);
}

/* ---- readers that a repeat has replaced ---------------------------------- */

#define HEX "00112233445566778899aabbccddeeff01234567"
#define HASH "0123456789abcdefghij-_"

/* Who is there besides, and for what becomes of the one that is missing: a
 * later repeat of it; an earlier one; one in no form of ours; others. */
static const struct {
    const char *member;
    enum vote vote;
} besides[] = {
    {"1700000000000006~" HEX "+" HASH ".me", VOTE_CHANGED},
    {"1700000000000006~" HEX "+" HASH, VOTE_CHANGED},
    {"1700000000000004~" HEX "+" HASH ".me", VOTE_GRANTED},
    {"1700000000000006~" HEX "+" HASH "x", VOTE_GRANTED},
    {"1700000000000006~" HEX "+0123456789abcdefghij-A.me", VOTE_GRANTED},
    {"1700000000000006~" HEX ".me", VOTE_GRANTED},
};

static int repair_beside(const char *member, int64_t left_ms, const char *token)
{
    char command[256];
    snprintf(command, sizeof command, "ZADD p:r %lld %s",
             (long long)(live_node_now_us() / 1000 + left_ms), member);
    ck_assert_int_eq(master_integer(&live.master, command), 1);
    ck_assert_int_eq(master_integer(&live.master, "PEXPIRE p:r 60000"), 1);
    master_integer(&live.master, "HSET p:redlockd:repeat:" HASH " p:r %s",
                   member);
    call.token = span_of(token);
    return live_ask(&call);
}

/* Its client knows another token, and releases only that. */
TEST_EACH(a_reader_that_a_repeat_has_replaced_does_not_come_back, besides)
{
    ck_assert_int_eq(repair_beside(besides[_i].member, 60000,
                                   "1700000000000005~" HEX "+" HASH ".me"),
                     (int)besides[_i].vote);
    ck_assert_int_eq(master_integer(&live.master, "ZCARD p:r"),
                     besides[_i].vote == VOTE_GRANTED ? 2 : 1);
}

TEST(nor_is_one_replaced_by_what_has_ended)
{
    ck_assert_int_eq(
        repair_beside(besides[0].member, -1, "1700000000000005~" HEX "+" HASH),
        VOTE_GRANTED);
}

/* Not even by one that looks the same. */
TEST(a_reader_without_a_key_is_never_replaced)
{
    ck_assert_int_eq(
        repair_beside(besides[5].member, 60000, "1700000000000005~" HEX ".me"),
        VOTE_GRANTED);
}
