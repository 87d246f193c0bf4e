/*
 * Extensions and repairs of shared locks on a real redis-server, and writers
 * that become readers.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/suite/suite.h"
#include "holders.h"

enum { HALF_MS = LIVE_TTL_MS / 2 };

static long long key_end_ms(void)
{
    return master_integer(&live.master, "PEXPIRETIME p:a");
}

static long long score_ms(const char *token)
{
    return atoll(master_text(&live.master, "ZSCORE p:a %s", live_token(token)));
}

static const char *type(void)
{
    return master_text(&live.master, "TYPE p:a");
}

SUITE(lua_downgrade, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

/* ---- extend ------------------------------------------------------------- */

TEST(a_reader_extends_its_own_time)
{
    ck_assert_int_eq(holders_acquire(0, "~A", 0), VOTE_GRANTED);
    ck_assert_int_eq(holders_acquire(0, "~B", 0), VOTE_GRANTED);
    long long others_ms = score_ms("~B");
    ck_assert_int_eq(holders_ask(CALL_EXTEND, 0, "~A", 2 * LIVE_TTL_MS),
                     VOTE_EXTENDED);
    ck_assert_int_gt(holders_left_ms(0, "~A"), LIVE_TTL_MS);
    ck_assert_int_eq(score_ms("~B"), others_ms);
    ck_assert_int_eq(key_end_ms(), score_ms("~A"));
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
    ck_assert_int_eq(key_end_ms(), others_ms);
}

TEST(a_shorter_extension_shortens_nothing)
{
    ck_assert_int_eq(holders_acquire(0, "~A", 0), VOTE_GRANTED);
    long long ends_ms = score_ms("~A");
    for (int ttl_ms = 0; ttl_ms <= 200; ttl_ms += 100) {
        ck_assert_int_eq(holders_ask(CALL_EXTEND, 0, "~A", ttl_ms),
                         VOTE_EXTENDED);
        ck_assert_int_eq(score_ms("~A"), ends_ms);
        ck_assert_int_eq(key_end_ms(), ends_ms);
    }
}

TEST(an_extension_drops_those_that_have_ended)
{
    holders_add(0, "~A", HALF_MS);
    holders_add(0, "~B", -1);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_EXTENDED);
    ck_assert_str_eq(holders_of(0), "A");
}

TEST(one_that_is_missing_is_free)
{
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, 1);
    ck_assert_int_eq(several_pttl(0), -2);
    holders_add(0, "~B", HALF_MS);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, 1);
    ck_assert_str_eq(holders_of(0), "B");
}

TEST(whoever_may_not_extends_nothing)
{
    holders_add(0, "~A", HALF_MS);
    struct call call = several_call(CALL_EXTEND, "a", "~A");
    call.node_deadline_us = live_node_now_us() - 1000000;
    ck_assert_int_eq(live_ask(&call), VOTE_LATE);
    call = several_call(CALL_EXTEND, "a", "~A");
    call.admit = span_of(LIVE_ADMIT);
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
    master_text(&live.master, "ACL SETUSER default -zadd");
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), UNFIT(NO_PERMISSION));
    ck_assert_int_le(several_pttl(0), HALF_MS);
    ck_assert_int_le(holders_left_ms(0, "~A"), HALF_MS);
}

/* ---- repair ------------------------------------------------------------- */

/* A reader, and a repair of another whose number is older. */
static struct call find_missing(void)
{
    struct call call = several_call(CALL_REPAIR, "a", "~A");
    ck_assert_int_eq(holders_acquire(0, "~B", call.number + 1000),
                     VOTE_GRANTED);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, 1);
    return call;
}

TEST(a_repair_adds_the_reader)
{
    struct call call = find_missing();
    call.ttl_ms = 2 * LIVE_TTL_MS;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(holders_of(0), "BA");
    ck_assert_int_eq(key_end_ms(), score_ms("~A"));
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS);
    ck_assert_int_eq(several_slot(0), call.number + 1000); /* as it was */
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_EXTENDED);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
}

/* A release may have come in between: it must not be undone. In either form the
 * token is the same. */
TEST_RANGE(only_one_repair_of_those_that_missed_it_is_done, 0, 2)
{
    struct call call = find_missing();
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED); /* it is there */
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert_str_eq(holders_of(0), "B");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~B"), VOTE_DELETED);
    call.token = span_of(_i == 0 ? "~A" : "A");
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert_int_eq(several_pttl(0), -2);
}

/* Other readers may come and go. */
TEST_RANGE(a_repair_minds_no_other_reader, 0, 2)
{
    struct call call = find_missing();
    ck_assert_int_eq(holders_acquire(0, "~C", call.number + 2000),
                     VOTE_GRANTED);
    if (_i == 0)
        ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~C"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    const char *found =
        holders_of(0); /* by their ends, which may be the same */
    ck_assert_uint_eq(strlen(found), _i == 0 ? 2 : 3);
    ck_assert_has(found, "A");
    ck_assert_has(found, "B");
    ck_assert_int_eq(several_slot(0), call.number + 2000);
}

TEST(nor_a_writer_that_wishes)
{
    struct call call = find_missing();
    ck_assert_int_eq(holders_acquire(0, "W", call.number + 2000), VOTE_HELD);
    ck_assert_int_eq(holders_acquire(0, "~C", call.number + 3000), VOTE_HELD);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
}

