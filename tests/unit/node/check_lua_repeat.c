/*
 * Repeats on a real redis-server, through a real link: acquires with the
 * idempotency key of an earlier one.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "several.h"

#define HEX "0123456789abcdef0123456789abcdef01234567"
#define HEX2 "ffffffffffffffffffffffffffffffffffffffff"
#define HASH "abcdefghijklmnopqrst-_"
#define HASH2 "ABCDEFGHIJKLMNOPQRST01"

/* The token of the first acquire, and the name of that of the repeat. */
#define SEEN INT64_C(1700000000000005)
#define FIRST "1700000000000005." HEX "+" HASH
#define SECOND "." HEX2 "+" HASH ".me"

static struct call call;

static struct call make_call(const char *names)
{
    struct call made = several_call(CALL_REPEAT, names, SECOND);
    made.seen = SEEN;
    return made;
}

static void setup(void)
{
    live_setup_admitted();
    call = make_call("a");
}

SUITE(lua_repeat, .timeout_s = 60, .set_up = setup, .tear_down = live_teardown);

TEST(a_free_lock_is_acquired)
{
    long long beat = several_beat();
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert(live.reply.was_free);
    ck_assert_str_eq(several_value(0), SECOND);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS - 10000);
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS);
    ck_assert_int_eq(several_slot(0), call.number);
    ck_assert_int_eq(several_beat(), beat + 1);
    ck_assert_int_eq(live.reply.beat, beat + 1);
}

TEST_RANGE(if_one_is_stale_none_is_replaced, 0, SEVERAL)
{
    several_set(0, FIRST, LIVE_TTL_MS / 2);
    several_set(1, FIRST, LIVE_TTL_MS / 2);
    call = make_call("a\nb\nc");
    several_raise(_i, call.number);
    ck_assert_int_eq(live_ask(&call), VOTE_STALE);
    ck_assert_str_eq(several_value(0), FIRST);
    ck_assert_str_eq(several_value(1), FIRST);
    ck_assert_int_eq(several_pttl(2), -2);
}

/* With or without an owner; of the same number, or a lower one. */
TEST_RANGE(an_earlier_lock_with_the_same_key_is_replaced, 0, 5)
{
    static const char *const earlier[] = {
        FIRST,
        FIRST ".me",
        FIRST ".an:owner@with/all_of-them.0",
        "1700000000000004." HEX2 "+" HASH,
        "0000000000000001." HEX "+" HASH ".you",
    };
    long long beat = several_beat();
    several_set(0, earlier[_i], LIVE_TTL_MS / 2);
    several_raise(0, SEEN);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert(!live.reply.was_free);
    ck_assert_str_eq(several_value(0), SECOND);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS - 10000);
    ck_assert_int_eq(several_slot(0), call.number);
    ck_assert_int_eq(several_beat(), beat + 1);
    /* the earlier one has ended */
    ck_assert_int_eq(live_run(CALL_EXTEND, "a", earlier[_i]), VOTE_HELD);
    ck_assert_int_eq(live_run(CALL_RELEASE, "a", earlier[_i]), VOTE_HELD);
    ck_assert_int_eq(live_run(CALL_RELEASE, "a", SECOND), VOTE_DELETED);
}

/* What the node must not take for an earlier lock of this client. */
static const char *const others[] = {
    "B",
    "1700000000000005." HEX "+" HASH2,
    "1700000000000006." HEX "+" HASH,
    "1700000000000005." HEX,
    "1700000000000005." HEX ".owner",
    "1700000000000005." HEX "." HASH,
    "1700000000000005." HEX "+" HASH "x",
    "1700000000000005." HEX "+" HASH ".",
    "1700000000000005." HEX "+" HASH ".o*ner",
    "1700000000000005." HEX "+" HASH ".0123456789abcdef0123456789abcdef"
    "0123456789abcdef0123456789abcdef0",
    "17000000000000x5." HEX "+" HASH,
    "-700000000000005." HEX "+" HASH,
    "1700000000000005:" HEX "+" HASH,
    "1700000000000005.0123456789ABCDEF0123456789abcdef01234567+" HASH,
    "01700000000000005." HEX "+" HASH,
};

static void expect_held(void)
{
    long long beat = several_beat();
    ck_assert_int_eq(live_ask(&call), VOTE_HELD);
    ck_assert_int_gt(live.reply.pttl_ms, LIVE_TTL_MS / 2 - 10000);
    ck_assert_int_le(live.reply.pttl_ms, LIVE_TTL_MS / 2);
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS / 2);
    ck_assert_int_eq(several_slot(0), 0);
    ck_assert_int_eq(several_beat(), beat);
}

