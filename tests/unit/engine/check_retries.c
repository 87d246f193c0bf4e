/* SPDX-License-Identifier: MIT */
/*
 * Rounds that were lost to time alone, and what is done about them.
 */

#include "../../lib/suite/suite.h"
#include "../play.h"
#include "letters.h"

enum { TIMEOUT_US = 50000, ROUNDS = 4 };

SUITE(retries, .set_up = play_begin, .tear_down = play_end);

/* ---- acquire ------------------------------------------------------------ */

TEST(silence_is_tried_again_at_once)
{
    scene("acquire");
    char first[TOKEN_MAX + 1];
    strcpy(first, play_find(CALL_ACQUIRE, 0)->token);
    scene_more("pass:50000 =pending acquire#10 release#5");
    ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, first);
    scene_more("acquire:ggggg =pending"); /* of the first round */
    ck_assert_str_ne(play_find(CALL_ACQUIRE, 0)->token, first);
    scene_more("acquire:..ggg =granted");
    ck_assert_int_eq(play_result(scene_op())->validity_ms, 29693);
}

/* Otherwise nodes that accepted the one before would refuse it. */
TEST(each_round_has_a_higher_number_than_the_one_before)
{
    int64_t number = PLAY_EPOCH_US + play.now_us + 1000000;
    (void)play_acquire();
    for (int i = 0; i < PLAY_NODES; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_STALE, .highest = number);
    for (int round = 3; round <= ROUNDS; round++) {
        int64_t last = play_find(CALL_ACQUIRE, 0)->call.number;
        ck_assert_int_gt(last, number);
        number = last;
        play_split_votes();
        play_await_round(round * PLAY_NODES);
    }
    ck_assert_int_gt(play_find(CALL_ACQUIRE, 0)->call.number, number);
}

/* Of a batch: others wait for its outcome. */
TEST(what_is_tried_once_does_not_pause)
{
    const struct engine_acquire acquire = {.resource = PLAY_RESOURCE,
                                           .owner = span_of("web-3"),
                                           .ttl_ms = 30000,
                                           .is_tried_once = true};
    engine_op op = engine_acquire(play.engine, &acquire, NULL);
    scene("acquire:ggAAB acquire#5");
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    engine_close(play.engine, op);
    /* a number that is too low costs no pause */
    op = engine_acquire(play.engine, &acquire, NULL);
    scene("acquire:sssss acquire:ggg");
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    engine_close(play.engine, op);
}

/* A client that has given an acquire up asks with its key. HELD tells it that
 * it has nothing to release. */
static const struct {
    const char *votes;
    enum outcome outcome;
} own[] = {
    {"acquire:OOuAB", OUTCOME_NO_QUORUM}, /* its lock may be on three */
    {"acquire:OuuAB", OUTCOME_NO_QUORUM},
    {"acquire:OOAAB", OUTCOME_HELD}, /* a leftover */
    {"acquire:OugAB", OUTCOME_HELD},
    {"acquire:guAAB", OUTCOME_HELD},
};

TEST_EACH(split_votes_do_not_hide_an_own_lock, own)
{
    const struct engine_acquire acquire = {.resource = PLAY_RESOURCE,
                                           .key_hash = span_of(PLAY_KEY),
                                           .ttl_ms = 30000,
                                           .is_tried_once = true};
    engine_op op = engine_acquire(play.engine, &acquire, NULL);
    scene(own[_i].votes);
    ck_assert_int_eq(play_outcome(op), own[_i].outcome);
    engine_close(play.engine, op);
}

/* And how many releases follow. */
static const struct {
    const char *ask;
    int releases;
} calls[] = {{"acquire", ROUNDS * 5}, {"extend", 0}, {"inspect", 0}};

TEST_EACH(silence_uses_up_the_rounds, calls)
{
    scene(calls[_i].ask);
    for (int round = 1; round <= ROUNDS; round++)
        scene_more(textf("=pending %s#%d pass:49999 =pending pass:1",
                         calls[_i].ask, round * 5));
    scene_more(textf("=no_quorum %s#%d release#%d", calls[_i].ask, ROUNDS * 5,
                     calls[_i].releases));
}

/* Calls that were not sent before the server was held up. Two nodes may have
 * granted. */
TEST(late_calls_are_tried_again_at_once)
{
    scene("acquire acquire:..lll =pending acquire#10 release#2 acquire:..ggg "
          "=granted");
}

TEST(silence_after_a_split_is_no_holder)
{
    scene("acquire acquire:ggAAB");
    play_await_round(10);
    scene_more("pass:150000 =no_quorum");
}

/* Nothing would be left of a lock that is granted later. */
TEST(a_round_lasts_no_longer_than_the_ttl)
{
    struct engine_settings settings = play_settings;
    settings.node_timeout_us = 1000000;
    settings.retry_count = 0;
    play_begin_again(&settings);
    play_nodes_up();
    engine_op op = play_acquire_of((struct span){0}, 100);
    ck_assert_int_lt(play_find(CALL_ACQUIRE, 0)->call.node_deadline_us,
                     PLAY_EPOCH_US + play.now_us + 101000);
    play_advance(99999);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    play_advance(1);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

/* ---- extend ------------------------------------------------------------- */

/* Answers to the first round count no more. */
TEST(an_extension_lost_to_time_is_tried_again)
{
    scene("extend extend:el pass:50000 =pending extend#10 extend:ee "
          "extend:..eee =pending extend:..e =extended release#0");
}

/* ---- release ------------------------------------------------------------ */

/* It is right however late it runs: the first one is waited for. */
TEST(a_release_is_waited_for_as_long_as_others_try)
{
    scene("release release:d pass:199999 release:.f =pending release:..f "
          "=released "
          "release#5 release pass:199999 =pending pass:1 =no_quorum");
}

/* The server is held up for longer than all rounds, and had not sent it. */
TEST(a_release_is_waited_for_behind_a_stall)
{
    scene("release");
    play.now_us += 10 * TIMEOUT_US;
    scene_more("pass:0 =pending pass:49999 release:..ddd =released");
}
