/*
 * DELETE /locks/<id>?force=<fencing number>, and ?force=all.
 */

#include "../../lib/suite/suite.h"
#include "ask.h"

static void set_force(const char *value)
{
    ask_anew();
    query_add(&ask.request.query, span_of("force"), span_of(value));
}

static void force(const char *value)
{
    set_force(value);
    ck_assert(!ask_send("DELETE", "/locks/order:42", NULL));
}

static void expect_refused(const char *detail)
{
    ck_assert(ask_send("DELETE", "/locks/order:42", NULL));
    ask_expect(400, "invalid_request");
    ck_assert_str_eq(ask_text("detail"), detail);
    ask_expect_pointer("query", "/force");
    ck_assert_int_eq(play.sent_count, 0);
}

SUITE(locks_force, .set_up = ask_begin, .tear_down = ask_end);

TEST(it_is_answered_like_a_release)
{
    force("0000000000000007");
    ck_assert_int_eq(ask.request.counted_as, LOCK_FORCE);
    play_hold_range(CALL_TOKENS, 0, 3, PLAY_TOKEN_OF(7));
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_DELETED);
    ask_expect_now(200, NULL);
    ask_expect_lock();
    ask_expect_closed();
    ck_assert(json_is_true(ask_member("released")));
    ck_assert_int_eq(ask_number("nodes.released"), 3);
}

TEST(another_number_is_told)
{
    force("8");
    play_hold_range(CALL_TOKENS, 0, PLAY_NODES, PLAY_TOKEN_OF(7));
    ask_expect_now(409, "not_owner");
    ck_assert_str_eq(ask_text("detail"),
                     "the lock is held with another fencing token, or with a "
                     "value that has none");
    ask_expect_closed();
}

TEST(only_a_number_is_taken)
{
    static const char *const values[] = {
        "",    "0",   "-7", "7a",   "%2",  "12345678901234567",
        "1.5", "%00", "al", "all ", "ALL", "all%00"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        set_force(values[i]);
        ck_assert(ask_send("DELETE", "/locks/order:42", NULL));
        ask_expect(400, "invalid_request");
        ck_assert_int_eq(play.sent_count, 0);
    }
    set_force("");
    expect_refused("the argument force is not a fencing token; take the field "
                   "fencing_token of GET /locks/<id>, or all: all readers of a "
                   "shared lock");
    set_force("7");
    query_add(&ask.request.query, span_of("force"), span_of("8"));
    expect_refused("the argument force occurs twice");
}

TEST(a_token_beside_it_is_refused)
{
    static const char detail[] = "the argument force needs no lock token; send "
                                 "one of the two, and no body";
    static const char *const values[] = {"7", "all"};
    for (int i = 0; i < 2; i++) {
        set_force(values[i]);
        ask.request.call.lock_token = span_of(ASK_TOKEN);
        expect_refused(detail);
    }
    set_force("7");
    ask.request.body = span_of("{\"token\":\"" ASK_TOKEN "\"}");
    expect_refused(detail);
}

TEST(all_readers_are_released_like_a_number)
{
    force("all");
    ck_assert_int_eq(ask.request.counted_as, LOCK_FORCE);
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer_tokens(i, PLAY_READER_OF(7), 0);
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_DELETED);
    ask_expect_now(200, NULL);
    ask_expect_lock();
    ask_expect_closed();
    ck_assert(json_is_true(ask_member("released")));
}

TEST(without_readers_there_is_no_lock_to_force)
{
    force("all");
    play_answer_range(CALL_TOKENS, 0, PLAY_NODES, VOTE_FREE);
    ask_expect_now(404, "lock_not_found");
}

TEST(a_writer_is_none_of_all_readers)
{
    force("all");
    play_hold_range(CALL_TOKENS, 0, PLAY_NODES, PLAY_TOKEN_OF(7));
    ask_expect_now(409, "not_owner");
    ck_assert_str_eq(ask_text("detail"),
                     "no reader has the lock, but a writer; send a fencing "
                     "token instead of all");
}

TEST(other_calls_ignore_it)
{
    set_force("7");
    ck_assert(!ask_send("GET", "/locks/order:42", NULL));
    ck_assert_int_eq(ask.request.counted_as, LOCK_INSPECT);
}
