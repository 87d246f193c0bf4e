/* SPDX-License-Identifier: MIT */
/*
 * POST /batch: what the nodes are asked for each operation, and what of it is
 * told.
 */
#include <stdio.h>
#include <string.h>

#include "../../../api/access/access.h"
#include "../../../api/batch.h"
#include "../../../api/message/body.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "audited.h"
#include "authtext.h"
#include "judged.h"

#define OTHER_TOKEN "1795221642000000.00112233445566778899aabbccddeeff01234567"
#define READER "1795221642000000~8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"
#define OTHER_READER "1795221642000000~00112233445566778899aabbccddeeff01234567"
#define OF(id, token) "'id':'" id "','token':'" token "'}"
#define ACQUIRE(name) "{'operation':'acquire','resource':'" name "'}"
#define SHARE(name)                                                            \
    "{'operation':'acquire','resource':'" name "','mode':"                     \
    "'shared'}"
#define PERMIT(name) "{'operation':'acquire','resource':'" name "','limit':9}"
#define EXTEND(id, token) "{'operation':'extend'," OF(id, token)
#define RELEASE(id, token) "{'operation':'release'," OF(id, token)
#define BATCH(operations) "{'operations':[" operations "]}"
#define MIXED                                                                  \
    BATCH(ACQUIRE("a") "," EXTEND("~Yi9j",                                     \
                                  ASK_TOKEN) "," RELEASE("c", OTHER_TOKEN))

static bool send_body(const char *body)
{
    return ask_send("POST", "/batch", body);
}

/* All nodes give this vote on the oldest call of this kind that has none. */
static void vote(enum call_kind kind, int ballot)
{
    play_answer_range(kind, 0, PLAY_NODES, ballot);
}

/* As many nodes as an acquire asks. */
static void grant(void)
{
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_ACQUIRE, i) != NULL)
            play_answer(CALL_ACQUIRE, i, VOTE_GRANTED);
}

SUITE(batches);

/* ---- each its own answer ------------------------------------------------ */

GROUP(answers, .set_up = ask_begin, .tear_down = ask_end);

TEST(each_operation_is_done_as_if_it_were_alone)
{
    ck_assert(!send_body(
        BATCH("{'operation':'acquire','resource':'a','ttl_ms':3000,'owner':'me'"
              "}," EXTEND("~Yi9j", ASK_TOKEN) "," RELEASE("c", OTHER_TOKEN))));
    ck_assert_int_eq(play_count(CALL_ACQUIRE), PLAY_NODES);
    ck_assert_int_eq(play_count(CALL_EXTEND), PLAY_NODES);
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    ck_assert(span_is(play_find(CALL_ACQUIRE, 0)->call.resource, "a"));
    ck_assert(span_is(play_find(CALL_EXTEND, 0)->call.resource, "b/c"));
    ck_assert_str_eq(play_find(CALL_EXTEND, 0)->token, ASK_TOKEN);
    ck_assert(span_is(play_find(CALL_RELEASE, 0)->call.resource, "c"));
    ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, OTHER_TOKEN);
    vote(CALL_RELEASE, VOTE_DELETED);
    vote(CALL_EXTEND, VOTE_EXTENDED);
    grant();
    ask_expect_now(200, NULL);
    ask_expect_members("results=#3 results.0.status=201 results.0.grant.id=a "
                       "results.0.grant.owner=me results.0.grant.ttl_ms=3000 "
                       "results.1.status=200 results.1.grant.resource=b/c "
                       "results.1.grant.token=" ASK_TOKEN
                       " results.1.grant.ttl_ms=12000 results.2.status=200 "
                       "results.2.release.id=c");
    ck_assert_str_eq(ask.response.location, "");
}

TEST(a_failure_does_not_stop_the_others)
{
    ck_assert(!send_body(MIXED));
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer_held(CALL_ACQUIRE, i, OTHER_TOKEN);
    vote(CALL_EXTEND, VOTE_FREE);
    vote(CALL_RELEASE, VOTE_HELD);
    ask_expect_now(200, NULL);
    ask_expect_members(
        "results.0.status=409 results.0.problem.code=lock_held "
        "results.0.problem.retry_after_ms results.1.problem.id=~Yi9j "
        "results.1.problem.code=lock_not_found "
        "results.1.problem.request_id=r-1 results.2.problem.code=not_owner");
    ck_assert_uint_eq(play.metrics.responses[LOCK_ACQUIRE][409], 1);
    ck_assert_uint_eq(play.metrics.responses[LOCK_EXTEND][404], 1);
    ck_assert_uint_eq(play.metrics.responses[LOCK_RELEASE][409], 1);
    ck_assert_uint_eq(play.metrics.request_duration[LOCK_EXTEND].count, 1);
    ask_expect_closed();
    ck_assert_ptr_null(ask.request.batch);
}

