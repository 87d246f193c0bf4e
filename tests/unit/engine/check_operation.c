/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"
#include "../play.h"
#include "letters.h"

SUITE(operation, .set_up = play_begin, .tear_down = play_end);

/* ---- acquire ------------------------------------------------------------ */

TEST(granted_by_a_majority_at_once)
{
    scene("acquire acquire#5 acquire:g...g answers#0 acquire:..g answers#1 "
          "=granted votes#3");
    const struct engine_result *result = play_result(scene_op());
    ck_assert_int_eq(result->number, PLAY_EPOCH_US + 1000000);
    ck_assert_uint_eq(result->owner.len, 5);
    ck_assert_int_eq(result->validity_ms, 29693);
    scene_more("close release#0 under_way#0");
}

TEST(story_12_stragglers_of_a_won_round_count_nowhere)
{
    scene("win close acquire acquire:...gg =pending acquire:gg =pending");
}

TEST(story_01_every_round_has_a_token_of_its_own)
{
    scene("acquire");
    char first[TOKEN_MAX + 1];
    strcpy(first, play_find(CALL_ACQUIRE, 0)->token);
    scene_more("acquire:ggABF =pending");
    ck_assert_str_eq(play_find(CALL_RELEASE, 0)->token, first);
    play_await_round(10);
    ck_assert_str_ne(play_find(CALL_ACQUIRE, 0)->token, first);
}

/* The last one is silent. */
TEST(story_15_a_lost_round_is_released_where_it_may_have_granted)
{
    scene("acquire acquire:gFFm release#0 pass:50000 release?034");
}

TEST(held_by_one_value_tells_the_holder)
{
    static const char value[] =
        "1795221641865000.00112233445566778899aabbccddeeff01234567.web-9";
    engine_op op = play_acquire();
    play_hold_range(CALL_ACQUIRE, 0, 3, value);
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq(result->outcome, OUTCOME_HELD);
    ck_assert(result->has_holder);
    ck_assert_int_eq(result->number, 1795221641865000);
    ck_assert_int_eq(result->remaining_ms, 5000);
    ck_assert(strncmp(result->owner.ptr, "web-9", result->owner.len) == 0);
    ck_assert_uint_eq(result->token.len, 0);
}

/* Some libraries use a value of its own for each node. */
TEST(held_by_others_values_is_told_at_once)
{
    scene("acquire acquire:gFG =pending acquire:...F =held");
    const struct engine_result *result = play_result(scene_op());
    ck_assert(result->has_holder);
    ck_assert_int_eq(result->number, 0);
    ck_assert_uint_eq(result->owner.len, 0);
    ck_assert_int_eq(result->remaining_ms, 1000);
}

TEST(stale_is_tried_again_at_once_with_a_higher_number)
{
    engine_op op = play_acquire();
    int64_t highest = PLAY_EPOCH_US + play.now_us + 1000000;
    for (int i = 0; i < 3; i++)
        PLAY_REPLY(CALL_ACQUIRE, i, .vote = VOTE_STALE, .highest = highest + i);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 10);
    ck_assert_int_eq(play_find(CALL_ACQUIRE, 0)->call.number, highest + 3);
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert_int_eq(play_result(op)->number, highest + 3);
}

TEST(split_votes_use_up_the_rounds_and_end_as_held)
{
    scene("acquire");
    for (int round = 1; round <= 4; round++) {
        play_await_round(5 * round);
        scene_more("=pending acquire:ggAAB");
    }
    scene_more("=held answers#1");
    ck_assert(!play_result(scene_op())->has_holder);
}

/* An acquire in vain: the outcome, and who may have set the key. */
static const struct {
    const char *votes; /* of each round */
    int rounds;
    const char *end;
    int voting;
} losses[] = {
    {"ooo..", 1, "=no_quorum release#2", 2},
    {"kkk..", 1, "=key_refused release#2", 5}, /* this key's matter only */
    {"gFGF.", 1, "=held release#2", 5},
    {"sssss", 4, "=no_quorum release#8", 5},
};

TEST_EACH(a_lost_acquire_is_told_and_released, losses)
{
    scene("acquire");
    for (int i = 0; i < losses[_i].rounds; i++)
        scene_more(textf("=pending acquire:%s", losses[_i].votes));
    scene_more(losses[_i].end);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 5 * losses[_i].rounds);
    ck_assert_int_eq(engine_voting(play.engine), losses[_i].voting);
}

TEST(unsendable_nodes_are_known_before_the_call_returns)
{
    scene("stall:012 acquire answers#1 =no_quorum");
    ck_assert_int_eq(play_result(scene_op())->votes[0].vote, VOTE_STALLED);
}

TEST(votes_that_come_past_the_validity_win_nothing)
{
    engine_op op = play_acquire_of((struct span){0}, 100);
    play.now_us += 40000; /* within the deadline, but … */
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert_int_eq(engine_take(play.engine, op, 1057000)->validity_ms, 0);
    ck_assert_int_eq(play_outcome(op), OUTCOME_VALIDITY_EXHAUSTED);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    ck_assert_uint_eq(play_result(op)->token.len, 0);
}

