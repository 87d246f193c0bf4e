/* SPDX-License-Identifier: MIT */
/*
 * DELETE /locks/<id>?force=<fencing token>, and ?force=all.
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

static void expect_refused(void)
{
    ck_assert(ask_send("DELETE", "/locks/order:42", NULL));
    ask_expect(400, "invalid_request");
    ask_expect_pointer("query", "/force");
    ck_assert_int_eq(play.sent_count, 0);
}

SUITE(locks_force, .set_up = ask_begin, .tear_down = ask_end);

/* By what the nodes have: readers 7, the writer 7, or nothing. */
static const struct {
    const char *value, *holder; /* NULL: it is free */
    const char *code;           /* NULL: it is released */
} forced[] = {
    {"0000000000000007", PLAY_TOKEN_OF(7), NULL},
    {"8", PLAY_TOKEN_OF(7), "not_owner"},
    {"8", NULL, "lock_not_found"},
    {"all", PLAY_READER_OF(7), NULL},
    {"all", PLAY_TOKEN_OF(7), "not_owner"},
    {"all", NULL, "lock_not_found"},
};

TEST_EACH(it_is_answered_like_a_release, forced)
{
    const char *code = forced[_i].code;
    force(forced[_i].value);
    ck_assert_int_eq(ask.request.counted_as, LOCK_FORCE);
    for (int i = 0; i < PLAY_NODES && play_find(CALL_TOKENS, i) != NULL; i++)
        if (forced[_i].holder == NULL)
            play_answer(CALL_TOKENS, i, VOTE_FREE);
        else if (strcmp(forced[_i].holder, PLAY_READER_OF(7)) == 0)
            play_answer_tokens(i, PLAY_READER_OF(7), 0);
        else
            play_answer_held(CALL_TOKENS, i, forced[_i].holder);
    if (code == NULL)
        play_answer_range(CALL_RELEASE, 0, 3, VOTE_DELETED);
    ask_expect_now(code == NULL                          ? 200
                   : strcmp(code, "lock_not_found") == 0 ? 404
                                                         : 409,
                   code);
    ask_expect_lock();
    ask_expect_closed();
    if (code == NULL)
        ask_expect_members("nodes.released=3");
}

TEST(only_a_number_is_taken)
{
    static const char *const values[] = {
        "",    "0",   "-7", "7a",   "%2",  "12345678901234567",
        "1.5", "%00", "al", "all ", "ALL", "all%00"};
    for (size_t i = 0; i < COUNT(values); i++) {
        set_force(values[i]);
        expect_refused();
    }
    set_force("7");
    query_add(&ask.request.query, span_of("force"), span_of("8"));
    expect_refused();
}

TEST(a_token_beside_it_is_refused)
{
    static const char *const values[] = {"7", "all"};
    for (int i = 0; i < 2; i++) {
        set_force(values[i]);
        ask.request.call.lock_token = span_of(ASK_TOKEN);
        expect_refused();
    }
    set_force("7");
    ask.request.body = span_of("{'token':'" ASK_TOKEN "'}");
    expect_refused();
}

TEST(other_calls_ignore_it)
{
    set_force("7");
    ck_assert(!ask_send("GET", "/locks/order:42", NULL));
    ck_assert_int_eq(ask.request.counted_as, LOCK_INSPECT);
}
