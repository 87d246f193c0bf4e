/* SPDX-License-Identifier: MIT */
/*
 * Acquires with an idempotency key that find a lock of theirs.
 */

#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"
#include "../play.h"
#include "letters.h"

#define OWN PLAY_OWN(7) ".me"
#define OTHER_KEY PLAY_TOKEN_OF(7) "+0123456789abcdefghij-A"

SUITE(repeats, .set_up = play_begin, .tear_down = play_end);

/* ---- what repeats ------------------------------------------------------- */

TEST(the_hash_is_part_of_the_token)
{
    struct token_parts parts;
    scene("again acquire:ggg =granted");
    ck_assert(!play_result(scene_op())->is_repeat);
    ck_assert(token_parse(play_result(scene_op())->token, &parts));
    ck_assert(span_is(parts.key_hash, PLAY_KEY));
    ck_assert(span_is(parts.owner, "me"));
}

TEST(a_lock_with_the_same_key_is_had_again)
{
    scene("again");
    char first[TOKEN_MAX + 1];
    strcpy(first, play_find(CALL_ACQUIRE, 4)->token);
    scene_more("acquire:OOO repeat#5");
    const struct play_call *call = play_find(CALL_REPEAT, 0);
    ck_assert_int_eq(call->call.seen, 7);
    ck_assert_int_eq(call->call.ttl_ms, 30000);
    ck_assert_str_ne(call->token, first);
    scene_more("repeat:ggg =granted");
    const struct engine_result *result = play_result(scene_op());
    ck_assert(result->is_repeat);
    ck_assert_int_gt(result->number, 7);
    ck_assert_int_gt(result->validity_ms, 0);
}

TEST(the_lost_attempt_is_undone_before_the_repeat)
{
    scene("again acquire:OOO release?34"); /* they may have granted */
    for (int i = 3; i < PLAY_NODES; i++)
        ck_assert(play_find(CALL_RELEASE, i) < play_find(CALL_REPEAT, i));
}

/* It lives on a minority that was never asked before, or on two of three. */
TEST(free_nodes_count_too)
{
    scene("again acquire:OOggl repeat#5 repeat:ggg");
    ck_assert(play_result(scene_op())->is_repeat);
}

TEST(the_newest_of_its_tokens_may_be_replaced)
{
    scene("again");
    play_hold_range(CALL_ACQUIRE, 0, 2, PLAY_OWN(5));
    scene_more("acquire:..OOg");
    ck_assert_int_eq(play_find(CALL_REPEAT, 0)->call.seen, 7);
}

/* ---- what does not ------------------------------------------------------ */

/* The values on two nodes, and on the other three. */
static const struct {
    const char *two, *three;
} others[] = {
    {OTHER_KEY, OTHER_KEY},
    {PLAY_TOKEN_OF(7), PLAY_TOKEN_OF(7)},
    {"a foreign value", "a foreign value"},
    {OWN, PLAY_TOKEN_OF(7)}, /* a leftover */
};

TEST_EACH(a_lock_with_another_key_is_held, others)
{
    scene("again");
    play_hold_range(CALL_ACQUIRE, 0, 2, others[_i].two);
    play_hold_range(CALL_ACQUIRE, 2, 5, others[_i].three);
    scene_more("repeat#0 =held");
}

/* Of two that are under way together one has the lock; and without a key. */
TEST_RANGE(a_lock_that_was_granted_after_the_question_is_not_repeated, 0, 2)
{
    static char value[TOKEN_MAX + 1];
    unsigned char random[TOKEN_RANDOM_BYTES] = {0};
    const struct token_parts parts = {.number = PLAY_EPOCH_US + play.now_us,
                                      .key_hash = span_of(PLAY_KEY)};
    value[token_make(value, random, &parts)] = '\0';
    engine_op op = _i == 0 ? play_ask_again() : play_acquire();
    play_hold_range(CALL_ACQUIRE, 0, 5, _i == 0 ? value : OWN);
    ck_assert_int_eq(play_count(CALL_REPEAT), 0);
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
}

/* ---- a repeat that fails ------------------------------------------------ */

static engine_op begin_repeat(void)
{
    scene("again acquire:OOOOO repeat#5");
    return scene_op();
}

/* Lost, split, abandoned with its grant or before, or read too late. */
static const struct {
    const char *answers;
    int64_t late_us;
    const char *end;
} fails[] = {
    {"repeat:ggOOO", 0, "=held close"},
    {"repeat:ggFOO", 0, "=held close"},
    {"repeat:ggg", 0, "leave+"},
    {"", 0, "leave"},
    {"repeat:ggg", 30000000, "=validity_exhausted close"},
};

