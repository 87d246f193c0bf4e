/* SPDX-License-Identifier: MIT */
/* What operators ask: probes, nodes, metrics. */
#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "ask.h"

#define THREE_DOWN                                                             \
    "nodes=#5 nodes.0.node=a nodes.0.state=unreachable "                       \
    "nodes.2.state=unreachable nodes.3.state=voting nodes.4.node=e "           \
    "nodes.4.state=voting"

static const struct {
    int down; /* nodes */
    bool is_draining;
    const char *request;
    int status;
    const char *members;
} rows[] = {
    {3, true, "GET /livez", 200, "status=alive"},
    {2, false, "GET /readyz", 200,
     "status=ready quorum=3 voting=3 total=5 -nodes"},
    {3, false, "GET /readyz", 503, "code=no_quorum retry_after_ms -nodes"},
    {3, false, "GET /readyz?verbose", 503, "code=no_quorum " THREE_DOWN},
    {0, true, "GET /readyz", 503, "code=shutting_down retry_after_ms"},
    {3, false, "GET /nodes", 200,
     "quorum=3 voting=2 total=5 -status " THREE_DOWN},
};

SUITE(ops, .set_up = ask_begin, .tear_down = ask_end);

TEST_EACH(each_answer_tells_the_state, rows)
{
    for (int i = 0; i < rows[_i].down; i++)
        play_node_down(i);
    play_advance(1000000);
    ask.service.is_draining = rows[_i].is_draining;
    ck_assert(ask_http(rows[_i].request));
    ck_assert_int_eq(ask.response.status, rows[_i].status);
    ck_assert_uint_eq(ask.response.body_len, strlen(ask.response.body));
    ask_expect_members(rows[_i].members);
    ck_assert(!ask.response.is_page);
}

/* The loss may be over a reply later: it is told once it has lasted. */
TEST(without_a_quorum_it_is_ready_for_a_second)
{
    play_nodes_down(3);
    ck_assert(ask_http("GET /readyz"));
    ask_expect(200, NULL);
}

static void look(void)
{
    ck_assert(ask_http("GET /readyz"));
}

TEST(when_a_quorum_is_expected_is_told)
{
    ask_expect_countdown(look);
}

TEST(nodes_are_told_with_the_age_of_their_states)
{
    struct engine_node_view view;
    engine_view_node(play.engine, 0, &view);
    int64_t before_us = clock_now_us();
    ck_assert(ask_http("GET /nodes"));
    int64_t after_us = clock_now_us();
    int64_t since_ms = ask_number("nodes.0.state_age_ms");
    ck_assert_int_ge(since_ms, (before_us - view.since_us) / 1000);
    ck_assert_int_le(since_ms, (after_us - view.since_us) / 1000);
}

TEST(metrics_are_text)
{
    play.metrics.connections = 7;
    ck_assert(ask_http("GET /metrics"));
    ck_assert_int_eq(ask.response.status, 200);
    ck_assert_str_eq(ask.response.content_type,
                     "text/plain; version=0.0.4; charset=utf-8");
    ck_assert_uint_eq(ask.response.body_len, strlen(ask.response.body));
    ck_assert_has(ask.response.body, "\nredlockd_connections 7\n");
}