#define BAD_ID EXTEND("~~", ASK_TOKEN)
#define BAD_TOKEN RELEASE("b", "1")
#define BAD_KEY "{'operation':'acquire','resource':'k','idempotency_key':'1'}"

TEST(a_bad_operation_does_not_stop_the_others)
{
    ck_assert(!send_body(BATCH(
        BAD_ID "," EXTEND("a", ASK_TOKEN) "," BAD_TOKEN "," BAD_KEY ",7")));
    ck_assert_int_eq(play_count(CALL_EXTEND), PLAY_NODES);
    ck_assert_int_eq(play.sent_count, PLAY_NODES);
    ck_assert_int_eq(ask.request.answers_due, 1);
    vote(CALL_EXTEND, VOTE_EXTENDED);
    ask_expect_now(200, NULL);
    ask_expect_members(
        "results.0.problem.code=invalid_request results.1.status=200 "
        "results.2.status=400 results.3.status=400 results.4.status=400 "
        "results.0.problem.errors.0.pointer=/operations/0/id "
        "results.2.problem.errors.0.pointer=/operations/2/token "
        "results.3.problem.errors.0.pointer=/operations/3/idempotency_key "
        "results.4.problem.errors.0.pointer=/operations/4");
}

/* It would pause alone. */
TEST(split_votes_for_a_lock_delay_nobody)
{
    ck_assert(!send_body(BATCH("{'operation':'acquire','resource':'a'}")));
    play_split_votes();
    ask_expect_now(200, NULL);
    ask_expect_members("results.0.status=409");
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
    ck_assert(
        send_body(BATCH(EXTEND("a", ASK_TOKEN) "," EXTEND("b", OTHER_TOKEN))));
    ask_expect_members(
        "results.0.problem.code=no_quorum results.1.problem.code=no_quorum");
}

TEST(each_has_its_own_key)
{
    static const char keyed[] =
        BATCH("{'operation':'acquire','resource':'a','idempotency_key':'"
              "0123456789abcdef'},{'operation':'acquire','resource':'b'}");
    ck_assert(!send_body(keyed));
    ck_assert_ptr_nonnull(strchr(play.sent[0].token, '+'));
    ck_assert_ptr_null(strchr(play.sent[PLAY_NODES].token, '+'));
}

TEST(a_drained_server_grants_nothing_and_extends)
{
    ask.service.is_drained = true;
    ck_assert(!send_body(MIXED));
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 0);
    vote(CALL_EXTEND, VOTE_EXTENDED);
    vote(CALL_RELEASE, VOTE_DELETED);
    ask_answer(play.now_us);
    ask_expect_members(
        "results.0.problem.code=shutting_down results.1.status=200");
}

/* Each allocation fails once: each operation has an answer, or all have none,
 * and then nothing is left of what was granted. */
