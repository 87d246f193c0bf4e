/* SPDX-License-Identifier: MIT */
/*
 * Shared locks in the engine: their tokens, what is known of their holders, how
 * an exclusive lock becomes one, and who waits for whom.
 */

#include <string.h>

#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"
#include "letters.h"
#include "waiting.h"

enum { FILL_US = 100000 };

static void begin(void)
{
    struct engine_settings settings = play_settings;
    settings.ask = ASK_QUORUM;
    play_begin_with(&settings);
    play_nodes_up();
    play.sent_count = 0;
}

SUITE(shared, .set_up = begin, .tear_down = play_end);

static engine_op ask(bool is_shared, int64_t wait_ms)
{
    const struct engine_acquire acquire = {.resource = PLAY_RESOURCE,
                                           .ttl_ms = 30000,
                                           .wait_ms = wait_ms,
                                           .is_shared = is_shared};
    return engine_acquire(play.engine, &acquire, NULL);
}

static void answer_shared(enum call_kind kind, int node, int64_t holders)
{
    PLAY_REPLY(kind, node, .vote = VOTE_HELD, .pttl_ms = 1000 * holders,
               .holders = holders);
}

static void copy_token(engine_op op, char token[TOKEN_MAX + 1])
{
    token[span_copy(token, play_result(op)->token)] = '\0';
}

/* ---- tokens ------------------------------------------------------------- */

TEST(the_token_of_a_shared_lock_tells_its_mode)
{
    engine_op op = ask(true, 0);
    ck_assert(token_is_shared(span_of(play_find(CALL_ACQUIRE, 0)->token)));
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert(play_result(op)->is_shared);
    ck_assert(token_is_ours(play_result(op)->token));
    op = ask(false, 0);
    ck_assert(!token_is_shared(span_of(play_find(CALL_ACQUIRE, 0)->token)));
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert(!play_result(op)->is_shared);
}

TEST(a_downgrade_gives_it_the_shared_form)
{
    char token[TOKEN_MAX + 1];
    engine_op op = play_win();
    copy_token(op, token);
    engine_close(play.engine, op);
    op = engine_extend(play.engine, PLAY_RESOURCE, span_of(token), 30000, true,
                       NULL);
    /* the nodes that had not been asked get it first, as it was */
    ck_assert_str_eq(play_find(CALL_ACQUIRE, 4)->token, token);
    token_share(token);
    ck_assert_str_eq(play_find(CALL_EXTEND, 4)->token, token);
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    ck_assert(span_is(play_result(op)->token, token));
    ck_assert(play_result(op)->is_shared);
}

TEST(no_fill_follows_the_release_of_a_downgraded_lock)
{
    char token[TOKEN_MAX + 1];
    engine_op op = play_win();
    copy_token(op, token);
    engine_close(play.engine, op);
    token_share(token);
    (void)play_release(span_of(token));
    play.sent_count = 0;
    play_advance(2 * FILL_US);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 0);
}

/* A majority has let it in: the other nodes need not count. */
TEST(a_fill_has_no_limit)
{
    engine_op op = ask(true, 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(play_find(CALL_ACQUIRE, i)->call.readers_max,
                         play_settings.readers_max);
        play_answer(CALL_ACQUIRE, i, VOTE_GRANTED);
    }
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    engine_close(play.engine, op);
    play_advance(2 * FILL_US);
    ck_assert(play_find(CALL_ACQUIRE, 4) != NULL);
    ck_assert_int_ge(play_find(CALL_ACQUIRE, 4)->call.readers_max, READERS_MAX);
}

/* ---- holders ------------------------------------------------------------ */

TEST(its_holders_are_as_many_as_one_node_counts)
{
    engine_op op = engine_inspect(play.engine, PLAY_RESOURCE, NULL);
    static const int64_t holders[] = {1, 7, 3, 5, 2};
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_INSPECT, i) != NULL)
            answer_shared(CALL_INSPECT, i, holders[i]);
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq((int)result->outcome, OUTCOME_FOUND);
    ck_assert(result->is_shared);
    ck_assert_int_eq(result->holders, 7); /* of the first three */
    ck_assert_int_eq(result->remaining_ms, 1000);
    ck_assert_int_eq(result->number, 0);
}

TEST(readers_keep_a_writer_out)
{
    engine_op op = ask(false, 0);
    for (int i = 0; i < 3; i++)
        answer_shared(CALL_ACQUIRE, i, 2);
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    ck_assert_int_eq(play_result(op)->holders, 2);
    ck_assert_int_eq(play_result(op)->remaining_ms, 2000);
}

/* Both have no value of ours: the votes are split, and it tries again. */
TEST(readers_are_no_foreign_value)
{
    scene("acquire acquire:hhXX =pending acquire:....g =pending");
}

