/*
 * Who may vote: states, refusals, what people are told. Quarantines are in
 * check_quarantine.c, configurations in check_epochs.c.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "../../../server/engine/admission.h"
#include "guarded.h"

START_TEST(starts_without_a_vote)
{
    GUARDED_ASSERT_PHASE(0, GUARD_DOWN);
    GUARDED_ASSERT_REFUSAL(0, STATE_UNREACHABLE);
    guarded_expect_nothing();
}
END_TEST

START_TEST(a_node_that_came_up_is_looked_at)
{
    guarded_up(1);
    char admit[CALL_STATE_MAX + 1];
    snprintf(admit, sizeof admit, "1:%s:%s:1%s", GUARDED_FINGERPRINT,
             guarded.guard.witness.node[1].name, &GUARDED_RUN[1]);
    ck_assert_str_eq(guarded.guard.node[1].admit, admit);
    GUARDED_ASSERT_PHASE(1, GUARD_UNSEEN);
    GUARDED_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    guarded_expect(GUARD_LOOK, 1);
    guarded_expect_nothing();
}
END_TEST

START_TEST(votes_once_it_carries_the_admission)
{
    guarded_come(0, LOOK_ADMITTED, GUARDED_ADMIT, "");
    GUARDED_ASSERT_PHASE(0, GUARD_ADMITTED);
    GUARDED_ASSERT_REFUSAL(0, STATE_VOTING);
    guarded_expect_nothing();
}
END_TEST

START_TEST(heartbeats_come_every_second)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    for (int second = 0; second < 3; second++) {
        guarded_pass(GUARDED_SECOND - 1);
        guarded_expect_nothing();
        guarded_pass(1);
        ck_assert_int_eq(guarded_look_around(), GUARDED_NODES);
    }
}
END_TEST

START_TEST(a_vote_that_finds_no_admission_has_it_looked_at_at_once)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_quarantined(&guarded.guard, 2, guarded.now_us);
    GUARDED_ASSERT_REFUSAL(2, STATE_QUARANTINED);
    guarded_expect(GUARD_LOOK, 2);
    guard_on_quarantined(&guarded.guard, 2, guarded.now_us);
    guarded_expect_nothing();
    guarded_found(2, LOOK_FRESH, "", GUARDED_MARK);
    GUARDED_ASSERT_PHASE(2, GUARD_MARKED);
    GUARDED_ASSERT_REFUSAL(2, STATE_QUARANTINED);
    guard_on_quarantined(&guarded.guard, 2, guarded.now_us); /* is known */
    guarded_expect_nothing();
}
END_TEST

START_TEST(a_node_that_went_down_has_no_vote_and_nothing_to_do)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    guarded_down(0);
    GUARDED_ASSERT_REFUSAL(0, STATE_UNREACHABLE);
    guarded_found(0, LOOK_ADMITTED, GUARDED_ADMIT, ""); /* of that connection */
    GUARDED_ASSERT_PHASE(0, GUARD_DOWN);
    guard_on_done(&guarded.guard, &(struct guard_action){GUARD_ADMIT, 0},
                  guarded.now_us);
    guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_LOOK, 0},
                     guarded.now_us);
    GUARDED_ASSERT_PHASE(0, GUARD_DOWN);
    guarded_up(0);
    guarded_expect(GUARD_LOOK, 0);
}
END_TEST

START_TEST(a_look_that_failed_waits_a_second)
{
    guarded_up(0);
    guarded_expect(GUARD_LOOK, 0);
    guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_LOOK, 0},
                     guarded.now_us);
    GUARDED_ASSERT_PHASE(0, GUARD_UNSEEN);
    guarded_pass(GUARDED_SECOND - 1);
    guard_want_look(&guarded.guard, 0, guarded.now_us);
    guarded_expect_nothing();
    guarded_pass(1);
    guarded_expect(GUARD_LOOK, 0);
}
END_TEST

START_TEST(a_failed_heartbeat_takes_no_vote)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_pass(GUARDED_SECOND);
    guarded_expect(GUARD_LOOK, 0);
    guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_LOOK, 0},
                     guarded.now_us);
    GUARDED_ASSERT_REFUSAL(0, STATE_VOTING);
}
END_TEST

