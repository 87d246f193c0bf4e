/* SPDX-License-Identifier: MIT */
/*
 * Each outcome of the engine, and what the client is told of it.
 */

#include "../../lib/suite/suite.h"
#include "ask.h"

static void ask_and_hold(const char *value, int64_t pttl_ms)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    for (int i = 0; i < 3; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_HELD, .pttl_ms = pttl_ms,
                   .value = span_of(value));
    ask_expect_now(409, "lock_held");
    ck_assert(ask.request.call.op == 0);
}

SUITE(locks);

/* ---- granted ------------------------------------------------------------ */

GROUP(granted_or_held, .set_up = ask_begin, .tear_down = ask_end);

TEST(a_grant_is_created_and_stays_until_it_is_written)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    ck_assert_int_eq(play.sent[0].call.ttl_ms, 30000);
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ask_answer(play.now_us + 7999);
    ask_expect(201, NULL);
    ask_expect_lock();
    ck_assert_str_eq(ask.response.location, "/locks/order:42");
    ck_assert_str_eq(ask_text("token"), play.sent[0].token);
    ck_assert_int_eq(ask_number("elapsed_ms"), 7);
    ck_assert_int_eq(ask_number("ttl_ms"), 30000);
    ck_assert_int_eq(ask_number("renew_after_ms"), 10000);
    ck_assert_int_eq(
        ask_number("validity_ms"),
        engine_take(play.engine, ask.request.call.op, play.now_us + 7999)
            ->validity_ms);
    ck_assert_int_eq(play_outcome(ask.request.call.op), OUTCOME_GRANTED);
    ck_assert_int_eq(ask.response.retry_after_ms, 0);
}

/* Half of what is left then comes before a third of the TTL. */
TEST_RANGE(a_late_grant_is_to_be_renewed_sooner, 0, 3)
{
    static const int64_t late_ms[] = {9000, 11000, 20000};
    int64_t elapsed_ms = late_ms[_i];
    ck_assert(!ask_call(LOCK_ACQUIRE));
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    play_advance(elapsed_ms * 1000);
    ask_expect_now(201, NULL);
    int64_t validity_ms = ask_number("validity_ms");
    ck_assert_int_lt(validity_ms, 30000 - elapsed_ms);
    ck_assert_int_gt(validity_ms, 29000 - elapsed_ms);
    ck_assert_int_eq(ask_number("renew_after_ms"),
                     _i == 0 ? 10000 : validity_ms / 2);
    ck_assert_int_eq(ask_number("elapsed_ms"), elapsed_ms);
}

TEST(a_grant_that_is_too_late_is_released)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    play_advance(30000000);
    ask_answer(play.now_us);
    ask_expect_failed(503, "validity_exhausted", 1000);
    ck_assert_int_ge(play_count(CALL_RELEASE), 3);
}

/* ---- held --------------------------------------------------------------- */

TEST(a_holder_is_told)
{
    ask_and_hold(
        "1795221641865000.00112233445566778899aabbccddeeff01234567.web-9",
        5000);
    ask_expect_failed(409, "lock_held", 135);
    ask_expect_members("held_by.owner=web-9 held_by.remaining_ms=5000 "
                       "held_by.mode=exclusive "
                       "held_by.fencing_token=1795221641865000");
}

/* Another library's, without a TTL. */
TEST(of_another_holder_nothing_is_told)
{
    ask_and_hold("theirs", -1);
    ask_expect_members("held_by -held_by.owner -held_by.remaining_ms "
                       "-held_by.mode -held_by.fencing_token");
    ask_expect_detail("TTL");
}

/* As many as may hold it are told to those who want to share it. */
TEST_RANGE(a_crowd_of_readers_is_told_to_readers, 0, 3)
{
    static const struct {
        const char *mode;
        int readers;
        const char *code;
    } rows[] = {{"shared", 3, "too_many_readers"},
                {"shared", 2, "lock_held"},
                {"exclusive", 3, "lock_held"}};
    const char *body = textf("{'resource':'a','mode':'%s'}", rows[_i].mode);
    ck_assert(!ask_send("POST", "/locks", body));
    for (int i = 0; i < 3; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_HELD, .pttl_ms = 5000,
                   .holders = rows[_i].readers);
    ask_expect_now(409, rows[_i].code);
    ask_expect_retry(1000);
    ck_assert_int_eq(ask_number("held_by.readers"), rows[_i].readers);
}