/* ---- repeats ------------------------------------------------------------ */

TEST(with_a_key_each_attempt_may_replace_an_earlier_lock)
{
    scene("read_again repeat@0");
    const struct call *call = &play_find(CALL_REPEAT, 0)->call;
    ck_assert_int_gt(call->seen, 0);
    ck_assert_int_lt(call->seen, call->number);
    scene_more("repeat:www =granted");
    ck_assert(!play_result(scene_op())->is_repeat);
}

/* By the attempt that wins, or by one that was lost before. */
static const char *const replacing[] = {
    "read_again =pending repeat:gww =granted",
    "read_again repeat:glll =pending repeat:www =granted",
};

TEST_EACH(it_is_a_repeat_if_one_was_replaced, replacing)
{
    scene(replacing[_i]);
    ck_assert(play_result(scene_op())->is_repeat);
}

/* Its first number is below that of a writer whom some nodes have seen, and two
 * nodes answer late. */
TEST(what_its_own_lost_attempt_left_is_no_earlier_lock)
{
    scene("read_again repeat:sss =pending repeat:...ww repeat:...gg =pending "
          "repeat:w =granted");
    ck_assert(!play_result(scene_op())->is_repeat);
}

static void copy_sent(char token[TOKEN_MAX])
{
    const struct play_call *sent = play_find(CALL_REPEAT, 0);
    ck_assert(sent != NULL);
    (void)span_copy(token, sent->call.token);
}

/* By this, nodes tell them from those of another request with its key. */
TEST_RANGE(the_tries_of_a_reader_begin_alike, 0, 2)
{
    enum { BEGIN = TOKEN_NUMBER_LEN + 1, HALF = 2 * TOKEN_NONCE_BYTES };
    char one[TOKEN_MAX], two[TOKEN_MAX];
    (void)letters_read_again(_i == 0 ? 0 : WAITING_MS);
    copy_sent(one);
    for (int i = 0; i < PLAY_NODES; i++)
        PLAY_REPLY(CALL_REPEAT, i, .vote = VOTE_STALE, .highest = play.now_us);
    play_advance(1000000);
    copy_sent(two);
    ck_assert_mem_ne(one, two, BEGIN);
    ck_assert_mem_eq(one + BEGIN, two + BEGIN, HALF);
    ck_assert_mem_ne(one + BEGIN + HALF, two + BEGIN + HALF, HALF);
}

/* ---- two with one key ---------------------------------------------------- */

/* The first so many nodes have the reader with its key that has this number;
 * the others let it in. */
static void answer_other(int64_t number, int nodes)
{
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_REPEAT, i) == NULL)
            continue; /* its clock is not the others' */
        else if (i < nodes)
            PLAY_REPLY(CALL_REPEAT, i, .vote = VOTE_HELD, .pttl_ms = 1000,
                       .holders = 1, .highest = number);
        else
            PLAY_REPLY(CALL_REPEAT, i, .vote = VOTE_GRANTED, .was_free = true);
}

/* Its client may be working under that one, whichever was first. */
TEST_RANGE(a_repeat_that_does_not_wait_leaves_another_alone, 0, 4)
{
    static const int64_t later_us[] = {1, -1, 200000, 200000000};
    engine_op op = letters_read_again(0);
    answer_other(play_find(CALL_REPEAT, 0)->call.number + later_us[_i], 3);
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    ck_assert(play_result(op)->is_shared);
    engine_close(play.engine, op);
    play_advance(2000000);
    ck_assert_int_eq(play_count(CALL_REPEAT), PLAY_NODES);
    ck_assert_int_eq(play_count(CALL_RELEASE), 2); /* what it has set */
}

