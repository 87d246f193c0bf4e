/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "../../../server/engine/parts.h"
#include "../../lib/suite/suite.h"
#include "../play.h"
#include "letters.h"

SUITE(releases, .set_up = play_begin, .tear_down = play_end);

/* In the middle of a round, or when it is granted. */
static const char *const abandoned[] = {
    "acquire acquire:gA leave release#4 acquire:...g answers#0 under_way#0",
    "acquire acquire:gg leave release#5 acquire:...g answers#0 under_way#0",
    "acquire acquire:ggg leave+ release#5 acquire:...g answers#1 under_way#0",
};

TEST_EACH(story_19_an_abandoned_grant_is_released, abandoned)
{
    scene(abandoned[_i]);
}

TEST(abandoned_between_rounds_needs_no_release)
{
    scene("acquire acquire:ggAAB release#2 leave release#2 pass:400000 "
          "acquire#5");
}

/* It may have set the key, and the old connection still carry the acquire. */
TEST(a_node_out_of_reach_gets_the_release_when_it_is_back)
{
    scene("win down:4 leave+ release#4 release:dddd up:4 release!4 "
          "pass:300000 release:....d owed#0");
}

enum { LONG_US = 2000000000 };

/* One node is away, and its clock is known worse and worse. */
static void be_without_node_4_for_long(void)
{
    play_node_down(4);
    play.now_us += LONG_US;
    for (int i = 0; i < 4; i++)
        play_confirm(i);
}

/* Whether a grant is undone, or a client asks for it. */
TEST_RANGE(a_node_that_is_away_for_long_puts_no_release_off, 0, 2)
{
    be_without_node_4_for_long();
    engine_op op = _i == 0 ? play_win() : 0;
    play_node_down(3); /* it may have set the key */
    if (_i == 0)
        engine_abandon(play.engine, op);
    else
        (void)play_release(span_of(PLAY_TOKEN));
    ck_assert(play_find(CALL_RELEASE, 3) == NULL);
    letters_answer(CALL_RELEASE, "ddd");
    play_node_connect(3);
    play_advance(100000 + 200000);
    ck_assert(play_find(CALL_RELEASE, 3) != NULL);
}

/* However well it is known by now: the acquire's deadline was made then. */
TEST(what_counts_is_the_doubt_when_the_acquire_went_out)
{
    enum { IDLE_US = 90000000, DOUBT_US = IDLE_US / 100 };
    play.now_us += IDLE_US;
    for (int i = 0; i < PLAY_NODES; i++) {
        struct node_facts facts = play_facts(i);
        facts.sent_us -= 2 * DOUBT_US; /* so slow that it tells nothing new */
        engine_on_node_confirmed(play.engine, i, &facts);
    }
    engine_op op = play_acquire();
    play_answer_range(CALL_ACQUIRE, 0, 4, VOTE_GRANTED); /* this does, … */
    play_confirm(4);                                     /* … and this */
    play_node_down(4);
    engine_abandon(play.engine, op);
    play_node_connect(4);
    play_advance(DOUBT_US / 2);
    ck_assert(play_find(CALL_RELEASE, 4) == NULL);
    play_advance(DOUBT_US / 2 + 100000 + 200000);
    ck_assert(play_find(CALL_RELEASE, 4) != NULL);
}

TEST(an_owed_release_ends_with_the_ttl)
{
    scene("win down:4 leave+ release:dddd owed#1 pass:30200000 owed#0 "
          "up:4 pass:1000000 release#4");
}

TEST(release_asks_every_node_and_outlives_its_answer)
{
    scene("release release#5 release:ddd =released close release:...dm owed#1 "
          "pass:700000 release:....d owed#0");
}

TEST(release_without_quorum_is_repeated_behind_the_503)
{
    scene("down:012 release =no_quorum close release:...dd up:0 pass:400000 "
          "release@0");
}

/* Of a lock that may still be set. */
static engine_op release(void)
{
    return play_release(play_token(PLAY_EPOCH_US));
}

/*
 * What the nodes answer to a release, a letter each, at once; how many are
 * asked once more, when no acquire and no replication can come any longer; and
 * what they answer then.
 */
static const struct {
    const char *first;
    int again;
    const char *second;
} askings[] = {
    {"ddddd", 0, ""},
    /* its acquire may still be coming there, or a replication */
    {"ddddf", 1, "....d"},
    {"ddddq", 1, "....f"},
    {"ddddA", 1, "....f"},
    /* without a majority that deleted it, a replication may count on two nodes
       that get the key later, and on one that had it */
    {"ddfff", 5, "fffff"},
};

