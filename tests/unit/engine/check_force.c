/* SPDX-License-Identifier: MIT */
/*
 * A release by the fencing token: a search for the token, then a release.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "letters.h"
#include "waiting.h"

#define WANTED PLAY_TOKEN_OF(7) ".web-3"

/* So many nodes have it, and those before them do not. */
static void find_on(int first, int end)
{
    for (int i = 0; i < first; i++)
        if (play.is_up[i])
            play_answer(CALL_TOKENS, i, VOTE_FREE);
    play_hold_range(CALL_TOKENS, first, end, WANTED);
}

static engine_op force(void)
{
    return engine_force(play.engine, PLAY_RESOURCE, 7, NULL);
}

/* How many releases of this token were sent to the node and not answered. */
static int count_releases(int node, const char *token)
{
    int count = 0;
    for (int i = 0; i < play.sent_count; i++)
        count += play.sent[i].node == node && !play.sent[i].is_answered &&
                 play.sent[i].call.kind == CALL_RELEASE &&
                 strcmp(play.sent[i].token, token) == 0;
    return count;
}

SUITE(force, .set_up = play_begin, .tear_down = play_end);

TEST(what_has_the_number_is_released_everywhere)
{
    scene("force force#5");
    find_on(0, 2);
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
    play_answer_held(CALL_TOKENS, 2, WANTED);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    ck_assert_str_eq(play_find(CALL_RELEASE, 4)->token, WANTED);
    /* two inspections and a creation, and as long as it waits for nodes */
    ck_assert_int_ge(play_find(CALL_RELEASE, 4)->call.tombstone_ms,
                     (4 + play_settings.retry_count) *
                         play_settings.node_timeout_us / 1000);
    scene_more("release:ddd =released votes#3 close under_way#0");
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_FORCE][OUTCOME_RELEASED], 1);
    ck_assert_uint_eq(play.metrics.round_duration[LOCK_FORCE].count, 1);
    ck_assert_uint_eq(play.metrics.round_duration[LOCK_RELEASE].count, 1);
}

/* What the nodes report, the number being 7, and, after a release on all of
 * them, what comes of it. */
static const struct {
    const char *token;
    int first, end; /* the nodes that report it; those before are free */
    const char *end_of_it;
} reports[] = {
    /* a minority's leftover */
    {WANTED, 4, 5, "release#5 release:fff.d =released votes#1"},
    /* was replaced meanwhile */
    {WANTED, 0, 3, "release#5 release:AAA =not_owner votes#0"},
    /* a downgrade has not reached each node: either form is found */
    {PLAY_READER_OF(7), 0, 3, "release#5 release:ddd =released votes#3"},
    {PLAY_TOKEN_OF(7), 0, 3, "release#5 release:ddd =released votes#3"},
    {PLAY_TOKEN_OF(8), 0, 5, "release#0 =not_owner votes#5"},
    {"7", 0, 5, "release#0 =not_owner votes#5"}, /* no token */
    {"", 5, 5, "release#0 =not_found votes#0"},
};

TEST_EACH(what_is_found_is_released, reports)
{
    scene("force");
    play_answer_range(CALL_TOKENS, 0, reports[_i].first, VOTE_FREE);
    play_hold_range(CALL_TOKENS, reports[_i].first, reports[_i].end,
                    reports[_i].token);
    if (play_find(CALL_RELEASE, 0) != NULL)
        ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, reports[_i].token);
    scene_more(reports[_i].end_of_it);
}

TEST(nodes_that_are_away_get_the_release_later)
{
    scene("down:01 force");
    find_on(2, 5);
    scene_more("release:..ddd =released close pass:1000000 up:0 pass:1000000");
    ck_assert_int_eq(count_releases(0, WANTED), 1);
}

/* By number, and of all readers. */
TEST(without_a_majority_the_outcome_is_unknown)
{
    scene("down:012 force_all =no_quorum down:34 force =no_quorum");
}

TEST(without_room_for_the_release_no_node_votes)
{
    scene("force stall:01234");
    find_on(0, 3);
    scene_more("=no_quorum");
    ck_assert_int_eq(play_result(scene_op())->votes[4].vote, VOTE_STALLED);
}

