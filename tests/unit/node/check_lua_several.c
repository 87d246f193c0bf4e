/*
 * Acquires, inspections and extensions of several locks on a real redis-server,
 * through a real link; check_lua_parts.c has releases and repairs. What is
 * refused of several is refused of one as well.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/suite/suite.h"
#include "several.h"

SUITE(lua_several, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

/* ---- acquire ------------------------------------------------------------ */

TEST(all_locks_live_from_acquire_to_release)
{
    struct call call = several_call(CALL_ACQUIRE, "a\nb\nc", "A");
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(several_values(), "AAA");
    for (int i = 0; i < SEVERAL; i++) {
        ck_assert_int_eq(several_slot(i), call.number);
        ck_assert_int_gt(several_pttl(i), LIVE_TTL_MS - 10000);
        ck_assert_int_le(several_pttl(i), LIVE_TTL_MS);
    }
    ck_assert_int_eq(several_run(CALL_INSPECT, "a\nb\nc", ""), VOTE_HELD);
    ck_assert_str_eq(live.value, "A");
    call = several_call(CALL_EXTEND, "a\nb\nc", "A");
    call.ttl_ms = 2 * LIVE_TTL_MS;
    ck_assert_int_eq(live_ask(&call), VOTE_EXTENDED);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_gt(several_pttl(i), LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"), VOTE_DELETED);
    ck_assert_str_eq(several_values(), "---");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"), VOTE_FREE);
    ck_assert_int_eq(several_run(CALL_INSPECT, "a\nb\nc", ""), VOTE_FREE);
    ck_assert_int_eq(live.downs, 0);
}

/* A batch counts the arguments of each call. */
TEST(calls_for_one_and_for_several_share_a_batch)
{
    static const enum vote votes[] = {VOTE_GRANTED,  VOTE_HELD,    VOTE_GRANTED,
                                      VOTE_EXTENDED, VOTE_GRANTED, VOTE_HELD,
                                      VOTE_DELETED,  VOTE_FREE,    VOTE_DELETED,
                                      VOTE_DONE,     VOTE_GRANTED};
    struct call calls[] = {
        several_call(CALL_ACQUIRE, "a\nb", "A"),
        several_call(CALL_ACQUIRE, "b\nc", "B"),
        several_call(CALL_ACQUIRE, "d", "D"),
        several_call(CALL_EXTEND, "a\nb", "A"),
        several_call(CALL_REPAIR, "e\nf\ng", "F"),
        several_call(CALL_INSPECT, "c\nd\ne", ""),
        several_call(CALL_RELEASE, "a\nb", "A"),
        several_call(CALL_INSPECT, "a\nb\nc", ""),
        several_call(CALL_RELEASE, "d", "D"),
        several_call(CALL_LISTEN, "", ""),
        several_call(CALL_REPEAT, "b\nc", "C"),
    };
    enum { CALLS = sizeof calls / sizeof *calls };
    for (int i = 0; i < CALLS; i++) {
        calls[i].number += i;
        for (int k = 0; k < SEVERAL; k++)
            calls[i].slots[k] = (uint16_t)(100 + 10 * i + k);
    }
    live_ask_all(calls, CALLS);
    for (int i = 0; i < CALLS; i++)
        ck_assert_int_eq(live.votes[i], votes[i]);
    ck_assert_str_eq(several_values(), "-CC");
}

TEST(as_many_as_there_may_be)
{
    static char names[NAMES_LEN_MAX + 1];
    memset(names, 'r', NAMES_LEN_MAX);
    for (int i = 0; i < NAMES_MAX; i++) {
        size_t at = (size_t)i * (NAMES_LEN_MAX / NAMES_MAX);
        names[at] = (char)('a' + i);
        if (i > 0)
            names[at - 1] = '\n';
    }
    ck_assert_int_eq(several_run(CALL_ACQUIRE, names, "A"), VOTE_GRANTED);
    ck_assert_int_eq(master_integer(&live.master, "DBSIZE"), NAMES_MAX + 1);
    ck_assert_int_eq(several_run(CALL_EXTEND, names, "A"), VOTE_EXTENDED);
    ck_assert_int_eq(several_run(CALL_RELEASE, names, "A"), VOTE_DELETED);
    ck_assert_int_eq(master_integer(&live.master, "DBSIZE"), 1);
}

/* What an acquire, or a repair, that set nothing must not have changed. */
static void expect_unused(const char *values)
{
    ck_assert_str_eq(several_values(), values);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_eq(several_slot(i), 0);
}

TEST_RANGE(if_one_is_held_none_is_set, 0, SEVERAL)
{
    static const char *const values[] = {"B--", "-B-", "--B"};
    long long beat = several_beat();
    several_set(_i, "B", LIVE_TTL_MS / 2);
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a\nb\nc", "A"), VOTE_HELD);
    ck_assert_str_eq(live.value, "B");
    ck_assert_int_gt(live.reply.pttl_ms, LIVE_TTL_MS / 2 - 10000);
    ck_assert_int_le(live.reply.pttl_ms, LIVE_TTL_MS / 2);
    expect_unused(values[_i]);
    ck_assert_int_eq(several_beat(), beat); /* it promised nothing */
}

TEST_RANGE(if_one_is_stale_none_is_set, 0, SEVERAL)
{
    struct call call = several_call(CALL_ACQUIRE, "a\nb\nc", "A");
    several_raise(_i, call.number);
    ck_assert_int_eq(live_ask(&call), VOTE_STALE);
    ck_assert_int_eq(live.reply.highest, call.number);
    ck_assert_str_eq(several_values(), "---");
    call.number++;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
}

TEST(the_first_that_cannot_be_set_is_told)
{
    struct call call = several_call(CALL_ACQUIRE, "a\nb\nc", "A");
    several_set(1, "B", LIVE_TTL_MS);
    several_set(2, "C", LIVE_TTL_MS);
    several_raise(1, call.number + 1);
    ck_assert_int_eq(live_ask(&call), VOTE_HELD); /* before stale */
    ck_assert_str_eq(live.value, "B");
    several_raise(0, call.number + 2);
    ck_assert_int_eq(live_ask(&call), VOTE_STALE);
    ck_assert_int_eq(live.reply.highest, call.number + 2);
    ck_assert_str_eq(several_values(), "-BC");
}

TEST(a_key_of_another_type_is_held)
{
    master_text(&live.master, "HSET p:b field 1");
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a\nb\nc", "A"), VOTE_HELD);
    ck_assert_str_eq(live.value, "");
    ck_assert_int_eq(live.reply.pttl_ms, -1);
    ck_assert_int_eq(several_run(CALL_INSPECT, "a\nb\nc", ""), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "A"), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_REPAIR, "a\nb\nc", "A"), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"), VOTE_HELD);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:a p:b p:c"), 1);
    ck_assert_int_eq(live.downs, 0);
}

