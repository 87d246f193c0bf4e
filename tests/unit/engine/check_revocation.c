/*
 * How a node loses its vote: its durability was switched off, its clock
 * stepped.
 */
#include <check.h>

#include "../../../server/engine/admission.h"
#include "guarded.h"

START_TEST(story_44_durability_that_was_turned_off_is_written_down_at_once)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_durable(&guarded.guard, 3, true, guarded.now_us);
    guarded_expect_nothing();
    guard_on_durable(&guarded.guard, 3, false, guarded.now_us);
    guarded_expect(GUARD_LOOK, 3);
    ck_assert(!guarded.guard.node[3].is_durable);
    guarded_found(3, LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_durable(&guarded.guard, 3, false, guarded.now_us);
    guarded_expect_nothing();
}
END_TEST

START_TEST(story_11_a_node_whose_clock_stepped_loses_its_vote)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_step(&guarded.guard, 1);
    GUARDED_ASSERT_REFUSAL(1, STATE_STEPPED);
    guarded_do(GUARD_REVOKE, 1);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    GUARDED_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    ck_assert_int_eq(admission_remaining_us(&guarded.guard, 1, guarded.now_us),
                     GUARDED_QUARANTINE_US);
}
END_TEST

START_TEST(a_step_seen_on_a_lost_connection_takes_the_vote_after_it)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_down(1);
    guard_on_step(&guarded.guard, 1);
    guarded_pass(1);
    (void)guarded_look_around();
    guarded_come(1, LOOK_ADMITTED, GUARDED_ADMIT, "");
    guarded_expect(GUARD_REVOKE, 1);
}
END_TEST

/* Somebody else admitted it meanwhile, so that our own attempt did nothing. */
START_TEST(a_step_is_not_forgotten_over_an_admission_that_was_too_late)
{
    guarded_come(0, LOOK_FRESH, "", GUARDED_MARK);
    guarded_pass(GUARDED_QUARANTINE_US);
    (void)guarded_look_around();
    guarded_expect(GUARD_ADMIT, 0);
    guard_on_step(&guarded.guard, 0);
    guard_on_done(&guarded.guard, &(struct guard_action){GUARD_ADMIT, 0},
                  guarded.now_us);
    guarded_expect(GUARD_LOOK, 0);
    guarded_found(0, LOOK_ADMITTED, GUARDED_ADMIT, "");
    GUARDED_ASSERT_REFUSAL(0, STATE_STEPPED);
    guarded_expect(GUARD_REVOKE, 0);
}
END_TEST

/* S1 revoked, S2 has revoked before. */
START_TEST(a_revocation_that_found_another_state_looks_again)
{
    guarded_all(LOOK_ADMITTED, GUARDED_ADMIT, "");
    guard_on_step(&guarded.guard, 1);
    guarded_do(GUARD_REVOKE, 1);
    guarded_expect(GUARD_LOOK, 1);
    guarded_found(1, LOOK_MARKED, "", GUARDED_OTHER_MARK);
    guarded_expect_nothing();
}
END_TEST

Suite *check_revocation(void);

Suite *check_revocation(void)
{
    Suite *suite = suite_create("revocation");
    TCase *tc = tcase_create("revocation");
    tcase_add_checked_fixture(tc, guarded_begin, NULL);
    tcase_add_test(
        tc, story_44_durability_that_was_turned_off_is_written_down_at_once);
    tcase_add_test(tc, story_11_a_node_whose_clock_stepped_loses_its_vote);
    tcase_add_test(tc,
                   a_step_seen_on_a_lost_connection_takes_the_vote_after_it);
    tcase_add_test(tc,
                   a_step_is_not_forgotten_over_an_admission_that_was_too_late);
    tcase_add_test(tc, a_revocation_that_found_another_state_looks_again);
    suite_add_tcase(suite, tc);
    return suite;
}