TEST_EACH(nodes_that_may_get_the_key_later_are_asked_once_more, askings)
{
    bool is_open = askings[_i].again > 0;
    engine_op op = release();
    letters_answer(CALL_RELEASE, askings[_i].first);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    ck_assert_uint_eq(play.metrics.releases_pending, is_open);
    ck_assert(engine_is_releasing(play.engine) == is_open);
    play_advance(50000 - 1); /* so long may its acquire or a replication take */
    ck_assert_int_eq(play_count(CALL_RELEASE), 5);
    play_advance(400000);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5 + askings[_i].again);
    ck_assert(engine_is_releasing(play.engine) == is_open);
    letters_answer(CALL_RELEASE, askings[_i].second);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
    ck_assert(!engine_is_releasing(play.engine));
    play_advance(2000000);
    ck_assert_int_eq(play_count(CALL_RELEASE), 5 + askings[_i].again);
}

/* What counts is when the node probed, not when its reply came. */
static void answer_late(int node, enum vote vote, int64_t probed_us)
{
    struct play_call *late = play_find(CALL_RELEASE, node);
    late->is_answered = true;
    const struct call_reply reply = {.vote = vote,
                                     .node_now_us = PLAY_EPOCH_US + probed_us};
    engine_on_reply(play.engine, node, late->tag, &reply, play.now_us - 900000,
                    play.now_us);
}

TEST(so_does_one_that_probed_in_time_however_late_it_is_told)
{
    int64_t sent_us = play.now_us;
    (void)release();
    play_answer_range(CALL_RELEASE, 0, 4, VOTE_DELETED);
    play_advance(900000);
    answer_late(4, VOTE_FREE, sent_us + 49000);
    play_advance(700000);
    ck_assert_int_eq(play_count(CALL_RELEASE), 6);
    play_answer(CALL_RELEASE, 4, VOTE_FREE);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}

TEST(a_node_that_probed_when_all_was_over_is_not_asked_again)
{
    (void)release();
    play_answer_range(CALL_RELEASE, 0, 4, VOTE_DELETED);
    play_advance(900000);
    answer_late(4, VOTE_FREE, play.now_us - 1000);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}

/* Meanwhile an extend may have found a majority that had it. */
TEST(so_does_one_whose_majority_came_late)
{
    scene("release release:dd =pending pass:50001 =pending pass:50001 "
          "=pending pass:50001 =pending pass:50001 =no_quorum "
          "release:..ddd owed#1 pass:700000 release#10 release:fffff owed#0");
}

/*
 * An extend found the key missing on node 4 after the release had, and then on
 * the others before it: their replication may run for a node timeout.
 */
TEST(all_are_asked_again_a_node_timeout_after_the_last_answer)
{
    scene("release release:....f pass:590000 release#5 release:dddd "
          "pass:49999 release#5 pass:200001 release#10 release:fffff owed#0");
}

/* It was set behind the first answers, so an extend may have counted it. */
TEST(what_is_found_then_is_probed_for_once_more)
{
    scene(
        "release release:ddfff pass:250000 release:ffffd pass:49999 release#10 "
        "pass:200001 release#15 release:fffff owed#0");
}

TEST(a_node_that_left_before_it_was_asked_again_owes_it)
{
    scene("release release:ddddf down:4 pass:250000 release#5 owed#1 "
          "connect:4 pass:250000 release#6 release:....d owed#0");
}

/* This server was stopped, the nodes were not. */
TEST(but_not_if_only_its_answers_were_read_late)
{
    int64_t sent_us = play.now_us;
    (void)release();
    play_advance(900000);
    for (int i = 0; i < PLAY_NODES; i++)
        answer_late(i, VOTE_DELETED, sent_us + 40000);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}

/* A grant that nobody has is extended by nobody. */
TEST(a_release_behind_a_lost_acquire_asks_only_once)
{
    scene("win leave+ release:dddff owed#0");
}

TEST(a_long_name_is_released_as_well)
{
    char name[RESOURCE_MAX];
    memset(name, 'n', sizeof name);
    engine_op op = engine_release(play.engine, (struct span){name, sizeof name},
                                  span_of(PLAY_TOKEN), NULL);
    struct span sent = play_find(CALL_RELEASE, 2)->call.resource;
    ck_assert_uint_eq(sent.len, sizeof name);
    ck_assert(memcmp(sent.ptr, name, sent.len) == 0);
    ck_assert_str_eq(play_find(CALL_RELEASE, 2)->token, PLAY_TOKEN);
    play_answer_range(CALL_RELEASE, 0, PLAY_NODES, VOTE_DELETED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
}

/* The nodes would be asked, and nobody know what they answer. */
TEST(a_release_without_room_is_refused)
{
    play.engine->releases.entries.limit = 0;
    ck_assert_uint_eq(play_release(span_of(PLAY_TOKEN)), 0);
    scene("release#0 under_way#0");
}

TEST(an_abandoned_grant_is_released_without_room_to_remember_it)
{
    scene("win down:4");
    play.engine->releases.entries.limit = 0;
    scene_more("leave+ release#4 release:dddd");
    ck_assert_uint_eq(play.metrics.releases_dropped, 1);
}
