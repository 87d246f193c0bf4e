/* SPDX-License-Identifier: MIT */
/*
 * GET /locks/<id>?after=…&wait_ms=…: what is refused, and what is told when.
 */
#include "../../lib/suite/suite.h"
#include "ask.h"

enum { SOON_US = 25000 };

/* The longest that is taken. */
#define VERSION_64                                                             \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd-z"

#define FREE "held=false version=free -mode waiters=0 nodes.held=0"

SUITE(locks_watch, .set_up = ask_begin, .tear_down = ask_end);

static bool watch(const char *query)
{
    return ask_http(textf("GET /locks/order:42?%s", query));
}

static const struct {
    const char *query, *pointer;
} bad[] = {
    {"after=&wait_ms=1", "/after"},
    {"after=Free&wait_ms=1", "/after"},
    {"after=1.5&wait_ms=1", "/after"},
    {"after=" VERSION_64 "0&wait_ms=1", "/after"},
    {"after=1&after=2&wait_ms=1", "/after"},
    {"after=1&wait_ms=", "/wait_ms"},
    {"after=%20", "/after"},
    {"wait_ms=-1", "/wait_ms"},
    {"limit=3&after=1&wait_ms=x", "/wait_ms"},
    {"after=1&wait_ms=soon", "/wait_ms"},
};

TEST_EACH(a_wrong_argument_is_told, bad)
{
    ck_assert(watch(bad[_i].query));
    ask_expect(400, "invalid_request");
    ck_assert_uint_eq(json_array_size(ask_member("errors")), 1);
    ask_expect_pointer("query", bad[_i].pointer);
}

/* There is nothing to wait for, or no time. */
TEST_RANGE(without_both_nobody_waits, 0, 3)
{
    static const char *const queries[] = {"after=1", "wait_ms=9000",
                                          "after=1&wait_ms=0"};
    ck_assert(!watch(queries[_i]));
    play_hold_range(CALL_INSPECT, 0, 3, PLAY_TOKEN_OF(1));
    ask_expect_now(200, NULL);
}

/* By then it is held by another, or free; also after what no answer ever said.
 */
static const struct {
    const char *query, *holder, *members;
} changes[] = {
    {"after=1&wait_ms=45000", PLAY_TOKEN_OF(2) ".me",
     "held=true version=2 fencing_token=2 owner=me nodes.held=3"},
    {"after=1&wait_ms=1", NULL, FREE},
    {"after=shared&wait_ms=9000", NULL, FREE},
    {"after=" VERSION_64 "&wait_ms=9", NULL, FREE},
};

TEST_EACH(another_version_is_shown, changes)
{
    ck_assert(!watch(changes[_i].query));
    play_advance(SOON_US);
    if (changes[_i].holder != NULL)
        play_hold_range(CALL_INSPECT, 0, 3, changes[_i].holder);
    else
        play_answer_range(CALL_INSPECT, 0, 3, VOTE_FREE);
    ask_expect_now(200, NULL);
    ask_expect_members(changes[_i].members);
    ask_expect_lock();
    ask_expect_closed();
}

TEST(what_is_still_free_is_shown_at_the_end)
{
    ck_assert(!watch("after=free&wait_ms=500"));
    play_advance(SOON_US);
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
    ck_assert_int_eq(play.answers, 0);
    play_advance(500000);
    ck_assert_int_eq(play.answers, 1);
    ask_expect_now(200, NULL);
    ask_expect_members(FREE);
}
