/*
 * What people are told of a node that does not vote: each state has a sentence
 * of its own. Those with a countdown or an order are in check_status.c.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "../play.h"

enum { SECOND = 1000000 };

static struct engine_node_view view;

static void expect(int node, const char *state, const char *detail)
{
    engine_view_node(play.engine, node, &view);
    ck_assert_str_eq(view.state, state);
    ck_assert_str_eq(view.detail, detail);
}

static void begin_again(const struct engine_settings *settings)
{
    play_begin_again(settings);
}

SUITE(status_sentences, .set_up = play_begin, .tear_down = play_end);

TEST(a_node_that_was_never_there_is_being_connected_to)
{
    begin_again(&play_settings);
    expect(0, "connecting", "not connected yet");
    engine_on_node_down(play.engine, 0, STATE_SILENT, "no reply for 250 ms");
    expect(0, "silent", "no reply for 250 ms");
    expect(1, "connecting", "not connected yet");
}

TEST(a_node_that_votes_is_admitted)
{
    expect(0, "voting", "admitted");
}

/* Until all are there, and new; else as long as the others may object. */
TEST(a_new_node_tells_what_it_waits_for)
{
    static const char front[] =
        "is new; votes as soon as all nodes are connected and new, or in ";
    begin_again(&play_settings);
    play_node_connect(0);
    play_answer_look(0, LOOK_EMPTY, "", "");
    engine_view_node(play.engine, 0, &view);
    ck_assert_str_eq(view.state, "first_start");
    ck_assert_msg(strncmp(view.detail, front, sizeof front - 1) == 0, "%s",
                  view.detail);
    int seconds = 0;
    ck_assert_int_eq(sscanf(view.detail + sizeof front - 1, "%4d s", &seconds),
                     1);
    ck_assert_int_eq(seconds, (view.quarantine_us + SECOND - 1) / SECOND);
}

/* Marked by us, it waits for nothing but the others' marks. */
TEST(a_first_start_that_is_under_way_tells_so)
{
    begin_again(&play_settings);
    for (int i = 0; i < PLAY_NODES; i++) {
        play_node_connect(i);
        play_answer_look(i, LOOK_EMPTY, "", "");
    }
    play_answer_look(0, LOOK_FRESH, "", "1:run:0");
    expect(0, "first_start",
           "the nodes are about to be admitted for the first time");
}

static void connect_as(int node, const struct node_facts *facts)
{
    play_node_down(node);
    play.is_up[node] = true;
    engine_on_node_up(play.engine, node, facts);
    play_answer_look(node, LOOK_ADMITTED, "", "");
}

TEST(one_server_behind_two_names_is_told)
{
    const struct node_facts facts = play_facts(1);
    connect_as(0, &facts);
    expect(0, "duplicate", "one server answers to two of the names");
    expect(1, "duplicate", "one server answers to two of the names");
}

TEST(a_node_that_is_not_confirmed_tells_so)
{
    struct node_facts facts = play_facts(0);
    facts.confirmed_us = 0;
    connect_as(0, &facts);
    expect(0, "unconfirmed",
           "no new connection has confirmed the node recently");
}

TEST(a_clock_that_stepped_is_told)
{
    play_advance(1000);
    play.offset_us[0] = 2 * SECOND;
    (void)play_acquire();
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    expect(0, "clock_stepped", "the node's clock stepped");
}

static void answer_looks(void)
{
    for (int i = 0; i < PLAY_NODES; i++)
        while (play_find(CALL_LOOK, i) != NULL)
            play_answer_look(i, LOOK_ADMITTED, "", "");
}

/* However long it is away, it says by how much; until it votes again. */
TEST(a_step_is_told_until_the_node_votes_again)
{
    play_advance(1000);
    play.offset_us[0] = -2 * SECOND - 500;
    (void)play_acquire();
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    answer_looks();
    play_answer(CALL_REVOKE, 0, VOTE_DONE);
    expect(0, "admitting",
           "its permission to vote is being checked (its clock stepped by "
           "-2000 ms)");
    for (int s = 0; s < 62; s++) { /* its clock is watched for so long */
        answer_looks();
        play.sent_count = 0;
        play_advance(SECOND);
    }
    expect(0, "voting", "admitted");
    play_node_down(0);
    play_node_connect(0);
    expect(0, "admitting", "its permission to vote is being checked");
}
