#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../../api/render.h"
#include "../../lib/suite/suite.h"

static char *body;
static size_t body_len;

static void set_up(void)
{
    body = NULL;
}

static void tear_down(void)
{
    free(body);
}

SUITE(render, .set_up = set_up, .tear_down = tear_down);

/* The members in the documented order. */
TEST(grant_is_rendered_as_documented)
{
    struct engine_result result = {
        .resource = span_of("order:42"),
        .token = span_of("1795221641865000.8f1c.web-3"),
        .number = 1795221641865000,
        .owner = span_of("web-3"),
        .ttl_ms = 30000,
        .validity_ms = 29692,
        .votes_for = 3,
        .quorum = 3,
        .total = 5,
    };
    const int64_t waited_ms = 1500;
    struct render_times times = {1, 10000, &waited_ms};
    static const char expected[] =
        "{\"id\":\"order:42\",\"resource\":\"order:42\","
        "\"token\":\"1795221641865000.8f1c.web-3\","
        "\"fencing_token\":1795221641865000,\"ttl_ms\":30000,"
        "\"validity_ms\":29692,\"elapsed_ms\":1,\"renew_after_ms\":10000,"
        "\"waited_ms\":1500,\"owner\":\"web-3\","
        "\"nodes\":{\"granted\":3,\"quorum\":3,\"total\":5}}\n";

    body = render_grant(&result, &times, &body_len);
    ck_assert_uint_eq(body_len, sizeof expected - 1);
    ck_assert_mem_eq(body, expected, body_len);
}

TEST(release_is_rendered_as_documented)
{
    struct engine_result result = {
        .resource = span_of("a/b"), .votes_for = 5, .quorum = 3, .total = 5};
    static const char expected[] =
        "{\"id\":\"~YS9i\",\"resource\":\"a/b\",\"released\":true,"
        "\"nodes\":{\"released\":5,\"quorum\":3,\"total\":5}}\n";

    body = render_release(&result, &body_len);
    ck_assert_uint_eq(body_len, sizeof expected - 1);
    ck_assert_mem_eq(body, expected, body_len);
}

TEST(unknown_members_are_left_out)
{
    struct engine_result result = {
        .resource = span_of("x"), .token = span_of("t"), .ttl_ms = 100};
    struct render_times times = {0, 0, NULL};

    body = render_grant(&result, &times, &body_len);
    ck_assert_ptr_nonnull(body);
    ck_assert_ptr_null(memmem(body, body_len, "owner", 5));
    ck_assert_ptr_null(memmem(body, body_len, "waited", 6));
}

/* What another JSON reader makes of it is what was put in. */
static void expect_back(const char *name, struct span text)
{
    json_t *root = json_loadb(body, body_len, 0, NULL);
    json_t *value = json_object_get(root, name);
    ck_assert_ptr_nonnull(value);
    ck_assert_uint_eq(json_string_length(value), text.len);
    ck_assert_mem_eq(json_string_value(value), text.ptr, text.len);
    json_decref(root);
}

TEST(texts_are_escaped)
{
    char all[0x80];
    for (int i = 1; i < 0x80; i++)
        all[i - 1] = (char)i;
    struct engine_result result = {
        .resource = {all + 10, 0x7f - 10}, /* behind U+000A */
        .token = span_of("\"\\/\xc3\xa9\xf0\x9f\x94\x92"),
        .owner = {all, 31},
        .validity_ms = INT64_MAX,
    };
    struct render_times times = {INT64_MIN, -1, NULL};

    body = render_grant(&result, &times, &body_len);
    expect_back("resource", result.resource);
    expect_back("token", result.token);
    expect_back("owner", result.owner);
    json_t *root = json_loadb(body, body_len, 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "validity_ms")),
                     INT64_MAX);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "elapsed_ms")),
                     INT64_MIN);
    ck_assert_int_eq(
        json_integer_value(json_object_get(root, "renew_after_ms")), -1);
    json_decref(root);
}

