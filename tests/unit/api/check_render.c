/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../../../api/message/render.h"
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

/* It has this part. */
static void expect(char *rendered, const char *part)
{
    free(body);
    body = rendered;
    ck_assert_ptr_nonnull(body);
    ck_assert_uint_eq(body_len, strlen(body));
    ck_assert_has(body, part);
}

/* It is this, whole. */
static void expect_all(char *rendered, const char *text)
{
    expect(rendered, text);
    ck_assert_str_eq(body, text);
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
        .asked = 4,
        .quorum = 3,
        .total = 5,
    };
    const int64_t waited_ms = 1500;
    struct render_times times = {1, 10000, &waited_ms, 0, 0};
    static const char expected[] =
        "{\"id\":\"order:42\",\"resource\":\"order:42\","
        "\"mode\":\"exclusive\",\"token\":\"1795221641865000.8f1c.web-3\","
        "\"fencing_token\":1795221641865000,\"ttl_ms\":30000,"
        "\"validity_ms\":29692,\"elapsed_ms\":1,\"renew_after_ms\":10000,"
        "\"waited_ms\":1500,\"owner\":\"web-3\","
        "\"nodes\":{\"granted\":3,\"asked\":4,\"quorum\":3,\"total\":5}}\n";

    expect_all(render_grant(&result, &times, &body_len), expected);
}

TEST(release_is_rendered_as_documented)
{
    struct engine_result result = {.resource = span_of("a/b"),
                                   .votes_for = 5,
                                   .asked = 5,
                                   .quorum = 3,
                                   .total = 5};
    static const char expected[] =
        "{\"id\":\"~YS9i\",\"resource\":\"a/b\",\"released\":true,"
        "\"nodes\":{\"released\":5,\"asked\":5,\"quorum\":3,\"total\":5}}\n";

    expect_all(render_release(&result, &body_len), expected);
}

TEST(inspection_leaves_out_what_is_unknown)
{
    struct engine_result result = {.outcome = OUTCOME_FOUND,
                                   .resource = span_of("a"),
                                   .version = version_split,
                                   .remaining_ms = -1,
                                   .waiters = 7,
                                   .votes_for = 1,
                                   .asked = 3,
                                   .quorum = 2,
                                   .total = 3};
    expect_all(render_inspect(&result, 0, &body_len),
               "{\"id\":\"a\",\"resource\":\"a\",\"held\":true,"
               "\"version\":\"split\",\"waiters\":7,"
               "\"nodes\":{\"held\":1,\"asked\":3,\"quorum\":2,\"total\":3}}"
               "\n");
    result.remaining_ms = 0;
    result.number = 9;
    result.owner = span_of("me");
    expect(render_inspect(&result, 0, &body_len),
           "\"remaining_ms\":0,\"fencing_token\":9,\"owner\":\"me\","
           "\"waiters\":7,\"nodes\"");
    /* what only looks like a token of ours may have any bytes behind it */
    result.owner = span_of("\xff");
    expect(render_inspect(&result, 0, &body_len),
           "\"fencing_token\":9,\"waiters\"");
    ck_assert_lacks(body, "owner");
}

TEST(limit_to_holds_is_told_if_there_is_one)
{
    struct engine_result result = {.outcome = OUTCOME_FOUND,
                                   .resource = span_of("a"),
                                   .held_ms = 3000,
                                   .remaining_ms = -1};
    struct render_times times = {.max_hold_ms = 8000};
    static const char both[] = "\"max_hold_ms\":8000,\"hold_left_ms\":5000";
    for (int i = 0; i < 4; i++) {
        bool is_grant = i % 2 == 0, is_limited = i < 2;
        times.max_hold_ms = is_limited ? 8000 : 0;
        free(body);
        body = is_grant ? render_grant(&result, &times, &body_len)
                        : render_inspect(&result, times.max_hold_ms, &body_len);
        if (is_limited)
            ck_assert_has(body, both);
        else
            ck_assert_lacks(body, "hold_");
    }
    result.held_ms = -1; /* as the nodes disagree */
    expect(render_inspect(&result, 8000, &body_len),
           "\"max_hold_ms\":8000,\"nodes\"");
    result.held_ms = 9000; /* set lower since */
    expect(render_inspect(&result, 8000, &body_len), "\"hold_left_ms\":0,");
}

TEST(nodes_are_rendered)
{
    struct render_nodes nodes = {
        .quorum = 1, .total = 1, .voting = 0, .now_us = 5000000};
    expect_all(render_nodes(&nodes, &body_len),
               "{\"voting\":0,\"quorum\":1,\"total\":1}\n");
    nodes.has_list = true;
    nodes.list[0] = (struct engine_node_view){.name = "n:1",
                                              .address = "h:2",
                                              .state = "loading",
                                              .detail = "why",
                                              .since_us = 3000000};
    expect(render_nodes(&nodes, &body_len),
           "\"nodes\":[{\"node\":\"n:1\",\"address\":\"h:2\","
           "\"state\":\"loading\","
           "\"detail\":\"why\",\"voting\":false,"
           "\"state_age_ms\":2000}]}\n");
    nodes.list[0].has_clock = true;
    nodes.list[0].clock_offset_us = -1500;
    nodes.list[0].rtt_us = 321;
    expect(render_nodes(&nodes, &body_len),
           ",\"clock_lead_ms\":-1,\"rtt_us\":321}");
    nodes.list[0].quarantine_us = 1500001;
    nodes.list[0].clock_steps = 1;
    nodes.list[0].is_connected = true;
    expect(render_nodes(&nodes, &body_len),
           ",\"state_age_ms\":2000,\"quarantine_ms\":1501,"
           "\"clock_lead_ms\":-1,\"clock_steps\":1,"
           "\"rtt_us\":321,\"durable\":false}");
    nodes.list[0].is_durable = true;
    expect(render_nodes(&nodes, &body_len), "\"rtt_us\":321,\"durable\":true}");
}
