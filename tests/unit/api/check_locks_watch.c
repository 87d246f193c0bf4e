/*
 * GET /locks/<id>?after=…&wait_ms=…: what is refused, and what is told when.
 */
#include <string.h>

#include "../../lib/suite/suite.h"
#include "ask.h"

enum { SOON_US = 25000 };

/* The longest that is taken. */
#define VERSION_64                                                             \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd-z"

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

/* It says whether it is held, in which version, and by how many nodes. */
static void expect_state(bool is_held, const char *version, int nodes)
{
    ck_assert(json_is_boolean(ask_member("held")));
    ck_assert_int_eq(json_is_true(ask_member("held")), is_held);
    ck_assert_str_eq(ask_text("version"), version);
    ck_assert_int_eq(
        json_integer_value(json_object_get(ask_member("nodes"), "held")),
        nodes);
    ask_expect_lock();
    ask_expect_closed();
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
    {"after=1&wait_ms=45001", "/wait_ms"},
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
    ck_assert(!watch("after=1&wait_ms=45000"));
    play_advance(SOON_US);
    play_hold_range(CALL_INSPECT, 0, 3, PLAY_TOKEN_OF(2) ".me");
    ask_expect_now(200, NULL);
    ck_assert_int_eq(ask_number("fencing_token"), 2);
    ck_assert_str_eq(ask_text("owner"), "me");
    expect_state(true, "2", 3);
}

/* Also after what no answer ever said. */
TEST_RANGE(a_lock_that_is_free_by_then_is_shown, 0, 3)
{
    static const char *const queries[] = {"after=1&wait_ms=1",
                                          "after=shared&wait_ms=9000",
                                          "after=" VERSION_64 "&wait_ms=9"};
    ck_assert(!watch(queries[_i]));
    play_advance(SOON_US);
    play_answer_range(CALL_INSPECT, 0, 3, VOTE_FREE);
    ask_expect_now(200, NULL);
    ck_assert_ptr_null(ask_member("mode"));
    ck_assert_int_eq(ask_number("waiters"), 0);
    expect_state(false, "free", 0);
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
    expect_state(false, "free", 0);
}