TEST(a_repair_where_nobody_is_makes_the_lock)
{
    struct call call = several_call(CALL_REPAIR, "a", "~A");
    call.number -= 100 * (int64_t)LIVE_WINDOW_US;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(holders_of(0), "A");
    ck_assert_int_eq(several_slot(0), call.number);
    ck_assert_int_eq(key_end_ms(), score_ms("~A"));
    master_integer(&live.master, "DEL p:a");
    call.number = live_node_now_us() + LIVE_WINDOW_US + 1000000;
    ck_assert_int_eq(live_ask(&call), VOTE_OUT_OF_RANGE);
    ck_assert_int_eq(several_pttl(0), -2);
}

TEST(a_repair_leaves_one_that_is_there)
{
    struct call call = several_call(CALL_REPAIR, "a", "~A");
    holders_add(0, "~A", HALF_MS);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_le(holders_left_ms(0, "~A"), HALF_MS);
    ck_assert_int_eq(several_slot(0), 0);
}

TEST(a_repair_renews_one_that_has_ended)
{
    struct call call = several_call(CALL_REPAIR, "a", "~A");
    holders_add(0, "~B", HALF_MS);
    holders_add(0, "~A", -1000);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(holders_of(0), "BA");
    ck_assert_int_eq(several_slot(0), call.number);
}

/* ---- downgrade ---------------------------------------------------------- */

TEST(a_writer_becomes_a_reader)
{
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "A"), VOTE_GRANTED);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_EXTENDED);
    ck_assert_str_eq(holders_of(0), "A");
    ck_assert_int_eq(key_end_ms(), score_ms("~A"));
    ck_assert(holders_are_told(0, 1, LIVE_TTL_MS - 10000, LIVE_TTL_MS));
    ck_assert_int_eq(holders_acquire(0, "~B", 0), VOTE_GRANTED);
    ck_assert_str_eq(holders_of(0), "AB");
    ck_assert_int_eq(holders_acquire(0, "C", 0), VOTE_HELD);
    /* and not a writer again */
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "A"), VOTE_HELD);
    ck_assert_int_eq(live.reply.holders, 2);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_EXTENDED);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
    ck_assert_int_eq(live.downs, 0);
}

/* To the millisecond: somebody may rely on it. */
TEST_RANGE(a_downgrade_takes_no_time_away, 0, 2)
{
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "A"), VOTE_GRANTED);
    long long ends_ms = key_end_ms();
    ck_assert_int_eq(holders_ask(CALL_EXTEND, 0, "~A", 1 + _i * HALF_MS),
                     VOTE_EXTENDED);
    ck_assert_int_eq(score_ms("~A"), ends_ms);
    ck_assert_int_eq(key_end_ms(), ends_ms);
}

TEST(a_downgrade_may_give_more_time)
{
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "A"), VOTE_GRANTED);
    ck_assert_int_eq(holders_ask(CALL_EXTEND, 0, "~A", 2 * LIVE_TTL_MS),
                     VOTE_EXTENDED);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS);
}

TEST(a_lock_without_ttl_gets_one)
{
    master_text(&live.master, "SET p:a %s", live_token("A"));
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_EXTENDED);
    ck_assert(holders_are_told(0, 1, LIVE_TTL_MS - 10000, LIVE_TTL_MS));
}

/* The writer stays one, with its time. */
TEST_RANGE(without_a_right_nothing_is_downgraded, 0, 6)
{
    static const char *const rights[] = {"zscore",      "zadd",
                                         "pexpiretime", "zremrangebyscore",
                                         "zrange",      "pexpireat"};
    for (int has_end = 0; has_end <= 1; has_end++) {
        if (has_end)
            master_text(&live.master, "SET p:a %s PX %d", live_token("A"),
                        HALF_MS);
        else
            master_text(&live.master, "SET p:a %s", live_token("A"));
        long long ends_ms = key_end_ms();
        master_text(&live.master, "ACL SETUSER default -%s", rights[_i]);
        ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"),
                         UNFIT(NO_PERMISSION));
        master_text(&live.master, "ACL SETUSER default +%s", rights[_i]);
        ck_assert_str_eq(several_value(0), "A");
        ck_assert_int_eq(key_end_ms(), ends_ms);
    }
}

/* Each form is released by the other: a downgrade may have reached a node or
 * not, whatever its server heard of it. */
TEST_RANGE(a_release_finds_either_form, 0, 4)
{
    bool is_shared = _i % 2 == 1, has_other = _i >= 2;
    if (is_shared) {
        holders_add(0, "~A", LIVE_TTL_MS);
        if (has_other)
            holders_add(0, "~B", HALF_MS);
    } else {
        master_text(&live.master, "SET p:a %s PX %d", live_token("A"),
                    LIVE_TTL_MS);
    }
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", is_shared ? "A" : "~A"),
                     VOTE_DELETED);
    ck_assert_str_eq(type(), is_shared && has_other ? "zset" : "none");
    ck_assert_int_le(several_pttl(0), HALF_MS);
}

/* A repair that looked before the downgrade finds readers. */
TEST(a_repair_of_the_writer_finds_the_reader)
{
    struct call call = several_call(CALL_REPAIR, "a", "A");
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "A"), VOTE_GRANTED);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_EXTENDED);
    ck_assert_int_eq(live_ask(&call), VOTE_HELD);
    ck_assert_int_eq(live.reply.holders, 1);
    ck_assert_str_eq(holders_of(0), "A");
}
