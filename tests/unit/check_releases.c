#include <check.h>
#include <string.h>

#include "../../server/token.h"
#include "play.h"

START_TEST(story_19_an_abandoned_grant_is_released)
{
    engine_op op = play_acquire();
    for (int i = 0; i < 3; i++)
        play_answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    engine_abandon(play.engine, op);
    ck_assert_int_eq(play_count(SCRIPT_RELEASE), 5);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}
END_TEST

START_TEST(abandoned_in_the_middle_of_a_round)
{
    engine_op op = play_acquire();
    play_answer(SCRIPT_ACQUIRE, 0, VOTE_GRANTED);
    play_answer_held(SCRIPT_ACQUIRE, 1, "x");
    engine_abandon(play.engine, op);
    ck_assert_int_eq(play_count(SCRIPT_RELEASE), 4);
    play_answer(SCRIPT_ACQUIRE, 2, VOTE_GRANTED); /* finds nobody */
    ck_assert_int_eq(play.answers, 0);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}
END_TEST

START_TEST(abandoned_between_rounds_needs_no_release)
{
    engine_op op = play_acquire();
    play_split_votes();
    int released = play_count(SCRIPT_RELEASE);
    engine_abandon(play.engine, op);
    ck_assert_int_eq(play_count(SCRIPT_RELEASE), released);
    play_advance(400000);
    ck_assert_int_eq(play_count(SCRIPT_ACQUIRE), 5);
}
END_TEST

START_TEST(a_node_out_of_reach_gets_the_release_when_it_is_back)
{
    engine_op op = play_acquire();
    for (int i = 0; i < 3; i++)
        play_answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    play_node_down(4); /* it may have set the key */
    engine_abandon(play.engine, op);
    ck_assert_int_eq(play_count(SCRIPT_RELEASE), 4);
    for (int i = 0; i < 4; i++)
        play_answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    play_node_up(4);
    ck_assert_msg(play_find(SCRIPT_RELEASE, 4) == NULL,
                  "the old connection may still carry the acquire");
    play_advance(100000 + 200000);
    ck_assert(play_find(SCRIPT_RELEASE, 4) != NULL);
    play_answer(SCRIPT_RELEASE, 4, VOTE_DELETED);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}
END_TEST

START_TEST(an_owed_release_ends_with_the_ttl)
{
    engine_op op = play_acquire();
    for (int i = 0; i < 3; i++)
        play_answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    play_node_down(4);
    engine_abandon(play.engine, op);
    for (int i = 0; i < 4; i++)
        play_answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    ck_assert_uint_eq(play.metrics.releases_pending, 1);
    play_advance(30200000);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
    play.sent_count = 0;
    play_node_up(4);
    play_advance(1000000);
    ck_assert_int_eq(play_count(SCRIPT_RELEASE), 0);
}
END_TEST

START_TEST(release_asks_every_node_and_outlives_its_answer)
{
    engine_op op =
        engine_release(play.engine, PLAY_RESOURCE, span_of("token"), NULL);
    ck_assert_int_eq(play_count(SCRIPT_RELEASE), 5);
    for (int i = 0; i < 3; i++)
        play_answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    engine_close(play.engine, op);
    play_answer(SCRIPT_RELEASE, 3, VOTE_DELETED);
    play_answer(SCRIPT_RELEASE, 4, VOTE_MISCONFIGURED);
    ck_assert_uint_eq(play.metrics.releases_pending, 1);
    play_advance(700000);
    play_answer(SCRIPT_RELEASE, 4, VOTE_DELETED);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}
END_TEST

START_TEST(release_without_quorum_is_repeated_behind_the_503)
{
    for (int i = 0; i < 3; i++)
        play_node_down(i);
    engine_op op =
        engine_release(play.engine, PLAY_RESOURCE, span_of("token"), NULL);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    engine_close(play.engine, op);
    play_node_up(0);
    play_advance(400000);
    ck_assert(play_find(SCRIPT_RELEASE, 0) != NULL);
}
END_TEST

