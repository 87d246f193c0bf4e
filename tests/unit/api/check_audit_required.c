/* SPDX-License-Identifier: MIT */
/*
 * --audit-required: no lock changes without a line that is in the file before.
 * --audit-reads: who looked has a line, too.
 */
#include <string.h>

#include "../../lib/suite/suite.h"
#include "../said.h"
#include "audited.h"

static void set_up(void)
{
    audited_begin();
    audit_free(audited.audit);
    audited.setup.is_required = true;
    audited_open(NULL);
}

SUITE(audit_required, .set_up = set_up, .tear_down = audited_end);

static void expect_event(int line, const char *start)
{
    const char *body = audited_body(audited_line(audited.path, line));
    ck_assert_msg(strncmp(body, start, strlen(start)) == 0, "%s", body);
}

/* ---- before it begins --------------------------------------------------- */

#define HEAD(call)                                                             \
    "\"event\":\"asked\",\"request_id\":\"r-1\",\"identity\":\"billing\","     \
    "\"client\":\"127.0.0.1:9\",\"call\":\"" call "\",\"id\":\"order:42\","    \
    "\"resources\":[\"order:42\"]"

static const struct {
    int call;
    const char *line;
} changes[] = {
    {LOCK_ACQUIRE, HEAD("acquire") ",\"owner\":\"billing\"}"},
    {LOCK_EXTEND, HEAD("extend") ",\"fencing_token\":1795221642000000}"},
    {LOCK_RELEASE, HEAD("release") ",\"fencing_token\":1795221642000000}"},
    {LOCK_FORCE, HEAD("force") ",\"fencing_token\":7}"},
};

TEST_EACH(a_change_is_told_before_it_begins, changes)
{
    ck_assert(!ask_call(changes[_i].call));
    ck_assert_int_eq(audited_count(audited.path), 1);
    ck_assert_str_eq(audited_body(audited_line(audited.path, 0)),
                     changes[_i].line);
}

TEST_EACH(a_change_that_cannot_be_told_does_not_begin, changes)
{
    audited_block();
    for (int i = 0; i < 2000; i++) { /* nor are so many lines kept */
        ask_anew();
        ck_assert(ask_call(changes[_i].call));
        ck_assert_int_eq(ask.response.status, 503);
        ck_assert_str_eq(ask.response.code, "audit_unavailable");
        ck_assert_int_eq(play.sent_count, 0);
    }
    ask_expect_detail("; nothing was done; ");
    ck_assert_int_gt(ask_number("retry_after_ms"), 0);
    ck_assert_uint_eq(play.metrics.audit_lost, 0);
    audited_limit(false);
    ask_anew();
    ck_assert(!ask_call(changes[_i].call));
    ck_assert_int_eq(audited_count(audited.path), 3);
}

TEST(what_changes_nothing_needs_no_line)
{
    audited_block();
    ask_call_and_vote(LOCK_INSPECT, VOTE_FREE);
    ask_expect(200, NULL);
    audited_limit(false);
}

/* ---- what came of it ---------------------------------------------------- */

static const struct {
    int call, ballot;
    const char *meaning;
} outcomes[] = {
    {LOCK_ACQUIRE, VOTE_GRANTED, "; nothing was granted; "},
    {LOCK_EXTEND, VOTE_EXTENDED, "; the outcome is unknown"},
    {LOCK_RELEASE, VOTE_DELETED, "; the outcome is unknown"},
};

TEST_EACH(what_went_well_and_cannot_be_told_is_not, outcomes)
{
    ck_assert(!ask_call(outcomes[_i].call));
    audited_block();
    play_answer_range(ask_kinds[outcomes[_i].call], 0, 3, outcomes[_i].ballot);
    ask_expect_now(503, "audit_unavailable");
    ask_expect_detail(outcomes[_i].meaning);
    ck_assert_str_eq(ask.response.location, "");
    ask_expect_closed();
    audited_limit(false);
}

TEST(a_grant_that_cannot_be_told_is_released)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    audited_block();
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ask_answer(play.now_us);
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    audited_limit(false);
    ask_anew();
    ck_assert(!ask_call(LOCK_ACQUIRE)); /* the lines are there by then */
    ck_assert_int_eq(audited_count(audited.path), 5);
    expect_event(2, "\"event\":\"grant\"");
    expect_event(3, "\"event\":\"undelivered\"");
    ck_assert_has(audited_line(audited.path, 3),
                  "\"released\":true,\"status\":503,"
                  "\"code\":\"audit_unavailable\"}");
    expect_event(4, "\"event\":\"asked\"");
}

TEST(a_refusal_that_cannot_be_told_is_one_still)
{
    ck_assert(!ask_call(LOCK_RELEASE));
    audited_block();
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_HELD);
    ask_expect_now(409, "not_owner");
    audited_limit(false);
}

/* ---- reads -------------------------------------------------------------- */

static void look(void)
{
    ask_call_and_vote(LOCK_INSPECT, VOTE_FREE);
    ask_anew();
    ask.request.identity[0] = 'b';
    query_add(&ask.request.query, span_of("prefix"), span_of("a%2Fb"));
    ck_assert(!ask_send("GET", "/locks", NULL));
    for (int i = 0; i < PLAY_NODES; i++)
        play_node_down(i);
    ask_answer(play.now_us);
}

TEST(without_being_asked_for_reads_have_no_line)
{
    look();
    ck_assert_int_eq(audited_count(audited.path), 0);
}

TEST(reads_have_lines_if_these_are_asked_for)
{
    audit_free(audited.audit);
    audited.setup.is_required = false;
    audited.setup.has_reads = true;
    audited_open(NULL);
    look();
    ck_assert_int_eq(audited_count(audited.path), 2);
    expect_event(0, "\"event\":\"read\",\"request_id\":\"r-1\","
                    "\"identity\":\"billing\",\"client\":\"127.0.0.1:9\","
                    "\"call\":\"inspect\",\"id\":\"order:42\","
                    "\"resources\":[\"order:42\"],\"status\":200}");
    expect_event(1, "\"event\":\"read\",\"request_id\":\"r-1\","
                    "\"identity\":\"b\",\"call\":\"list\","
                    "\"prefix\":\"a/b\",\"status\":503,"
                    "\"code\":\"no_quorum\"}");
}
