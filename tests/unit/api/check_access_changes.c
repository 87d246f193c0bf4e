/* SPDX-License-Identifier: MIT */
/*
 * What may be asked no more: the auth file changes, or an identity expires.
 */
#include "../../../api/access/access.h"
#include "../../../api/message/problem.h"
#include "../../lib/suite/suite.h"
#include "ask.h"
#include "authtext.h"
#include "judged.h"

#define INVALID "Bearer realm=\"redlockd\", error=\"invalid_token\""

/* ---- reload ------------------------------------------------------------- */

SUITE(access_changes, .set_up = ask_begin, .tear_down = judged_end);

TEST(who_is_removed_before_the_body_came_is_refused)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=*\n");
    (void)judged_admit("POST", "/locks", "Bearer secret");
    judged_change("b " AUTHTEXT_OTHER " read prefix=*\n");
    ck_assert(ask_send("POST", "/locks", "{'resource':'a'}"));
    ask_expect(401, "unauthorized");
    ck_assert_str_eq(ask.response.challenge, INVALID);
    struct span prefix = span_of("");
    free(ask.response.body);
    ck_assert(!access_narrow(judged_access, &ask.request.call, &prefix));
    ck_assert(!access_shows(judged_access, &ask.request.call, span_of("a")));
}

static const struct {
    const char *text; /* the file later on */
    int code;         /* PROBLEM_CODES: the request may go on */
} changes[] = {
    {"a " AUTHTEXT_SECRET " lock prefix=b\n", PROBLEM_CODES},
    {"a " AUTHTEXT_SECRET " lock,read prefix=* rate=1\n", PROBLEM_CODES},
    {"a " AUTHTEXT_SECRET " lock prefix=b/\nb " AUTHTEXT_OTHER
     " lock prefix=*\n",
     PROBLEM_CODES},
    {"a " AUTHTEXT_SECRET " lock prefix=c\n", PROBLEM_FORBIDDEN},
    {"a " AUTHTEXT_SECRET " read,metrics,admin prefix=*\n", PROBLEM_FORBIDDEN},
    {"b " AUTHTEXT_SECRET " lock prefix=*\n", PROBLEM_UNAUTHORIZED},
    {"b " AUTHTEXT_OTHER " lock prefix=*\n", PROBLEM_UNAUTHORIZED},
    {"a " AUTHTEXT_OTHER " lock prefix=*\n", PROBLEM_UNAUTHORIZED},
    {"a cert:dns:a lock prefix=*\n", PROBLEM_UNAUTHORIZED},
    {"a " AUTHTEXT_OTHER " lock prefix=*\nb " AUTHTEXT_SECRET
     " lock prefix=*\n",
     PROBLEM_UNAUTHORIZED},
};

static void expect_stands(int code)
{
    const struct refusal *refusal = &ask.caller.refusal;
    bool stands =
        access_stands(judged_access, &ask.request.call, span_of("b/x"));
    ck_assert(stands == (code == PROBLEM_CODES));
    if (stands) {
        ck_assert_ptr_null(refusal->detail);
        return;
    }
    ck_assert_int_eq(refusal->code, code);
    ck_assert_ptr_nonnull(refusal->detail);
    ck_assert_pstr_eq(refusal->challenge,
                      code == PROBLEM_UNAUTHORIZED ? INVALID : NULL);
}

TEST_EACH(a_request_on_its_way_stands_by_the_file_as_it_is, changes)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=*\n");
    (void)judged_admit("POST", "/locks", "Bearer secret");
    expect_stands(PROBLEM_CODES);
    authtext_write("half");
    ck_assert(!access_reload(judged_access));
    expect_stands(PROBLEM_CODES);
    judged_change(changes[_i].text);
    expect_stands(changes[_i].code);
}

TEST(the_path_of_a_request_on_its_way_must_lie_inside_still)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=*\n");
    (void)judged_admit("DELETE", "/locks/b", "Bearer secret");
    judged_change("a " AUTHTEXT_SECRET " lock prefix=c\n");
    ck_assert(
        !access_stands(judged_access, &ask.request.call, (struct span){0}));
    ck_assert_int_eq(ask.caller.refusal.code, PROBLEM_FORBIDDEN);
}

/* Whoever had the name before. */
TEST(who_came_with_a_credential_that_is_new_is_not_who_was_removed)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=*\nb " AUTHTEXT_OTHER
               " lock prefix=*\n");
    (void)judged_admit("POST", "/locks", "Bearer secret");
    judged_change("b " AUTHTEXT_OTHER " lock prefix=*\n");
    judged_change("a " AUTHTEXT_SECRET " lock prefix=*\n");
    expect_stands(PROBLEM_UNAUTHORIZED);
    (void)judged_admit("POST", "/locks", "Bearer secret");
    expect_stands(PROBLEM_CODES);
}

TEST(what_is_open_to_all_stands)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=*\n");
    (void)judged_admit("GET", "/livez", NULL);
    judged_change("b " AUTHTEXT_OTHER " lock prefix=*\n");
    expect_stands(PROBLEM_CODES);
    ck_assert(access_stands(NULL, &ask.request.call, span_of("a")));
}

/* ---- what ends by itself ------------------------------------------------ */

#define PAST "2000-01-01T00:00:00Z"
#define FUTURE "2999-01-01T00:00:00Z"

TEST(who_has_expired_is_known_and_refused)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=* expires=" PAST "\n"
               "b " AUTHTEXT_OTHER " lock prefix=* expires=" FUTURE "\n");
    const struct refusal *refusal =
        judged_admit("POST", "/locks", "Bearer secret");
    ck_assert_int_eq(refusal->code, PROBLEM_UNAUTHORIZED);
    ck_assert_has(refusal->detail, "this identity has expired");
    ck_assert_str_eq(refusal->challenge, INVALID);
    ck_assert_str_eq(ask.request.identity, "a"); /* for the audit log */
    access_end(judged_access, &ask.request.call, true);
    authtext_expect_metric(judged_access, play.now_us,
                           "redlockd_identity_requests_total{identity=\"a\","
                           "result=\"forbidden\"} 1\n");
    ck_assert_ptr_null(judged_admit("POST", "/locks", "Bearer other")->detail);
    ck_assert_ptr_null(judged_admit("GET", "/livez", "Bearer secret")->detail);
}

TEST(when_identities_expire_is_told)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=* expires=" PAST "\n"
               "b " AUTHTEXT_OTHER " lock prefix=*\n");
    authtext_expect_metric(
        judged_access, play.now_us,
        "# TYPE redlockd_identity_expiry_timestamp_seconds gauge\n"
        "redlockd_identity_expiry_timestamp_seconds{identity=\"a\"} "
        "946684800\n");
}

/* By the same file; as if it had let the request in before the end. */
TEST(who_expires_on_the_way_is_refused)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=* expires=" FUTURE "\n");
    ck_assert_ptr_null(judged_admit("POST", "/locks", "Bearer secret")->detail);
    judged_change("a " AUTHTEXT_SECRET " lock prefix=* expires=" PAST "\n");
    ask.caller.auth_file++;
    expect_stands(PROBLEM_CODES); /* it is not looked at again … */
    ask.caller.expires_s = 946684800;
    expect_stands(PROBLEM_UNAUTHORIZED); /* … before its end */
}
