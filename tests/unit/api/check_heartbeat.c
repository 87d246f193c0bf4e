/*
 * PUT /locks: what the nodes are asked for each lock, and what of it is told.
 */
#include <stdio.h>
#include <string.h>

#include "../../../api/access/access.h"
#include "../../../api/heartbeat.h"
#include "../../../api/message/body.h"
#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "audited.h"
#include "authtext.h"
#include "judged.h"

#define LOCK(id) "{\"id\":\"" id "\",\"token\":\"" ASK_TOKEN "\"}"
#define THREE "{\"locks\":[" LOCK("a") "," LOCK("~Yi9j") "," LOCK("c") "]}"

enum { TEXT_MAX = 16000 };

static bool send_body(const char *body)
{
    return ask_send("PUT", "/locks", body);
}

/* All nodes give this vote on the oldest extend that has none. */
static void vote(int ballot)
{
    play_answer_range(CALL_EXTEND, 0, PLAY_NODES, ballot);
}

/* The answer of the n-th lock. */
static const json_t *answer(size_t n)
{
    const json_t *it = json_array_get(ask_member("locks"), n);
    ck_assert_msg(it != NULL, "no answer %d", (int)n);
    return it;
}

/* What a single extend would have been answered. */
static const json_t *body(size_t n)
{
    const json_t *it = answer(n);
    bool is_good = json_integer_value(json_object_get(it, "status")) == 200;
    ck_assert_uint_eq(json_object_size(it), 2);
    return json_object_get(it, is_good ? "grant" : "problem");
}

static const char *text(size_t n, const char *member)
{
    return json_string_value(json_object_get(body(n), member));
}

static int64_t number(size_t n, const char *member)
{
    return json_integer_value(json_object_get(body(n), member));
}

SUITE(heartbeat);

/* ---- each its own answer ------------------------------------------------ */

GROUP(answers, .set_up = ask_begin, .tear_down = ask_end);

TEST(each_lock_is_extended_as_if_it_were_alone)
{
    ck_assert(!send_body(
        "{\"ttl_ms\":3000,\"locks\":[" LOCK("a") "," LOCK("~Yi9j") "]}"));
    ck_assert_int_eq(play_count(CALL_EXTEND), 2 * PLAY_NODES);
    ck_assert(span_is(play.sent[0].call.resource, "a"));
    ck_assert(span_is(play.sent[PLAY_NODES].call.resource, "b/c"));
    ck_assert_str_eq(play.sent[PLAY_NODES].token, ASK_TOKEN);
    vote(VOTE_EXTENDED);
    vote(VOTE_EXTENDED);
    ask_expect_now(200, NULL);
    ck_assert_uint_eq(json_array_size(ask_member("locks")), 2);
    ck_assert_str_eq(text(0, "id"), "a");
    ck_assert_str_eq(text(1, "id"), "~Yi9j");
    ck_assert_str_eq(text(1, "resource"), "b/c");
    ck_assert_str_eq(text(1, "token"), ASK_TOKEN);
    ck_assert_int_eq(number(1, "ttl_ms"), 3000);
    ck_assert_int_gt(number(1, "validity_ms"), 2000);
    ck_assert_int_gt(number(1, "renew_after_ms"), 0);
    ask_expect_closed();
    ck_assert_ptr_null(ask.request.heartbeat);
}

TEST(without_a_ttl_the_default_counts)
{
    ck_assert(!send_body(THREE));
    for (int i = 0; i < 3; i++)
        vote(VOTE_EXTENDED);
    ask_answer(play.now_us);
    ck_assert_int_eq(number(2, "ttl_ms"), ASK_DEFAULT_TTL_MS);
}

TEST(a_lock_that_is_lost_does_not_stop_the_others)
{
    ck_assert(!send_body(THREE));
    vote(VOTE_EXTENDED);
    vote(VOTE_FREE);
    vote(VOTE_HELD);
    ask_expect_now(200, NULL);
    ck_assert_ptr_null(text(0, "code"));
    ck_assert_str_eq(text(1, "code"), "lock_not_found");
    ck_assert_int_eq(number(1, "status"), 404);
    ck_assert_str_eq(text(1, "id"), "~Yi9j");
    ck_assert_str_eq(text(2, "code"), "not_owner");
    ck_assert_str_eq(text(2, "request_id"), "r-1");
}