TEST(names_may_share_a_slot)
{
    struct call call = several_call(CALL_ACQUIRE, "a\nb\nc", "A");
    call.slots[1] = call.slots[2] = call.slots[0];
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(several_values(), "AAA");
    ck_assert_int_eq(several_slot(0), call.number);
    call.resource = span_of("d\ne\nf");
    ck_assert_int_eq(live_ask(&call), VOTE_STALE);
    ck_assert_int_eq(live.reply.highest, call.number);
}

/* Late, without the admission, with a number far ahead or far below. */
static const struct {
    enum call_kind kind;
    const char *names, *values;
    int vote; /* if nothing is wrong */
    bool has_limit_above, has_limit_below;
} refused[] = {
    {CALL_ACQUIRE, "a", "---", VOTE_GRANTED, true, true},
    {CALL_REPEAT, "a", "---", VOTE_GRANTED, true, true},
    {CALL_REPAIR, "a", "-A-", VOTE_GRANTED, true, false},
    {CALL_EXTEND, "a", "A--", VOTE_EXTENDED, false, false},
    {CALL_ACQUIRE, "a\nb\nc", "---", VOTE_GRANTED, true, true},
    {CALL_REPEAT, "a\nb\nc", "---", VOTE_GRANTED, true, true},
    {CALL_REPAIR, "a\nb\nc", "-A-", VOTE_GRANTED, true, false},
    {CALL_EXTEND, "a\nb\nc", "AAA", VOTE_EXTENDED, false, false},
};

TEST_EACH(whoever_may_not_changes_nothing, refused)
{
    enum { FAR_US = LIVE_WINDOW_US + 1000000 };
    for (int i = 0; i < SEVERAL; i++)
        if (refused[_i].values[i] == 'A')
            several_set(i, "A", LIVE_TTL_MS / 2);
    const struct call good =
        several_call(refused[_i].kind, refused[_i].names, "A");
    struct call call = good;
    call.node_deadline_us = live_node_now_us() - 1000000;
    ck_assert_int_eq(live_ask(&call), VOTE_LATE);
    call = good;
    call.admit = span_of(LIVE_ADMIT); /* that is only how it begins */
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
    call = good;
    call.number += FAR_US;
    if (refused[_i].has_limit_above)
        ck_assert_int_eq(live_ask(&call), VOTE_OUT_OF_RANGE);
    call.number -= 2 * (int64_t)FAR_US;
    if (refused[_i].has_limit_below)
        ck_assert_int_eq(live_ask(&call), VOTE_OUT_OF_RANGE);
    expect_unused(refused[_i].values);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_le(several_pttl(i), LIVE_TTL_MS / 2);
    ck_assert_int_eq(live_ask(&good), refused[_i].vote);
}

