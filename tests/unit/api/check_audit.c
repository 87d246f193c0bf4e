/* SPDX-License-Identifier: MIT */
/*
 * What each answer leaves in the audit log.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "audited.h"
#include "authtext.h"

/* Of an acquire that was granted before. */
#define KEY "0123456789abcdef"
#define EARLIER                                                                \
    "1795221641865000.00112233445566778899aabbccddeeff01234567"                \
    "+Hgw67lm9H33xYOsf_uaBog"

#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"

/* The only line; '#' stands for any digits. */
static void expect(const char *form)
{
    const char *at = audited_body(audited_line(audited.path, 0));
    for (const char *c = form; *c != '\0'; c++) {
        ck_assert_msg(*c == '#' ? *at >= '0' && *at <= '9' : *at == *c,
                      "%s\n%s", form,
                      audited_body(audited_line(audited.path, 0)));
        at += *c == '#' ? strspn(at, "0123456789") : 1;
    }
    ck_assert_str_eq(at, "");
    ck_assert_ptr_null(audited_line(audited.path, 1));
}

#define HEAD(event, call)                                                      \
    "\"event\":\"" event "\",\"request_id\":\"r-1\",\"identity\":\"billing\"," \
    "\"client\":\"127.0.0.1:9\",\"call\":\"" call "\","
#define ORDER "\"id\":\"order:42\",\"resources\":[\"order:42\"],"
/* by default, as the identity is known */
#define OWNER "\"owner\":\"billing\","
/* of ASK_TOKEN */
#define NUMBER "\"fencing_token\":1795221642000000,"

SUITE(audit, .timeout_s = 60, .set_up = audited_begin,
      .tear_down = audited_end);

/* ---- what came of a call ------------------------------------------------ */

TEST(a_grant_tells_who_got_what)
{
    memcpy(ask.request.trace.id, TRACE_ID, sizeof TRACE_ID);
    (void)strcpy(ask.request.trace.parent, "00f067aa0ba902b7");
    ask_and_vote("POST", "/locks",
                 "{'resources':['b \\'\\u00e9','a'],'ttl_ms':30000,"
                 "'owner':'web-3'}",
                 CALL_ACQUIRE, VOTE_GRANTED);
    expect("\"event\":\"grant\",\"request_id\":\"r-1\",\"trace_id\":\"" TRACE_ID
           "\",\"parent_id\":\"00f067aa0ba902b7\",\"identity\":\"billing\","
           "\"client\":\"127.0.0.1:9\",\"call\":\"acquire\","
           "\"id\":\"~~YQpiICLDqQ\",\"resources\":[\"a\",\"b "
           "\\\"\xc3\xa9\"],\"fencing_token\":#,\"owner\":\"web-3\","
           "\"ttl_ms\":30000,\"validity_ms\":#,\"status\":201}");
    ck_assert(ask.request.call.is_audited);
}

static const struct {
    const char *body, *has;
} kinds[] = {
    {"{'resource':'pool','limit':1}",
     "\"resources\":[\"pool\"],\"slots\":[0],\"limit\":1,"},
    {"{'resource':'doc','mode':'shared'}",
     "\"resources\":[\"doc\"],\"mode\":\"shared\","},
};

TEST_EACH(permits_and_shared_locks_are_told_as_such, kinds)
{
    ask_and_vote("POST", "/locks", kinds[_i].body, CALL_ACQUIRE, VOTE_GRANTED);
    ck_assert_has(audited_line(audited.path, 0), kinds[_i].has);
}

/* Nobody is known, and nothing else that may be left out. */
TEST(what_is_not_known_is_left_out)
{
    ask.request.identity[0] = '\0';
    ask.request.client = NULL;
    ask_call_and_vote(LOCK_ACQUIRE, VOTE_GRANTED);
    expect(
        "\"event\":\"grant\",\"request_id\":\"r-1\",\"call\":\"acquire\"," ORDER
        "\"fencing_token\":#,\"ttl_ms\":30000,\"validity_ms\":#,"
        "\"status\":201}");
}

/* The lock is held by an earlier request with this key. */
static void repeat(void)
{
    ask.request.call.idempotency_key = span_of(KEY);
    ck_assert(!ask_call(LOCK_ACQUIRE));
    play_hold_range(CALL_ACQUIRE, 0, 3, EARLIER);
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
}

TEST(a_repeated_grant_is_told_as_one)
{
    repeat();
    ask_expect_now(200, NULL);
    expect(HEAD("repeat", "acquire") ORDER "\"fencing_token\":#," OWNER
                                           "\"ttl_ms\":30000,\"validity_ms\":#,"
                                           "\"status\":200}");
    ck_assert_lacks(audited_line(audited.path, 0), KEY);
}