#define BAD_ID "{\"id\":\"~~\",\"token\":\"" ASK_TOKEN "\"}"
#define BAD_TOKEN "{\"id\":\"a\",\"token\":\"1\"}"

TEST(an_id_or_a_token_that_is_none_does_not_stop_the_others)
{
    ck_assert(
        !send_body("{\"locks\":[" BAD_ID "," LOCK("a") "," BAD_TOKEN "]}"));
    ck_assert_int_eq(play_count(CALL_EXTEND), PLAY_NODES);
    ck_assert_int_eq(ask.request.answers_due, 1);
    vote(VOTE_EXTENDED);
    ask_expect_now(200, NULL);
    ck_assert_str_eq(text(0, "code"), "invalid_request");
    ck_assert_ptr_null(text(1, "code"));
    ck_assert_str_eq(text(2, "code"), "invalid_request");
    ck_assert_str_eq(ask_text("locks.2.problem.errors.0.pointer"), "/token");
}

TEST(where_nothing_is_asked_of_the_nodes_the_answer_is_there)
{
    ck_assert(send_body("{\"locks\":[" BAD_ID "," BAD_TOKEN "]}"));
    ask_expect(200, NULL);
    ck_assert_uint_eq(json_array_size(ask_member("locks")), 2);
    ck_assert_int_eq(play.sent_count, 0);
    ck_assert_ptr_null(ask.request.heartbeat);
}

/* As the front does. */
static void note_answer(void *client)
{
    (void)client;
    ask.request.answers_due--;
}

TEST(where_all_outcomes_are_known_at_once_the_answer_is_there)
{
    for (int i = 0; i < 3; i++)
        play.is_refusing[i] = true;
    play.on_answer = note_answer;
    ck_assert(send_body(THREE));
    for (size_t i = 0; i < 3; i++)
        ck_assert_str_eq(text(i, "code"), "no_quorum");
}

TEST(a_percent_sign_is_no_code_in_json)
{
    ck_assert(send_body("{\"locks\":[{\"id\":\"a%2Fb\",\"token\":\"" ASK_TOKEN
                        "\"}]}") ||
              span_is(play.sent[0].call.resource, "a%2Fb"));
}

TEST(a_body_that_is_wrong_extends_nothing)
{
    ck_assert(send_body("{\"locks\":[" LOCK("a") ",{\"id\":\"b\"}]}"));
    ask_expect(400, "invalid_request");
    ck_assert_int_eq(play.sent_count, 0);
    ask_anew();
    ask.request.content_type = span_of("text/plain");
    ck_assert(send_body(THREE));
    ask_expect(415, "unsupported_media_type");
    ck_assert_int_eq(play.sent_count, 0);
}