/* A release would not be sent: it counts as harmless. */
TEST_RANGE(if_a_name_is_refused_none_is_set, 0, 6)
{
    static const char *const rights[] = {
        "~p:b ~p:c",       "~p:a ~p:c",       "~p:a ~p:b",
        "%%R~p:a ~p:[bc]", "%%R~p:b ~p:[ac]", "%%R~p:c ~p:[ab]",
    };
    several_restrict(rights[_i]);
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a\nb\nc", "A"),
                     VOTE_KEY_REFUSED);
    ck_assert_int_eq(several_run(CALL_REPAIR, "a\nb\nc", "A"),
                     VOTE_KEY_REFUSED);
    several_restrict("allkeys");
    expect_unused("---");
    ck_assert_int_eq(live.downs, 0);
}

TEST(an_error_sets_none)
{
    live_write_slot(9, "spoilt");
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a\nb\nc", "A"), UNFIT(FAILED));
    master_integer(&live.master, "HDEL p:redlockd:state 9");
    master_text(&live.master, "ACL SETUSER default -set");
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a\nb\nc", "A"),
                     UNFIT(NO_PERMISSION));
    master_text(&live.master, "ACL SETUSER default +set");
    master_text(&live.master, "CONFIG SET maxmemory 1");
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a\nb\nc", "A"),
                     UNFIT(OUT_OF_MEMORY));
    master_text(&live.master, "CONFIG SET maxmemory 0");
    expect_unused("---");
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a\nb\nc", "A"), VOTE_GRANTED);
}

/* ---- inspect ------------------------------------------------------------ */

TEST(the_first_that_is_there_is_shown)
{
    several_set(2, "C", LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_INSPECT, "a\nb\nc", ""), VOTE_HELD);
    ck_assert_str_eq(live.value, "C");
    several_set(1, "B", 2 * LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_INSPECT, "a\nb\nc", ""), VOTE_HELD);
    ck_assert_str_eq(live.value, "B");
    ck_assert_int_gt(live.reply.pttl_ms, LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_INSPECT, "a\nd", ""), VOTE_FREE);
    struct call call = several_call(CALL_INSPECT, "a\nd", "");
    call.admit = span_of(LIVE_ADMIT);
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
}

/* ---- extend ------------------------------------------------------------- */

TEST(each_is_only_ever_extended)
{
    several_set(0, "A", LIVE_TTL_MS / 2);
    several_set(1, "A", 2 * LIVE_TTL_MS);
    master_text(&live.master, "SET p:c %s", live_token("A"));
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "A"), VOTE_EXTENDED);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS - 10000);
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS);
    ck_assert_int_gt(several_pttl(1), LIVE_TTL_MS);
    ck_assert_int_eq(several_pttl(2), -1);
}

/* Whichever it is, and whether another one is missing. */
TEST_RANGE(if_another_has_one_none_is_extended, 0, SEVERAL)
{
    for (int i = 0; i < SEVERAL; i++)
        several_set(i, i == _i ? "B" : "A", LIVE_TTL_MS / 2);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "A"), VOTE_HELD);
    ck_assert_str_eq(live.value, "B");
    ck_assert_int_eq(live.reply.highest, 1 << _i); /* a repair may set it */
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc\nd", "A"), VOTE_HELD);
    ck_assert_int_eq(live.reply.highest, 1 << _i | 1 << SEVERAL);
    ck_assert_int_eq(several_run(CALL_EXTEND, "0\na\nb\nc", "A"), VOTE_HELD);
    ck_assert_int_eq(live.reply.highest, 1 << (_i + 1) | 1);
    ck_assert_str_eq(live.value, "B");
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_le(several_pttl(i), LIVE_TTL_MS / 2);
}

TEST_RANGE(if_one_is_missing_none_is_extended, 0, SEVERAL)
{
    for (int i = 0; i < SEVERAL; i++)
        if (i != _i)
            several_set(i, "A", LIVE_TTL_MS / 2);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, 1 << _i);
    ck_assert_int_eq(several_run(CALL_EXTEND, "c\nd", "B"),
                     _i == 2 ? VOTE_FREE : VOTE_HELD);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_le(several_pttl(i), LIVE_TTL_MS / 2);
}