/* ---- both forms, several of one lock ------------------------------------- */

/* One of the resources was forced before, and has another holder. */
TEST(a_part_of_a_lock_is_released)
{
    engine_op op = engine_force(play.engine, span_of("a\nb"), 7, NULL);
    play_hold_range(CALL_TOKENS, 0, 3, PLAY_TOKEN_OF(8) " " PLAY_TOKEN_OF(7));
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, PLAY_TOKEN_OF(7));
    play_hold_range(CALL_RELEASE, 0, 3, PLAY_TOKEN_OF(8));
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
}

TEST(another_operators_release_leaves_nothing)
{
    scene("force force");
    find_on(0, 3);
    find_on(0, 3);
    scene_more("release#10 release:ddddd release:fffff "
               "1=released =not_found");
}

/* ---- all readers -------------------------------------------------------- */

static engine_op force_all(void)
{
    return engine_force(play.engine, PLAY_RESOURCE, 0, NULL);
}

static void report(int from, int to, const char *tokens)
{
    for (int i = from; i < to; i++)
        play_answer_tokens(i, tokens, 0);
}

static void answer_releases(int from, int to, int ballot)
{
    for (int i = from; i < to; i++)
        while (play_find(CALL_RELEASE, i) != NULL)
            play_answer(CALL_RELEASE, i, ballot);
}

TEST(all_readers_that_are_found_are_released)
{
    scene("force_all force#5");
    report(0, 4, PLAY_READER_OF(1) " " PLAY_READER_OF(2));
    scene_more("release#0");
    report(4, 5, PLAY_READER_OF(2) " " PLAY_READER_OF(1));
    scene_more("release#10");
    for (int i = 0; i < PLAY_NODES; i++) {
        ck_assert_int_eq(count_releases(i, PLAY_READER_OF(1)), 1);
        ck_assert_int_eq(count_releases(i, PLAY_READER_OF(2)), 1);
    }
    scene_more("release:ddd =pending release:fff =released votes#3 close");
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_FORCE][OUTCOME_RELEASED], 1);
}

static const char *const no_readers[] = {WANTED, "7", "", NULL};

TEST_EACH(a_writers_lock_is_not_that_of_readers, no_readers)
{
    scene("force_all");
    if (no_readers[_i] != NULL)
        report(0, 5, no_readers[_i]);
    scene_more(no_readers[_i] != NULL ? "=not_owner release#0"
                                      : "force:fffff =not_found release#0");
}

/* Its acquire may be under way, or a downgrade has not reached a node. */
TEST_RANGE(story_67_what_a_minority_has_in_any_form_is_released, 0, 2)
{
    scene("force_all");
    report(0, 2, _i == 0 ? PLAY_READER_OF(1) : PLAY_TOKEN_OF(1));
    if (_i == 0)
        scene_more("force:..fff");
    else
        report(2, 4, PLAY_READER_OF(1)), report(4, 5, PLAY_TOKEN_OF(1));
    scene_more("release#5 release:ddfff =released votes#2 close under_way#0");
}

/* Two nodes do not answer: the others are a majority. */
TEST(silent_nodes_are_waited_for_until_the_timeout)
{
    scene("force_all");
    report(0, 3, PLAY_READER_OF(1));
    scene_more("release#0 pass:50000 release#5 release:ddd =released");
}