TEST_EACH(another_lock_is_held, others)
{
    several_set(0, others[_i], LIVE_TTL_MS / 2);
    expect_held();
    ck_assert_str_eq(live.value, others[_i]);
    ck_assert_str_eq(several_value(0), others[_i]);
}

TEST(a_foreign_type_is_held)
{
    master_integer(&live.master, "RPUSH p:a x");
    master_integer(&live.master, "PEXPIRE p:a %d", LIVE_TTL_MS / 2);
    expect_held();
    ck_assert_str_eq(live.value, "");
    ck_assert_int_eq(live.downs, 0);
}

/* Nobody may take what only has the same owner for a key hash. */
TEST_RANGE(a_token_without_a_key_replaces_nothing, 0, 4)
{
    static const char *const held[] = {
        FIRST,
        ("1700000000000005." HEX "." HASH),
        ("1700000000000005." HEX "+abc"),
        ("1700000000000005." HEX),
    };
    static const char *const tokens[] = {
        ("." HEX),
        ("." HEX "." HASH),
        ("." HEX "+" HASH2),
        ("." HEX "+abc"),
    };
    several_set(0, held[_i], LIVE_TTL_MS / 2);
    for (int i = 0; i < 4; i++) {
        call.token = span_of(tokens[i]);
        expect_held();
    }
}

/* Somebody who has the earlier token may rely on its TTL. */
TEST(no_ttl_gets_shorter)
{
    several_set(0, FIRST, 2 * LIVE_TTL_MS);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(several_value(0), SECOND);
    ck_assert_int_gt(several_pttl(0), 2 * LIVE_TTL_MS - 10000);
    ck_assert_int_le(several_pttl(0), 2 * LIVE_TTL_MS);
}

/* None of ours is without. */
TEST(a_lock_without_ttl_gets_one)
{
    master_text(&live.master, "SET p:a %s", FIRST);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS - 10000);
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS);
}

TEST(a_number_that_is_not_higher_is_stale)
{
    several_set(0, FIRST, LIVE_TTL_MS / 2);
    for (int more = 0; more <= 1; more++) {
        several_raise(0, call.number + more);
        ck_assert_int_eq(live_ask(&call), VOTE_STALE);
        ck_assert_int_eq(live.reply.highest, call.number + more);
        ck_assert_str_eq(several_value(0), FIRST);
        ck_assert_int_le(several_pttl(0), LIVE_TTL_MS / 2);
    }
    several_set(0, "B", LIVE_TTL_MS / 2);
    ck_assert_int_eq(live_ask(&call), VOTE_HELD); /* before stale */
    master_integer(&live.master, "DEL p:a");
    ck_assert_int_eq(live_ask(&call), VOTE_STALE);
    call.number += 2;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
}

/* Nobody knows what the highest was. */
TEST_RANGE(a_spoilt_slot_replaces_nothing, 0, 4)
{
    static const char *const numbers[] = {"spoilt", "nan", "1e300",
                                          "9007199254740992"};
    several_set(0, FIRST, LIVE_TTL_MS / 2);
    live_write_slot(7, numbers[_i]);
    ck_assert_int_eq(live_ask(&call), UNFIT(FAILED));
    ck_assert_str_eq(several_value(0), FIRST);
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS / 2);
    ck_assert_int_eq(live.downs, 0);
}

/* Late, with a number far ahead or far below, without the admission. */
TEST_RANGE(whoever_may_not_replaces_nothing, 0, 2)
{
    enum { FAR_US = LIVE_WINDOW_US + 1000000 };
    several_set(0, FIRST, LIVE_TTL_MS / 2);
    call = make_call(_i == 0 ? "a" : "a\nb\nc");
    struct call late = call, ahead = call, behind = call, other = call;
    late.node_deadline_us = live_node_now_us() - 1000000;
    ck_assert_int_eq(live_ask(&late), VOTE_LATE);
    ahead.number += FAR_US;
    ck_assert_int_eq(live_ask(&ahead), VOTE_OUT_OF_RANGE);
    behind.number -= FAR_US;
    ck_assert_int_eq(live_ask(&behind), VOTE_OUT_OF_RANGE);
    other.admit = span_of(LIVE_ADMIT);
    ck_assert_int_eq(live_ask(&other), VOTE_NOT_ADMITTED);
    ck_assert_str_eq(several_value(0), FIRST);
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS / 2);
    ck_assert_int_eq(several_slot(0), 0);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
}