/* It has no majority, but keeps this one from it. */
TEST(a_repeat_whose_votes_are_split_with_another_tries_again)
{
    engine_op op = letters_read_again(0);
    int64_t number = play_find(CALL_REPEAT, 0)->call.number;
    play_answer(CALL_REPEAT, 4, VOTE_OUT_OF_RANGE);
    for (int i = 0; i < 4; i++)
        if (i < 2)
            PLAY_REPLY(CALL_REPEAT, i, .vote = VOTE_HELD, .pttl_ms = 1000,
                       .holders = 1, .highest = number - 1);
        else
            PLAY_REPLY(CALL_REPEAT, i, .vote = VOTE_GRANTED, .was_free = true);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    for (int ms = 0; ms < 1000 && play_find(CALL_REPEAT, 0) == NULL; ms++)
        play_advance(1000);
    const struct play_call *sent = play_find(CALL_REPEAT, 0);
    ck_assert(sent != NULL);
    ck_assert_int_lt(sent->call.seen, number);
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

/* When it came, no clock was known. */
TEST(a_reader_that_waited_for_the_nodes_replaces_its_earlier_lock)
{
    play_begin_again(&play_settings);
    engine_op reader = letters_read_again(WAITING_MS);
    play_advance(1000);
    int64_t came_us = play.now_us;
    play_nodes_up();
    play_advance(1000000);
    const struct play_call *sent = play_find(CALL_REPEAT, 0);
    ck_assert(sent != NULL);
    ck_assert_int_gt(sent->call.seen, 0);
    ck_assert_int_le(sent->call.number - sent->call.seen,
                     play.now_us - came_us + 1000000);
    waiting_check(reader);
}

/* ---- waiting ------------------------------------------------------------ */

/* All nodes are asked. */
GROUP(waiting, .set_up = play_begin, .tear_down = play_end);

TEST(readers_that_stand_together_get_in_together)
{
    engine_op writer = ask(false, WAITING_MS);
    waiting_grant();
    char token[TOKEN_MAX + 1];
    copy_token(writer, token);
    engine_close(play.engine, writer);
    engine_op readers[] = {ask(true, WAITING_MS), ask(true, WAITING_MS)};
    engine_op next = ask(false, WAITING_MS), late = ask(true, WAITING_MS);
    (void)play_release(span_of(token));
    waiting_grant();
    ck_assert_int_eq(play_outcome(readers[0]), OUTCOME_GRANTED);
    waiting_grant(); /* it was asked for at once */
    ck_assert_int_eq(play_outcome(readers[1]), OUTCOME_GRANTED);
    int attempts = waiting_attempts();
    play_advance(1000);
    ck_assert_int_eq(waiting_attempts(), attempts);
    waiting_check(next);
    waiting_check(late); /* it came after the writer */
}

TEST(no_reader_overtakes_a_writer_that_waits)
{
    engine_op writer = ask(false, WAITING_MS);
    waiting_find_held();
    scene("acquire#5 read pass:2000 acquire#5 =held");
    waiting_check(writer);
}

/* All nodes answer the writer's attempt, if there is one. */
static void keep_writer_out(void)
{
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_ACQUIRE, i) != NULL)
            answer_shared(CALL_ACQUIRE, i, 2);
}

/* Its own earlier lock shows nowhere among those that keep the writer out. */
TEST(a_reader_that_waited_behind_a_writer_replaces_its_earlier_lock)
{
    engine_op writer = ask(false, 1000);
    engine_op reader = letters_read_again(WAITING_MS);
    int64_t asked_us = play_find(CALL_ACQUIRE, 0)->call.number;
    for (int ms = 0; ms < 1200; ms += 10) {
        keep_writer_out();
        play_advance(10000);
    }
    ck_assert_int_eq(play_outcome(writer), OUTCOME_HELD);
    ck_assert_int_gt(waiting_attempts(), 1);
    const struct play_call *sent = play_find(CALL_REPEAT, 0);
    ck_assert(sent != NULL);
    ck_assert_int_ge(sent->call.seen, asked_us);
    waiting_check(reader);
}

TEST(a_reader_that_waited_behind_another_replaces_its_earlier_lock)
{
    engine_op first = ask(true, WAITING_MS);
    engine_op second = letters_read_again(WAITING_MS);
    waiting_find_held();
    ck_assert_int_eq(play_find(CALL_REPEAT, 0)->call.readers_max, 0);
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer_held(CALL_REPEAT, i, WAITING_OTHERS);
    play_await_round(2 * PLAY_NODES);
    waiting_grant();
    ck_assert_int_eq(play_outcome(first), OUTCOME_GRANTED);
    ck_assert(play_find(CALL_REPEAT, 0) != NULL);
    ck_assert_int_eq(play_find(CALL_REPEAT, 0)->call.readers_max,
                     play_settings.readers_max);
    waiting_check(second);
}

/* It is in already: it need not wait until the writer was in. */
TEST_RANGE(a_reader_repeats_before_a_writer_that_waits, 0, 2)
{
    engine_op writer = ask(false, WAITING_MS);
    keep_writer_out();
    engine_op reader = letters_read_again(_i == 0 ? 0 : WAITING_MS);
    for (int i = 0; i < PLAY_NODES; i++) {
        ck_assert(play_find(CALL_REPEAT, i) != NULL);
        ck_assert_int_eq(play_find(CALL_REPEAT, i)->call.readers_max, 0);
        play_answer(CALL_REPEAT, i, VOTE_GRANTED);
    }
    ck_assert_int_eq(play_outcome(reader), OUTCOME_GRANTED);
    ck_assert(play_result(reader)->is_repeat);
    waiting_check(writer);
}

