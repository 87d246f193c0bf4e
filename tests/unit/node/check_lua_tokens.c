/*
 * What a node reports to a forced release, on a real redis-server through a
 * real link: the tokens of all who hold a lock, or of one number, a page at a
 * time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "holders.h"
#include "tokens.h"

#define FIRST 1700000000000000LL

enum { MANY = 3 * CALL_TOKENS_TOLD / 2 };

SUITE(lua_tokens, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

/* What a call for this number replies, of these locks. */
static int ask(const char *locks, int64_t number)
{
    struct call call = several_call(CALL_TOKENS, locks, "");
    call.number = number;
    return live_ask(&call);
}

/* The names of the tokens that it told, joined by spaces. */
static const char *told(void)
{
    static char names[4096];
    char text[VALUE_MAX + 1];
    struct span rest = live.reply.names, token;
    size_t len = 0;
    names[0] = '\0';
    while (call_next_name(&rest, &token)) {
        text[span_copy(text, token)] = '\0';
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s",
                                len > 0 ? " " : "", tokens_name(text));
        ck_assert_uint_lt(len, sizeof names);
    }
    ck_assert_uint_eq(rest.len, 0);
    return names;
}

static int count_told(void)
{
    struct span rest = live.reply.names, token;
    int count = 0;
    while (call_next_name(&rest, &token))
        count++;
    return count;
}

TEST(readers_are_told_as_they_end)
{
    holders_add(0, "~B", LIVE_TTL_MS);
    holders_add(0, "~A", LIVE_TTL_MS / 2);
    ck_assert_int_eq(ask("a", 0), VOTE_HELD);
    ck_assert_str_eq(told(), "~A ~B");
    ck_assert_int_eq(live.reply.left, 0);
}

TEST(those_that_have_ended_and_wishes_are_not_told)
{
    holders_add(0, "~A", LIVE_TTL_MS);
    holders_add(0, "~B", -1000);
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "C"), VOTE_HELD);
    ck_assert_int_gt(holders_wish_ms(0), 0);
    ck_assert_int_eq(ask("a", 0), VOTE_HELD);
    ck_assert_str_eq(told(), "~A");
    ck_assert_int_eq(live.reply.left, 0);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
    ck_assert_int_eq(ask("a", 0), VOTE_FREE); /* the wish is there */
}

TEST(the_exclusive_form_is_told_too)
{
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "A"), VOTE_GRANTED);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ask("a", i == 0 ? 0 : atoll(live_token("A"))),
                         VOTE_HELD);
        ck_assert_str_eq(told(), "A");
        ck_assert_int_eq(live.reply.left, 0);
    }
}

TEST(only_a_number_is_told_if_it_is_asked_for)
{
    holders_add(0, "~A", LIVE_TTL_MS);
    holders_add(0, "~B", LIVE_TTL_MS);
    ck_assert_int_eq(ask("a", atoll(live_token("~B"))), VOTE_HELD);
    ck_assert_str_eq(told(), "~B");
    ck_assert_int_eq(live.reply.left, 0);
    ck_assert_int_eq(ask("a", 7), VOTE_HELD); /* by others */
    ck_assert_str_eq(told(), "");
}

TEST(tokens_of_all_names_are_told)
{
    holders_add(1, "~A", LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "c", "B"), VOTE_GRANTED);
    ck_assert_int_eq(ask("a\nb\nc", 0), VOTE_HELD);
    ck_assert_str_eq(told(), "~A B");
    ck_assert_int_eq(ask("a\nb\nc", atoll(live_token("B"))), VOTE_HELD);
    ck_assert_str_eq(told(), "B");
}

/* Text without a token, no text, another type, a set that is not ours. */
TEST_RANGE(what_is_not_ours_is_there_without_a_token, 0, 4)
{
    if (_i < 2)
        master_text(&live.master, "SET p:a %s", _i == 0 ? "7" : "");
    else
        master_integer(&live.master, _i == 2 ? "SADD p:a x" : "ZADD p:a 1 x");
    ck_assert_int_eq(ask("a", 0), VOTE_HELD);
    ck_assert_str_eq(told(), "");
    ck_assert_int_eq(live.reply.left, 0);
}

/* Otherwise they would look like something that is not ours. */
TEST_RANGE(readers_that_the_user_may_not_read_are_an_error, 0, 3)
{
    static const char *const commands[] = {"zrange", "zcount", "zscore"};
    holders_add(0, "~A", LIVE_TTL_MS);
    master_text(&live.master, "ACL SETUSER default -%s", commands[_i]);
    ck_assert_int_eq(ask("a", 0), UNFIT(NO_PERMISSION));
    ck_assert_int_eq(ask("a", atoll(live_token("~A"))), UNFIT(NO_PERMISSION));
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "B"), VOTE_HELD);
}

TEST(a_free_lock_means_something_with_our_admission_only)
{
    ck_assert_int_eq(ask("a\nb", 0), VOTE_FREE);
    struct call call = several_call(CALL_TOKENS, "a", "");
    call.admit = span_of(LIVE_ADMIT);
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
}

/* The oldest are told first; each page is gone before the next one is read. */
TEST(many_are_told_page_by_page)
{
    struct span rest, token;
    for (int i = 0; i < MANY; i++) {
        holders_add(0, textf("%lld~%040d", FIRST + i, i), LIVE_TTL_MS + i);
    }
    ck_assert_int_eq(ask("a", 0), VOTE_HELD);
    ck_assert_int_eq(count_told(), CALL_TOKENS_TOLD);
    ck_assert_int_eq(live.reply.left, MANY - CALL_TOKENS_TOLD);
    rest = live.reply.names;
    ck_assert(call_next_name(&rest, &token));
    ck_assert_int_eq(atoll(token.ptr), FIRST);
    ck_assert_int_eq(ask("a", FIRST + MANY - 1), VOTE_HELD);
    ck_assert_int_eq(count_told(), 1);
    ck_assert_int_eq(live.reply.left, 0);
    master_integer(&live.master, "ZREMRANGEBYRANK p:a 0 %d",
                   CALL_TOKENS_TOLD - 1);
    ck_assert_int_eq(ask("a", 0), VOTE_HELD);
    ck_assert_int_eq(count_told(), MANY - CALL_TOKENS_TOLD);
    ck_assert_int_eq(live.reply.left, 0);
}

/* A list of names or tokens has the room of a reply for itself. */
TEST(each_has_a_batch_of_its_own)
{
    struct call calls[2] = {several_call(CALL_TOKENS, "a", ""),
                            several_call(CALL_TOKENS, "b", "")};
    holders_add(0, "~A", LIVE_TTL_MS);
    live_ask_all(calls, 2);
    ck_assert_int_eq(live.votes[0], VOTE_HELD);
    ck_assert_int_eq(live.votes[1], VOTE_FREE);
}
