/*
 * As many readers as may, on a real redis-server: who is refused, who is not,
 * and what is known of readers by their keys.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "holders.h"

#define HEX "0123456789abcdef0123456789abcdef01234567"
#define HASH "abcdefghijklmnopqrst-_"
#define INDEX "p:redlockd:repeat:" HASH

/* The token of an acquire with a key, and the name of that of its repeat. */
#define SEEN INT64_C(1700000000000005)
#define FIRST "1700000000000005~" HEX "+" HASH ".me"
#define SECOND "~ffffffffffffffffffffffffffffffffffffffff+" HASH ".me"

enum { MOST = 2 };

SUITE(lua_crowd, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

static int ask(enum call_kind kind, const char *names, const char *token,
               int most)
{
    struct call call = several_call(kind, names, token);
    call.readers_max = most;
    call.seen = kind == CALL_REPAIR ? call.seen : SEEN;
    return live_ask(&call);
}

static void fill(void)
{
    ck_assert_int_eq(ask(CALL_ACQUIRE, "a", "~A", MOST), VOTE_GRANTED);
    ck_assert_int_eq(ask(CALL_ACQUIRE, "a", "~B", MOST), VOTE_GRANTED);
}

/* Alone, with another lock, with a key. */
TEST_RANGE(one_more_than_may_is_refused, 0, 4)
{
    static const struct {
        enum call_kind kind;
        const char *names, *token;
    } more[] = {{CALL_ACQUIRE, "a", "~C"},
                {CALL_ACQUIRE, "a\nb", "~C"},
                {CALL_REPEAT, "a", SECOND},
                {CALL_REPEAT, "a\nb", SECOND}};
    fill();
    ck_assert_int_eq(ask(more[_i].kind, more[_i].names, more[_i].token, MOST),
                     VOTE_HELD);
    ck_assert_int_eq(live.reply.holders, MOST);
    ck_assert_int_gt(live.reply.pttl_ms, LIVE_TTL_MS - 10000);
    ck_assert_str_eq(holders_of(0), "AB");
    ck_assert_str_eq(holders_of(1), "");
    ck_assert_int_eq(
        ask(more[_i].kind, more[_i].names, more[_i].token, MOST + 1),
        VOTE_GRANTED);
}

/* Many in one batch, which may be done as one. */
TEST(of_many_at_once_as_many_as_may_are_let_in)
{
    static const char *const tokens[] = {"~A", "~B", "~C", "~D"};
    struct call calls[4];
    for (int i = 0; i < 4; i++) {
        calls[i] = several_call(CALL_ACQUIRE, "a", tokens[i]);
        calls[i].number += i;
        calls[i].readers_max = MOST;
    }
    live_ask_all(calls, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(live.votes[i], i < MOST ? VOTE_GRANTED : VOTE_HELD);
    ck_assert_str_eq(holders_of(0), "AB");
}

TEST(readers_that_have_ended_do_not_count)
{
    holders_add(0, "~A", 60000);
    holders_add(0, "~B", -1000);
    ck_assert_int_eq(ask(CALL_ACQUIRE, "a", "~C", MOST), VOTE_GRANTED);
    ck_assert_int_eq(ask(CALL_ACQUIRE, "a", "~D", MOST), VOTE_HELD);
}

/* Nor the wish of a writer that has ended. */
TEST(a_reader_that_leaves_makes_room)
{
    fill();
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "W"), VOTE_HELD);
    master_integer(&live.master, "ZADD p:a 1 %s", HOLDERS_WISH);
    ck_assert_int_eq(ask(CALL_ACQUIRE, "a", "~C", MOST), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
    ck_assert_int_eq(ask(CALL_ACQUIRE, "a", "~C", MOST), VOTE_GRANTED);
}

/* Who is in stays in, and gets onto the other nodes. */
TEST(who_is_in_is_not_refused)
{
    holders_add(0, FIRST, 60000);
    ck_assert_int_eq(ask(CALL_ACQUIRE, "a", "~A", MOST), VOTE_GRANTED);
    ck_assert_int_eq(ask(CALL_EXTEND, "a", "~A", 0), VOTE_EXTENDED);
    ck_assert_int_eq(ask(CALL_REPAIR, "a", "~B", 0), VOTE_GRANTED);
    ck_assert_int_eq(ask(CALL_REPEAT, "a", SECOND, MOST), VOTE_GRANTED);
    ck_assert(!live.reply.was_free);
    ck_assert_int_eq(master_integer(&live.master, "ZCARD p:a"), 3);
}

/* Whatever else is there. */
TEST_RANGE(who_may_only_replace_joins_nowhere, 0, 3)
{
    static const char *const names[] = {"a", "b", "a\nb"};
    ck_assert_int_eq(ask(CALL_ACQUIRE, "a", "~A", MOST), VOTE_GRANTED);
    ck_assert_int_eq(ask(CALL_REPEAT, names[_i], SECOND, 0), VOTE_HELD);
    ck_assert_int_eq(live.reply.holders, 1);
    ck_assert_str_eq(holders_of(0), "A");
    ck_assert_str_eq(holders_of(1), "");
}

/* ---- by their keys ------------------------------------------------------ */

static const char *known(void)
{
    return master_text(&live.master, "HGET " INDEX " p:a");
}

/* For as long as it has the lock, and no longer. */
TEST_RANGE(a_reader_with_a_key_is_known_by_it, 0, 4)
{
    static const struct {
        enum call_kind kind;
        const char *names;
    } acquires[] = {{CALL_REPEAT, "a"},
                    {CALL_REPEAT, "a\nb"},
                    {CALL_ACQUIRE, "a"},
                    {CALL_REPAIR, "a"}};
    ck_assert_int_eq(ask(acquires[_i].kind, acquires[_i].names, SECOND, MOST),
                     VOTE_GRANTED);
    ck_assert_str_eq(known(), live_token(SECOND));
    ck_assert_int_le(
        llabs(master_integer(&live.master, "PTTL " INDEX) - several_pttl(0)),
        5);
    master_integer(&live.master, "PEXPIRE " INDEX " 100");
    ck_assert_int_eq(several_run(CALL_EXTEND, acquires[_i].names, SECOND),
                     VOTE_EXTENDED);
    ck_assert_int_gt(master_integer(&live.master, "PTTL " INDEX),
                     LIVE_TTL_MS - 10000);
    ck_assert_int_eq(several_run(CALL_RELEASE, acquires[_i].names, SECOND),
                     VOTE_DELETED);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS " INDEX), 0);
}

/* Rows have ways of their own. */
TEST(a_reader_in_a_row_is_known_by_its_key)
{
    struct call calls[3];
    static const char *const tokens[] = {"B", SECOND, "C"};
    static const char *const locks[] = {"b", "a", "c"};
    for (int i = 0; i < 3; i++) {
        calls[i] = several_call(CALL_ACQUIRE, locks[i], tokens[i]);
        calls[i].slots[0] = (uint16_t)(20 + i);
    }
    live_ask_all(calls, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(live.votes[i], VOTE_GRANTED);
    ck_assert_str_eq(known(), live_token(SECOND));
    for (int i = 0; i < 3; i++) {
        calls[i].kind = CALL_RELEASE;
        calls[i].admit = span_of("");
    }
    live_ask_all(calls, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(live.votes[i], VOTE_DELETED);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS " INDEX), 0);
}

/* It comes late, or was replaced: the later one is the one to find. */
TEST(an_earlier_reader_does_not_hide_the_latest)
{
    ck_assert_int_eq(ask(CALL_REPEAT, "a", SECOND, MOST), VOTE_GRANTED);
    holders_add(1, "~B", 60000);
    ck_assert_int_eq(several_run(CALL_REPAIR, "b", FIRST), VOTE_GRANTED);
    ck_assert_str_eq(known(), live_token(SECOND));
    ck_assert_int_eq(several_run(CALL_RELEASE, "b", FIRST), VOTE_DELETED);
    ck_assert_str_eq(known(), live_token(SECOND));
}

/* A forced release took it from a part of what it holds. */
TEST_RANGE(a_reader_that_has_lost_a_part_is_found_by_the_rest, 0, 2)
{
    static const char *const lost[] = {"a", "b"};
    holders_add(0, FIRST, 60000);
    holders_add(1, FIRST, 60000);
    ck_assert_int_eq(several_run(CALL_RELEASE, lost[_i], FIRST), VOTE_DELETED);
    ck_assert_int_eq(ask(CALL_REPEAT, "a\nb", SECOND, MOST), VOTE_GRANTED);
    ck_assert(!live.reply.was_free);
    ck_assert_int_eq(master_integer(&live.master, "ZCARD p:a"), 1);
    ck_assert_int_eq(master_integer(&live.master, "ZCARD p:b"), 1);
}

/* Nor does a repair hide it that takes back what it has just set. */
TEST(a_reader_whose_repair_fails_is_found_by_the_rest)
{
    holders_add(1, FIRST, 60000);
    several_restrict("%%R~p:c ~p:[ab] ~p:redlockd:*");
    ck_assert_int_eq(several_run(CALL_REPAIR, "a\nb\nc", FIRST),
                     VOTE_KEY_REFUSED);
    several_restrict("allkeys");
    ck_assert_str_eq(holders_of(0), "");
    ck_assert_int_eq(ask(CALL_REPEAT, "b", SECOND, MOST), VOTE_GRANTED);
    ck_assert(!live.reply.was_free);
}

/* Which is later than what the client may have had before. */
TEST_RANGE(a_reader_takes_the_place_of_its_own_earlier_try, 0, 2)
{
    static const char *const tries[] = {
        "1700000000000006~ffffffffffffffffffff00000000000000000000+" HASH,
        "1700000000000006~fffffffffffffffffff000000000000000000000+" HASH,
    };
    bool is_own = _i == 0;
    holders_add(0, tries[_i], LIVE_TTL_MS + 5000);
    ck_assert_int_eq(ask(CALL_REPEAT, "a", SECOND, MOST),
                     is_own ? VOTE_GRANTED : VOTE_HELD);
    ck_assert(!live.reply.was_free);
    ck_assert_int_eq(master_integer(&live.master, "ZCARD p:a"), 1);
    /* what that had promised, or that of another request */
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS);
}