/* Another one asks in vain, and then waits behind the writer. */
TEST_RANGE(a_reader_that_is_not_in_stays_behind_a_writer, 0, 2)
{
    engine_op writer = ask(false, WAITING_MS);
    keep_writer_out();
    engine_op reader = letters_read_again(_i == 0 ? 0 : WAITING_MS);
    for (int i = 0; i < PLAY_NODES; i++)
        answer_shared(CALL_REPEAT, i, 1);
    if (_i == 0)
        ck_assert_int_eq(play_outcome(reader), OUTCOME_HELD);
    else
        waiting_check(reader);
    int repeats = play_count(CALL_REPEAT);
    for (int ms = 0; ms < 1200; ms += 10) {
        keep_writer_out();
        play_advance(10000);
    }
    ck_assert_int_eq(play_count(CALL_REPEAT), repeats);
    waiting_check(writer);
}

/* Too few told whether it is in: it asks once more. */
TEST(a_reader_that_got_no_quorum_asks_again_before_a_writer)
{
    engine_op writer = ask(false, WAITING_MS);
    keep_writer_out();
    engine_op reader = letters_read_again(WAITING_MS);
    int repeats = play_count(CALL_REPEAT);
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer(CALL_REPEAT, i, VOTE_OUT_OF_RANGE);
    for (int ms = 0; ms < 2000 && play_count(CALL_REPEAT) == repeats;
         ms += 10) {
        keep_writer_out();
        play_advance(10000);
    }
    ck_assert_int_gt(play_count(CALL_REPEAT), repeats);
    waiting_check(writer);
    waiting_check(reader);
}

/* ---- two with one key, which wait ---------------------------------------- */

/* Until it tries to replace the one with this number, on so many nodes, or for
 * that long: returns after how many ms. */
static int ms_until_it_replaces(int64_t number, int nodes, int most_ms)
{
    for (int ms = 0; ms < most_ms; ms += 10) {
        const struct play_call *sent = play_find(CALL_REPEAT, 0);
        if (sent != NULL && sent->call.seen >= number) {
            ck_assert_int_eq(sent->call.seen, number);
            ck_assert_int_gt(sent->call.number, number);
            return ms;
        }
        if (sent != NULL)
            answer_other(number, nodes);
        play_advance(10000);
    }
    return most_ms;
}

/* Clocks differ, so it may be the lock of an earlier request whose answer was
 * lost: its client would ask again. */
TEST_RANGE(a_repeat_that_waits_replaces_what_may_be_earlier_after_a_while, 0, 4)
{
    static const int64_t later_us[] = {1, -1, 50000, 1};
    engine_op op = letters_read_again(WAITING_MS);
    int64_t asked_us = play_find(CALL_REPEAT, 0)->call.number;
    if (_i == 3) { /* behind others that wait */
        for (int i = 0; i < PLAY_NODES; i++)
            play_answer_held(CALL_REPEAT, i, WAITING_OTHERS);
        engine_abandon(play.engine, op);
        (void)ask(false, WAITING_MS);
        keep_writer_out();
        op = letters_read_again(WAITING_MS);
        asked_us = play_find(CALL_REPEAT, 0)->call.number;
    }
    int ms = ms_until_it_replaces(asked_us + later_us[_i], 3, 2000);
    ck_assert_int_ge(ms, 490);
    ck_assert_int_le(ms, 600);
    for (int i = 0; i < 3; i++)
        PLAY_REPLY(CALL_REPEAT, i, .vote = VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert(play_result(op)->is_repeat);
}

/* Its number is above that one's all the same: nodes accept no lower one. */
TEST(a_repeat_replaces_what_is_ahead_of_its_clocks)
{
    play_begin_again(&play_settings);
    play.offset_us[3] = play.offset_us[4] = 900000;
    play_nodes_up();
    engine_op op = letters_read_again(WAITING_MS);
    int64_t ahead = play_find(CALL_REPEAT, 0)->call.number + 900000;
    int ms = ms_until_it_replaces(ahead, 3, 2000);
    ck_assert_int_ge(ms, 490);
    ck_assert_int_le(ms, 600);
    waiting_check(op);
}

TEST(a_repeat_that_waits_leaves_what_is_later)
{
    engine_op op = letters_read_again(WAITING_MS);
    int64_t later = play_find(CALL_REPEAT, 0)->call.number + 1000000;
    ck_assert_int_eq(ms_until_it_replaces(later, 3, 3000), 3000);
    waiting_check(op);
    while (play_find(CALL_REPEAT, 0) == NULL) /* until that is released */
        play_advance(10000);
    answer_other(0, 0);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert(!play_result(op)->is_repeat);
}
