/*
 * Locks of several resources, and acquires that are repeated: what the nodes
 * are asked, and what the client is told.
 */

#include "../../lib/suite/suite.h"
#include "ask.h"

#define ID "~~b3JkZXI6NDIKb3JkZXI6NDM"
#define NAMES "order:42\norder:43"
#define KEY "0123456789abcdef"
#define BODY "{\"resources\":[\"order:43\",\"order:42\"]}"

static void expect_names(const char *names)
{
    ck_assert(span_is(play.sent[0].call.resource, names));
}

static void expect_several(void)
{
    ck_assert_str_eq(ask_text("id"), ID);
    ck_assert_ptr_null(ask_member("resource"));
    ck_assert_uint_eq(json_array_size(ask_member("resources")), 2);
    ck_assert_str_eq(ask_text("resources.0"), "order:42");
    ck_assert_str_eq(ask_text("resources.1"), "order:43");
}

SUITE(locks_several);

/* ---- several resources -------------------------------------------------- */

GROUP(several_resources, .set_up = ask_begin, .tear_down = ask_end);

TEST(several_are_granted_as_one)
{
    ask_and_vote("POST", "/locks", BODY, CALL_ACQUIRE, VOTE_GRANTED);
    ask_expect(201, NULL);
    expect_names(NAMES);
    expect_several();
    ck_assert_str_eq(ask.response.location, "/locks/" ID);
    ck_assert_str_eq(ask_text("token"), play.sent[0].token);
}

static const struct {
    const char *method, *target;
    enum call_kind kind;
    int ballot;
} calls[] = {
    {"PUT", "/locks/" ID "/extend", CALL_EXTEND, VOTE_EXTENDED},
    {"DELETE", "/locks/" ID, CALL_RELEASE, VOTE_DELETED},
    {"GET", "/locks/" ID, CALL_INSPECT, VOTE_FREE},
    {"PUT", "/locks/%7E%7Eb3JkZXI6NDIKb3JkZXI6NDM/extend", CALL_EXTEND,
     VOTE_FREE},
};

TEST_EACH(their_id_stands_for_all, calls)
{
    ask.request.call.lock_token = span_of(ASK_TOKEN);
    ask_and_vote(calls[_i].method, calls[_i].target, NULL, calls[_i].kind,
                 calls[_i].ballot);
    bool is_free =
        calls[_i].ballot == VOTE_FREE && calls[_i].kind != CALL_INSPECT;
    ask_expect(is_free ? 404 : 200, is_free ? "lock_not_found" : NULL);
    expect_names(NAMES);
    expect_several();
}

TEST(their_holder_is_told)
{
    ck_assert(!ask_send("POST", "/locks", BODY));
    play_hold_range(CALL_ACQUIRE, 0, 3, PLAY_TOKEN_OF(1) ".me");
    ask_expect_now(409, "lock_held");
    expect_several();
    ck_assert_ptr_nonnull(ask_member("held_by"));
}

/* ---- repeats ------------------------------------------------------------ */

#define EARLIER                                                                \
    "1795221641865000.00112233445566778899aabbccddeeff01234567"                \
    "+HBvC3OTCJKRp830X6_MckQ"

static void ask_with_key(void)
{
    ask.request.call.idempotency_key = span_of(KEY);
    ck_assert(!ask_send("POST", "/locks", "{\"resource\":\"order:42\"}"));
}

GROUP(repeats, .set_up = ask_begin, .tear_down = ask_end);

TEST(a_repeat_is_answered_with_200_and_a_new_token)
{
    ask_with_key();
    play_hold_range(CALL_ACQUIRE, 0, 3, EARLIER);
    ck_assert_int_eq(play_count(CALL_REPEAT), PLAY_NODES);
    const char *token = play_find(CALL_REPEAT, 0)->token;
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
    ask_expect_now(200, NULL);
    ask_expect_lock();
    ck_assert_str_eq(ask_text("token"), token);
    ck_assert_str_ne(ask_text("token"), EARLIER);
    ck_assert_int_gt(ask_number("fencing_token"), INT64_C(1795221641865000));
    ck_assert_str_eq(ask.response.location, "/locks/order:42");
}