TEST(one_that_is_abandoned_leaves_no_operation)
{
    ck_assert(!send_body(THREE));
    vote(VOTE_EXTENDED);
    ck_assert_int_eq(engine_in_flight(play.engine), 2);
    heartbeat_abandon(&ask.service, &ask.request);
    ck_assert_ptr_null(ask.request.heartbeat);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

/* Each allocation fails once: each lock has an answer, or all have none. */
TEST_RANGE(without_memory_nothing_is_kept, 1, 40)
{
    starve = (struct starve){.is_on = true, .left = _i};
    bool is_answered = send_body(THREE);
    starve.is_on = false;
    if (!is_answered) {
        for (int i = 0; i < 3; i++)
            if (play_find(CALL_EXTEND, 0) != NULL)
                vote(VOTE_EXTENDED);
        starve.is_on = starve.left > 0;
        ask_answer(play.now_us);
        starve.is_on = false;
    }
    if (ask.response.status == 200) {
        for (size_t i = 0; i < 3; i++)
            ck_assert(text(i, "code") == NULL ||
                      strcmp(text(i, "code"), "overloaded") == 0);
    } else if (ask.response.body != NULL) {
        ask_expect(503, "overloaded");
    }
    ck_assert_ptr_null(ask.request.heartbeat);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

/* ---- who may ------------------------------------------------------------ */

static void tear_down_judged(void)
{
    ask_anew();
    judged_end();
}

static const char *many(int count)
{
    static char body[TEXT_MAX];
    int len = snprintf(body, sizeof body, "{\"locks\":[");
    for (int i = 0; i < count; i++)
        len += snprintf(body + len, sizeof body - (size_t)len,
                        "%s{\"id\":\"a%d\",\"token\":\"" ASK_TOKEN "\"}",
                        i > 0 ? "," : "", i);
    snprintf(body + len, sizeof body - (size_t)len, "]}");
    return body;
}

static const struct refusal *admit(void)
{
    (void)judged_admit("PUT", "/locks", "Bearer secret");
    return &ask.caller.refusal;
}

/* As many as it has left may be asked; then none. */
static int ask_until_limited(int locks)
{
    for (int asked = 0; asked < 1000; asked++) {
        if (admit()->detail != NULL)
            return asked;
        ck_assert(send_body(many(locks))); /* no node is asked */
        if (ask.response.status != 200) {
            ask_expect(429, "rate_limited");
            ck_assert_int_gt(ask.response.retry_after_ms, 0);
            return asked;
        }
        ck_assert_uint_eq(json_array_size(ask_member("locks")), (size_t)locks);
        access_end(judged_access, &ask.request.call, true);
        ask_anew();
    }
    return -1;
}

GROUP(rights, .set_up = ask_begin, .tear_down = tear_down_judged);

TEST(it_needs_the_scope_lock)
{
    judged_use("a " AUTHTEXT_SECRET " read,admin prefix=*\n");
    ck_assert_int_eq(admit()->code, (int)PROBLEM_FORBIDDEN);
}

TEST(a_lock_outside_of_the_prefixes_is_refused_alone)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=b/\n");
    ck_assert_ptr_null(admit()->detail);
    ck_assert(!send_body(THREE));
    ck_assert_int_eq(play_count(CALL_EXTEND), PLAY_NODES);
    vote(VOTE_EXTENDED);
    ask_expect_now(200, NULL);
    ck_assert_str_eq(text(0, "code"), "forbidden");
    ck_assert_ptr_null(text(1, "code"));
    ck_assert_str_eq(text(2, "code"), "forbidden");
}

TEST(locks_beyond_those_that_it_may_hold_are_refused_alone)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=* locks=2\n");
    ck_assert_ptr_null(admit()->detail);
    ck_assert(!send_body(THREE));
    ck_assert_int_eq(play_count(CALL_EXTEND), 2 * PLAY_NODES);
    vote(VOTE_EXTENDED);
    vote(VOTE_FREE);
    ask_answer(play.now_us);
    ck_assert_ptr_null(text(0, "code"));
    ck_assert_str_eq(text(1, "code"), "lock_not_found");
    ck_assert_str_eq(text(2, "code"), "lock_quota_exceeded");
    authtext_expect_metric(judged_access, play.now_us,
                           "redlockd_identity_locks{identity=\"a\"} 1\n");
}

/* One for each lock, but no more than the burst. */
TEST(it_counts_as_many_requests_as_it_has_locks)
{
    static const struct {
        int locks, asked;
    } rows[] = {{1, 20}, {2, 10}, {5, 4}, {10, 2}, {19, 1}, {100, 1}};
    for (int i = 0; i < PLAY_NODES; i++)
        play.is_refusing[i] = true;
    play.on_answer = note_answer;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        judged_use("a " AUTHTEXT_SECRET " lock prefix=* rate=20\n");
        play.now_us = clock_now_us();
        ck_assert_int_eq(ask_until_limited(rows[i].locks), rows[i].asked);
        access_end(judged_access, &ask.request.call, true);
        ask_anew();
        if (i + 1 < sizeof rows / sizeof *rows)
            access_free(judged_access);
    }
}

/* ---- the audit log ------------------------------------------------------ */

GROUP(audit, .set_up = audited_begin, .tear_down = audited_end);

TEST(each_lock_has_its_line)
{
    ck_assert(!send_body(THREE));
    vote(VOTE_EXTENDED);
    vote(VOTE_FREE);
    vote(VOTE_EXTENDED);
    ask_answer(play.now_us);
    ck_assert_int_eq(audited_count(audited.path), 3);
    ck_assert_has(audited_line(audited.path, 1), "\"id\":\"~Yi9j\"");
    ck_assert_has(audited_line(audited.path, 1), "lock_not_found");
    ck_assert_has(audited_line(audited.path, 2), "\"call\":\"extend\"");
}