TEST_RANGE(without_memory_nothing_is_kept, 1, 60)
{
    starve = (struct starve){.is_on = true, .left = _i};
    bool is_answered = send_body(MIXED);
    starve.is_on = false;
    if (!is_answered) {
        grant();
        if (play_find(CALL_EXTEND, 0) != NULL)
            vote(CALL_EXTEND, VOTE_EXTENDED);
        if (play_find(CALL_RELEASE, 0) != NULL)
            vote(CALL_RELEASE, VOTE_DELETED);
        starve.is_on = starve.left > 0;
        ask_answer(play.now_us);
        starve.is_on = false;
    }
    if (ask.response.status == 200) {
        for (int i = 0; i < 3; i++)
            ck_assert(ask_number(textf("results.%d.status", i)) < 300 ||
                      strcmp(ask_text(textf("results.%d.problem.code", i)),
                             "overloaded") == 0);
    } else if (ask.response.body != NULL) {
        ask_expect(503, "overloaded");
    }
    if (ask.request.batch != NULL)
        batch_end(&ask.service, &ask.request, true, play.now_us);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

/* ---- two operations of one lock ----------------------------------------- */

static const struct {
    const char *operations;
    const char *pointer; /* NULL: they do not clash */
} clashes[] = {
    {ACQUIRE("a") "," ACQUIRE("b"), NULL},
    {ACQUIRE("a") "," ACQUIRE("b") "," ACQUIRE("a"), "/operations/2"},
    {ACQUIRE("a") "," RELEASE("a", ASK_TOKEN), "/operations/1"},
    {RELEASE("a", ASK_TOKEN) "," EXTEND("a", OTHER_TOKEN), "/operations/1"},
    {"{'operation':'acquire','resources':['b','a']}," ACQUIRE("b"),
     "/operations/1"},
    {ACQUIRE("c") ",{'operation':'acquire','resources':['b','c']}," ACQUIRE(
         "b"),
     "/operations/1"},
    {SHARE("a") "," SHARE("a") "," EXTEND("a", READER), NULL},
    {SHARE("a") "," EXTEND("a", ASK_TOKEN), "/operations/1"},
    {SHARE("a") "," ACQUIRE("a"), "/operations/1"},
    {EXTEND("a", READER) "," RELEASE("a", OTHER_READER), NULL},
    {EXTEND("a", READER) "," RELEASE("a", READER), "/operations/1"},
    {EXTEND("a", READER) "," RELEASE("b", READER), "/operations/1"},
    /* its other form */
    {EXTEND("a", READER) "," RELEASE("b", ASK_TOKEN), "/operations/1"},
    {PERMIT("a") "," PERMIT("a") "," PERMIT("a"), NULL},
    {PERMIT("a") "," ACQUIRE("a"), "/operations/1"},
    {PERMIT("a") "," SHARE("a"), "/operations/1"},
    /* what is refused is of no lock */
    {ACQUIRE("a") ",{'operation':'acquire','resource':'a','ttl_ms':1}", NULL},
};

GROUP(clashes, .set_up = ask_begin, .tear_down = ask_end);

TEST_EACH(two_operations_of_one_lock_are_refused_and_nothing_is_done, clashes)
{
    bool is_answered =
        send_body(textf("{'operations':[%s]}", clashes[_i].operations));
    if (clashes[_i].pointer == NULL) {
        ck_assert(!is_answered);
        ck_assert_int_gt(play.sent_count, 0);
        return;
    }
    ck_assert(is_answered);
    ask_expect(400, "invalid_request");
    ask_expect_pointer("body", clashes[_i].pointer);
    ck_assert_int_eq(play.sent_count, 0);
    ck_assert_ptr_null(ask.request.batch);
}

/* So many locks at once would stall the nodes. */
static const struct {
    int operations, names, limit;
    bool is_good;
} crowds[] = {
    {100, 2, 0, true},    {13, 15, 0, true},   {13, 16, 0, false},
    {67, 3, 0, false},    {100, 1, 199, true}, {67, 1, 200, false},
    {19, 1, 1000, false},
};

/* So many acquires, of so many names each, or of a pool. */
static const char *crowd(int operations, int names, int limit)
{
    static char text[65536];
    size_t len = (size_t)sprintf(text, "{'operations':[");
    for (int i = 0; i < operations; i++) {
        len += (size_t)sprintf(text + len, "%s{'operation':'acquire',",
                               i > 0 ? "," : "");
        if (limit > 0)
            len += (size_t)sprintf(text + len, "'resource':'p%d','limit':%d}",
                                   i, limit);
        for (int n = 0; n < names && limit == 0; n++)
            len += (size_t)sprintf(text + len, "%s'%d-%d'%s",
                                   n > 0 ? "," : "'resources':[", i, n,
                                   n == names - 1 ? "]}" : "");
    }
    (void)sprintf(text + len, "]}");
    return text;
}

TEST_EACH(a_batch_has_two_hundred_resources_at_most, crowds)
{
    for (int i = 0; i < PLAY_NODES; i++)
        play_node_down(i); /* only what is asked counts */
    ck_assert(send_body(crowd(crowds[_i].operations, crowds[_i].names,
                              crowds[_i].limit)) != crowds[_i].is_good);
    if (crowds[_i].is_good)
        return;
    ask_expect(400, "invalid_request");
    ask_expect_pointer("body", "/operations");
}

/* ---- who may ------------------------------------------------------------ */

static void tear_down_judged(void)
{
    ask_anew();
    judged_end();
}

static const struct refusal *admit(void)
{
    (void)judged_admit("POST", "/batch", "Bearer secret");
    return &ask.caller.refusal;
}

static void begin_judged(const char *text)
{
    judged_use(text);
    ck_assert_ptr_null(admit()->detail);
}

GROUP(rights, .set_up = ask_begin, .tear_down = tear_down_judged);

TEST(a_lock_outside_of_the_prefixes_is_refused_alone)
{
    begin_judged("a " AUTHTEXT_SECRET " lock prefix=b/\n");
    ck_assert(!send_body(MIXED));
    ck_assert_int_eq(play_count(CALL_EXTEND), PLAY_NODES);
    ck_assert_int_eq(play.sent_count, PLAY_NODES);
    vote(CALL_EXTEND, VOTE_EXTENDED);
    ask_expect_now(200, NULL);
    ask_expect_members("results.0.problem.code=forbidden results.1.status=200 "
                       "results.2.problem.code=forbidden");
    authtext_expect_metric(judged_access, play.now_us,
                           "redlockd_identity_requests_total{identity=\"a\","
                           "result=\"forbidden\"} 2\n");
    authtext_expect_metric(judged_access, play.now_us,
                           "redlockd_identity_requests_total{identity=\"a\","
                           "result=\"allowed\"} 1\n");
}

TEST(locks_beyond_those_that_it_may_hold_are_refused_alone)
{
    begin_judged("a " AUTHTEXT_SECRET " lock prefix=* locks=2\n");
    ck_assert(!send_body(crowd(3, 1, 0)));
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 2 * PLAY_NODES);
    grant();
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer_held(CALL_ACQUIRE, i, OTHER_TOKEN);
    ask_answer(play.now_us);
    ask_expect_members("results.0.status=201 results.1.problem.code=lock_held "
                       "results.2.problem.code=lock_quota_exceeded");
    batch_end(&ask.service, &ask.request, true, play.now_us);
    authtext_expect_metric(judged_access, play.now_us,
                           "redlockd_identity_locks{identity=\"a\"} 1\n");
}