/* Whether an ADMIT, READMIT or REVOKE that got no answer was done is open. */
START_TEST(an_action_that_failed_is_looked_at_a_second_later)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_step(&guarded.guard, 3);
    guarded_expect(GUARD_REVOKE, 3);
    guard_on_failure(&guarded.guard, &(struct guard_action){GUARD_REVOKE, 3},
                     guarded.now_us);
    GUARDED_ASSERT_PHASE(3, GUARD_UNSEEN);
    guarded_pass(GUARDED_SECOND - 1);
    guarded_expect_nothing();
    guarded_pass(1);
    for (int i = 0; i < 3; i++)
        guarded_expect(GUARD_LOOK, i); /* the heartbeats */
    guarded_expect(GUARD_LOOK, 3);
    guarded_found(3, LOOK_ADMITTED, GUARDED_ADMIT, ""); /* it was not done */
    guarded_expect(GUARD_REVOKE, 3);
}
END_TEST

static const struct {
    enum call_look_word word;
    const char *admit, *mark;
    bool is_seen;
} sights[] = {
    {LOOK_ADMITTED, GUARDED_ADMIT, "", true},
    {LOOK_CREATED, GUARDED_OLD_ADMIT, GUARDED_MARK, true},
    {LOOK_CREATED, "1:" GUARDED_FINGERPRINT ":0123456789abcdef:r:m",
     GUARDED_MARK, false},
    {LOOK_CREATED, "", GUARDED_MARK, false},
    {LOOK_FOREIGN, "1:ffffffffffffffff:@:r:m", "", false},
    {LOOK_SUPERSEDED, "2:" GUARDED_FINGERPRINT ":@:r:m", "", false},
};

/* Of the node's own, now or in an older life: an admission tells that a first
 * start is none. The first of one that is under way tells nothing yet. */
START_TEST(story_46_who_saw_an_admission_objects_to_a_first_start)
{
    guarded_come(3, sights[_i].word, sights[_i].admit, sights[_i].mark);
    ck_assert(!guard_is_objecting(&guarded.guard, guarded.now_us));
    guarded_pass(HEARTBEAT_US - 1);
    ck_assert(!guard_is_objecting(&guarded.guard, guarded.now_us));
    guarded_pass(1);
    ck_assert(guard_is_objecting(&guarded.guard, guarded.now_us) ==
              sights[_i].is_seen);
    guarded_down(3); /* it stays so */
    guarded_come(3, LOOK_CREATED, "", GUARDED_MARK);
    ck_assert(guard_is_objecting(&guarded.guard, guarded.now_us) ==
              sights[_i].is_seen);
}
END_TEST

START_TEST(with_the_guard_off_nodes_are_admitted_at_sight)
{
    guarded.settings.is_off = true;
    guarded_begin_again();
    ck_assert_int_eq(admission_quarantine_us(&guarded.guard), 0);
    guarded_come(4, LOOK_FRESH, "", GUARDED_MARK);
    guarded_pass(1);
    guarded_give(GUARD_ADMIT, 4);
}
END_TEST

Suite *check_guard(void);

Suite *check_guard(void)
{
    Suite *suite = suite_create("guard");
    TCase *tc = tcase_create("guard");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_test(tc, starts_without_a_vote);
    tcase_add_test(tc, a_node_that_came_up_is_looked_at);
    tcase_add_test(tc, votes_once_it_carries_the_admission);
    tcase_add_test(tc, heartbeats_come_every_second);
    tcase_add_test(tc, a_vote_that_finds_no_admission_has_it_looked_at_at_once);
    tcase_add_test(tc, a_node_that_went_down_has_no_vote_and_nothing_to_do);
    tcase_add_test(tc, a_look_that_failed_waits_a_second);
    tcase_add_test(tc, a_failed_heartbeat_takes_no_vote);
    tcase_add_test(tc, an_action_that_failed_is_looked_at_a_second_later);
    tcase_add_loop_test(tc,
                        story_46_who_saw_an_admission_objects_to_a_first_start,
                        0, (int)(sizeof sights / sizeof *sights));
    tcase_add_test(tc, with_the_guard_off_nodes_are_admitted_at_sight);
    suite_add_tcase(suite, tc);
    return suite;
}
