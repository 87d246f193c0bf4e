/*
 * Several shared locks at once, and repeats, on a real redis-server.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/suite/suite.h"
#include "holders.h"

enum { HALF_MS = LIVE_TTL_MS / 2 };

/* The names of the holders of a, b and c; "-": nobody, "#": a writer. */
static const char *all_holders(void)
{
    static char text[64];
    static const char *const names[SEVERAL] = {"a", "b", "c"};
    size_t len = 0;
    for (int i = 0; i < SEVERAL; i++) {
        const char *type = master_text(&live.master, "TYPE p:%s", names[i]);
        const char *holders = strcmp(type, "none") == 0   ? "-"
                              : strcmp(type, "zset") == 0 ? holders_of(i)
                                                          : "#";
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
                                i > 0 ? " " : "", holders);
    }
    return text;
}

static void expect_no_numbers(void)
{
    for (int i = 0; i < SEVERAL; i++) {
        ck_assert_int_eq(several_slot(i), 0);
        ck_assert_str_eq(holders_numbers(i), "");
    }
}

SUITE(lua_shared_several, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

/* ---- all or none -------------------------------------------------------- */

TEST(all_locks_live_from_acquire_to_release)
{
    holders_add(1, "~B", HALF_MS);
    struct call call = several_call(CALL_ACQUIRE, "a\nb\nc", "~A");
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(all_holders(), "A BA A");
    for (int i = 0; i < SEVERAL; i++) {
        ck_assert_int_eq(several_slot(i), call.number);
        ck_assert_int_gt(several_pttl(i), LIVE_TTL_MS - 10000);
    }
    ck_assert_int_eq(several_run(CALL_INSPECT, "d\nb\nc", ""), VOTE_HELD);
    ck_assert_int_eq(live.reply.holders, 2);
    call = several_call(CALL_EXTEND, "a\nb\nc", "~A");
    call.ttl_ms = 2 * LIVE_TTL_MS;
    ck_assert_int_eq(live_ask(&call), VOTE_EXTENDED);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_gt(several_pttl(i), LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "~A"), VOTE_DELETED);
    ck_assert_str_eq(all_holders(), "- B -");
    ck_assert_int_le(several_pttl(1), HALF_MS);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "~A"), VOTE_FREE);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "~A"), VOTE_FREE);
    ck_assert_int_eq(live.downs, 0);
}

TEST_RANGE(if_a_writer_has_one_none_is_granted, 0, SEVERAL)
{
    static const char *const after[] = {"# B -", "- # -", "- B #"};
    holders_add(1, "~B", HALF_MS);
    several_set(_i, "C", LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a\nb\nc", "~A"), VOTE_HELD);
    ck_assert_str_eq(live.value, "C");
    ck_assert_int_eq(several_run(CALL_REPAIR, "a\nb\nc", "~A"), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_REPEAT, "a\nb\nc", "~A"), VOTE_HELD);
    ck_assert_str_eq(all_holders(), after[_i]);
    if (_i != 1)
        ck_assert_int_le(several_pttl(1), HALF_MS);
    expect_no_numbers();
}

TEST_RANGE(if_one_is_stale_none_is_granted, 0, SEVERAL)
{
    struct call call = several_call(CALL_ACQUIRE, "a\nb\nc", "~A");
    several_raise(_i, call.number);
    ck_assert_int_eq(live_ask(&call), VOTE_STALE);
    ck_assert_str_eq(all_holders(), "- - -");
    ck_assert_int_eq(several_slot((_i + 1) % SEVERAL), 0);
}

/* Others hold them no longer than before. */
TEST_RANGE(if_one_is_refused_none_is_granted, 0, 6)
{
    static const char *const rights[] = {
        "~p:b ~p:c",       "~p:a ~p:c",       "~p:a ~p:b",
        "%%R~p:a ~p:[bc]", "%%R~p:b ~p:[ac]", "%%R~p:c ~p:[ab]",
    };
    static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_REPAIR};
    holders_add(0, "~B", HALF_MS);
    for (int i = 0; i < 2; i++) {
        several_restrict(rights[_i]);
        ck_assert_int_eq(several_run(kinds[i], "a\nb\nc", "~A"),
                         VOTE_KEY_REFUSED);
        several_restrict("allkeys");
        ck_assert_str_eq(all_holders(), "B - -");
        ck_assert_int_le(several_pttl(0), HALF_MS);
        expect_no_numbers();
    }
    ck_assert_int_eq(live.downs, 0);
}