static engine_op release_of(int64_t number)
{
    char token[TOKEN_MAX];
    unsigned char random[TOKEN_RANDOM_BYTES] = {0};
    size_t len = token_make(token, number, random, span_of("me"));
    return engine_release(play.engine, PLAY_RESOURCE, (struct span){token, len},
                          NULL);
}

START_TEST(a_release_that_may_have_overtaken_its_acquire_is_repeated)
{
    engine_op op = release_of(PLAY_EPOCH_US + play.now_us - 20000);
    for (int i = 0; i < 4; i++)
        play_answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    play_answer(SCRIPT_RELEASE, 4, VOTE_FREE); /* the acquire is still coming */
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    play_advance(400000);
    play_answer(SCRIPT_RELEASE, 4, VOTE_DELETED);
    ck_assert_int_eq(play_count(SCRIPT_RELEASE), 6);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}
END_TEST

/* What counts is when the node looked, not when its reply came. */
START_TEST(a_look_before_the_acquires_deadline_is_repeated_however_late_it_came)
{
    int64_t sent_us = play.now_us;
    (void)release_of(PLAY_EPOCH_US + sent_us - 20000);
    for (int i = 0; i < 4; i++)
        play_answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    struct play_call *late = play_find(SCRIPT_RELEASE, 4);
    late->is_answered = true;
    play_advance(100000);
    const struct script_reply reply = {
        .vote = VOTE_FREE, .node_now_us = PLAY_EPOCH_US + sent_us + 1000};
    engine_on_reply(play.engine, 4, late->tag, &reply, sent_us, play.now_us);
    play_advance(700000);
    play_answer(SCRIPT_RELEASE, 4, VOTE_DELETED);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}
END_TEST

START_TEST(a_release_of_an_older_lock_is_not_repeated)
{
    (void)release_of(PLAY_EPOCH_US + play.now_us - 200000);
    for (int i = 0; i < 5; i++)
        play_answer(SCRIPT_RELEASE, i, i < 3 ? VOTE_DELETED : VOTE_FREE);
    ck_assert_uint_eq(play.metrics.releases_pending, 0);
}
END_TEST

START_TEST(a_long_name_is_released_as_well)
{
    char name[RESOURCE_MAX];
    memset(name, 'n', sizeof name);
    engine_op op = engine_release(play.engine, (struct span){name, sizeof name},
                                  span_of("token"), NULL);
    struct span sent = play_find(SCRIPT_RELEASE, 2)->call.resource;
    ck_assert_uint_eq(sent.len, sizeof name);
    ck_assert(memcmp(sent.ptr, name, sent.len) == 0);
    ck_assert_str_eq(play_find(SCRIPT_RELEASE, 2)->token, "token");
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
}
END_TEST

Suite *check_releases(void);

Suite *check_releases(void)
{
    Suite *suite = suite_create("releases");
    TCase *tc = tcase_create("releases");
    tcase_add_checked_fixture(tc, play_begin, play_end);
    tcase_add_test(tc, story_19_an_abandoned_grant_is_released);
    tcase_add_test(tc, abandoned_in_the_middle_of_a_round);
    tcase_add_test(tc, abandoned_between_rounds_needs_no_release);
    tcase_add_test(tc, a_node_out_of_reach_gets_the_release_when_it_is_back);
    tcase_add_test(tc, an_owed_release_ends_with_the_ttl);
    tcase_add_test(tc, release_asks_every_node_and_outlives_its_answer);
    tcase_add_test(tc, release_without_quorum_is_repeated_behind_the_503);
    tcase_add_test(tc,
                   a_release_that_may_have_overtaken_its_acquire_is_repeated);
    tcase_add_test(
        tc,
        a_look_before_the_acquires_deadline_is_repeated_however_late_it_came);
    tcase_add_test(tc, a_release_of_an_older_lock_is_not_repeated);
    tcase_add_test(tc, a_long_name_is_released_as_well);
    suite_add_tcase(suite, tc);
    return suite;
}
