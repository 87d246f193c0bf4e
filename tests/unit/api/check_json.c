#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../../../api/json.h"

Suite *check_json(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX_TTL_MS = 60000 };

static struct json_input input;
static struct faults errors;

static void tear_down(void)
{
    json_input_fini(&input);
}

static bool parse(const char *body, enum route route)
{
    return json_parse(&input, span_of(body), route, MAX_TTL_MS, &errors);
}

static void expect_span(struct span text, const char *expected)
{
    ck_assert_uint_eq(text.len, strlen(expected));
    ck_assert_mem_eq(text.ptr, expected, text.len);
}

START_TEST(members_of_an_acquire_are_read)
{
    ck_assert(parse("{\"resource\":\"caf\\u00e9\",\"ttl_ms\":1000,"
                    "\"owner\":\"a@b:/-._\"}",
                    ROUTE_ACQUIRE));
    expect_span(input.resource, "caf\xc3\xa9");
    expect_span(input.owner, "a@b:/-._");
    ck_assert(input.has_ttl && input.has_owner && input.has_resource);
    ck_assert(!input.has_token);
    ck_assert_int_eq(input.ttl_ms, 1000);
}
END_TEST

START_TEST(members_may_be_left_out)
{
    ck_assert(parse(" {\"resource\":\"x\"}\r\n", ROUTE_ACQUIRE));
    ck_assert(!input.has_ttl && !input.has_owner);
    json_input_fini(&input);
    ck_assert(parse("{}", ROUTE_EXTEND));
    ck_assert(!input.has_token && !input.has_ttl);
    json_input_fini(&input);
    ck_assert(parse("{\"token\":\"t\"}", ROUTE_RELEASE));
    expect_span(input.token, "t");
}
END_TEST

static const struct {
    const char *body;
    enum route route;
    const char *pointer;
} bad[] = {
    {"", ROUTE_ACQUIRE, ""},
    {" ", ROUTE_ACQUIRE, ""},
    {"{", ROUTE_ACQUIRE, ""},
    {"[]", ROUTE_ACQUIRE, ""},
    {"1", ROUTE_ACQUIRE, ""},
    {"null", ROUTE_ACQUIRE, ""},
    {"{\"resource\":\"x\"}x", ROUTE_ACQUIRE, ""},
    {"{\"resource\":\"x\",\"resource\":\"x\"}", ROUTE_ACQUIRE, ""},
    {"{\"resource\":\"\\u0000\"}", ROUTE_ACQUIRE, ""},
    {"{\"resource\":\"\\ud800\"}", ROUTE_ACQUIRE, ""},
    {"{\"resource\":\"\xff\"}", ROUTE_ACQUIRE, ""},
    {"{\"resource\":\"x\",\"ttl_ms\":9223372036854775808}", ROUTE_ACQUIRE, ""},
    {"{}", ROUTE_ACQUIRE, "/resource"},
    {"{\"resource\":7}", ROUTE_ACQUIRE, "/resource"},
    {"{\"resource\":\"\"}", ROUTE_ACQUIRE, "/resource"},
    {"{\"resource\":\"redlockd:x\"}", ROUTE_ACQUIRE, "/resource"},
    {"{\"resource\":\"x\",\"ttl_ms\":99}", ROUTE_ACQUIRE, "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":60001}", ROUTE_ACQUIRE, "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":-9223372036854775808}", ROUTE_ACQUIRE,
     "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":1e3}", ROUTE_ACQUIRE, "/ttl_ms"},
    {"{\"resource\":\"x\",\"ttl_ms\":true}", ROUTE_ACQUIRE, "/ttl_ms"},
    {"{\"resource\":\"x\",\"owner\":\"a b\"}", ROUTE_ACQUIRE, "/owner"},
    {"{\"resource\":\"x\",\"owner\":\"\"}", ROUTE_ACQUIRE, "/owner"},
    {"{\"resource\":\"x\",\"owner\":{}}", ROUTE_ACQUIRE, "/owner"},
    {"{\"resource\":\"x\",\"wait_ms\":1}", ROUTE_ACQUIRE, "/wait_ms"},
    {"{\"resource\":\"x\",\"resources\":[]}", ROUTE_ACQUIRE, "/resources"},
    {"{\"resource\":\"x\",\"token\":\"t\"}", ROUTE_ACQUIRE, "/token"},
    {"{\"resource\":\"x\",\"a/b~c\":1}", ROUTE_ACQUIRE, "/a~1b~0c"},
    {"{\"resource\":\"x\"}", ROUTE_EXTEND, "/resource"},
    {"{\"token\":5}", ROUTE_EXTEND, "/token"},
    {"{\"ttl_ms\":1}", ROUTE_EXTEND, "/ttl_ms"},
    {"{\"ttl_ms\":1000}", ROUTE_RELEASE, "/ttl_ms"},
};