/* The longest texts with the worst escapes, the largest numbers. */
TEST(longest_answer_fits)
{
    char resource[RESOURCE_MAX], token[TOKEN_MAX], owner[OWNER_MAX];
    memset(resource, 1, sizeof resource);
    memset(token, '"', sizeof token);
    memset(owner, 1, sizeof owner);
    struct engine_result result = {
        .resource = {resource, sizeof resource},
        .token = {token, sizeof token},
        .owner = {owner, sizeof owner},
        .number = INT64_MAX,
        .ttl_ms = INT64_MIN,
        .votes_for = INT32_MIN,
        .quorum = INT32_MIN,
        .total = INT32_MIN,
    };
    const int64_t waited_ms = INT64_MIN;
    struct render_times times = {INT64_MIN, INT64_MIN, &waited_ms};

    body = render_grant(&result, &times, &body_len);
    expect_back("resource", result.resource);
    free(body);
    body = render_release(&result, &body_len);
    expect_back("resource", result.resource);
}

TEST(several_resources_are_listed)
{
    struct engine_result result = {.resource = span_of("a\nb/c")};
    struct render_times times = {0};
    for (int i = 0; i < 3; i++) {
        free(body);
        body = i == 0   ? render_grant(&result, &times, &body_len)
               : i == 1 ? render_release(&result, &body_len)
                        : render_inspect(&result, &body_len);
        static const char start[] =
            "{\"id\":\"~~YQpiL2M\",\"resources\":[\"a\",\"b/c\"],";
        ck_assert_int_eq(strncmp(body, start, sizeof start - 1), 0);
        ck_assert_ptr_null(strstr(body, "\"resource\":"));
    }
}

TEST(inspection_leaves_out_what_is_unknown)
{
    struct engine_result result = {.resource = span_of("a"),
                                   .remaining_ms = -1,
                                   .waiters = 7,
                                   .votes_for = 1,
                                   .quorum = 2,
                                   .total = 3};
    body = render_inspect(&result, &body_len);

    ck_assert_str_eq(body, "{\"id\":\"a\",\"resource\":\"a\",\"waiters\":7,"
                           "\"nodes\":{\"held\":1,\"quorum\":2,\"total\":3}}"
                           "\n");
    ck_assert_uint_eq(body_len, strlen(body));
    free(body);
    result.remaining_ms = 0;
    result.number = 9;
    result.owner = span_of("me");
    body = render_inspect(&result, &body_len);
    ck_assert_ptr_nonnull(
        strstr(body, "\"remaining_ms\":0,\"fencing_token\":9,\"owner\":\"me\","
                     "\"waiters\":7,\"nodes\""));
    free(body);
    /* what only looks like a token of ours may have any bytes behind it */
    result.owner = span_of("\xff");
    body = render_inspect(&result, &body_len);
    ck_assert_ptr_null(strstr(body, "owner"));
}

TEST(nodes_are_rendered)
{
    struct render_nodes nodes = {
        .quorum = 1, .total = 1, .voting = 0, .now_us = 5000000};
    body = render_nodes(&nodes, &body_len);

    ck_assert_str_eq(body, "{\"voting\":0,\"quorum\":1,\"total\":1}\n");
    free(body);
    nodes.has_list = true;
    nodes.list[0].name = "n:1";
    nodes.list[0].view = (struct engine_node_view){
        .state = "loading", .detail = "why", .since_us = 3000000};
    body = render_nodes(&nodes, &body_len);
    ck_assert_ptr_nonnull(
        strstr(body, "\"nodes\":[{\"node\":\"n:1\",\"state\":\"loading\","
                     "\"detail\":\"why\",\"voting\":false,"
                     "\"since_ms\":2000}]}\n"));
    free(body);
    nodes.list[0].view.has_clock = true;
    nodes.list[0].view.clock_offset_us = -1500;
    nodes.list[0].view.rtt_us = 321;
    body = render_nodes(&nodes, &body_len);
    ck_assert_ptr_nonnull(
        strstr(body, ",\"clock_lead_ms\":-1,\"rtt_us\":321}"));
    free(body);
    nodes.list[0].view.quarantine_us = 1500001;
    nodes.list[0].view.clock_steps = 1;
    nodes.list[0].view.is_connected = true;
    body = render_nodes(&nodes, &body_len);
    ck_assert_ptr_nonnull(strstr(body,
                                 ",\"since_ms\":2000,\"quarantine_ms\":1501,"
                                 "\"clock_lead_ms\":-1,\"clock_steps\":1,"
                                 "\"rtt_us\":321,\"durable\":false}"));
    free(body);
    nodes.list[0].view.is_durable = true;
    body = render_nodes(&nodes, &body_len);
    ck_assert_ptr_nonnull(strstr(body, "\"rtt_us\":321,\"durable\":true}"));
}
