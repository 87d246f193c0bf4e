/* SPDX-License-Identifier: MIT */
/*
 * What a client is told when too few nodes voted, or refused the key.
 */
#include "../../lib/suite/suite.h"
#include "ask.h"

static const int64_t retry_most_ms[LOCK_CALLS] = {
    [LOCK_ACQUIRE] = 1000, [LOCK_EXTEND] = 300, [LOCK_RELEASE] = 1000,
    [LOCK_INSPECT] = 1000, [LOCK_FORCE] = 1000,
};

SUITE(locks_quorum, .set_up = ask_begin, .tear_down = ask_end);

TEST_RANGE(without_a_quorum_each_vote_is_told, 0, LOCK_CALLS)
{
    ask_call_and_vote(_i, UNFIT(READ_ONLY));
    ask_expect_failed(503, "no_quorum", retry_most_ms[_i]);
    ck_assert_uint_eq(json_array_size(ask_member("nodes")), PLAY_NODES);
    for (int i = 0; i < PLAY_NODES; i++) {
        ck_assert_str_eq(ask_text(textf("nodes.%d.node", i)),
                         play_settings.node_names[i]);
        ck_assert_str_eq(ask_text(textf("nodes.%d.vote", i)),
                         i < 3 ? "read_only" : "pending");
    }
}

TEST(nodes_that_answered_are_not_missing)
{
    ck_assert(!ask_call(LOCK_ACQUIRE));
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    play_answer_held(CALL_ACQUIRE, 1, "theirs");
    play_answer_range(CALL_ACQUIRE, 2, 5, UNFIT(LOADING));
    ask_expect_now(503, "no_quorum");
    ask_expect_detail("3 of 5 nodes");
}

static int asked_in_quarantine;

static void look(void)
{
    int call = asked_in_quarantine;
    ask_anew();
    ck_assert(!ask_call(call));
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(ask_kinds[call], i) != NULL)
            play_answer(ask_kinds[call], i, UNFIT(QUARANTINED));
    ask_answer(play.now_us);
}

TEST_RANGE(when_a_quorum_is_expected_is_told, LOCK_ACQUIRE, LOCK_EXTEND + 1)
{
    asked_in_quarantine = _i;
    ask_expect_countdown(look);
}

/* Nothing is to be tried again: the release goes on by itself. */
TEST(a_release_is_not_told_when_a_quorum_is_expected)
{
    ask_quarantine();
    ask_anew();
    (void)ask_call(LOCK_RELEASE);
    play_advance(1000000);
    ask_expect_now(503, "no_quorum");
    ck_assert_lacks(ask_text("detail"), "expected");
}

/* Numbers of clocks that were ahead are not reached yet. */
TEST(a_bar_is_told_with_its_end)
{
    int64_t highest = PLAY_EPOCH_US + play.now_us + 60000000;
    ck_assert(!ask_call(LOCK_ACQUIRE));
    for (int i = 0; i < 20 && play_find(CALL_ACQUIRE, i % 5) != NULL; i++)
        PLAY_REPLY(CALL_ACQUIRE, i % 5, .vote = VOTE_STALE, .highest = highest);
    ask_expect_now(503, "no_quorum");
    ask_expect_detail("in 59 s");
}

TEST_RANGE(a_refused_key_is_told_with_the_votes, 0, LOCK_CALLS)
{
    ask_call_and_vote(_i, VOTE_KEY_REFUSED);
    ask_expect_failed(403, "key_refused", 0);
    ck_assert_uint_eq(json_array_size(ask_member("nodes")), PLAY_NODES);
}
