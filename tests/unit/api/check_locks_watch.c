/*
 * GET /locks/<id>?after=…&wait_ms=…: what is refused, and what is told when.
 */
#include <string.h>

#include "../../lib/suite/suite.h"
#include "ask.h"

enum { SOON_US = 25000 };

SUITE(locks_watch, .set_up = ask_begin, .tear_down = ask_end);

/* "NAME=VALUE&…" */
static bool watch(const char *query)
{
    while (*query != '\0') {
        size_t name = strcspn(query, "="),
               value = strcspn(query, "&") - name - 1;
        query_add(&ask.request.query, (struct span){query, name},
                  (struct span){query + name + 1, value});
        query += name + 1 + value;
        query += *query == '&';
    }
    return ask_send("GET", "/locks/order:42", NULL);
}

static const struct {
    const char *query, *pointer;
} bad[] = {
    {"after=&wait_ms=1", "/after"},
    {"after=-1&wait_ms=1", "/after"},
    {"after=12345678901234567&wait_ms=1", "/after"},
    {"after=nobody&wait_ms=1", "/after"},
    {"after=1&after=2&wait_ms=1", "/after"},
    {"after=1&wait_ms=", "/wait_ms"},
    {"after=x", "/after"},
    {"wait_ms=-1", "/wait_ms"},
    {"limit=3&after=1&wait_ms=x", "/wait_ms"},
    {"after=1&wait_ms=50001", "/wait_ms"},
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

TEST(another_holder_is_shown)
{
    ck_assert(!watch("after=1&wait_ms=50000"));
    play_advance(SOON_US);
    play_hold_range(CALL_INSPECT, 0, 3, PLAY_TOKEN_OF(2) ".me");
    ask_expect_now(200, NULL);
    ck_assert_int_eq(ask_number("fencing_token"), 2);
    ck_assert_str_eq(ask_text("owner"), "me");
    ask_expect_closed();
}

TEST(a_lock_that_is_free_is_not_found)
{
    ck_assert(!watch("after=0&wait_ms=1"));
    play_advance(SOON_US);
    play_answer_range(CALL_INSPECT, 0, 3, VOTE_FREE);
    ask_expect_now(404, "lock_not_found");
    ask_expect_lock();
    ask_expect_closed();
}

TEST(what_is_still_free_is_not_found_at_the_end)
{
    ck_assert(!watch("after=free&wait_ms=500"));
    play_advance(SOON_US);
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
    ck_assert_int_eq(play.answers, 0);
    play_advance(500000);
    ck_assert_int_eq(play.answers, 1);
    ask_expect_now(404, "lock_not_found");
    ck_assert_int_ge(ask_number("waited_ms"), 500);
}