TEST(rivals_without_a_holder_are_told)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    for (int round = 1; round <= 4; round++) {
        play_await_round(5 * round);
        play_split_votes();
    }
    ask_answer(play.now_us);
    ask_expect_failed(409, "lock_held", 40);
    ck_assert_ptr_null(ask_member("held_by"));
}

/* ---- each call, and what comes of it ------------------------------------- */

#define OWN "\nX-Lock-Token: " ASK_TOKEN
#define NO_TTL "\n\n{'ttl_ms':3000}"
#define ORDER "id=order:42 resource=order:42 "
/* order:42 and order:43 */
#define TWO "~~b3JkZXI6NDIKb3JkZXI6NDM"
#define OF_TWO                                                                 \
    "id=" TWO " -resource resources=#2 resources.0=order:42 "                  \
    "resources.1=order:43 "
#define TAKE_TWO "POST /locks\n\n{'resources':['order:43','order:42']}"
/* slot 0 of pool · slots 10 and 9 of it */
#define SLOT "~cG9vbB8w"
#define SLOTS "~~cG9vbB8xMApwb29sHzk"
#define OF_SLOTS                                                               \
    "id=" SLOTS " resource=pool -resources -limit slots=#2 slots.0=9 "         \
    "slots.1=10 "

static const struct {
    const char *request;
    enum call_kind kind;
    int ballot;         /* of as many nodes as are needed; or … */
    const char *holder; /* … it is held with this value */
    int status;
    const char *members;
} answers[] = {
    {"PUT /locks/order:42/extend" OWN NO_TTL, CALL_EXTEND, VOTE_EXTENDED, NULL,
     200, ORDER "ttl_ms=3000 renew_after_ms=1000 -waited_ms token=" ASK_TOKEN},
    {"PUT /locks/order:42/extend" OWN, CALL_EXTEND, VOTE_FREE, NULL, 404,
     ORDER "code=lock_not_found -retry_after_ms"},
    {"PUT /locks/order:42/extend" OWN, CALL_EXTEND, 0, PLAY_TOKEN_OF(1), 409,
     ORDER "code=not_owner -retry_after_ms"},
    {"PUT /locks/order:42/extend\nX-Lock-Token: " PLAY_TOKEN, CALL_EXTEND,
     VOTE_EXTENDED, NULL, 409, ORDER "code=max_hold_reached -retry_after_ms"},
    {"DELETE /locks/order:42" OWN, CALL_RELEASE, VOTE_DELETED, NULL, 200,
     ORDER "released=true"},
    {"DELETE /locks/order:42" OWN, CALL_RELEASE, VOTE_FREE, NULL, 404,
     ORDER "code=lock_not_found -retry_after_ms"},
    {"DELETE /locks/order:42" OWN, CALL_RELEASE, 0, PLAY_TOKEN_OF(1), 409,
     ORDER "code=not_owner -retry_after_ms"},
    {"GET /locks/order:42", CALL_INSPECT, 0, PLAY_TOKEN_OF(1) ".me", 200,
     ORDER
     "held=true owner=me remaining_ms=5000 waiters=0 version=1 -released"},
    {"GET /locks/order:42", CALL_INSPECT, VOTE_FREE, NULL, 200,
     ORDER "held=false version=free -mode waiters=0 nodes.held=0"},
    /* several resources */
    {TAKE_TWO, CALL_ACQUIRE, VOTE_GRANTED, NULL, 201,
     OF_TWO "-limit -waited_ms -owner"},
    {TAKE_TWO, CALL_ACQUIRE, 0, PLAY_TOKEN_OF(1) ".me", 409,
     OF_TWO "code=lock_held held_by.owner=me"},
    {"PUT /locks/" TWO "/extend" OWN, CALL_EXTEND, VOTE_EXTENDED, NULL, 200,
     OF_TWO},
    {"PUT /locks/%7E%7Eb3JkZXI6NDIKb3JkZXI6NDM/extend" OWN, CALL_EXTEND,
     VOTE_FREE, NULL, 404, OF_TWO "code=lock_not_found"},
    {"DELETE /locks/" TWO OWN, CALL_RELEASE, VOTE_DELETED, NULL, 200, OF_TWO},
    {"GET /locks/" TWO, CALL_INSPECT, VOTE_FREE, NULL, 200, OF_TWO},
    /* permits */
    {"POST /locks\n\n{'resource':'pool','limit':1,'wait_ms':0}", CALL_ACQUIRE,
     VOTE_GRANTED, NULL, 201,
     "id=" SLOT
     " resource=pool limit=1 slots=#1 slots.0=0 ttl_ms=12000 -waited_ms"},
    {"GET /locks/" SLOTS, CALL_INSPECT, VOTE_FREE, NULL, 200, OF_SLOTS},
    {"PUT /locks/" SLOTS "/extend" OWN, CALL_EXTEND, VOTE_EXTENDED, NULL, 200,
     OF_SLOTS},
    {"DELETE /locks/" SLOTS OWN, CALL_RELEASE, 0, PLAY_TOKEN_OF(1), 409,
     OF_SLOTS},
    {"DELETE /locks/" SLOTS OWN, CALL_RELEASE, VOTE_DELETED, NULL, 200,
     OF_SLOTS},
};