TEST(names_may_share_a_slot)
{
    struct call call = several_call(CALL_ACQUIRE, "a\nb\nc", "~A");
    call.slots[1] = call.slots[2] = call.slots[0];
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(all_holders(), "A A A");
    ck_assert_int_eq(several_slot(0), call.number);
    const char *expected = textf("%lld:0", (long long)call.number);
    ck_assert_str_eq(holders_numbers(0), expected);
}

TEST_RANGE(if_one_is_missing_none_is_extended, 0, SEVERAL)
{
    for (int i = 0; i < SEVERAL; i++) {
        holders_add(i, i != _i ? "~A" : "~B", HALF_MS);
        several_raise(i, 1000 * (i + 1));
    }
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "~A"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, 1 << _i);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_le(several_pttl(i), HALF_MS);
    /* which a repair then adds */
    struct call call = several_call(CALL_REPAIR, "a\nb\nc", "~A");
    call.seen = (1 << SEVERAL) - 1 - (1 << _i);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    call.seen = live.reply.highest = 1 << _i;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_eq(several_slot(i) == 1000 * (i + 1), i != _i);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED); /* they are there */
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "~A"), VOTE_EXTENDED);
}

/* Where the downgrade has been, and where it has not. */
TEST(those_that_are_exclusive_still_are_downgraded)
{
    several_set(0, "A", LIVE_TTL_MS);
    holders_add(1, "~A", HALF_MS);
    several_set(2, "A", HALF_MS);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "A"), VOTE_HELD);
    ck_assert_int_eq(live.reply.highest, 0); /* it may be among the readers */
    ck_assert_str_eq(all_holders(), "# A #");
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "~A"), VOTE_EXTENDED);
    ck_assert_str_eq(all_holders(), "A A A");
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_gt(several_pttl(i), LIVE_TTL_MS - 10000);
}

TEST_RANGE(all_that_have_the_token_are_released, 0, 2)
{
    const char *token = _i == 0 ? "A" : "~A";
    several_set(0, "A", LIVE_TTL_MS);
    holders_add(1, "~A", LIVE_TTL_MS);
    holders_add(1, "~B", HALF_MS);
    holders_add(2, "~A", LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", token), VOTE_DELETED);
    ck_assert_str_eq(all_holders(), "- B -");
    ck_assert_int_le(several_pttl(1), HALF_MS);
    /* a writer's is told before one that is missing */
    several_set(2, "C", LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", token), VOTE_HELD);
    ck_assert_int_eq(live.reply.holders, _i == 0 ? 1 : 0);
    ck_assert_str_eq(live.value, _i == 0 ? "" : "C");
}

/* The node may not be asked again. */
TEST_RANGE(what_is_not_refused_is_released, 0, SEVERAL)
{
    static const char *const rights[] = {"~p:[bc]", "~p:[ac]", "~p:[ab]"};
    static const char *const after[] = {"A - -", "- A -", "- - A"};
    for (int i = 0; i < SEVERAL; i++)
        holders_add(i, "~A", LIVE_TTL_MS);
    several_restrict(rights[_i]);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "~A"),
                     VOTE_KEY_REFUSED);
    several_restrict("allkeys");
    ck_assert_str_eq(all_holders(), after[_i]);
}

/* A batch counts the arguments of each call. */
TEST(readers_and_writers_share_a_batch)
{
    static const int votes[] = {
        VOTE_GRANTED, VOTE_GRANTED, VOTE_GRANTED, VOTE_EXTENDED, VOTE_GRANTED,
        VOTE_HELD,    VOTE_HELD,    VOTE_DELETED, VOTE_GRANTED,  VOTE_DONE};
    struct call calls[] = {
        several_call(CALL_ACQUIRE, "a\nb", "~A"),
        several_call(CALL_ACQUIRE, "a", "~B"),
        several_call(CALL_REPEAT, "b", "~D"),
        several_call(CALL_EXTEND, "a\nb", "~A"),
        several_call(CALL_REPAIR, "c\nd", "~A"),
        several_call(CALL_ACQUIRE, "b", "C"),
        several_call(CALL_INSPECT, "b", ""),
        several_call(CALL_RELEASE, "a\nb", "~A"),
        several_call(CALL_ACQUIRE, "e", "E"),
        several_call(CALL_LISTEN, "", ""),
    };
    enum { CALLS = sizeof calls / sizeof *calls };
    for (int i = 0; i < CALLS; i++) {
        calls[i].number += i;
        for (int k = 0; k < SEVERAL; k++)
            calls[i].slots[k] = (uint16_t)(100 + 10 * i + k);
    }
    calls[3].number = calls[4].number = calls[7].number = calls[0].number;
    live_ask_all(calls, CALLS);
    for (int i = 0; i < CALLS; i++)
        ck_assert_msg(live.votes[i] == votes[i], "call %d: %s", i,
                      ballot_name(ballot_of_number(live.votes[i])));
    ck_assert_str_eq(all_holders(), "B D A");
}

