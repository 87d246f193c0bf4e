#include <check.h>
#include <stdio.h>
#include <string.h>

#include "../../../api/body.h"
#include "../../../api/http.h"

Suite *check_body(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX_TTL_MS = 60000 };

static struct body body;
static struct faults errors;

static void tear_down(void)
{
    body_fini(&body);
}

static bool parse(const char *text, enum lock_call call)
{
    return body_read(&body, span_of(text), call, MAX_TTL_MS, &errors);
}

static void expect_span(struct span text, const char *expected)
{
    ck_assert_uint_eq(text.len, strlen(expected));
    ck_assert_mem_eq(text.ptr, expected, text.len);
}

START_TEST(members_of_an_acquire_are_read)
{
    ck_assert(parse("{\"resource\":\"caf\\u00e9\",\"ttl_ms\":1000,"
                    "\"wait_ms\":7,\"owner\":\"a@b:/-._\"}",
                    LOCK_ACQUIRE));
    expect_span(body.resource, "caf\xc3\xa9");
    expect_span(body.owner, "a@b:/-._");
    ck_assert(body.has_ttl && body.has_owner && body.has_resource);
    ck_assert(!body.has_token);
    ck_assert_int_eq(body.ttl_ms, 1000);
    ck_assert_int_eq(body.wait_ms, 7);
}
END_TEST

START_TEST(milliseconds_reach_to_both_ends)
{
    ck_assert(parse("{\"resource\":\"x\",\"ttl_ms\":100,\"wait_ms\":0}",
                    LOCK_ACQUIRE));
    ck_assert_int_eq(body.ttl_ms, 100);
    ck_assert_int_eq(body.wait_ms, 0);
    body_fini(&body);
    ck_assert(parse("{\"resource\":\"x\",\"ttl_ms\":60000,\"wait_ms\":50000}",
                    LOCK_ACQUIRE));
    ck_assert_int_eq(body.ttl_ms, MAX_TTL_MS);
    ck_assert_int_eq(body.wait_ms, WAIT_MAX_MS);
}
END_TEST

START_TEST(members_may_be_left_out)
{
    ck_assert(parse(" {\"resource\":\"x\"}\r\n", LOCK_ACQUIRE));
    ck_assert(!body.has_ttl && !body.has_owner);
    ck_assert_int_eq(body.wait_ms, 0);
    body_fini(&body);
    ck_assert(parse("{}", LOCK_EXTEND));
    ck_assert(!body.has_token && !body.has_ttl);
    body_fini(&body);
    ck_assert(parse("{\"token\":\"t\"}", LOCK_RELEASE));
    expect_span(body.token, "t");
}
END_TEST

static const struct {
    const char *body;
    enum lock_call call;
    const char *pointer;
} bad[] = {
    {"", LOCK_ACQUIRE, ""},
    {" ", LOCK_ACQUIRE, ""},
    {"{", LOCK_ACQUIRE, ""},
    {"[]", LOCK_ACQUIRE, ""},
    {"1", LOCK_ACQUIRE, ""},
    {"null", LOCK_ACQUIRE, ""},
    {"{\"resource\":\"x\"}x", LOCK_ACQUIRE, ""},
    {"{\"resource\":\"x\",\"resource\":\"x\"}", LOCK_ACQUIRE, ""},
    {"{\"resource\":\"\\u0000\"}", LOCK_ACQUIRE, ""},
    {"{\"resource\":\"\\ud800\"}", LOCK_ACQUIRE, ""},
    {"{\"resource\":\"\xff\"}", LOCK_ACQUIRE, ""},
    {"{\"resource\":\"x\",\"ttl_ms\":9223372036854775808}", LOCK_ACQUIRE, ""},
    {"{}", LOCK_ACQUIRE, "/resource"},
    {"{\"resource\":7}", LOCK_ACQUIRE, "/resource"},
    {"{\"resource\":\"\"}", LOCK_ACQUIRE, "/resource"},
    {"{\"resource\":\"redlockd:x\"}", LOCK_ACQUIRE, "/resource"},
    {"{\"resource\":\"x\",\"ttl_ms\":99}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":60001}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":-9223372036854775808}", LOCK_ACQUIRE,
     "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":1e3}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":true}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{\"resource\":\"x\",\"owner\":\"a b\"}", LOCK_ACQUIRE, "/owner"},
    {"{\"resource\":\"x\",\"owner\":\"\"}", LOCK_ACQUIRE, "/owner"},
    {"{\"resource\":\"x\",\"owner\":{}}", LOCK_ACQUIRE, "/owner"},
    {"{\"resource\":\"x\",\"wait_ms\":-1}", LOCK_ACQUIRE, "/wait_ms"},
    {"{\"resource\":\"x\",\"wait_ms\":50001}", LOCK_ACQUIRE, "/wait_ms"},
    {"{\"resource\":\"x\",\"wait_ms\":1.5}", LOCK_ACQUIRE, "/wait_ms"},
    {"{\"resource\":\"x\",\"wait_ms\":\"1\"}", LOCK_ACQUIRE, "/wait_ms"},
    {"{\"resource\":\"x\",\"wait_ms\":null}", LOCK_ACQUIRE, "/wait_ms"},
    {"{\"token\":\"t\",\"wait_ms\":1}", LOCK_EXTEND, "/wait_ms"},
    {"{\"token\":\"t\",\"wait_ms\":1}", LOCK_RELEASE, "/wait_ms"},
    {"{\"resource\":\"x\",\"resources\":[]}", LOCK_ACQUIRE, "/resources"},
    {"{\"resource\":\"x\",\"token\":\"t\"}", LOCK_ACQUIRE, "/token"},
    {"{\"resource\":\"x\",\"a/b~c\":1}", LOCK_ACQUIRE, "/a~1b~0c"},
    {"{\"resource\":\"x\"}", LOCK_EXTEND, "/resource"},
    {"{\"token\":5}", LOCK_EXTEND, "/token"},
    {"{\"ttl_ms\":1}", LOCK_EXTEND, "/ttl_ms"},
    {"{\"ttl_ms\":1000}", LOCK_RELEASE, "/ttl_ms"},
};

