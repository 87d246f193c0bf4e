/*
 * A release by the fencing number: a look for the token, then a release.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "waiting.h"

#define WANTED PLAY_TOKEN_OF(7) ".web-3"

/* So many nodes have it, and those before them do not. */
static void find_on(int first, int end)
{
    for (int i = 0; i < first; i++)
        if (play.is_up[i])
            play_answer(CALL_INSPECT, i, VOTE_FREE);
    play_hold_range(CALL_INSPECT, first, end, WANTED);
}

static engine_op force(void)
{
    return engine_force(play.engine, PLAY_RESOURCE, 7, NULL);
}

SUITE(force, .set_up = play_begin, .tear_down = play_end);

TEST(what_has_the_number_is_released_everywhere)
{
    engine_op op = force();
    ck_assert_int_eq(play_count(CALL_INSPECT), 5);
    find_on(0, 2);
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
    play_answer_held(CALL_INSPECT, 2, WANTED);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    ck_assert_str_eq(play_find(CALL_RELEASE, 4)->token, WANTED);
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_DELETED);
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq(result->outcome, OUTCOME_RELEASED);
    ck_assert_int_eq(result->votes_for, 3);
    engine_close(play.engine, op);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_FORCE][OUTCOME_RELEASED], 1);
    ck_assert_uint_eq(play.metrics.round_duration[LOCK_FORCE].count, 1);
    ck_assert_uint_eq(play.metrics.round_duration[LOCK_RELEASE].count, 1);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

TEST(a_minoritys_leftover_is_found_and_deleted)
{
    engine_op op = force();
    find_on(4, 5);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    play_answer(CALL_RELEASE, 4, VOTE_DELETED);
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_FREE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    ck_assert_int_eq(play_result(op)->votes_for, 1);
}

/* Another number, and none. */
static const char *const others[] = {PLAY_TOKEN_OF(8), "7"};

TEST_EACH(another_value_is_left_alone, others)
{
    engine_op op = force();
    play_hold_range(CALL_INSPECT, 0, 5, others[_i]);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NOT_OWNER);
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
}

TEST(a_free_lock_is_not_found)
{
    engine_op op = force();
    play_answer_range(CALL_INSPECT, 0, 5, VOTE_FREE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NOT_FOUND);
}

TEST(nodes_that_are_away_get_the_release_later)
{
    play_node_down(0);
    play_node_down(1);
    engine_op op = force();
    find_on(2, 5);
    play_answer_range(CALL_RELEASE, 2, 5, VOTE_DELETED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    engine_close(play.engine, op);
    play_advance(1000000);
    play_node_up(0);
    play_advance(1000000);
    ck_assert(play_find(CALL_RELEASE, 0) != NULL);
    ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, WANTED);
}

TEST(without_a_majority_the_outcome_is_unknown)
{
    play_nodes_down(3);
    engine_op op = force();
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

TEST(without_room_for_the_release_no_node_votes)
{
    engine_op op = force();
    for (int i = 0; i < 5; i++)
        play.is_refusing[i] = true;
    find_on(0, 3);
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq(result->outcome, OUTCOME_NO_QUORUM);
    ck_assert_int_eq(result->votes[4].vote, VOTE_STALLED);
}

/* ---- all readers -------------------------------------------------------- */

static engine_op force_all(void)
{
    return engine_force(play.engine, PLAY_RESOURCE, 0, NULL);
}

TEST(all_readers_are_released_without_a_look)
{
    (void)play_acquire();
    engine_op op = force_all();
    (void)play_acquire();
    ck_assert_int_eq(play_count(CALL_INSPECT), 0);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    const char *token = play_find(CALL_RELEASE, 4)->token;
    ck_assert_uint_eq(strlen(token), 17);
    ck_assert_int_eq(token[16], '~');
    int64_t numbers[2] = {0};
    for (int i = 0, n = 0; i < play.sent_count; i++)
        if (play.sent[i].call.kind == CALL_ACQUIRE && play.sent[i].node == 0)
            numbers[n++] = atoll(play.sent[i].token);
    ck_assert_int_lt(numbers[0], atoll(token));
    ck_assert_int_gt(numbers[1], atoll(token));
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_DELETED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    ck_assert_int_eq(play_result(op)->votes_for, 3);
    engine_close(play.engine, op);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_FORCE][OUTCOME_RELEASED], 1);
}

TEST(without_readers_there_is_no_lock)
{
    engine_op op = force_all();
    play_answer_range(CALL_RELEASE, 0, 5, VOTE_FREE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NOT_FOUND);
}

TEST(a_writers_lock_is_not_that_of_readers)
{
    engine_op op = force_all();
    play_hold_range(CALL_RELEASE, 0, 3, WANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NOT_OWNER);
}

/* The acquire of another server may be on its way to where others were. */
TEST(who_was_on_the_way_is_released_a_timeout_later)
{
    engine_op op = force_all();
    char token[TOKEN_MAX + 1];
    snprintf(token, sizeof token, "%s", play_find(CALL_RELEASE, 0)->token);
    play_answer_range(CALL_RELEASE, 0, 5, VOTE_DELETED);
    engine_close(play.engine, op);
    ck_assert(play_find(CALL_RELEASE, 0) == NULL);
    play_advance(1000000);
    for (int i = 0; i < PLAY_NODES; i++) {
        ck_assert(play_find(CALL_RELEASE, i) != NULL);
        ck_assert_str_eq(play_find(CALL_RELEASE, i)->token, token);
    }
    play_answer_range(CALL_RELEASE, 0, 5, VOTE_FREE);
    play_advance(1000000);
    ck_assert(play_find(CALL_RELEASE, 0) == NULL);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}

TEST(nodes_that_are_away_release_the_same_readers_later)
{
    play_node_down(0);
    engine_op op = force_all();
    char token[TOKEN_MAX + 1];
    snprintf(token, sizeof token, "%s", play_find(CALL_RELEASE, 1)->token);
    play_answer_range(CALL_RELEASE, 1, 5, VOTE_DELETED);
    engine_close(play.engine, op);
    play_advance(1000000);
    play_answer_range(CALL_RELEASE, 1, 5, VOTE_FREE);
    play_node_up(0);
    play_advance(1000000);
    ck_assert(play_find(CALL_RELEASE, 0) != NULL);
    ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, token);
}

TEST(without_a_node_no_reader_is_released)
{
    play_nodes_down(5);
    ck_assert_int_eq(play_outcome(force_all()), OUTCOME_NO_QUORUM);
}

/* ---- waiting and leaving ------------------------------------------------ */

TEST(who_waits_follows_right_behind_it)
{
    engine_op waiter = waiting_ask();
    waiting_find_held();
    int before = waiting_attempts();
    (void)force();
    find_on(0, 3);
    play_answer(CALL_RELEASE, 0, VOTE_DELETED);
    ck_assert_int_eq(waiting_attempts(), before + 1);
    play_answer(CALL_RELEASE, 1, VOTE_DELETED);
    ck_assert_int_eq(waiting_attempts(), before + 1);
    waiting_grant();
    ck_assert_int_eq(play_outcome(waiter), OUTCOME_GRANTED);
}

TEST(its_client_may_leave_between_look_and_release)
{
    engine_op op = force();
    ck_assert(!engine_abandon(play.engine, op));
    find_on(0, 5);
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
    op = force();
    find_on(0, 3);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    ck_assert(!engine_abandon(play.engine, op));
    play_answer(CALL_RELEASE, 0, VOTE_DELETED);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}