static const struct {
    enum lock_call call;
    int ballot;
    const char *line;
} outcomes[] = {
    {LOCK_EXTEND, VOTE_EXTENDED,
     HEAD("extend", "extend") ORDER NUMBER
     "\"ttl_ms\":3000,\"validity_ms\":#,\"status\":200}"},
    {LOCK_EXTEND, VOTE_HELD,
     HEAD("refused", "extend") ORDER NUMBER
     "\"status\":409,\"code\":\"not_owner\"}"},
    {LOCK_EXTEND, VOTE_FREE,
     HEAD("refused", "extend") ORDER NUMBER
     "\"status\":404,\"code\":\"lock_not_found\"}"},
    {LOCK_EXTEND, VOTE_KEY_REFUSED,
     HEAD("refused", "extend") ORDER NUMBER
     "\"status\":403,\"code\":\"key_refused\"}"},
    {LOCK_RELEASE, VOTE_DELETED,
     HEAD("release", "release") ORDER NUMBER "\"status\":200}"},
    {LOCK_RELEASE, VOTE_HELD,
     HEAD("refused", "release") ORDER NUMBER
     "\"status\":409,\"code\":\"not_owner\"}"},
    {LOCK_FORCE, VOTE_FREE,
     HEAD("refused", "force") ORDER
     "\"fencing_token\":7,\"status\":404,\"code\":\"lock_not_found\"}"},
    {LOCK_ACQUIRE, UNFIT(LOADING),
     HEAD("failed", "acquire") ORDER OWNER
     "\"status\":503,\"code\":\"no_quorum\"}"},
};

TEST_EACH(each_outcome_has_its_line, outcomes)
{
    ask_call_and_vote((int)outcomes[_i].call, outcomes[_i].ballot);
    expect(outcomes[_i].line);
    ck_assert_lacks(audited_line(audited.path, 0), "8f1c27a5");
}

TEST(a_refused_acquire_tells_who_holds_the_lock)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    for (int i = 0; i < 3; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_HELD, .pttl_ms = 1000,
                   .value = span_of(ASK_TOKEN ".web-3"));
    ask_answer(play.now_us);
    expect(HEAD("refused", "acquire") ORDER OWNER
           "\"status\":409,\"code\":\"lock_held\",\"held_by\":{"
           "\"mode\":\"exclusive\",\"remaining_ms\":#," NUMBER
           "\"owner\":\"web-3\"}}");
}

TEST(a_forced_release_tells_what_came_of_it)
{
    ck_assert(!ask_call(LOCK_FORCE));
    for (int i = 0; play_find(CALL_TOKENS, i) != NULL; i++)
        play_answer_held(CALL_TOKENS, i, PLAY_TOKEN_OF(7));
    for (int i = 0; play_outcome(ask.request.call.op) == OUTCOME_PENDING; i++)
        play_answer(CALL_RELEASE, i, VOTE_DELETED);
    ask_answer(play.now_us);
    expect(HEAD("force_release", "force") ORDER
           "\"fencing_token\":7,\"status\":200}");
}

/* They have many numbers, and the line none. */
TEST(all_readers_are_told_by_their_mode)
{
    query_add(&ask.request.query, span_of("force"), span_of("all"));
    ck_assert(!ask_send("DELETE", "/locks/order:42", NULL));
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer_tokens(i, PLAY_READER_OF(7), 0);
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_DELETED);
    ask_answer(play.now_us);
    expect(HEAD("force_release", "force") ORDER
           "\"mode\":\"shared\",\"status\":200}");
}

static void abandon(void)
{
    audit_note_abandoned(audited.audit, &ask.request.call,
                         engine_peek(play.engine, ask.request.call.op));
}

TEST(a_look_at_a_lock_leaves_no_line)
{
    ck_assert(!ask_call(LOCK_INSPECT));
    abandon(); /* nor one whose client has left */
    play_answer_range(CALL_INSPECT, 0, 3, VOTE_FREE);
    ask_expect_now(200, NULL);
    ck_assert_ptr_null(audited_line(audited.path, 0));
}

/* A grant that its client cannot be told of is none. */
TEST(a_grant_without_memory_for_its_answer_is_undelivered)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    starve = (struct starve){.is_on = true, .left = 1};
    ask_answer(play.now_us);
    starve.is_on = false;
    ask_expect(503, "overloaded");
    expect(HEAD("undelivered", "acquire") ORDER
           "\"fencing_token\":#," OWNER "\"ttl_ms\":30000,\"validity_ms\":#,"
           "\"released\":true,\"status\":503,\"code\":\"overloaded\"}");
}

/* ---- clients that leave ------------------------------------------------- */

TEST(a_grant_whose_client_left_is_undelivered)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    abandon();
    ck_assert_ptr_null(audited_line(audited.path, 0));
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    play_advance(60000000); /* however late that turns out */
    abandon();
    expect(HEAD("undelivered", "acquire") ORDER
           "\"fencing_token\":#," OWNER "\"ttl_ms\":30000,\"validity_ms\":0,"
           "\"released\":true}");
}

