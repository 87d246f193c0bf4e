/*
 * How a node loses its vote: its durability was switched off, its clock
 * stepped.
 */

#include "../../lib/suite/suite.h"
#include "voters.h"

SUITE(revocation, .set_up = voters_begin);

TEST(story_44_durability_that_was_turned_off_is_written_down_at_once)
{
    voters_all(LOOK_ADMITTED, VOTERS_ADMIT, "");
    admission_on_durable(&voters.admission, 3, true, voters.now_us);
    voters_expect_nothing();
    admission_on_durable(&voters.admission, 3, false, voters.now_us);
    voters_expect(ADMISSION_LOOK, 3);
    ck_assert(!voters.admission.node[3].is_durable);
    voters_found(3, LOOK_ADMITTED, VOTERS_ADMIT, "");
    admission_on_durable(&voters.admission, 3, false, voters.now_us);
    voters_expect_nothing();
}

TEST(story_11_a_node_whose_clock_stepped_loses_its_vote)
{
    voters_all(LOOK_ADMITTED, VOTERS_ADMIT, "");
    admission_on_step(&voters.admission, 1);
    VOTERS_ASSERT_REFUSAL(1, STATE_STEPPED);
    voters_do(ADMISSION_REVOKE, 1);
    voters_expect(ADMISSION_LOOK, 1);
    voters_found(1, LOOK_MARKED, "", VOTERS_OTHER_MARK);
    voters_expect_nothing();
    VOTERS_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    voters_pass_until(ADMISSION_ADMIT, 2 * HEARTBEAT_US + 1);
    voters_give(ADMISSION_ADMIT, 1);
}

TEST(a_step_seen_on_a_lost_connection_takes_the_vote_after_it)
{
    voters_all(LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_down(1);
    admission_on_step(&voters.admission, 1);
    voters_pass(1);
    (void)voters_look_around();
    voters_come(1, LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(ADMISSION_REVOKE, 1);
}

/* Somebody else admitted it meanwhile, so that our own attempt did nothing. */
TEST(a_step_is_not_forgotten_over_an_admission_that_was_too_late)
{
    voters_come(0, LOOK_FRESH, "", VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US);
    (void)voters_look_around();
    voters_expect(ADMISSION_ADMIT, 0);
    admission_on_step(&voters.admission, 0);
    admission_on_done(&voters.admission,
                      &(struct admission_action){ADMISSION_ADMIT, 0},
                      voters.now_us);
    voters_expect(ADMISSION_LOOK, 0);
    voters_found(0, LOOK_ADMITTED, VOTERS_ADMIT, "");
    VOTERS_ASSERT_REFUSAL(0, STATE_STEPPED);
    voters_expect(ADMISSION_REVOKE, 0);
}