/* The token that was found is not that of the request, which has none. */
TEST(a_node_whose_admission_is_read_anew_is_sent_no_release_without_token)
{
    engine_op op = force();
    find_on(2, 5);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    play_answer(CALL_RELEASE, 0, VOTE_NOT_ADMITTED);
    ck_assert_ptr_nonnull(play_find(CALL_PROBE, 0));
    play.news[0]++;
    play_answer_probe(0, PROBE_ADMITTED, "", "");
    play_answer_range(CALL_RELEASE, 2, 5, VOTE_DELETED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    play_advance(1000000);
    for (int i = 0; i < play.sent_count; i++)
        if (play.sent[i].call.kind == CALL_RELEASE)
            ck_assert_str_eq(play.sent[i].token, WANTED);
}

/* What comes later is not asked for, though its number may be lower. */
TEST(story_66_only_what_was_found_is_released_again)
{
    engine_op op = force_all();
    report(0, 5, PLAY_READER_OF(5));
    answer_releases(0, 3, VOTE_DELETED);
    answer_releases(3, 5, VOTE_FREE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    engine_close(play.engine, op);
    play_advance(1000000);
    for (int i = 0; i < PLAY_NODES; i++) {
        struct play_call *again = play_find(CALL_RELEASE, i);
        ck_assert(again == NULL ||
                  strcmp(again->token, PLAY_READER_OF(5)) == 0);
        ck_assert_int_eq(again != NULL, i >= 3);
    }
}

TEST(nodes_that_are_away_release_the_same_readers_later)
{
    play_node_down(0);
    engine_op op = force_all();
    report(1, 5, PLAY_READER_OF(1) " " PLAY_READER_OF(2));
    answer_releases(1, 5, VOTE_DELETED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    engine_close(play.engine, op);
    play_advance(1000000);
    answer_releases(1, 5, VOTE_FREE);
    play_node_up(0);
    play_advance(1000000);
    ck_assert_int_eq(count_releases(0, PLAY_READER_OF(1)), 1);
    ck_assert_int_eq(count_releases(0, PLAY_READER_OF(2)), 1);
}

TEST(without_room_for_one_of_the_releases_the_outcome_is_unknown)
{
    scene("force_all");
    report(0, 4, PLAY_READER_OF(1) " " PLAY_READER_OF(2));
    scene_more("stall:012");
    report(4, 5, PLAY_READER_OF(1) " " PLAY_READER_OF(2));
    scene_more("release:...dd release:...dd =no_quorum");
}

/* ---- more than a node reports at a time ---------------------------------- */

/* Late answers to the first releases are no reports. */
TEST(the_inspection_is_repeated_until_no_node_has_more)
{
    scene("force_all");
    report(0, 4, PLAY_READER_OF(1));
    play_answer_tokens(4, PLAY_READER_OF(1), 1);
    scene_more("release#5 release:ddd =pending force#10 release:...dd "
               "force:fff");
    report(3, 4, PLAY_READER_OF(2));
    scene_more("force:....f release#10");
    ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, PLAY_READER_OF(2));
    scene_more("release:fffdf =released");
}

TEST(a_late_answer_to_earlier_releases_is_none_to_later_ones)
{
    scene("force_all");
    report(0, 4, PLAY_READER_OF(1));
    play_answer_tokens(4, PLAY_READER_OF(1), 1);
    scene_more("release:ddd");
    report(0, 5, PLAY_READER_OF(2));
    scene_more("release#10");
    for (int i = 3; i < 5; i++)
        ck_assert_str_eq(play_find(CALL_RELEASE, i)->token, PLAY_READER_OF(1));
    scene_more("release:...dd release:d =pending release:.dd =released");
}

/* The rest has left by itself, or a writer has come. */
static const int rests[] = {VOTE_FREE, VOTE_HELD};

TEST_EACH(an_inspection_that_finds_no_more_ends_it, rests)
{
    scene("force_all");
    for (int i = 0; i < 5; i++)
        play_answer_tokens(i, PLAY_READER_OF(1), 1);
    scene_more("release:ddddd");
    if (rests[_i] == VOTE_FREE)
        scene_more("force:fffff");
    else
        report(0, 5, PLAY_TOKEN_OF(9));
    scene_more("=released votes#3");
}

TEST(readers_who_come_faster_than_that_are_not_followed_forever)
{
    int inspections = 0;
    engine_op op = force_all();
    while (play_outcome(op) == OUTCOME_PENDING && inspections++ < 100) {
        for (int i = 0; i < 5; i++)
            play_answer_tokens(i, PLAY_READER_OF(1), CALL_TOKENS_REPORTED);
        answer_releases(0, 5, VOTE_DELETED);
    }
    ck_assert_int_eq(inspections, 12);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
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

TEST(its_client_may_leave_between_inspection_and_release)
{
    scene("force leave");
    find_on(0, 5);
    scene_more("release#0 force");
    find_on(0, 3);
    scene_more("release#5 leave release:d under_way#0");
}