/* Its client may have the answer to the first acquire. */
TEST(a_repeat_whose_client_left_stays_held)
{
    repeat();
    abandon();
    expect(HEAD("undelivered", "acquire") ORDER
           "\"fencing_token\":#," OWNER "\"ttl_ms\":30000,\"validity_ms\":0,"
           "\"released\":false}");
}

TEST(a_release_whose_client_left_may_take_effect)
{
    ck_assert(!ask_call(LOCK_RELEASE));
    abandon();
    expect(HEAD("abandoned", "release") ORDER
           "\"fencing_token\":1795221642000000}");
}

/* ---- who is not let in -------------------------------------------------- */

static void refuse(int status, const char *code, struct span names)
{
    ask.response.status = status;
    ask.response.code = code;
    audit_note_refusal(audited.audit, &ask.request.call, names);
}

static const struct {
    const char *method, *target;
    bool is_force;
    const char *line;
} targets[] = {
    {"DELETE", "/locks/order:42", false, HEAD("refused", "release") ORDER},
    {"DELETE", "/locks/order:42", true, HEAD("refused", "force") ORDER},
    {"POST", "/locks", false, HEAD("refused", "acquire")},
    {"GET", "/metrics", false, HEAD("refused", "metrics")},
};

TEST_EACH(a_refusal_tells_what_was_asked, targets)
{
    char line[400];
    ask.request.method = targets[_i].method;
    ask.request.target = targets[_i].target;
    if (targets[_i].is_force)
        query_add(&ask.request.query, span_of("force"), span_of("7"));
    http_find_call(&ask.request);
    refuse(403, "forbidden", (struct span){0});
    (void)snprintf(line, sizeof line, "%s%s", targets[_i].line,
                   "\"status\":403,\"code\":\"forbidden\"}");
    expect(line);
    refuse(403, "forbidden", (struct span){0}); /* once is enough */
    ck_assert_int_eq(audited_count(audited.path), 1);
}

TEST(a_refusal_of_resources_of_a_body_tells_them)
{
    ask.request.method = "POST";
    ask.request.target = "/locks";
    refuse(403, "forbidden", span_of("a\nb"));
    expect(HEAD("refused",
                "acquire") "\"id\":\"~~YQpi\",\"resources\":[\"a\",\"b\"],"
                           "\"status\":403,\"code\":\"forbidden\"}");
}

TEST(other_answers_are_no_refusals)
{
    static const int statuses[] = {200, 201, 400, 404, 405, 409, 413, 503};
    ask.request.method = "POST";
    ask.request.target = "/locks";
    for (size_t i = 0; i < COUNT(statuses); i++)
        refuse(statuses[i], NULL, (struct span){0});
    ck_assert_ptr_null(audited_line(audited.path, 0));
    refuse(401, NULL, (struct span){0});
    ask.request.call.is_audited = false;
    refuse(429, NULL, (struct span){0});
    ck_assert_int_eq(audited_count(audited.path), 2);
}

/* Whoever has no token must not be able to fill the disk. */
TEST(a_flood_of_refusals_is_counted_instead)
{
    ask.request.method = "POST";
    ask.request.target = "/locks";
    for (int i = 0; i < 5000; i++) {
        refuse(401, "unauthorized", (struct span){0});
        ask.request.call.is_audited = false;
    }
    int count = audited_count(audited.path);
    ck_assert_int_ge(count, 1000);
    ck_assert_int_lt(count, 4000);
    while (audited_count(audited.path) == count) {
        refuse(401, "unauthorized", (struct span){0});
        ask.request.call.is_audited = false;
    }
    ck_assert_has(audited_line(audited.path, count), "\"dropped\":");
    ck_assert_uint_eq(play.metrics.audit_lost, 0);
}

static void refuse_as(const char *identity, int times)
{
    ask.request.identity[span_copy(ask.request.identity, span_of(identity))] =
        '\0';
    for (int i = 0; i < times; i++) {
        refuse(*identity == '\0' ? 401 : 403, NULL, (struct span){0});
        ask.request.call.is_audited = false;
    }
}

/* Neither strangers nor another identity take the room of its lines. */
TEST(each_identity_has_lines_of_its_own)
{
    enum { KNOWN = 300 };
    ask.request.method = "POST";
    ask.request.target = "/locks";
    audit_free(audited.audit);
    struct access *access =
        authtext_access("billing " AUTHTEXT_SECRET " lock prefix=*\n"
                        "other " AUTHTEXT_OTHER " lock prefix=*\n");
    audited_open(access);
    refuse_as("", 5000);
    refuse_as("other", 5000);
    int before = audited_count(audited.path);
    refuse_as("billing", KNOWN);
    ck_assert_int_eq(audited_count(audited.path), before + KNOWN);
    ck_assert_lacks(audited_line(audited.path, before), "\"dropped\":");
    refuse_as("removed", 5000); /* counts as a stranger */
    ck_assert_int_lt(audited_count(audited.path), before + KNOWN + 1000);
    audit_free(audited.audit);
    audited.audit = NULL;
    access_free(access);
    authtext_remove();
}
