/*
 * Each outcome of the engine, and what the client is told of it.
 */

#include "../../lib/suite/suite.h"
#include "ask.h"

/* Of a random time so many show its range. */
enum { TRIALS = 40 };

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

TEST(the_ttl_has_a_default)
{
    ck_assert(!ask_send("POST", "/locks", "{\"resource\":\"a\"}"));
    ck_assert_int_eq(play.sent[0].call.ttl_ms, ASK_DEFAULT_TTL_MS);
    ask_anew();
    ck_assert(
        !ask_send("PUT", "/locks/a/extend", "{\"token\":\"" ASK_TOKEN "\"}"));
    ck_assert_int_eq(play.sent[0].call.ttl_ms, ASK_DEFAULT_TTL_MS);
}

/* ---- held --------------------------------------------------------------- */

TEST(a_holder_is_told)
{
    ask_and_hold("1795221641865000.00112233445566778899aabbccddeeff01234567"
                 ".web-9",
                 5000);
    ask_expect_failed(409, "lock_held", 135);
    ck_assert_str_eq(ask_text("held_by.owner"), "web-9");
    ck_assert_int_eq(ask_number("held_by.remaining_ms"), 5000);
}

static const struct {
    const char *holder;
    int64_t pttl_ms;
    const char *detail;
} holders[] = {
    {"theirs", 0, "somebody else"},
    {"theirs", -1, "without a TTL"},
};

TEST_EACH(how_a_lock_is_held_is_told, holders)
{
    ask_and_hold(holders[_i].holder, holders[_i].pttl_ms);
    ck_assert_ptr_nonnull(ask_member("held_by"));
    ask_expect_detail(holders[_i].detail);
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
    const char *body =
        textf("{\"resource\":\"a\",\"mode\":\"%s\"}", rows[_i].mode);
    ck_assert(!ask_send("POST", "/locks", body));
    for (int i = 0; i < 3; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_HELD, .pttl_ms = 5000,
                   .holders = rows[_i].readers);
    ask_expect_now(409, rows[_i].code);
    ask_expect_retry(1000);
    ck_assert_int_eq(ask_number("held_by.readers"), rows[_i].readers);
}

TEST(a_young_lock_is_asked_for_soon)
{
    int64_t longest_ms = 0;
    for (int i = 0; i < TRIALS; i++) {
        ask_anew();
        ask_and_hold(
            "1795221641800000.00112233445566778899aabbccddeeff01234567", 5000);
        ask_expect_retry(200);
        if (ask.response.retry_after_ms > longest_ms)
            longest_ms = ask.response.retry_after_ms;
    }
    ck_assert_int_gt(longest_ms, 40);
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

/* ---- extended, released, found ------------------------------------------ */

GROUP(extended_released_found, .set_up = ask_begin, .tear_down = ask_end);

TEST(an_extension_is_told_and_closed)
{
    ask_call_and_vote(LOCK_EXTEND, VOTE_EXTENDED);
    ask_expect(200, NULL);
    ask_expect_lock();
    ask_expect_closed();
    ck_assert_int_eq(ask_number("ttl_ms"), 3000);
    ck_assert_int_eq(ask_number("renew_after_ms"), 1000);
    ck_assert_str_eq(ask_text("token"), ASK_TOKEN);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_EXTEND][OUTCOME_EXTENDED], 1);
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

TEST(the_longest_hold_time_is_told)
{
    ask.request.call.lock_token = span_of(PLAY_TOKEN); /* of long ago */
    ask_and_vote("PUT", "/locks/order:42/extend", NULL, CALL_EXTEND,
                 VOTE_EXTENDED);
    ask_expect_failed(409, "max_hold_reached", 0);
    ask_expect_detail("--max-hold-ms 100000 (100 s) allows");
}

TEST_RANGE(what_is_not_held_with_this_token_is_told, LOCK_EXTEND,
           LOCK_RELEASE + 1)
{
    ask_call_and_vote(_i, VOTE_FREE);
    ask_expect_failed(404, "lock_not_found", 0);
    ask_anew();
    ck_assert(!ask_call(_i));
    play_hold_range(ask_kinds[_i], 0, 3, PLAY_TOKEN_OF(1));
    ask_answer(play.now_us);
    ask_expect_failed(409, "not_owner", 0);
}

TEST(a_release_is_told)
{
    ask_call_and_vote(LOCK_RELEASE, VOTE_DELETED);
    ask_expect(200, NULL);
    ask_expect_lock();
    ask_expect_closed();
    ck_assert(json_is_true(ask_member("released")));
    ck_assert_str_eq(play.sent[0].token, ASK_TOKEN);
}

TEST(an_inspection_tells_the_holder)
{
    ck_assert(!ask_call(LOCK_INSPECT));
    play_hold_range(CALL_INSPECT, 0, 3, PLAY_TOKEN_OF(1) ".me");
    ask_expect_now(200, NULL);
    ask_expect_lock();
    ask_expect_closed();
    ck_assert_str_eq(ask_text("owner"), "me");
    ck_assert_int_eq(ask_number("remaining_ms"), 5000);
    ck_assert_int_eq(ask_number("waiters"), 0);
    ck_assert_str_eq(ask_text("version"), "1");
    ck_assert_ptr_null(ask_member("released"));
}