/* ---- repeats ------------------------------------------------------------ */

#define HEX "0123456789abcdef0123456789abcdef01234567"
#define HEX2 "ffffffffffffffffffffffffffffffffffffffff"
#define HASH "abcdefghijklmnopqrst-_"
#define HASH2 "ABCDEFGHIJKLMNOPQRST01"

/* The token of the first acquire, and the name of that of the repeat. */
#define SEEN INT64_C(1700000000000005)
#define FIRST "1700000000000005~" HEX "+" HASH
#define SECOND "~" HEX2 "+" HASH ".me"

static int repeat(const char *names, const char *token)
{
    struct call call = several_call(CALL_REPEAT, names, token);
    call.seen = SEEN;
    return live_ask(&call);
}

static bool has(int lock, const char *token)
{
    static const char *const names[SEVERAL] = {"a", "b", "c"};
    return master_text(&live.master, "ZSCORE p:%s %s", names[lock],
                       live_token(token))[0] != '\0';
}

TEST_RANGE(a_repeat_takes_the_place_of_the_earlier_reader, 0, 4)
{
    static const char *const earlier[] = {
        FIRST,
        FIRST ".me",
        "1700000000000004~" HEX2 "+" HASH,
        "0000000000000001~" HEX "+" HASH ".an:owner@with/all_of-them.0",
    };
    holders_add(0, earlier[_i], HALF_MS);
    holders_add(0, "~B", HALF_MS);
    ck_assert_int_eq(repeat("a", SECOND), VOTE_GRANTED);
    ck_assert(!live.reply.was_free);
    ck_assert(!has(0, earlier[_i]) && has(0, SECOND) && has(0, "~B"));
    ck_assert_int_gt(holders_left_ms(0, SECOND), LIVE_TTL_MS - 10000);
    /* the earlier one has ended */
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", earlier[_i]), VOTE_FREE);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", earlier[_i]), VOTE_FREE);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", SECOND), VOTE_DELETED);
    ck_assert_int_le(several_pttl(0), HALF_MS);
}

/* Somebody who has the earlier token may rely on its TTL. */
TEST(a_repeat_keeps_the_longer_time)
{
    holders_add(0, FIRST, 2 * LIVE_TTL_MS);
    ck_assert_int_eq(repeat("a", SECOND), VOTE_GRANTED);
    ck_assert(!has(0, FIRST));
    ck_assert_int_gt(holders_left_ms(0, SECOND), LIVE_TTL_MS);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS);
}

/* What the node must not take for an earlier lock of this client. */
TEST_RANGE(a_repeat_leaves_other_readers, 0, 7)
{
    static const char *const others[] = {
        "1700000000000005~" HEX "+" HASH2,
        "1700000000000005~" HEX,
        "1700000000000005~" HEX "." HASH,
        "1700000000000005~" HEX "+" HASH "x",
        "1700000000000005~" HEX "+" HASH ".o*ner",
        "17000000000000x5~" HEX "+" HASH,
        "1700000000000005~0123456789ABCDEF0123456789abcdef01234567+" HASH,
    };
    holders_add(0, others[_i], HALF_MS);
    ck_assert_int_eq(repeat("a", SECOND), VOTE_GRANTED);
    ck_assert(live.reply.was_free);
    ck_assert(has(0, others[_i]) && has(0, SECOND));
    ck_assert_int_le(holders_left_ms(0, others[_i]), HALF_MS);
}

/*
 * What was replaced while it was on its way does not come back; and of two that
 * are under way, the second does not join the first, whatever their numbers: a
 * later repeat could take the place of one of them only.
 */