TEST_EACH(a_repeat_that_fails_is_not_undone, fails)
{
    scene("again acquire:OOOOO repeat#5");
    int releases = play_count(CALL_RELEASE);
    scene_more(fails[_i].answers);
    play.now_us += fails[_i].late_us;
    scene_more(fails[_i].end);
    scene_more(textf("repeat#5 release#%d", releases));
}

/* ---- what is undone: what took the place of nothing --------------------- */

static char repeated[TOKEN_MAX + 1];

/* Begins a repeat, and keeps its token. */
static engine_op begin_repeat_on_three(void)
{
    scene("again acquire:OOO");
    strcpy(repeated, play_find(CALL_REPEAT, 0)->token);
    return scene_op();
}

/* The nodes that were asked to delete that token, a bit each. */
static unsigned undone(void)
{
    unsigned nodes = 0;
    for (int i = 0; i < play.sent_count; i++)
        if (play.sent[i].call.kind == CALL_RELEASE &&
            strcmp(play.sent[i].token, repeated) == 0)
            nodes |= 1u << play.sent[i].node;
    return nodes;
}

TEST(a_lost_repeat_is_undone_where_it_replaced_nothing)
{
    (void)begin_repeat_on_three();
    scene_more("repeat:gOOw");
    ck_assert_uint_eq(undone(), 0);
    scene_more("repeat:....O =held");
    ck_assert_uint_eq(undone(), 1u << 3);
    scene_more("close release#3"); /* two of the acquire */
}

/* Its outcome is known before its last votes, of which one may come too late,
 * or its client leaves. */
static const struct {
    const char *ends;
    unsigned undone; /* in the end */
    int answers;
} lasts[] = {
    {"repeat:OOO =held close under_way#0", 3, 1},
    {"repeat:OOO =held close under_way#0 pass:50000", 1, 1},
    {"leave repeat:OOO under_way#0", 3, 0},
};

TEST_EACH(so_it_is_when_the_last_votes_are_known, lasts)
{
    (void)begin_repeat_on_three();
    scene_more("repeat:...w");
    scene_more(lasts[_i].ends);
    ck_assert_uint_eq(undone(), 1u << 3);
    scene_more("repeat:....w");
    ck_assert_uint_eq(undone(), lasts[_i].undone << 3);
    ck_assert_int_eq(play.answers, lasts[_i].answers);
}

TEST(so_it_is_if_its_grant_comes_to_nothing)
{
    (void)begin_repeat_on_three();
    scene_more("repeat:gg.w leave+");
    ck_assert_uint_eq(undone(), 1u << 3);
    scene_more("repeat:..g.w");
    ck_assert_uint_eq(undone(), 3u << 3);
}

TEST(a_repeat_that_is_granted_is_not_undone)
{
    (void)begin_repeat_on_three();
    scene_more("repeat:www =granted close pass:100000");
    ck_assert_uint_eq(undone(), 0);
}

/* What a stale one has set is gone before the next one comes there. */
TEST(a_repeat_that_is_tried_again_is_undone_before)
{
    (void)begin_repeat_on_three();
    int64_t number = play_find(CALL_REPEAT, 0)->call.number;
    letters_answer(CALL_REPEAT, "...w");
    for (int i = 0; i < 3; i++)
        PLAY_REPLY(CALL_REPEAT, i, .vote = VOTE_STALE,
                   .highest = number + 1000);
    ck_assert_int_eq(play_count(CALL_REPEAT), 10);
    ck_assert_uint_eq(undone(), 1u << 3);
    const struct play_call *last = NULL;
    for (int i = 0; i < play.sent_count; i++)
        if (play.sent[i].node == 3 && play.sent[i].call.kind != CALL_PROBE)
            last = &play.sent[i];
    ck_assert_ptr_nonnull(last);
    ck_assert_int_eq(last->call.kind, CALL_REPEAT);
}

/* What a slow one has set on some nodes is its own. */
TEST(a_slow_repeat_is_tried_again_in_its_own_place)
{
    (void)begin_repeat();
    int64_t number = play_find(CALL_REPEAT, 0)->call.number;
    scene_more("pass:50000 repeat#10");
    ck_assert_int_eq(play.sent[play.sent_count - 1].call.seen, number);
    /* the first round counts no more */
    scene_more("repeat:ggggg =pending repeat:ggg =granted");
    ck_assert(play_result(scene_op())->is_repeat);
}

TEST(a_stale_repeat_is_tried_again_with_a_higher_number)
{
    engine_op op = begin_repeat();
    int64_t number = play_find(CALL_REPEAT, 0)->call.number;
    for (int i = 0; i < 5; i++)
        PLAY_REPLY(CALL_REPEAT, i, .vote = VOTE_STALE,
                   .highest = number + 1000);
    ck_assert_int_gt(play_find(CALL_REPEAT, 0)->call.number, number + 1000);
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
    ck_assert(play_result(op)->is_repeat);
}