START_TEST(what_is_wrong_is_pointed_at)
{
    ck_assert_msg(!parse(bad[_i].body, bad[_i].route), "%s", bad[_i].body);
    ck_assert_int_eq(errors.count, 1);
    ck_assert_str_eq(errors.list[0].pointer, bad[_i].pointer);
    ck_assert_uint_gt(strlen(errors.list[0].detail), 10);
}
END_TEST

START_TEST(all_errors_are_told_at_once)
{
    ck_assert(!parse("{\"ttl_ms\":0,\"owner\":1,\"what\":2}", ROUTE_ACQUIRE));
    ck_assert_int_eq(errors.count, 4);
    ck_assert_str_eq(errors.list[0].pointer, "/ttl_ms");
    ck_assert_str_eq(errors.list[0].detail,
                     "ttl_ms is 0; it must be an integer from 100 to 60000 "
                     "(milliseconds)");
    ck_assert_str_eq(errors.list[3].pointer, "/resource");
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
        ck_assert(!parse(bodies[i], ROUTE_EXTEND));
        for (int j = 0; j < errors.count; j++) {
            ck_assert_ptr_null(strstr(errors.list[j].detail, "secret"));
            ck_assert_ptr_null(strstr(errors.list[j].pointer, "secret"));
        }
        json_input_fini(&input);
    }
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    char body[HTTP_BODY_MAX];
    memset(body, '[', sizeof body);
    ck_assert(!json_parse(&input, (struct span){body, sizeof body},
                          ROUTE_ACQUIRE, MAX_TTL_MS, &errors));
    ck_assert_str_eq(errors.list[0].pointer, "");
}
END_TEST

START_TEST(inspection_leaves_out_what_is_unknown)
{
    struct engine_result result = {.resource = span_of("a"),
                                   .remaining_ms = -1,
                                   .votes_for = 1,
                                   .quorum = 2,
                                   .total = 3};
    size_t len;
    char *body = json_render_inspect(&result, &len);

    ck_assert_str_eq(body, "{\"id\":\"a\",\"resource\":\"a\","
                           "\"nodes\":{\"held\":1,\"quorum\":2,\"total\":3}}"
                           "\n");
    ck_assert_uint_eq(len, strlen(body));
    free(body);
    result.remaining_ms = 0;
    result.number = 9;
    result.owner = span_of("me");
    body = json_render_inspect(&result, &len);
    ck_assert_ptr_nonnull(strstr(
        body,
        "\"remaining_ms\":0,\"fencing_token\":9,\"owner\":\"me\",\"nodes\""));
    free(body);
    /* what only looks like a token of ours may have any bytes behind it */
    result.owner = span_of("\xff");
    body = json_render_inspect(&result, &len);
    ck_assert_ptr_null(strstr(body, "owner"));
    free(body);
}
END_TEST

START_TEST(nodes_are_rendered)
{
    struct json_nodes nodes = {
        .quorum = 1, .total = 1, .voting = 0, .now_us = 5000000};
    size_t len;
    char *body = json_render_nodes(&nodes, &len);

    ck_assert_str_eq(body, "{\"voting\":0,\"quorum\":1,\"total\":1}\n");
    free(body);
    nodes.has_list = true;
    nodes.list[0].name = "n:1";
    nodes.list[0].view = (struct engine_node_view){
        .state = "loading", .detail = "why", .since_us = 3000000};
    body = json_render_nodes(&nodes, &len);
    ck_assert_ptr_nonnull(
        strstr(body, "\"nodes\":[{\"node\":\"n:1\",\"state\":\"loading\","
                     "\"detail\":\"why\",\"voting\":false,"
                     "\"since_ms\":2000}]}\n"));
    free(body);
    nodes.list[0].view.has_clock = true;
    nodes.list[0].view.clock_offset_us = -1500;
    nodes.list[0].view.rtt_us = 321;
    body = json_render_nodes(&nodes, &len);
    ck_assert_ptr_nonnull(
        strstr(body, ",\"clock_lead_ms\":-1,\"rtt_us\":321}"));
    free(body);
}
END_TEST

Suite *check_json(void)
{
    Suite *suite = suite_create("json");
    TCase *tc = tcase_create("json");
    tcase_add_checked_fixture(tc, NULL, tear_down);
    tcase_add_test(tc, members_of_an_acquire_are_read);
    tcase_add_test(tc, members_may_be_left_out);
    tcase_add_loop_test(tc, what_is_wrong_is_pointed_at, 0, COUNT(bad));
    tcase_add_test(tc, all_errors_are_told_at_once);
    tcase_add_test(tc, tokens_are_not_repeated);
    tcase_add_test(tc, deep_nesting_is_refused);
    tcase_add_test(tc, inspection_leaves_out_what_is_unknown);
    tcase_add_test(tc, nodes_are_rendered);
    suite_add_tcase(suite, tc);
    return suite;
}