START_TEST(what_is_wrong_is_pointed_at)
{
    ck_assert_msg(!parse(bad[_i].body, bad[_i].call), "%s", bad[_i].body);
    ck_assert_int_eq(errors.count, 1);
    ck_assert_str_eq(errors.list[0].pointer, bad[_i].pointer);
    ck_assert_uint_gt(strlen(errors.list[0].detail), 10);
}
END_TEST

START_TEST(all_errors_are_told_at_once)
{
    ck_assert(!parse("{\"ttl_ms\":0,\"owner\":1,\"what\":2}", LOCK_ACQUIRE));
    ck_assert_int_eq(errors.count, 4);
    ck_assert_str_eq(errors.list[0].pointer, "/ttl_ms");
    ck_assert_str_eq(errors.list[0].detail,
                     "ttl_ms is 0; it must be an integer from 100 to 60000 "
                     "(milliseconds)");
    ck_assert_str_eq(errors.list[3].pointer, "/resource");
}
END_TEST

START_TEST(a_bad_wait_is_told_its_limits)
{
    ck_assert(!parse("{\"resource\":\"x\",\"wait_ms\":50001}", LOCK_ACQUIRE));
    ck_assert_str_eq(errors.list[0].detail,
                     "wait_ms is 50001; it must be an integer from 0 to 50000 "
                     "(milliseconds)");
    body_fini(&body);
    ck_assert(!parse("{\"resource\":\"x\",\"wait_ms\":\"1\"}", LOCK_ACQUIRE));
    ck_assert_str_eq(errors.list[0].detail,
                     "wait_ms is a string; it must be an integer from 0 to "
                     "50000 (milliseconds)");
}
END_TEST

/* The list is made of the same table that body_member reads. */
START_TEST(unknown_members_are_told_which_are_known)
{
    static const char *const lists[] = {
        [LOCK_ACQUIRE] = "resource, ttl_ms, wait_ms and owner",
        [LOCK_EXTEND] = "token and ttl_ms",
        [LOCK_RELEASE] = "token",
    };
    char expected[FAULT_DETAIL_MAX];
    snprintf(expected, sizeof expected,
             "this field is unknown here; the fields are %s", lists[_i]);
    ck_assert(!parse("{\"what\":1}", (enum lock_call)_i));
    ck_assert_str_eq(errors.list[0].detail, expected);
}
END_TEST

START_TEST(members_that_are_refused_are_none)
{
    ck_assert_str_eq(body_member(LOCK_ACQUIRE, 3), "owner");
    ck_assert_ptr_null(body_member(LOCK_ACQUIRE, 4));
    ck_assert_ptr_null(body_member(LOCK_INSPECT, 0));
}
END_TEST

START_TEST(tokens_are_not_repeated)
{
    static const char *const bodies[] = {
        "{\"token\":\"secret-1\" \"secret-2\"}",
        "{\"token\":\"secret-1\xff\"}",
        "{\"token\":\"secret-1",
        "{\"token\":secret-1}",
        "{\"token\":[\"secret-1\"]}",
    };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        ck_assert(!parse(bodies[i], LOCK_EXTEND));
        for (int j = 0; j < errors.count; j++) {
            ck_assert_ptr_null(strstr(errors.list[j].detail, "secret"));
            ck_assert_ptr_null(strstr(errors.list[j].pointer, "secret"));
        }
        body_fini(&body);
    }
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    char text[HTTP_BODY_MAX];
    memset(text, '[', sizeof text);
    ck_assert(!body_read(&body, (struct span){text, sizeof text}, LOCK_ACQUIRE,
                         MAX_TTL_MS, &errors));
    ck_assert_str_eq(errors.list[0].pointer, "");
}
END_TEST

Suite *check_body(void)
{
    Suite *suite = suite_create("body");
    TCase *tc = tcase_create("body");
    tcase_add_checked_fixture(tc, NULL, tear_down);
    tcase_add_test(tc, members_of_an_acquire_are_read);
    tcase_add_test(tc, members_may_be_left_out);
    tcase_add_test(tc, milliseconds_reach_to_both_ends);
    tcase_add_loop_test(tc, what_is_wrong_is_pointed_at, 0, COUNT(bad));
    tcase_add_test(tc, all_errors_are_told_at_once);
    tcase_add_test(tc, a_bad_wait_is_told_its_limits);
    tcase_add_loop_test(tc, unknown_members_are_told_which_are_known, 0,
                        LOCK_INSPECT);
    tcase_add_test(tc, members_that_are_refused_are_none);
    tcase_add_test(tc, tokens_are_not_repeated);
    tcase_add_test(tc, deep_nesting_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