TEST(an_error_replaces_nothing)
{
    several_set(0, FIRST, LIVE_TTL_MS / 2);
    master_text(&live.master, "ACL SETUSER default -set");
    ck_assert_int_eq(live_ask(&call), UNFIT(NO_PERMISSION));
    ck_assert_str_eq(several_value(0), FIRST);
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS / 2);
    ck_assert_int_eq(several_slot(0), 0);
}

/* The later one wins; what is late finds a higher number. */
TEST(of_two_repeats_one_is_granted)
{
    struct call calls[] = {make_call("a"), make_call("a"), make_call("a")};
    several_set(0, FIRST, LIVE_TTL_MS);
    calls[1].token = span_of("." HEX "+" HASH);
    calls[1].number = calls[0].number + 1;
    calls[2].token = calls[1].token;
    calls[2].number = calls[0].number + 2;
    calls[2].seen = calls[0].number;
    live_ask_all(calls, 3);
    ck_assert_int_eq(live.votes[0], VOTE_GRANTED);
    ck_assert_int_eq(live.votes[1], VOTE_HELD);
    ck_assert_int_eq(live.votes[2], VOTE_GRANTED);
    ck_assert_int_eq(several_slot(0), calls[2].number);
}

/* ---- of several locks --------------------------------------------------- */

TEST(all_that_are_free_are_set)
{
    call = make_call("a\nb\nc");
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert(live.reply.was_free);
}

/* What of it is free is set; but it replaced something. */
TEST(all_are_replaced_or_set)
{
    several_set(0, FIRST, LIVE_TTL_MS / 2);
    several_set(2, FIRST, 2 * LIVE_TTL_MS);
    call = make_call("a\nb\nc");
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert(!live.reply.was_free);
    for (int i = 0; i < SEVERAL; i++) {
        ck_assert_str_eq(several_value(i), SECOND);
        ck_assert_int_eq(several_slot(i), call.number);
        ck_assert_int_gt(several_pttl(i), LIVE_TTL_MS - 10000);
    }
    ck_assert_int_gt(several_pttl(2), LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", SECOND),
                     VOTE_DELETED);
}

TEST_RANGE(if_another_has_one_none_is_replaced, 0, SEVERAL)
{
    for (int i = 0; i < SEVERAL; i++)
        several_set(i, i == _i ? "B" : FIRST, LIVE_TTL_MS / 2);
    call = make_call("a\nb\nc");
    expect_held();
    ck_assert_str_eq(live.value, "B");
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_str_eq(several_value(i), i == _i ? "B" : FIRST);
}

/* As they were, with their TTL, or without one. */
TEST_RANGE(if_one_is_refused_the_others_are_restored, 0, 2)
{
    several_set(0, FIRST, LIVE_TTL_MS / 2);
    several_set(1, FIRST ".me", LIVE_TTL_MS / 2);
    if (_i == 1)
        master_integer(&live.master, "PERSIST p:b");
    call = make_call("a\nb\nbb\nc");
    several_restrict("%%R~p:c ~p:a ~p:b ~p:bb");
    ck_assert_int_eq(live_ask(&call), VOTE_KEY_REFUSED);
    several_restrict("allkeys");
    ck_assert_str_eq(several_value(0), FIRST);
    ck_assert_str_eq(several_value(1), FIRST ".me");
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS / 2 - 10000);
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS / 2);
    ck_assert_int_eq(several_pttl(1) == -1, _i == 1);
    ck_assert_int_le(several_pttl(1), LIVE_TTL_MS / 2);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:bb p:c"), 0);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_eq(several_slot(i), 0);
}

/* With the key or without: it is no repeat. */
TEST_RANGE(an_acquire_replaces_nothing, 0, SEVERAL)
{
    several_set(_i, FIRST, LIVE_TTL_MS / 2);
    call = make_call(_i == 0 ? "a" : "a\nb\nc");
    call.kind = CALL_ACQUIRE;
    ck_assert_int_eq(live_ask(&call), VOTE_HELD);
    ck_assert_str_eq(live.value, FIRST);
    ck_assert_str_eq(several_value(_i), FIRST);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:a p:b p:c"), 1);
}
