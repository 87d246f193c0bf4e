#include <stdio.h>

#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "ask.h"

static void get(const char *target)
{
    ck_assert(ask_send("GET", target, NULL));
}

static void expect_nodes(const char *of_first)
{
    ck_assert_uint_eq(json_array_size(ask_member("nodes")), PLAY_NODES);
    for (int i = 0; i < PLAY_NODES; i++) {
        ck_assert_str_eq(ask_text(textf("nodes.%d.node", i)),
                         play_settings.node_names[i]);
        ck_assert_str_eq(ask_text(textf("nodes.%d.state", i)),
                         i < 3 ? of_first : "voting");
    }
}

static void take_down_three(void)
{
    for (int i = 0; i < 3; i++)
        play_node_down(i);
}

SUITE(ops, .set_up = ask_begin, .tear_down = ask_end);

TEST(alive_it_is_always)
{
    ask.service.is_draining = true;
    take_down_three();
    get("/livez");
    ask_expect(200, NULL);
    ck_assert_str_eq(ask_text("status"), "alive");
    ck_assert_uint_eq(ask.response.body_len, strlen(ask.response.body));
}

TEST(ready_it_is_with_a_quorum)
{
    play_node_down(0);
    play_node_down(1);
    get("/readyz");
    ask_expect(200, NULL);
    ck_assert_str_eq(ask_text("status"), "ready");
    ck_assert_int_eq(ask_number("quorum"), 3);
    ck_assert_int_eq(ask_number("voting"), 3);
    ck_assert_int_eq(ask_number("total"), 5);
    ck_assert_ptr_null(ask_member("nodes"));
}

/* The loss may be over a reply later: it is told once it has lasted. */
TEST(without_a_quorum_it_is_not_ready)
{
    take_down_three();
    get("/readyz");
    ask_expect(200, NULL);
    play_advance(1000000);
    get("/readyz");
    ask_expect(503, "no_quorum");
    ask_expect_retry(1000);
    ask_expect_detail("2 of 5 nodes may vote, 3 are needed");
    ck_assert_ptr_null(ask_member("nodes"));
}

TEST(not_ready_and_verbose_it_lists_the_nodes)
{
    take_down_three();
    play_advance(1000000);
    query_add(&ask.request.query, span_of("verbose"), span_of(""));
    get("/readyz");
    ask_expect(503, "no_quorum");
    expect_nodes("unreachable");
}

static void look(void)
{
    get("/readyz");
}

TEST(when_a_quorum_is_expected_is_told)
{
    ask_expect_countdown(look);
}

TEST(draining_it_is_not_ready)
{
    ask.service.is_draining = true;
    get("/readyz");
    ask_expect(503, "shutting_down");
    ask_expect_retry(1000);
}

TEST(nodes_are_told_with_their_states)
{
    take_down_three();
    get("/nodes");
    ask_expect(200, NULL);
    expect_nodes("unreachable");
    ck_assert_int_eq(ask_number("quorum"), 3);
    ck_assert_int_eq(ask_number("voting"), 2);
    ck_assert_int_eq(ask_number("total"), 5);
    ck_assert_ptr_null(ask_member("status"));
}

TEST(nodes_are_told_with_the_age_of_their_states)
{
    struct engine_node_view view;
    engine_view_node(play.engine, 0, &view);
    int64_t before_us = clock_now_us();
    get("/nodes");
    int64_t after_us = clock_now_us();
    int64_t since_ms = ask_number("nodes.0.state_age_ms");
    ck_assert_int_ge(since_ms, (before_us - view.since_us) / 1000);
    ck_assert_int_le(since_ms, (after_us - view.since_us) / 1000);
}

TEST(metrics_are_text)
{
    play.metrics.connections = 7;
    get("/metrics");
    ck_assert_int_eq(ask.response.status, 200);
    ck_assert_str_eq(ask.response.content_type,
                     "text/plain; version=0.0.4; charset=utf-8");
    ck_assert_uint_eq(ask.response.body_len, strlen(ask.response.body));
    ck_assert_has(ask.response.body, "\nredlockd_connections 7\n");
}