TEST_RANGE(a_repeat_does_not_join_another_with_its_key, 0, 6)
{
    static const struct {
        const char *token;
        int64_t number; /* 0: it is none of those */
    } others[] = {{"1900000000000000~" HEX "+" HASH, 1900000000000000},
                  {"1700000000000006~" HEX "+" HASH, 1700000000000006},
                  {"1900000000000000~" HEX "+" HASH2, 0}};
    bool is_refused = others[_i % 3].number != 0;
    holders_add(0, others[_i % 3].token, HALF_MS);
    holders_add(0, "~B", HALF_MS);
    ck_assert_int_eq(repeat(_i < 3 ? "a" : "b\na", SECOND),
                     is_refused ? VOTE_HELD : VOTE_GRANTED);
    ck_assert_int_eq(has(0, SECOND), !is_refused);
    ck_assert_int_eq(live.reply.highest, others[_i % 3].number);
    ck_assert_int_eq(live.reply.holders, is_refused ? 2 : 0);
    if (is_refused)
        ck_assert_int_eq(several_pttl(1), -2);
    ck_assert(has(0, others[_i % 3].token) && has(0, "~B"));
}

/* One that has ended, or was released, is in nobody's way. */
TEST_RANGE(a_repeat_does_not_wait_for_what_has_ended, 0, 2)
{
    static const char *const other = "1700000000000006~" HEX "+" HASH;
    holders_add(0, other, _i == 0 ? -1000 : HALF_MS);
    holders_add(0, "~B", HALF_MS);
    if (_i == 1)
        ck_assert_int_eq(several_run(CALL_RELEASE, "a", other), VOTE_DELETED);
    ck_assert_int_eq(repeat("a", SECOND), VOTE_GRANTED);
    ck_assert(live.reply.was_free);
}

/* Nobody may take what only has the same owner for a key hash. */
TEST_RANGE(a_token_without_a_key_replaces_nobody, 0, 3)
{
    static const char *const tokens[] = {"~" HEX, "~" HEX "." HASH,
                                         "~" HEX "+abc"};
    static const char *const held[] = {"1700000000000005~" HEX,
                                       "1700000000000005~" HEX "." HASH,
                                       "1700000000000005~" HEX "+abc"};
    for (int i = 0; i < 3; i++)
        holders_add(0, held[i], HALF_MS);
    ck_assert_int_eq(repeat("a", tokens[_i]), VOTE_GRANTED);
    ck_assert(live.reply.was_free);
    ck_assert_int_eq(master_integer(&live.master, "ZCARD p:a"), 4);
}

/* It is no repeat. */
TEST(an_acquire_replaces_nobody)
{
    holders_add(0, FIRST, HALF_MS);
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", SECOND), VOTE_GRANTED);
    ck_assert(has(0, FIRST) && has(0, SECOND));
}

/* Whoever writes under the key stays a writer. */
TEST(a_repeat_replaces_no_writer)
{
    several_set(0, "1700000000000005." HEX "+" HASH, HALF_MS);
    ck_assert_int_eq(repeat("a", SECOND), VOTE_HELD);
    ck_assert_int_le(several_pttl(0), HALF_MS);
    holders_add(1, FIRST, HALF_MS);
    ck_assert_int_eq(repeat("b", "." HEX2 "+" HASH), VOTE_HELD);
    ck_assert(has(1, FIRST));
}

TEST(of_several_all_are_replaced_or_joined)
{
    holders_add(0, FIRST, 2 * LIVE_TTL_MS);
    holders_add(1, "~B", HALF_MS);
    ck_assert_int_eq(repeat("a\nb\nc", SECOND), VOTE_GRANTED);
    ck_assert(!live.reply.was_free);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert(has(i, SECOND));
    ck_assert(!has(0, FIRST) && has(1, "~B"));
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS);
    ck_assert_int_le(several_pttl(1), LIVE_TTL_MS);
}

/* With the time that it had. */
TEST(if_one_is_refused_none_is_replaced)
{
    holders_add(0, FIRST, HALF_MS);
    several_restrict("%%R~p:c ~p:a ~p:b");
    ck_assert_int_eq(repeat("a\nb\nc", SECOND), VOTE_KEY_REFUSED);
    several_restrict("allkeys");
    ck_assert(has(0, FIRST) && !has(0, SECOND));
    ck_assert_int_le(several_pttl(0), HALF_MS);
    ck_assert_int_eq(several_pttl(1), -2);
    expect_no_numbers();
}