TEST(an_outcome_counts_as_it_was_answered)
{
    const uint64_t *counts = play.metrics.outcomes[LOCK_ACQUIRE];
    engine_op ops[3];
    for (int i = 0; i < 3; i++) {
        ops[i] = play_acquire();
        for (int j = 0; j < 3; j++)
            play_answer(CALL_ACQUIRE, j, VOTE_GRANTED);
    }
    ck_assert_int_eq(
        engine_take(play.engine, ops[0], play.now_us + 30000000)->validity_ms,
        0);
    engine_close(play.engine, ops[0]);
    engine_close(play.engine, ops[1]);
    engine_abandon(play.engine, ops[2]); /* nobody was there to be told */
    ck_assert_uint_eq(counts[OUTCOME_VALIDITY_EXHAUSTED], 1);
    ck_assert_uint_eq(counts[OUTCOME_GRANTED], 2);
}

/* What hid a step of a clock for so long is taken off, too. */
TEST(story_49_votes_that_flew_long_win_nothing)
{
    engine_op op = play_acquire_of((struct span){0}, 100);
    play.now_us += 49000; /* 100 - 2 * 49 - 3 */
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_VALIDITY_EXHAUSTED);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
}

/* The majority that came first is enough; who is slower decides nothing. */
TEST(votes_behind_the_majority_cost_no_validity)
{
    engine_op op = play_acquire();
    play.now_us += 1000;
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    play.now_us += 39000;
    play_answer(CALL_ACQUIRE, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_result(op)->validity_ms, 30000 - 40 - 300 - 2 - 5);
}

/* The server was held up: what the nodes said in time is as good as ever, but
 * for what may have become of their clocks meanwhile. */
TEST(replies_that_are_read_late_count_while_the_round_is_open)
{
    engine_op op = play_acquire();
    play.now_us += 90000; /* past the deadline, and no timer has run */
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert_int_eq(play_result(op)->validity_ms, 29518);
}

/* ---- extend ------------------------------------------------------------- */

static engine_op extend(int64_t number)
{
    return play_extend(play_token(number), 30000);
}

static void extend_or_release(bool is_release, struct span token)
{
    (void)(is_release ? play_release(token) : play_extend(token, 30000));
}

/* The API refuses it before: what comes here is a bug. */
TEST_RANGE(story_51_a_text_that_is_no_token_reaches_no_node, 0, 2)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO); /* the assertion's text */
        extend_or_release(_i == 1, span_of("1"));
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    extend_or_release(_i == 1, span_of(PLAY_TOKEN));
    ck_assert_int_eq(play_count(_i == 1 ? CALL_RELEASE : CALL_EXTEND), 5);
}

TEST(extended_by_a_majority_that_had_the_token)
{
    scene("extend extend:eee =extended");
    const struct engine_result *result = play_result(scene_op());
    ck_assert_int_eq(result->number, PLAY_EPOCH_US);
    ck_assert_int_eq(result->ttl_ms, 30000);
    ck_assert_uint_gt(result->token.len, 0);
}

TEST(story_16_a_failed_extend_changes_nothing)
{
    scene("extend extend:eemmm =no_quorum leave release#0");
}

/* The key may have ended since, and another one hold the lock. */
TEST(an_extension_that_is_read_past_its_validity_is_none)
{
    engine_op op = play_extend(play_token(PLAY_EPOCH_US), 100);
    play.now_us += 93000;
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_VALIDITY_EXHAUSTED);
    ck_assert_uint_eq(play_result(op)->token.len, 0);
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
}

/* And told to the holder only. */
TEST_RANGE(held_too_long_is_refused_without_lengthening, 0, 2)
{
    engine_op op = extend(PLAY_EPOCH_US + play.now_us - 71000000);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(play_find(CALL_EXTEND, i)->call.ttl_ms, 0);
    letters_answer(CALL_EXTEND, _i == 0 ? "eee" : "fff");
    letters_answer(CALL_EXTEND, "...ff");
    ck_assert_int_eq(play_outcome(op),
                     _i == 0 ? OUTCOME_MAX_HOLD : OUTCOME_NOT_FOUND);

    (void)extend(PLAY_EPOCH_US + play.now_us - 69000000);
    ck_assert_int_eq(play_find(CALL_EXTEND, 0)->call.ttl_ms, 30000);
}

/* ---- inspect ------------------------------------------------------------ */

TEST(inspect_tells_number_owner_and_remaining_but_no_token)
{
    engine_op op = engine_inspect(play.engine, PLAY_RESOURCE, NULL);
    for (int i = 0; i < 3; i++)
        play_answer_held(
            CALL_INSPECT, i,
            "0000000000000009.00112233445566778899aabbccddeeff01234567"
            ".bob");
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq(result->outcome, OUTCOME_FOUND);
    ck_assert_int_eq(result->number, 9);
    ck_assert_int_eq(result->remaining_ms, 5000);
    ck_assert_uint_eq(result->token.len, 0);
}