/* Each is a request; those beyond the burst are refused, and the others not. */
TEST(each_is_charged_as_far_as_the_burst_goes)
{
    begin_judged("a " AUTHTEXT_SECRET " lock prefix=* rate=5\n");
    ck_assert(!send_body(crowd(8, 1, 0)));
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 5 * PLAY_NODES);
    for (int i = 0; i < 5; i++)
        grant();
    ask_answer(play.now_us);
    for (int i = 0; i < 8; i++)
        ask_expect_members(
            textf("results.%d.%s", i,
                  i < 5 ? "status=201" : "problem.retry_after_ms"));
    ask_expect_members("results.5.problem.code=rate_limited");
    batch_end(&ask.service, &ask.request, true, play.now_us);
    ask_anew();
    ck_assert_int_eq(admit()->code, (int)PROBLEM_RATE_LIMITED);
}

/* As it would be alone. */
TEST(a_bad_operation_is_charged_too)
{
    begin_judged("a " AUTHTEXT_SECRET " lock prefix=* rate=2\n");
    ck_assert(send_body(BATCH("7,7,7")));
    ask_expect_members("results.1.status=400 results.2.status=429");
}

/* What let it in does not hold any more. */
TEST(an_acquire_that_lost_its_right_is_undone_alone)
{
    begin_judged("a " AUTHTEXT_SECRET " lock prefix=*\n");
    ck_assert(!send_body(crowd(2, 1, 0)));
    grant();
    grant();
    judged_change("a " AUTHTEXT_SECRET " lock prefix=1\n");
    ask_answer(play.now_us);
    ask_expect_members("results.0.problem.code=forbidden results.1.status=201");
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    ck_assert(span_is(play_find(CALL_RELEASE, 0)->call.resource, "0-0"));
}

/* ---- the audit log ------------------------------------------------------ */

GROUP(audit, .set_up = audited_begin, .tear_down = audited_end);

TEST(each_operation_has_its_line)
{
    ck_assert(!send_body(MIXED));
    grant();
    vote(CALL_EXTEND, VOTE_FREE);
    vote(CALL_RELEASE, VOTE_DELETED);
    ask_answer(play.now_us);
    ck_assert_int_eq(audited_count(audited.path), 3);
    ck_assert_has(audited_line(audited.path, 0), "\"event\":\"grant\"");
    ck_assert_has(audited_line(audited.path, 1), "\"id\":\"~Yi9j\"");
    ck_assert_has(audited_line(audited.path, 1), "lock_not_found");
    ck_assert_has(audited_line(audited.path, 2), "\"call\":\"release\"");
    batch_end(&ask.service, &ask.request, true, play.now_us);
}

TEST(what_is_undone_has_a_line_and_what_went_on_as_well)
{
    ck_assert(!send_body(MIXED));
    grant();
    vote(CALL_EXTEND, VOTE_EXTENDED);
    ck_assert(!batch_leave(&ask.service, &ask.request));
    ck_assert_int_eq(audited_count(audited.path), 1);
    ck_assert_has(audited_line(audited.path, 0), "\"event\":\"undelivered\"");
    vote(CALL_RELEASE, VOTE_DELETED);
    batch_end(&ask.service, &ask.request, false, play.now_us);
    ck_assert_int_eq(audited_count(audited.path), 3);
    ck_assert_has(audited_line(audited.path, 1), "\"event\":\"extend\"");
    ck_assert_has(audited_line(audited.path, 2), "\"event\":\"release\"");
}