GROUP(answers, .set_up = ask_begin, .tear_down = ask_end);

TEST_EACH(each_answer_tells_the_lock_and_what_came_of_the_call, answers)
{
    ck_assert(!ask_http(answers[_i].request));
    const char *token = play.sent[0].token;
    for (int i = 0; play_outcome(ask.request.call.op) == OUTCOME_PENDING; i++)
        if (answers[_i].holder != NULL)
            play_answer_held(answers[_i].kind, i, answers[_i].holder);
        else
            play_answer(answers[_i].kind, i, answers[_i].ballot);
    ask_answer(play.now_us);
    ck_assert_int_eq(ask.response.status, answers[_i].status);
    ask_expect_members(answers[_i].members);
    if (ask.request.call.lock_token.ptr != NULL)
        ck_assert(span_is(ask.request.call.lock_token, token));
    if (answers[_i].status != 201) {
        ask_expect_closed();
        return;
    }
    ck_assert_str_eq(ask_text("token"), token);
    ck_assert_str_eq(ask.response.location, textf("/locks/%s", ask_text("id")));
}

TEST(an_extension_that_is_too_late_leaves_the_old_validity)
{
    ck_assert(!ask_call(LOCK_EXTEND));
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    play_advance(3000000);
    ask_answer(play.now_us);
    ask_expect_failed(503, "validity_exhausted", 300);
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
}

TEST(a_repeat_is_answered_with_200_and_a_new_token)
{
    static const char earlier[] =
        "1795221641865000.00112233445566778899aabbccddeeff01234567+"
        "HBvC3OTCJKRp830X6_MckQ";
    ck_assert(!ask_http("POST /locks\nIdempotency-Key: 0123456789abcdef\n\n"
                        "{'resource':'order:42'}"));
    play_hold_range(CALL_ACQUIRE, 0, 3, earlier);
    ck_assert_int_eq(play_count(CALL_REPEAT), PLAY_NODES);
    const char *token = play_find(CALL_REPEAT, 0)->token;
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
    ask_expect_now(200, NULL);
    ask_expect_lock();
    ck_assert_str_eq(ask_text("token"), token);
    ck_assert_str_ne(ask_text("token"), earlier);
    ck_assert_int_gt(ask_number("fencing_token"), INT64_C(1795221641865000));
    ck_assert_str_eq(ask.response.location, "/locks/order:42");
}
