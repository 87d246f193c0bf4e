#include <check.h>
#include <string.h>

#include "play.h"

START_TEST(nothing_is_asked_of_nodes_without_admission)
{
    play_node_down(0);
    engine_on_node_up(play.engine, 0,
                      &(struct engine_node_facts){.run_id = PLAY_RUN_ID,
                                                  .node_now_us = PLAY_EPOCH_US,
                                                  .sent_us = play.now_us,
                                                  .received_us = play.now_us});
    engine_op op = play_acquire();
    ck_assert_int_eq(play_count(SCRIPT_ACQUIRE), 4);
    for (int i = 1; i < 4; i++)
        play_answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    ck_assert_int_eq(engine_result(play.engine, op)->votes[0],
                     VOTE_QUARANTINED);
}
END_TEST

START_TEST(a_lost_admission_is_renewed_at_once)
{
    (void)play_acquire();
    play_answer(SCRIPT_ACQUIRE, 0, VOTE_QUARANTINED);
    ck_assert(play_find(SCRIPT_ADMIT, 0) != NULL);
    ck_assert_int_eq(engine_voting(play.engine), 4);
    play_answer(SCRIPT_ADMIT, 0, VOTE_DONE);
    ck_assert_int_eq(engine_voting(play.engine), 5);
}
END_TEST

START_TEST(heartbeats_keep_the_admissions)
{
    play_advance(3000000);
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer(SCRIPT_ADMIT, i, VOTE_DONE);
    ck_assert_int_eq(play_count(SCRIPT_ADMIT), PLAY_NODES);
    play_advance(1200000);
    ck_assert_int_eq(play_count(SCRIPT_ADMIT), 2 * PLAY_NODES);
}
END_TEST

START_TEST(numbers_follow_the_median_of_the_nodes_clocks)
{
    play_node_down(4);
    engine_on_node_up(
        play.engine, 4,
        &(struct engine_node_facts){.run_id = PLAY_RUN_ID,
                                    .node_now_us = PLAY_EPOCH_US + 3600000000,
                                    .sent_us = play.now_us,
                                    .received_us = play.now_us});
    (void)play_acquire();
    ck_assert_int_eq(play_find(SCRIPT_ACQUIRE, 0)->call.number,
                     PLAY_EPOCH_US + play.now_us);
    (void)play_acquire();
    ck_assert_int_eq(play.sent[play.sent_count - 1].call.number,
                     PLAY_EPOCH_US + play.now_us + 1);
}
END_TEST

START_TEST(a_slot_far_ahead_takes_no_other_along)
{
    (void)play_acquire();
    for (int i = 0; i < PLAY_NODES; i++)
        play_reply(play_find(SCRIPT_ACQUIRE, i),
                   (struct script_reply){.vote = VOTE_STALE,
                                         .highest = PLAY_EPOCH_US +
                                                    INT64_C(3600000000)});
    (void)play_acquire();
    ck_assert_int_eq(play.sent[play.sent_count - 1].call.number,
                     PLAY_EPOCH_US + play.now_us + 2);
}
END_TEST

Suite *check_nodes(void);

Suite *check_nodes(void)
{
    Suite *suite = suite_create("nodes");
    TCase *tc = tcase_create("nodes");
    tcase_add_checked_fixture(tc, play_begin, play_end);
    tcase_add_test(tc, nothing_is_asked_of_nodes_without_admission);
    tcase_add_test(tc, a_lost_admission_is_renewed_at_once);
    tcase_add_test(tc, heartbeats_keep_the_admissions);
    tcase_add_test(tc, numbers_follow_the_median_of_the_nodes_clocks);
    tcase_add_test(tc, a_slot_far_ahead_takes_no_other_along);
    suite_add_tcase(suite, tc);
    return suite;
}
